"""One attempt at the edges of its time, and the workers that are dropped."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_node_ready.verify import attempt
from kube_node_ready.verify.model import Cause, DropWorker, Gate, Node, Policy, Record, Snapshot, State, Worker

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TICK = timedelta(microseconds=1)
DEADLINE = timedelta(minutes=5)
POLICY = Policy((Gate("g", "NoSchedule"),), deadline=DEADLINE)


def a_worker(number: int = 1, age: timedelta = TICK, **facts: Any) -> Worker:  # noqa: ANN401  its own fields
    defaults: dict[str, Any] = {"node_name": "a", "created": NOW - age}
    return Worker(f"w{number}", f"pod{number}", "u", number, **(defaults | facts))


def seen(*workers: Worker, **record: object) -> Snapshot:
    return Snapshot(NOW, Node("a", "u", record=Record(**record)), workers)  # type: ignore[arg-type]


@pytest.mark.parametrize(("age", "late"), [(DEADLINE - TICK, False), (DEADLINE, True), (DEADLINE + TICK, True)])
def test_a_worker_is_late_when_its_deadline_has_passed(age: timedelta, late: bool) -> None:  # noqa: FBT001  a table
    verdict = attempt.verdict(seen(), a_worker(age=age, state=State.RUNNING), POLICY)
    assert (verdict is not None and verdict.cause is Cause.LATE) is late


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({}, Cause.LATE),
        ({"node_name": ""}, Cause.NOT_STARTED),
        ({"deleting": True}, Cause.NOT_STARTED),
    ],
)
def test_only_a_worker_that_could_run_is_late(facts: dict[str, Any], cause: Cause) -> None:
    verdict = attempt.verdict(seen(), a_worker(age=DEADLINE, **facts), POLICY)
    assert verdict
    assert (verdict.passed, verdict.cause, verdict.reason) == (False, cause, "no verdict within 300 s")


def test_a_late_worker_reports_what_it_waited_for() -> None:
    verdict = attempt.verdict(seen(), a_worker(age=DEADLINE, reason="no CPU"), POLICY)
    assert verdict
    assert verdict.reason == "no verdict within 300 s: no CPU"


def test_a_worker_without_a_creation_time_has_all_its_time() -> None:
    worker = a_worker(created=None)
    assert attempt.time_left(seen(), worker, POLICY) == DEADLINE
    assert attempt.seconds(seen(), worker) == 0


def test_the_time_of_a_worker_is_measured_from_its_creation() -> None:
    assert attempt.time_left(seen(), a_worker(age=timedelta(minutes=1)), POLICY) == timedelta(minutes=4)
    assert attempt.seconds(seen(), a_worker(age=timedelta(seconds=1.23456))) == 1.235
    assert attempt.seconds(seen(), a_worker(age=timedelta(seconds=-1))) == 0


def test_a_pass_needs_a_node_that_it_ran_on() -> None:
    on_none = attempt.verdict(seen(), a_worker(state=State.PASSED, node_name=""), POLICY)
    assert on_none
    assert (on_none.passed, on_none.cause, on_none.reason) == (False, Cause.STOPPED, "the worker ran on no node")
    assert attempt.verdict(seen(), a_worker(state=State.PASSED), POLICY) == attempt.Verdict(passed=True)


def test_a_failure_keeps_the_cause_and_the_reason_of_the_worker() -> None:
    worker = a_worker(state=State.FAILED, cause=Cause.CHECKS, reason="dns")
    assert attempt.verdict(seen(), worker, POLICY) == attempt.Verdict(passed=False, cause=Cause.CHECKS, reason="dns")


@pytest.mark.parametrize(
    ("at", "since"),
    [
        (NOW, timedelta()),
        (NOW - TICK, TICK),
        (NOW + TICK, timedelta(days=36500)),
        (None, timedelta(days=36500)),
    ],
)
def test_a_verdict_without_a_possible_date_was_long_ago(at: datetime | None, since: timedelta) -> None:
    assert attempt.since_verdict(seen(at=at)) == since


def test_only_the_worker_of_the_current_attempt_is_undecided() -> None:
    workers = [a_worker(number) for number in (1, 2, 3)]
    assert attempt.undecided(seen(*workers, attempt=1)) is workers[1]
    assert attempt.undecided(seen(*workers, attempt=3)) is None
    assert attempt.undecided(seen(a_worker(1, node_name="b"))) is None


def test_workers_of_other_attempts_are_dropped_but_not_the_logs_of_the_last() -> None:
    workers = [a_worker(number, finished=True) for number in (1, 2, 3)]
    look = seen(*workers, attempt=2)
    assert attempt.superfluous(look, logs_of_last=True) == (DropWorker("w1", "pod1"),)
    assert attempt.superfluous(look, logs_of_last=False) == (DropWorker("w1", "pod1"), DropWorker("w2", "pod2"))
    still_running = seen(a_worker(2, finished=False), attempt=2)
    assert attempt.superfluous(still_running, logs_of_last=True) == (DropWorker("w2", "pod2"),)
    assert attempt.drop_all(seen(*workers[:2])) == (DropWorker("w1", "pod1"), DropWorker("w2", "pod2"))


def test_progress_names_the_attempt_and_what_its_worker_does() -> None:
    assert attempt.progress(a_worker(3, state=State.RUNNING)) == "the worker of attempt 3 is running"
    assert attempt.progress(a_worker(3, deleting=True)) == "the worker of attempt 3 is being deleted"
