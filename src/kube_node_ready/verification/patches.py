"""Build patches that fail as a whole if the object has changed, and that change only our own fields.

Many clients write the list of taints, so it is never replaced. The patch tests that our taints are at their positions,
and removes them, the last one first, so that the other positions stay valid.
"""

from datetime import datetime
from typing import Any

import msgspec

from kube_node_ready.api.contract import CONDITION, RECORD_ANNOTATION
from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import MAX_REASON_LENGTH, Outcome, VerificationRecord, encode_record
from kube_node_ready.api.report import printable
from kube_node_ready.verification.messages import condition_message, condition_reason
from kube_node_ready.verification.model import Node, Policy

JsonPatch = list[dict[str, Any]]

_STATUS = {Outcome.PASSED: "True", Outcome.FAILED: "False", Outcome.PENDING: "Unknown"}


def open_gate(node: Node, record: VerificationRecord, policy: Policy, version: str = "") -> JsonPatch:
    """Open the gate of exactly this Node: remove the taints, set the label and the record, all or nothing.

    The patch tests the record that the decision is based on: a controller whose watch lags must not open a gate that
    was opened and closed again meanwhile.
    """
    ours = [at for at, taint in enumerate(node.taints) if policy.is_gate(taint)]
    patch: JsonPatch = [_test("/metadata/uid", node.uid), *_test_record(node, version)]
    for at in ours:
        patch += [
            _test(f"/spec/taints/{at}/key", node.taints[at].key),
            _test(f"/spec/taints/{at}/effect", node.taints[at].effect),
        ]
    patch += [{"op": "remove", "path": f"/spec/taints/{at}"} for at in reversed(ours)]
    patch += _set("labels", policy.label, policy.label_value, exists=node.has_labels)
    patch += _set("annotations", RECORD_ANNOTATION, encode_record(record), exists=node.has_annotations)
    return patch


def close_gate(node: Node, record: VerificationRecord, policy: Policy, gate: Taint | None, version: str) -> JsonPatch:
    """Close the gate of exactly this Node: add the taint, remove the label, set the record, all or nothing.

    An addition to a list has no precondition of its own, so the patch tests the version: no taint is added twice.
    """
    patch: JsonPatch = [_test("/metadata/uid", node.uid), _test("/metadata/resourceVersion", version)]
    if node.labelled:
        patch.append({"op": "remove", "path": f"/metadata/labels/{_escaped(policy.label)}"})
    if gate and not policy.is_gated(node):
        taint = msgspec.to_builtins(gate)
        where, what = ("/spec/taints/-", taint) if node.taints else ("/spec/taints", [taint])
        patch.append({"op": "add", "path": where, "value": what})
    return patch + _set("annotations", RECORD_ANNOTATION, encode_record(record), exists=node.has_annotations)


def write_status(node: Node, record: VerificationRecord, policy: Policy, version: str = "") -> dict[str, Any]:
    """Build a strategic merge patch for nodes/status with the condition and the record.

    The record is written only if the Node still has the version that the decision is based on: a late write must not
    overwrite a newer record. Without a version the record is written already, and only the condition follows.
    """
    condition = {
        "type": CONDITION,
        "status": _STATUS[record.outcome],
        "reason": condition_reason(record, policy),
        "message": printable(condition_message(record, policy), MAX_REASON_LENGTH),
        "lastHeartbeatTime": _time(record.at),
        "lastTransitionTime": _time(record.since),
    }
    # The server rejects another UID, so that a new Node of the same name gets no old record.
    metadata: dict[str, Any] = {"uid": node.uid}
    if version:
        metadata |= {"annotations": {RECORD_ANNOTATION: encode_record(record)}, "resourceVersion": version}
    return {"metadata": metadata, "status": {"conditions": [condition]}}


def adopt_node(node: Node, record: VerificationRecord, version: str) -> dict[str, Any]:
    """Build a merge patch that sets the record, if the Node has not changed."""
    return {
        "metadata": {
            "uid": node.uid,
            "resourceVersion": version,
            "annotations": {RECORD_ANNOTATION: encode_record(record)},
        }
    }


def cordon(node: Node) -> JsonPatch:
    """Mark exactly this Node as unschedulable."""
    return [_test("/metadata/uid", node.uid), {"op": "add", "path": "/spec/unschedulable", "value": True}]


def _test(path: str, value: object) -> dict[str, Any]:
    return {"op": "test", "path": path, "value": value}


def _test_record(node: Node, version: str) -> JsonPatch:
    if not node.has_annotations:  # `_set` tests that there are none
        return []
    if node.record_text == "":
        return [_test("/metadata/resourceVersion", version)]
    return [_test(f"/metadata/annotations/{_escaped(RECORD_ANNOTATION)}", node.record_text)]


def _set(where: str, key: str, value: str, *, exists: bool) -> JsonPatch:
    if exists:
        return [{"op": "add", "path": f"/metadata/{where}/{_escaped(key)}", "value": value}]
    # The map has to be created, which would overwrite one that another client created meanwhile.
    return [_test(f"/metadata/{where}", None), {"op": "add", "path": f"/metadata/{where}", "value": {key: value}}]


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _time(time: datetime | None) -> str | None:
    text: str | None = msgspec.to_builtins(time)
    return text
