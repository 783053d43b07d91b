"""Records that another client wrote are recognized, and only those."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.controller.own_records import OwnRecords
from kube_node_ready.verification.model import Node

BEFORE = VerificationRecord(1, failures=1, outcome=Outcome.FAILED, cause=Cause.CHECKS, reason="dns")
PROOF = VerificationRecord(2, outcome=Outcome.PASSED, seconds=1.5)
NODE = Node("a", "uid-a", record=BEFORE)
SINCE = datetime(2026, 11, 1, tzinfo=UTC)
OLDER, YOUNGER = SINCE - timedelta(seconds=1), SINCE + timedelta(seconds=1)


class Watched:
    def __init__(self, *, is_only_writer: bool = True) -> None:
        self.forged = 0
        self.records = OwnRecords(self.count)
        if is_only_writer:
            self.records.expect_no_others(SINCE)

    def count(self) -> None:
        self.forged += 1


def with_record(record: VerificationRecord, uid: str = NODE.uid) -> Node:
    return replace(NODE, record=record, uid=uid)


def test_a_record_of_our_own_is_recognized_however_late_it_arrives() -> None:
    watched = Watched()
    for attempt in (2, 3, 4):
        watched.records.sent(NODE, replace(PROOF, attempt=attempt))
    watched.records.node_changed(NODE, with_record(PROOF))
    watched.records.node_changed(NODE, with_record(replace(PROOF, attempt=4)))
    assert not watched.forged
    assert not watched.records.take_forgery("a")


def test_the_last_four_records_are_recognized() -> None:
    watched = Watched()
    for attempt in (2, 3, 4, 5, 6):
        watched.records.sent(NODE, replace(PROOF, attempt=attempt))
    for attempt, forged in ((3, 0), (2, 1)):
        watched.records.node_changed(NODE, with_record(replace(PROOF, attempt=attempt)))
        assert watched.forged == forged


def test_a_record_of_another_client_is_reported_once() -> None:
    watched = Watched()
    watched.records.node_changed(NODE, with_record(PROOF))
    assert watched.forged == 1
    assert watched.records.take_forgery("a")
    assert not watched.records.take_forgery("a")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, with_record(PROOF)),
        (NODE, NODE),
        (NODE, with_record(PROOF, uid="uid-b")),
        (NODE, with_record(VerificationRecord(1))),
        (NODE, None),
        (None, replace(NODE, created=OLDER)),
        (None, replace(NODE, created=YOUNGER, record=VerificationRecord(1))),
        (None, replace(NODE, created=SINCE)),
    ],
    ids=[
        "seen first",
        "unchanged",
        "another node",
        "a request",
        "deleted",
        "of an earlier controller",
        "a request at registration",
        "as old as this leader",
    ],
)
def test_what_is_not_a_changed_verdict_is_not_a_forgery(before: Node | None, after: Node | None) -> None:
    watched = Watched()
    watched.records.node_changed(before, after)
    assert not watched.forged


@pytest.mark.parametrize("before", [None, NODE], ids=["a new node", "a new Node of the same name"])
def test_a_verdict_on_a_node_that_registers_is_reported(before: Node | None) -> None:
    watched = Watched()
    watched.records.node_changed(before, replace(NODE, uid="uid-b", created=YOUNGER))
    assert watched.forged == 1
    assert watched.records.take_forgery("a")


def test_a_standby_reports_nothing() -> None:
    watched = Watched(is_only_writer=False)
    watched.records.node_changed(NODE, with_record(PROOF))
    watched.records.node_changed(None, replace(NODE, created=YOUNGER))
    assert not watched.forged


def test_records_of_a_deleted_node_are_forgotten() -> None:
    watched = Watched()
    watched.records.sent(NODE, PROOF)
    watched.records.node_changed(NODE, None)
    watched.records.node_changed(NODE, with_record(PROOF))
    assert watched.forged == 1
