"""Patches that fail whole if another writer came first, and never touch what is not ours.

The taint list belongs to many. It is never rewritten: the patch names the positions of our taints, tests that they are
still there, and removes them, the last first so that the positions before it stay true.
"""

import math
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from kube_node_ready.objects import Taint
from kube_node_ready.verify.decide import is_contested, told
from kube_node_ready.verify.model import Cause, Node, Outcome, Policy, Record
from kube_node_ready.verify.report import MOST_MS, MOST_RESULTS, cleaned, printable

ANNOTATION = "node-ready/verification"
CONDITION = "NodeVerified"
LONGEST_BOOT = 100
MOST_ATTEMPTS = 10**7
JsonPatch = list[dict[str, Any]]

_MOST_CHARACTERS = 2**18
"""Of all annotations together the API server accepts 256 KiB."""
_LONGEST_REASON = 4000
_MOST_SECONDS = 10 * 366 * 86_400.0
_FIRST_YEAR, _LAST_YEAR = 1970, 9000

_STATUS = {Outcome.PASSED: "True", Outcome.FAILED: "False", Outcome.PENDING: "Unknown"}
_REASON = {Outcome.PASSED: "Verified", Outcome.FAILED: "VerificationFailed", Outcome.PENDING: "Verifying"}

REFUSED = {Cause.NOT_RELEASED: "ReleaseRejected", Cause.NOT_RECORDED: "RecordRejected"}
REFUSALS = frozenset(REFUSED.values())
"""Reasons of the condition while the API server rejects what is to be written to the Node."""


def release(node: Node, record: Record, policy: Policy) -> JsonPatch:
    """Open the gate of exactly this node, as it was seen: taints off, label and proof on, all or nothing."""
    ours = [at for at, taint in enumerate(node.taints) if policy.is_gate(taint)]
    patch: JsonPatch = [_test("/metadata/uid", node.uid)]
    for at in ours:
        patch += [
            _test(f"/spec/taints/{at}/key", node.taints[at].key),
            _test(f"/spec/taints/{at}/effect", node.taints[at].effect),
        ]
    patch += [{"op": "remove", "path": f"/spec/taints/{at}"} for at in reversed(ours)]
    patch += _put("labels", policy.label, policy.label_value, there=node.has_labels)
    patch += _put("annotations", ANNOTATION, encode(record), there=node.has_annotations)
    return patch


def engage(node: Node, record: Record, policy: Policy, gate: Taint | None, version: str) -> JsonPatch:
    """Close the gate of exactly this node, as it was seen: taint on, label off, and the record of why, all or nothing.

    What is added to a list cannot be tested beforehand, so this one tests the version: no taint is put there twice.
    """
    patch: JsonPatch = [_test("/metadata/uid", node.uid), _test("/metadata/resourceVersion", version)]
    if node.labelled:
        patch.append({"op": "remove", "path": f"/metadata/labels/{_escaped(policy.label)}"})
    if gate and not policy.gated(node):
        taint = msgspec.to_builtins(gate)
        where, what = ("/spec/taints/-", taint) if node.taints else ("/spec/taints", [taint])
        patch.append({"op": "add", "path": where, "value": what})
    return patch + _put("annotations", ANNOTATION, encode(record), there=node.has_annotations)


def status(node: Node, record: Record, policy: Policy, version: str = "") -> dict[str, Any]:
    """A strategic merge patch for nodes/status: the condition that shows the record to others, and the record itself.

    The record is written over the version it was decided on, or not at all: a late write must not undo what a later
    life of us recorded. Without a version it is on the node already, and only its condition follows.
    """
    reason = _condition_reason(record, policy)
    condition = {
        "type": CONDITION,
        "status": _STATUS[record.outcome],
        "reason": reason,
        "message": told(record, policy),
        "lastHeartbeatTime": _time(record.at),
        "lastTransitionTime": _time(record.since),
    }
    # Another node's uid makes the server refuse: a new node of the same name starts with a clean slate.
    metadata: dict[str, Any] = {"uid": node.uid}
    if version:
        metadata |= {"annotations": {ANNOTATION: encode(record)}, "resourceVersion": version}
    return {"metadata": metadata, "status": {"conditions": [condition]}}


