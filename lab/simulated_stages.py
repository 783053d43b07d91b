"""The behavior of simulated nodes and pods, as KWOK stages: pure data.

Pods with `restartPolicy: Always` keep running. The others get their group's verdict.
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
    """How a pod ends on a simulated node. Use the ones below: `passes()`, `fails(…)`, `HANGS`, `never_starts(…)`."""

    starts: bool = True
    ends: bool = True
    exit_code: int = 0
    message: str = ""
    """The termination message; for a pod that does not start, the reason why its container waits."""
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
    """Return the stages of a verdict for the nodes `prefix-0`, `prefix-1`, …"""
    return _carrying_out(verdict, prefix, f"^{re.escape(prefix)}-[0-9]+$")


def of_pool(pool: str, verdict: Verdict) -> list[dict[str, Any]]:
    """Return the stages of a verdict for the nodes of a NodePool, which are named after their NodeClaims."""
    return _carrying_out(verdict, f"pool-{pool}", f"^kwok-{re.escape(pool)}-[a-z0-9]{{5}}-")


def _carrying_out(verdict: Verdict, prefix: str, nodes: str) -> list[dict[str, Any]]:
    """Return stages with fixed names, so that a new verdict replaces the old one; an unused stage matches nothing."""
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
            weight=1,
        ),
        _stage(
            _named(prefix, "ends"),
            [*mine, _is(".status.phase", "Running" if verdict.ends else "-")],
            verdict.seconds_to_end,
            ending,
            weight=1,
        ),
    ]


def _named(prefix: str, what: str) -> str:
    """Shorten a name: a node's name can be as long as a stage's name, which contains more."""
    name = f"{prefix}-{what}"
    return name if len(name) <= _LONGEST_NAME else f"{hashlib.sha256(prefix.encode()).hexdigest()[:16]}-{what}"


def _is(key: str, *values: str, negated: bool = False) -> dict[str, Any]:
    return {"key": key, "operator": "NotIn" if negated else "In", "values": list(values)}


def _stage(
    name: str, when: list[dict[str, Any]], seconds: float, status: str, kind: str = "Pod", *, weight: int = 0
) -> dict[str, Any]:
    """Return a stage. Of those that match, one with a weight is used; without weights, any of them."""
    alive = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": [alive, *when]},
            "weight": weight,
            "delay": {"durationMilliseconds": round(seconds * 1000)},
            "next": {"statusTemplate": status},
        },
    }


def _statuses(state: str, *, ready: bool) -> str:
    """Return statuses with every container in the same state. Flow style avoids errors of indentation."""
    facts = f'imageID: "", restartCount: 0, ready: {str(ready).lower()}, state: {state}'
    named = "name: {{ .name | Quote }}, image: {{ .image | Quote }}"
    return "containerStatuses: [{{ range .spec.containers }}{" + f"{named}, {facts}" + "},{{ end }}]\n"


def _literal(text: str) -> str:
    """Return a template that produces exactly this text, including braces, quotes and line ends."""
    return f"{{{{ {json.dumps(text, ensure_ascii=False)} | Quote }}}}"


def _conditions(status: str, reason: str, *kinds: str) -> str:
    """Return conditions that have the same status and reason."""
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

# What a kubelet reports for a healthy node. Also repairs a node that was marked unreachable on an overloaded machine.
FOR_NODES = [
    _stage("node-ready", [_is(_READY, "True", negated=True)], 0, _conditions("True", "KubeletReady", "Ready"), "Node")
]

# KWOK chooses a pod's stage when the pod changes, not when a stage is added. So a pod that arrives before the stages of
# its group is changed every second, until they have arrived.
_AWAITS_STAGES = _stage(
    "awaits-stages",
    [
        _is(".spec.restartPolicy", "Never", "OnFailure"),
        _is(".status.phase", "Pending"),
        {"key": ".status.startTime", "operator": "DoesNotExist"},
    ],
    1,
    "message: {{ Now | Quote }}\n",
)

FOR_ALL_PODS = [
    _AWAITS_STAGES,
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
    # KWOK simulates pods only on nodes it manages, and manages nodes only if there is a stage for nodes. This one never
    # applies: the other process manages the nodes.
    _stage("nodes-are-not-mine", [_is(".metadata.name", "-")], 0, "phase: Running\n", "Node"),
]
