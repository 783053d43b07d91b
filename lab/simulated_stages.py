"""How simulated nodes and pods behave, as KWOK stages: pure data.

Pods that are to run for ever (`restartPolicy: Always`) run. The others get their group's verdict.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

ANNOTATION = "kwok.x-k8s.io/node"
ANNOTATED = "fake"
_LONGEST_NAME = 253


@dataclass(frozen=True)
class Verdict:
    """How a pod ends on a simulated node. Use the makers below: `passes()`, `fails(…)`, `HANGS`, `never_starts(…)`."""

    starts: bool = True
    ends: bool = True
    exit_code: int = 0
    message: str = ""
    """The termination message; or, of a pod that does not start, what its container waits for."""
    reason: str = ""
    seconds_to_start: float = 0.3
    seconds_to_end: float = 0.7


def passes(message: str = "", *, seconds: float = 0.7) -> Verdict:
    return Verdict(message=message, seconds_to_end=seconds)


def fails(message: str = "", *, exit_code: int = 1, seconds: float = 0.7) -> Verdict:
    return Verdict(exit_code=exit_code, message=message, seconds_to_end=seconds)


def never_starts(reason: str = "ImagePullBackOff", message: str = "") -> Verdict:
    return Verdict(starts=False, ends=False, reason=reason, message=message)


PASSES = passes()
HANGS = Verdict(ends=False)


def of_group(prefix: str, verdict: Verdict) -> list[dict[str, Any]]:
    """The stages that carry out a verdict on the nodes `prefix-0`, `prefix-1`, …"""
    return _carrying_out(verdict, prefix, f"^{re.escape(prefix)}-[0-9]+$")


def of_pool(pool: str, verdict: Verdict) -> list[dict[str, Any]]:
    """The same on the nodes that Karpenter's KWOK provider makes for a NodePool, and names after their NodeClaims."""
    return _carrying_out(verdict, f"pool-{pool}", f"^kwok-{re.escape(pool)}-[a-z0-9]{{5}}-")


def _carrying_out(verdict: Verdict, prefix: str, nodes: str) -> list[dict[str, Any]]:
    """Always the same names, so that a new verdict replaces the old; a stage with no part in it matches nothing."""
    mine = [
        _is(f'.spec.nodeName | if test({json.dumps(nodes)}) then "yes" else "no" end', "yes"),
        _is(".spec.restartPolicy", "Never", "OnFailure"),
    ]
    starting = _running() if verdict.starts else _waiting(verdict.reason, verdict.message)
    ending = _ended(verdict) if verdict.ends else "{}"
    not_yet = _is(".status.containerStatuses.[0].state.waiting.reason", verdict.reason or "-", negated=True)
    return [
        _stage(
            _named(prefix, "starts"),
            [*mine, _is(".status.phase", "Pending"), not_yet],
            verdict.seconds_to_start,
            starting,
        ),
        _stage(
            _named(prefix, "ends"),
            [*mine, _is(".status.phase", "Running" if verdict.ends else "-")],
            verdict.seconds_to_end,
            ending,
        ),
    ]


def _named(prefix: str, what: str) -> str:
    """A node's name may be as long as a stage's, which has to say more."""
    name = f"{prefix}-{what}"
    return name if len(name) <= _LONGEST_NAME else f"{hashlib.sha256(prefix.encode()).hexdigest()[:16]}-{what}"


def _is(key: str, *values: str, negated: bool = False) -> dict[str, Any]:
    return {"key": key, "operator": "NotIn" if negated else "In", "values": list(values)}


def _stage(name: str, when: list[dict[str, Any]], seconds: float, status: str, kind: str = "Pod") -> dict[str, Any]:
    alive = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": [alive, *when]},
            "delay": {"durationMilliseconds": round(seconds * 1000)},
            "next": {"statusTemplate": status},
        },
    }


def _statuses(state: str, *, ready: bool) -> str:
    """Every container in the same state. Flow style, so that indentation cannot go wrong."""
    facts = f'imageID: "", restartCount: 0, ready: {str(ready).lower()}, state: {state}'
    named = "name: {{ .name | Quote }}, image: {{ .image | Quote }}"
    return "containerStatuses: [{{ range .spec.containers }}{" + f"{named}, {facts}" + "},{{ end }}]\n"


def _literal(text: str) -> str:
    """A template that yields exactly this text, whatever is in it: braces, quotes, line ends."""
    return f"{{{{ {json.dumps(text, ensure_ascii=False)} | Quote }}}}"


def _conditions(status: str, reason: str, *kinds: str) -> str:
    """Conditions that all have the same status, for the same reason."""
    since = "lastTransitionTime: {{ Now | Quote }}"
    listed = [f'{{type: {kind}, status: "{status}", reason: "{reason}", {since}}}' for kind in kinds]
    return f"conditions: [{', '.join(listed)}]\n"


def _running() -> str:
    return (
        _statuses("{running: {startedAt: {{ Now | Quote }}}}", ready=True)
        + _conditions("True", "", "Initialized", "ContainersReady", "Ready")
        + "podIP: 192.0.2.2\npodIPs: [{ip: 192.0.2.2}]\nstartTime: {{ Now | Quote }}\nphase: Running\n"
    )


def _waiting(reason: str, message: str) -> str:
    state = f"{{waiting: {{reason: {_literal(reason)}, message: {_literal(message)}}}}}"
    return _statuses(state, ready=False) + "startTime: {{ Now | Quote }}\nphase: Pending\n"


def _ended(verdict: Verdict) -> str:
    reason, phase = ("Error", "Failed") if verdict.exit_code else ("Completed", "Succeeded")
    facts = f"exitCode: {verdict.exit_code}, reason: {reason}, message: {_literal(verdict.message)}"
    times = "startedAt: {{ Now | Quote }}, finishedAt: {{ Now | Quote }}"
    return (
        _statuses(f"{{terminated: {{{facts}, {times}}}}}", ready=False)
        + _conditions("False", "PodCompleted", "ContainersReady", "Ready")
        + f"phase: {phase}\n"
    )


_READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'

# What a kubelet reports of a healthy node. Also mends a node that was marked unreachable on a starved machine.
FOR_NODES = [
    _stage("node-ready", [_is(_READY, "True", negated=True)], 0, _conditions("True", "KubeletReady", "Ready"), "Node")
]

FOR_ALL_PODS = [
    _stage("runs-for-ever", [_is(".spec.restartPolicy", "Always"), _is(".status.phase", "Pending")], 0.3, _running()),
    {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": "deleted"},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {"matchExpressions": [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}]},
            "next": {"finalizers": {"empty": True}, "delete": True},
        },
    },
    # KWOK plays pods only on nodes it manages, and it manages nodes only if some stage is about nodes. This one never
    # applies: the other process looks after the nodes.
    _stage("nodes-are-not-mine", [_is(".metadata.name", "-")], 0, "phase: Running\n", "Node"),
]