def adoption(node: Node, record: Record, version: str) -> dict[str, Any]:
    """A merge patch that puts the record on the node as it was seen, and nothing else."""
    return {"metadata": {"uid": node.uid, "resourceVersion": version, "annotations": {ANNOTATION: encode(record)}}}


def cordon(node: Node) -> JsonPatch:
    """No new pods on exactly this node."""
    return [_test("/metadata/uid", node.uid), {"op": "add", "path": "/spec/unschedulable", "value": True}]


def encode(record: Record) -> str:
    """As JSON that `decode` accepts."""
    return msgspec.json.encode(replace(record, seconds=_possible_seconds(record.seconds))).decode()


def decode(annotation: str | None) -> Record:
    """The record; an empty one if there is none, or if it cannot be one that we wrote.

    The node's kubelet can write this annotation. All numbers and times that pass are safe to calculate with, and all
    texts to print.
    """
    if annotation is None or len(annotation) > _MOST_CHARACTERS:
        return Record()
    try:
        record = msgspec.json.decode(annotation, type=Record)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):  # the last of a lone surrogate
        return Record()
    return _cleaned(record) if _is_possible(record) else Record()


def _is_possible(record: Record) -> bool:
    # An attempt that follows must be readable too, or its verdict would be lost. After a proof there need be none.
    room = 0 if record.outcome is Outcome.PASSED else 1
    return (
        0 <= record.failures <= record.attempt <= MOST_ATTEMPTS - room
        and 0 <= record.blamed <= record.failures
        and 0 <= record.contested <= record.attempt
        and 0 <= record.seconds <= _MOST_SECONDS
        and all(time is None or _is_possible_time(time) for time in (record.at, record.since))
        and len(record.checks) <= MOST_RESULTS
        and all(0 <= check.ms <= MOST_MS for check in record.checks)
    )


def _is_possible_time(time: datetime) -> bool:
    """Far from the ends of the calendar, and in UTC, as we write it."""
    return _FIRST_YEAR <= time.year <= _LAST_YEAR and time.utcoffset() == timedelta()


def _possible_seconds(seconds: float) -> float:
    """Clocks can be wrong by decades."""
    return min(max(seconds, 0), _MOST_SECONDS) if math.isfinite(seconds) else 0


def _cleaned(record: Record) -> Record:
    reason, boot = printable(record.reason, _LONGEST_REASON), printable(record.boot, LONGEST_BOOT)
    if record.reason and not reason:  # without a reason, a failure since the proof would pass for none
        return Record()
    return replace(record, reason=reason, boot=boot, checks=tuple(map(cleaned, record.checks)))


def _condition_reason(record: Record, policy: Policy) -> str:
    if _exhausted(record, policy):
        return "VerificationExhausted"
    if record.outcome is Outcome.PENDING and is_contested(record):
        return "GateContested"
    return REFUSED.get(record.cause) or _REASON[record.outcome]


def _exhausted(record: Record, policy: Policy) -> bool:
    return record.outcome is Outcome.FAILED and record.failures >= policy.max_failures


def _test(path: str, value: object) -> dict[str, Any]:
    return {"op": "test", "path": path, "value": value}


def _put(where: str, key: str, value: str, *, there: bool) -> JsonPatch:
    if there:
        return [{"op": "add", "path": f"/metadata/{where}/{_escaped(key)}", "value": value}]
    # The map must be made, and making it would overwrite one that someone made in the meantime.
    return [_test(f"/metadata/{where}", None), {"op": "add", "path": f"/metadata/{where}", "value": {key: value}}]


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _time(time: datetime | None) -> str | None:
    text: str | None = msgspec.to_builtins(time)
    return text
