"""Patches, whole, and records at their edges."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kube_node_ready.objects import Taint
from kube_node_ready.verify import patches
from kube_node_ready.verify.model import Gate, Node, Outcome, Policy, Record

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
GATE = Taint("node-ready/unverified", "NoSchedule", "true")
POLICY = Policy((Gate(GATE.key, GATE.effect),), label="a~b/verified", max_failures=5)
RECORD = Record(2, failures=1, outcome=Outcome.FAILED, at=AT, since=SINCE, reason="dns")
TEXT = patches.encode(RECORD)
UID = {"op": "test", "path": "/metadata/uid", "value": "u"}


def test_a_release_makes_missing_maps_and_tests_that_they_are_missing() -> None:
    node = Node("a", "u", has_labels=False, has_annotations=False)
    assert patches.release(node, RECORD, POLICY) == [
        UID,
        {"op": "test", "path": "/metadata/labels", "value": None},
        {"op": "add", "path": "/metadata/labels", "value": {"a~b/verified": "true"}},
        {"op": "test", "path": "/metadata/annotations", "value": None},
        {"op": "add", "path": "/metadata/annotations", "value": {"node-ready/verification": TEXT}},
    ]


def test_keys_are_escaped_in_pointers() -> None:
    patch = patches.release(Node("a", "u"), RECORD, POLICY)
    assert patch[1] == {"op": "add", "path": "/metadata/labels/a~0b~1verified", "value": "true"}


@pytest.mark.parametrize("labelled", [True, False])
def test_closing_a_gate_removes_the_label_only_where_there_is_one(labelled: bool) -> None:  # noqa: FBT001  a table
    removal = [{"op": "remove", "path": "/metadata/labels/a~0b~1verified"}] if labelled else []
    assert patches.engage(Node("a", "u", labelled=labelled), RECORD, POLICY, GATE, "7") == [
        UID,
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        *removal,
        {"op": "add", "path": "/spec/taints", "value": [{"key": GATE.key, "effect": GATE.effect, "value": "true"}]},
        {"op": "add", "path": "/metadata/annotations/node-ready~1verification", "value": TEXT},
    ]


def test_the_condition_is_complete() -> None:
    assert patches.status(Node("a", "u"), RECORD, POLICY, "7") == {
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


def condition(record: Record) -> dict[str, Any]:
    (only,) = patches.status(Node("a", "u"), record, POLICY)["status"]["conditions"]
    return dict(only)


def test_a_record_without_times_has_none_in_its_condition() -> None:
    shown = condition(Record())
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
    assert condition(Record(9, failures=failures, outcome=outcome))["reason"] == reason


def test_an_adoption_writes_the_record_over_what_was_seen() -> None:
    annotations = {"node-ready/verification": TEXT}
    expected = {"metadata": {"uid": "u", "resourceVersion": "7", "annotations": annotations}}
    assert patches.adoption(Node("a", "u"), RECORD, "7") == expected


@pytest.mark.parametrize(
    ("record", "possible"),
    [
        (Record(10**7 - 1), True),
        (Record(10**7), False),
        (Record(3, failures=3, blamed=3), True),
        (Record(3, failures=4), False),
        (Record(3, failures=-1), False),
        (Record(3, failures=2, blamed=3), False),
        (Record(3, failures=2, blamed=-1), False),
        (Record(3, at=AT, since=SINCE), True),
        (Record(3, at=datetime(2026, 1, 1), since=SINCE), False),  # noqa: DTZ001  the point
        (Record(3, at=AT, since=datetime(2026, 1, 1)), False),  # noqa: DTZ001  the point
    ],
)
def test_impossible_records_are_empty_ones(record: Record, possible: bool) -> None:  # noqa: FBT001  a table
    assert patches.decode(patches.encode(record)) == (record if possible else Record())


def test_a_record_that_is_nested_too_deeply_is_an_empty_one() -> None:
    assert patches.decode('{"attempt":1,"x":' + "[" * 100_000 + "]" * 100_000 + "}") == Record()
