"""What a failure counts for, and when it leads to a removal, at the edges."""

from datetime import UTC, datetime, timedelta

import pytest

from kube_node_ready.objects import Taint
from kube_node_ready.verify.decide import decide
from kube_node_ready.verify.model import (
    Cause,
    Fleet,
    Gate,
    Node,
    Outcome,
    Policy,
    Record,
    RemovalPolicy,
    Reverification,
    Snapshot,
    State,
    Worker,
    WriteRecord,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TICK = timedelta(microseconds=1)
UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
GATE = Taint("node-ready/unverified", "NoSchedule")
POLICY = Policy((Gate(GATE.key, GATE.effect),), max_failures=5, removal=RemovalPolicy(max_failing_count=2))
WATCHING = Policy(POLICY.gates, reverification=Reverification(interval=timedelta(hours=1), threshold=3))


def written(seen: Snapshot, policy: Policy) -> Record:
    (effect,) = (effect for effect in decide(seen, policy).effects if isinstance(effect, WriteRecord))
    return effect.record


def a_worker(attempt: int, **facts: object) -> Worker:
    made: dict[str, object] = {"node_name": "a", "created": NOW - TICK, "genuine": True, "finished": True}
    return Worker(f"w{attempt}", f"pod{attempt}", UID, attempt, **(made | facts))  # type: ignore[arg-type]


def after_failure(record: Record, cause: Cause, failing: int = 0) -> Record:
    worker = a_worker(record.attempt + 1, state=State.FAILED, cause=cause, reason="dns")
    node = Node("a", UID, taints=(GATE,), record=record)
    return written(Snapshot(NOW, node, (worker,), fleet=Fleet(managed=3, failing=failing)), POLICY)


def failed(times: int, **facts: object) -> Record:
    made: dict[str, object] = {"failures": times, "blamed": times, "outcome": Outcome.FAILED, "at": NOW - TICK}
    return Record(times, **(made | facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cause", "blamed"),
    [
        (Cause.CHECKS, 3),
        (Cause.LATE, 3),
        (Cause.STOPPED, 0),
        (Cause.NOT_STARTED, 0),
        (Cause.MISCONFIGURED, 0),
        (Cause.REFUSED, 0),
    ],
)
def test_only_failures_in_a_row_of_the_node_itself_blame_it(cause: Cause, blamed: int) -> None:
    record = after_failure(failed(2), cause)
    assert (record.failures, record.blamed, record.cause) == (3, blamed, cause)


@pytest.mark.parametrize(
    ("failing", "was_in_crowd", "blamed"),
    [
        (2, False, 6),
        (3, False, 5),  # many nodes fail now
        (2, True, 5),  # many failed when the last attempt ended, so this one can have begun before the end
        (3, True, 5),
    ],
)
def test_a_failure_in_a_crowd_is_not_the_one_before_a_removal(
    failing: int,
    was_in_crowd: bool,  # noqa: FBT001  a table
    blamed: int,
) -> None:
    record = after_failure(failed(5, in_crowd=was_in_crowd), Cause.CHECKS, failing)
    assert (record.blamed, record.in_crowd) == (blamed, failing == 3)


def test_the_condition_changed_when_the_node_first_failed() -> None:
    began = NOW - timedelta(hours=3)
    assert after_failure(failed(2, since=began), Cause.CHECKS).since == began
    assert after_failure(Record(2, outcome=Outcome.PENDING, since=began), Cause.CHECKS).since == NOW


@pytest.mark.parametrize(
    ("state", "boot", "failures"),
    [(State.PASSED, "new", 0), (State.FAILED, "old", 1)],
)
def test_a_verified_node_is_proved_for_the_boot_in_which_it_passed(state: State, boot: str, failures: int) -> None:
    record = Record(1, outcome=Outcome.PASSED, at=NOW - TICK, since=NOW - TICK, boot="old")
    cause = Cause.CHECKS if state is State.FAILED else Cause.NONE
    node = Node("a", UID, labelled=True, record=record, boot="new")
    worker = a_worker(2, state=state, cause=cause, reason="dns" if cause else "")
    now = written(Snapshot(NOW, node, (worker,), fleet=Fleet(managed=3)), WATCHING)
    assert (now.attempt, now.boot, now.failures, now.blamed, now.since) == (2, boot, failures, failures, NOW - TICK)
