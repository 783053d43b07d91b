"""Patches, whole."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord, encode_record
from kube_node_ready.verification import messages, patches
from kube_node_ready.verification.model import Gate, Node, Policy
from tests.unit.api.test_record import LARGE

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
GATE = Taint("node-ready/unverified", "NoSchedule", "true")
POLICY = Policy((Gate(GATE.key, GATE.effect),), label="a~b/verified", max_failures=5)
RECORD = VerificationRecord(2, failures=1, outcome=Outcome.FAILED, at=AT, since=SINCE, reason="dns")
TEXT = encode_record(RECORD)
UID = {"op": "test", "path": "/metadata/uid", "value": "u"}


def test_a_release_creates_missing_maps_and_tests_that_they_are_missing() -> None:
    node = Node("a", "u", has_labels=False, has_annotations=False)
    assert patches.open_gate(node, RECORD, POLICY) == [
        UID,
        {"op": "test", "path": "/metadata/labels", "value": None},
        {"op": "add", "path": "/metadata/labels", "value": {"a~b/verified": "true"}},
        {"op": "test", "path": "/metadata/annotations", "value": None},
        {"op": "add", "path": "/metadata/annotations", "value": {"node-ready/verification": TEXT}},
    ]


def test_keys_are_escaped_in_pointers() -> None:
    patch = patches.open_gate(Node("a", "u"), RECORD, POLICY)
    assert patch[2] == {"op": "add", "path": "/metadata/labels/a~0b~1verified", "value": "true"}


@pytest.mark.parametrize("labelled", [True, False])
def test_closing_a_gate_removes_the_label_only_where_there_is_one(labelled: bool) -> None:  # noqa: FBT001  a table
    removal = [{"op": "remove", "path": "/metadata/labels/a~0b~1verified"}] if labelled else []
    assert patches.close_gate(Node("a", "u", labelled=labelled), RECORD, POLICY, GATE, "7") == [
        UID,
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        *removal,
        {"op": "add", "path": "/spec/taints", "value": [{"key": GATE.key, "effect": GATE.effect, "value": "true"}]},
        {"op": "add", "path": "/metadata/annotations/node-ready~1verification", "value": TEXT},
    ]


def test_the_condition_is_complete() -> None:
    assert patches.write_status(Node("a", "u"), RECORD, POLICY, "7") == {
        "metadata": {"uid": "u", "annotations": {"node-ready/verification": TEXT}, "resourceVersion": "7"},
        "status": {
            "conditions": [
                {
                    "type": "NodeVerified",
                    "status": "False",
                    "reason": "VerificationFailed",
                    "message": "dns (attempt 1 of 5)",
                    "lastHeartbeatTime": "2026-01-02T03:04:05Z",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ]
        },
    }


def condition(record: VerificationRecord) -> dict[str, Any]:
    (only,) = patches.write_status(Node("a", "u"), record, POLICY)["status"]["conditions"]
    return dict(only)


def test_a_record_without_times_has_none_in_its_condition() -> None:
    shown = condition(VerificationRecord())
    assert (shown["lastHeartbeatTime"], shown["lastTransitionTime"]) == (None, None)


@pytest.mark.parametrize(
    ("outcome", "failures", "reason"),
    [
        (Outcome.FAILED, 4, "VerificationFailed"),
        (Outcome.FAILED, 5, "VerificationExhausted"),
        (Outcome.PASSED, 5, "Verified"),
        (Outcome.PENDING, 5, "Verifying"),
    ],
)
def test_only_a_failed_node_is_exhausted(outcome: Outcome, failures: int, reason: str) -> None:
    assert condition(VerificationRecord(9, failures=failures, outcome=outcome))["reason"] == reason


def test_an_adoption_writes_the_record_over_what_was_seen() -> None:
    annotations = {"node-ready/verification": TEXT}
    expected = {"metadata": {"uid": "u", "resourceVersion": "7", "annotations": annotations}}
    assert patches.adopt_node(Node("a", "u"), RECORD, "7") == expected


def test_a_cordon_is_of_exactly_this_node() -> None:
    assert patches.cordon(Node("a", "u")) == [UID, {"op": "add", "path": "/spec/unschedulable", "value": True}]


@pytest.mark.parametrize(
    ("cause", "reason"),
    [(Cause.NOT_RELEASED, "ReleaseRejected"), (Cause.NOT_RECORDED, "RecordRejected"), (Cause.STOPPED, "Verifying")],
)
def test_a_write_that_the_api_server_rejects_is_the_reason_of_the_condition(cause: Cause, reason: str) -> None:
    assert condition(VerificationRecord(1, cause=cause))["reason"] == reason
    assert (reason in messages.REJECTIONS) is (cause is not Cause.STOPPED)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome.PENDING, "GateContested"),
        (Outcome.PASSED, "Verified"),
        (Outcome.FAILED, "VerificationFailed"),
    ],
)
def test_only_a_gate_that_waits_is_shown_as_contested(outcome: Outcome, reason: str) -> None:
    assert condition(VerificationRecord(9, outcome=outcome, contested=9))["reason"] == reason


@pytest.mark.parametrize("record", LARGE)
def test_no_message_is_larger_than_the_admission_policies_allow(record: VerificationRecord) -> None:
    (condition,) = patches.write_status(Node("a", "u"), record, POLICY)["status"]["conditions"]
    assert 1000 < len(condition["message"].encode()) <= 2**15
    assert len(condition["reason"]) <= 2**10
