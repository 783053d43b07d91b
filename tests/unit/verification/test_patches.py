"""Patches: they take what is ours, and fail whole rather than take anything else."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kube_node_ready.api.contract import RECORD_ANNOTATION
from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import Outcome, VerificationRecord, decode_record, encode_record
from kube_node_ready.verification import patches
from kube_node_ready.verification.model import Gate, Node, Policy

OURS, OTHER_OURS = Taint("node-ready/unverified", "NoSchedule", "true"), Taint("example.com/gate", "NoExecute")
FOREIGN = Taint("example.com/foreign", "NoSchedule")
SAME_KEY = Taint("node-ready/unverified", "NoExecute", "true")
POLICY = Policy((Gate("node-ready/unverified", "NoSchedule"), Gate("example.com/gate", "NoExecute")))
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PROOF = VerificationRecord(1, outcome=Outcome.PASSED, at=NOW, since=NOW)


RECORD = "/metadata/annotations/node-ready~1verification"


def removed(patch: patches.JsonPatch) -> list[str]:
    return [step["path"] for step in patch if step["op"] == "remove"]


def checked(patch: patches.JsonPatch) -> dict[str, Any]:
    return {step["path"]: step["value"] for step in patch if step["op"] == "test"}


def test_removed_taints_are_tested_from_last_to_first() -> None:
    node = Node("a", "uid-1", taints=(FOREIGN, OURS, SAME_KEY, OTHER_OURS))
    patch = patches.open_gate(node, PROOF, POLICY)
    assert removed(patch) == ["/spec/taints/3", "/spec/taints/1"]
    assert checked(patch) == {
        "/metadata/uid": "uid-1",
        RECORD: None,
        "/spec/taints/1/key": "node-ready/unverified",
        "/spec/taints/1/effect": "NoSchedule",
        "/spec/taints/3/key": "example.com/gate",
        "/spec/taints/3/effect": "NoExecute",
    }


def test_all_tests_precede_all_changes() -> None:
    patch = patches.open_gate(Node("a", "uid-1", taints=(OURS, OTHER_OURS)), PROOF, POLICY)
    kinds = [step["op"] for step in patch]
    assert kinds == sorted(kinds, key=["test", "remove", "add"].index)


def test_the_value_of_a_taint_is_ignored() -> None:
    patch = patches.open_gate(Node("a", "uid-1", taints=(Taint(OURS.key, OURS.effect, "other"),)), PROOF, POLICY)
    assert removed(patch) == ["/spec/taints/0"]


def test_label_and_proof_are_added_to_existing_maps() -> None:
    added = [step for step in patches.open_gate(Node("a", "uid-1"), PROOF, POLICY) if step["op"] == "add"]
    assert added == [
        {"op": "add", "path": "/metadata/labels/node-ready~1verified", "value": "true"},
        {"op": "add", "path": "/metadata/annotations/node-ready~1verification", "value": encode_record(PROOF)},
    ]


def test_missing_maps_are_created_only_if_still_missing() -> None:
    node = Node("a", "uid-1", has_labels=False, has_annotations=False)
    patch = patches.open_gate(node, PROOF, POLICY)
    assert checked(patch) == {"/metadata/uid": "uid-1", "/metadata/labels": None, "/metadata/annotations": None}


@pytest.mark.parametrize("text", [None, encode_record(PROOF), "not a record"])
def test_the_record_that_the_decision_is_based_on_is_tested(text: str | None) -> None:
    node = Node("a", "uid-1", record_text=text)
    assert checked(patches.open_gate(node, PROOF, POLICY, "7")) == {"/metadata/uid": "uid-1", RECORD: text}


def test_for_an_oversized_record_the_version_is_tested() -> None:
    node = Node("a", "uid-1", record_text="")
    patch = patches.open_gate(node, PROOF, POLICY, "7")
    assert checked(patch) == {"/metadata/uid": "uid-1", "/metadata/resourceVersion": "7"}


FAILURE = VerificationRecord(3, failures=3, outcome=Outcome.FAILED, at=NOW, since=NOW)


def engaged(node: Node) -> list[dict[str, Any]]:
    """What closing this node's gate changes, after the tests."""
    patch = patches.close_gate(node, FAILURE, POLICY, OURS, "7")
    assert checked(patch)["/metadata/uid"] == "uid-1"
    assert checked(patch)["/metadata/resourceVersion"] == "7", "whoever came first wins"
    return [step for step in patch if step["op"] != "test"]


def test_closing_a_gate_keeps_foreign_taints() -> None:
    label, taint, record = engaged(Node("a", "uid-1", labelled=True, taints=(FOREIGN, SAME_KEY)))
    assert label == {"op": "remove", "path": "/metadata/labels/node-ready~1verified"}
    assert taint["path"] == "/spec/taints/-"
    assert taint["value"] == {"key": "node-ready/unverified", "effect": "NoSchedule", "value": "true"}
    assert record["value"] == encode_record(FAILURE)


def test_the_first_taint_of_a_node_creates_the_list() -> None:
    (taint,) = [step for step in engaged(Node("a", "uid-1")) if "taints" in step["path"]]
    assert (taint["path"], len(taint["value"])) == ("/spec/taints", 1)


def test_an_already_closed_gate_is_unchanged() -> None:
    node = Node("a", "uid-1", labelled=True, taints=(Taint(OURS.key, OURS.effect, "other"),))
    assert not [step for step in engaged(node) if "taints" in step["path"]]


@pytest.mark.parametrize(
    ("record", "status", "reason"),
    [
        (PROOF, "True", "Verified"),
        (VerificationRecord(1, failures=1, outcome=Outcome.FAILED), "False", "VerificationFailed"),
        (VerificationRecord(5, failures=5, outcome=Outcome.FAILED), "False", "VerificationExhausted"),
        (VerificationRecord(1), "Unknown", "Verifying"),
    ],
    ids=["passed", "failed", "exhausted", "pending"],
)
def test_the_condition_shows_the_record(record: VerificationRecord, status: str, reason: str) -> None:
    patch = patches.write_status(Node("a", "uid-1"), record, POLICY)
    (condition,) = patch["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("NodeVerified", status, reason)
    assert patch["metadata"]["uid"] == "uid-1", "another node of that name is another node"


def test_a_failure_is_recorded_over_the_version_it_was_decided_on_or_not_at_all() -> None:
    record = VerificationRecord(1, failures=1, outcome=Outcome.FAILED)
    metadata = patches.write_status(Node("a", "uid-1"), record, POLICY, "42")["metadata"]
    assert metadata["resourceVersion"] == "42"
    assert decode_record(metadata["annotations"][RECORD_ANNOTATION]) == record


def test_a_proof_is_recorded_by_the_release_alone() -> None:
    """A late condition must not restore an earlier proof."""
    assert patches.write_status(Node("a", "uid-1"), PROOF, POLICY)["metadata"] == {"uid": "uid-1"}
