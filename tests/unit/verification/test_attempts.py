"""One attempt at the edges of its time, and the workers that are dropped."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.verification import attempts
from kube_node_ready.verification.decide import decide
from kube_node_ready.verification.effects import ConfirmAttempt, Decision, DiscardAttempt, OpenGate
from kube_node_ready.verification.model import Attempt, Gate, Node, Phase, Policy, Snapshot, State, Worker

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TICK = timedelta(microseconds=1)
DEADLINE = timedelta(minutes=5)
POLICY = Policy((Gate("g", "NoSchedule"),), deadline=DEADLINE)
POLICY_WITHOUT_GATE = Policy((), deadline=DEADLINE)


def a_worker(number: int = 1, age: timedelta = TICK, **facts: Any) -> Worker:  # noqa: ANN401  its own fields
    defaults: dict[str, Any] = {"node_name": "a", "created": NOW - age}
    return Worker(f"w{number}", f"pod{number}", "u", number=number, **(defaults | facts))


def seen(*workers: Worker, **record: object) -> Snapshot:
    return Snapshot(NOW, Node("a", "u", record=VerificationRecord(**record)), workers)  # type: ignore[arg-type]


@pytest.mark.parametrize(("age", "late"), [(DEADLINE - TICK, False), (DEADLINE, True), (DEADLINE + TICK, True)])
def test_a_worker_is_late_when_its_deadline_has_passed(age: timedelta, late: bool) -> None:  # noqa: FBT001  a table
    verdict = attempts.verdict(seen(), a_worker(age=age, state=State.RUNNING), POLICY)
    assert (verdict is not None and verdict.cause is Cause.LATE) is late


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({}, Cause.LATE),
        ({"node_name": ""}, Cause.NOT_STARTED),
        ({"deleting": True}, Cause.NOT_STARTED),
        ({"awaits_images": True}, Cause.NOT_STARTED),
        ({"started": NOW - DEADLINE}, Cause.LATE),
        ({"started": NOW - DEADLINE / 2}, Cause.LATE),
        ({"started": NOW - DEADLINE / 2 + TICK}, Cause.NOT_STARTED),
    ],
)
def test_only_a_worker_that_could_run_is_late(facts: dict[str, Any], cause: Cause) -> None:
    verdict = attempts.verdict(seen(), a_worker(age=DEADLINE, **facts), POLICY)
    assert verdict
    assert (verdict.passed, verdict.cause, verdict.reason) == (False, cause, "no verdict within 300 s")


def test_a_late_worker_reports_what_it_waited_for() -> None:
    verdict = attempts.verdict(seen(), a_worker(age=DEADLINE, reason="no CPU"), POLICY)
    assert verdict
    assert verdict.reason == "no verdict within 300 s: no CPU"


def test_a_worker_without_a_creation_time_has_all_its_time() -> None:
    worker = a_worker(created=None)
    assert attempts.time_left(seen(), worker, POLICY) == DEADLINE
    assert attempts.seconds(seen(), worker) == 0


def test_the_time_of_a_worker_is_measured_from_its_creation() -> None:
    assert attempts.time_left(seen(), a_worker(age=timedelta(minutes=1)), POLICY) == timedelta(minutes=4)
    assert attempts.seconds(seen(), a_worker(age=timedelta(seconds=1.23456))) == 1.235
    assert attempts.seconds(seen(), a_worker(age=timedelta(seconds=-1))) == 0


def test_a_pass_needs_a_node_that_it_ran_on() -> None:
    on_none = attempts.verdict(seen(), a_worker(state=State.PASSED, node_name=""), POLICY)
    assert on_none
    assert (on_none.passed, on_none.cause, on_none.reason) == (False, Cause.STOPPED, "the worker ran on no node")
    assert attempts.verdict(seen(), a_worker(state=State.PASSED), POLICY) == attempts.AttemptVerdict(passed=True)


def test_an_attempt_without_a_pod_needs_no_pod_to_count() -> None:
    """In DaemonSet mode, the process that decides runs the checks."""
    node = Node("a", "u")
    own = Attempt(number=1, created=NOW - DEADLINE, state=State.PASSED)
    assert attempts.current(Snapshot(NOW, node, (own,))) is own
    assert attempts.verdict(seen(), own, POLICY) == attempts.AttemptVerdict(passed=True)
    assert decide(Snapshot(NOW, node, (own,)), POLICY_WITHOUT_GATE).effects[0] == OpenGate(
        node, VerificationRecord(1, outcome=Outcome.PASSED, at=NOW, since=NOW, seconds=DEADLINE.total_seconds())
    )
    late = attempts.verdict(seen(), replace(own, state=State.RUNNING), POLICY)
    assert late
    assert late.cause is Cause.LATE
    assert attempts.progress(replace(own, state=State.RUNNING)).endswith("attempt 1 is running")


def test_a_failure_keeps_the_cause_and_the_reason_of_the_worker() -> None:
    worker = a_worker(state=State.FAILED, cause=Cause.CHECKS, reason="dns")
    assert attempts.verdict(seen(), worker, POLICY) == attempts.AttemptVerdict(
        passed=False, cause=Cause.CHECKS, reason="dns"
    )


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
    assert attempts.since_last_verdict(seen(at=at)) == since


def test_only_the_worker_of_the_current_attempt_is_undecided() -> None:
    workers = [a_worker(number) for number in (1, 2, 3)]
    assert attempts.current(seen(*workers, attempt=1)) is workers[1]
    assert attempts.current(seen(*workers, attempt=3)) is None
    assert attempts.current(seen(a_worker(1, node_name="b"))) is None


def test_workers_of_other_attempts_are_dropped_but_not_the_logs_of_the_last() -> None:
    workers = [a_worker(number, finished=True) for number in (1, 2, 3)]
    look = seen(*workers, attempt=2)
    assert attempts.discard_stale(look, logs_of_last=True) == (DiscardAttempt(workers[0]),)
    assert attempts.discard_stale(look, logs_of_last=False) == tuple(map(DiscardAttempt, workers[:2]))
    still_running = a_worker(2, finished=False)
    assert attempts.discard_stale(seen(still_running, attempt=2), logs_of_last=True) == (DiscardAttempt(still_running),)
    assert attempts.discard_all(seen(*workers[:2])) == tuple(map(DiscardAttempt, workers[:2]))


def test_a_worker_of_the_current_attempt_is_dropped_if_its_verdict_was_on_record() -> None:
    settled = a_worker(3, settled=True)
    look = seen(settled, a_worker(2, settled=True, finished=True), attempt=2)
    assert attempts.discard_stale(look, logs_of_last=True) == (DiscardAttempt(settled),)


@pytest.mark.parametrize("genuine", [True, False])
def test_a_worker_in_progress_is_confirmed_unless_it_is_genuine(genuine: bool) -> None:  # noqa: FBT001  a table
    worker, drop = a_worker(3, genuine=genuine, state=State.RUNNING), DiscardAttempt(a_worker(1))
    confirm = () if genuine else (ConfirmAttempt(seen().node, worker, early=True),)
    expected = Decision(Phase.VERIFYING, "the worker of attempt 3 is running", (drop, *confirm), TICK)
    assert attempts.in_progress(seen(), worker, Phase.VERIFYING, (drop,), TICK) == expected


def test_a_verdict_of_an_unconfirmed_worker_is_confirmed_first() -> None:
    worker = a_worker(3, state=State.PASSED)
    decision = attempts.awaiting_confirmation(seen(), worker, Phase.REVERIFYING)
    reason = "attempt 3 has a result; its worker pod is not confirmed yet"
    assert decision == Decision(Phase.REVERIFYING, reason, (ConfirmAttempt(seen().node, worker),))


def test_progress_names_the_attempt_and_what_its_worker_does() -> None:
    assert attempts.progress(a_worker(3, state=State.RUNNING)) == "the worker of attempt 3 is running"
    assert attempts.progress(a_worker(3, deleting=True)) == "the worker of attempt 3 is being deleted"
