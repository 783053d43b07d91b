"""Verified nodes that are checked again: what each verdict writes, and when the next attempt begins."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kube_node_ready.api.contract import EventReason
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.api.report import CheckResult, Report, TargetResult
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.verification.decide import decide, worker_creation_rejected, worker_not_genuine
from kube_node_ready.verification.effects import (
    CloseGate,
    Decision,
    DiscardAttempt,
    EmitEvent,
    StartAttempt,
    WriteStatus,
)
from kube_node_ready.verification.model import Fleet, Gate, Node, Phase, Policy, Reverification, Snapshot, State, Worker
from kube_node_ready.verification.reverify import is_degraded
from kube_node_ready.verification.schedule import next_turn
from tests.support.verification import GATE, HOUR, MINUTE, NOW, SECOND, TICK, UID, ended_worker

RULE = Reverification(interval=HOUR, threshold=3, gate=GATE)
POLICY = Policy((Gate(GATE.key, GATE.effect),), reverification=RULE)
VERIFIED = NOW - 2 * HOUR
REPORT = Report((TargetResult("dns", Verdict.PASSED, ms=7), TargetResult("dns", Verdict.FAILED, ms=9, error="timeout")))
HEALTHY = Fleet(managed=100)


def verified(**record: Any) -> Node:  # noqa: ANN401  fields of its record
    known = VerificationRecord(4, outcome=Outcome.PASSED, at=VERIFIED, since=VERIFIED, boot="boot-1")
    return Node("a", UID, labelled=True, boot="boot-1", record=replace(known, **record))


def doubtful(failures: int, **record: Any) -> Node:  # noqa: ANN401
    return verified(failures=failures, node_failures=failures, cause=Cause.CHECKS, reason="dns: timeout", **record)


def a_worker(state: State, number: int = 5, **facts: Any) -> Worker:  # noqa: ANN401
    failure = {"cause": Cause.CHECKS, "reason": "dns: timeout"} if state is State.FAILED else {}
    return ended_worker(number, state, **(failure | facts))


def waiting(age: timedelta, **facts: Any) -> Worker:  # noqa: ANN401
    """A worker that no node has room for."""
    return replace(a_worker(State.PENDING, node_name="", created=NOW - age, finished=False), **facts)


def look(
    node: Node, *workers: Worker, policy: Policy = POLICY, now: datetime = NOW, fleet: Fleet = HEALTHY
) -> Decision:
    return decide(Snapshot(now, node, workers, fleet=fleet, version="7"), policy)


def written(decision: Decision) -> VerificationRecord:
    (record,) = (effect.record for effect in decision.effects if isinstance(effect, WriteStatus))
    return record


class TestVerdicts:
    def test_the_record_of_a_pass_is_complete(self) -> None:
        worker, node = a_worker(State.PASSED, report=REPORT), replace(doubtful(2), boot="boot-2")
        decision = look(node, worker)
        record = VerificationRecord(
            5,
            outcome=Outcome.PASSED,
            at=NOW,
            since=VERIFIED,
            boot="boot-2",
            seconds=2.5,
            checks=(CheckResult("dns", ok=False, ms=9),),
        )
        assert decision == Decision(
            Phase.VERIFIED, "attempt 5 passed", (WriteStatus(node, record, "7"), DiscardAttempt(worker)), verdict=worker
        )

    def test_the_record_of_a_failure_is_complete(self) -> None:
        worker, node = a_worker(State.FAILED, report=REPORT), replace(doubtful(1), boot="boot-2")
        decision = look(node, worker)
        record = VerificationRecord(
            5,
            failures=2,
            outcome=Outcome.PASSED,
            at=NOW,
            since=VERIFIED,
            boot="boot-1",
            cause=Cause.CHECKS,
            node_failures=2,
            reason="dns: timeout",
            seconds=2.5,
            checks=(CheckResult("dns", ok=False, ms=9),),
        )
        assert decision == Decision(
            Phase.VERIFIED, "dns: timeout (failure 2 of 3)", (WriteStatus(node, record, "7"),), verdict=worker
        )

    @pytest.mark.parametrize("state", [State.PASSED, State.FAILED])
    def test_a_worker_without_a_report_has_no_results(self, state: State) -> None:
        assert written(look(verified(), a_worker(state))).checks == ()

    def test_a_worker_that_has_not_ended_has_no_verdict(self) -> None:
        assert look(verified(), a_worker(State.RUNNING)).verdict is None

    @pytest.mark.parametrize("state", [State.PASSED, State.FAILED])
    def test_a_node_that_another_client_labeled_is_verified_since_its_first_verdict(self, state: State) -> None:
        """What its record counted before proves nothing about a node that was never verified here."""
        adopted = verified(outcome=Outcome.PENDING, failures=1, node_failures=1)
        record = written(look(adopted, a_worker(state)))
        blamed = int(state is State.FAILED)
        assert (record.outcome, record.since) == (Outcome.PASSED, NOW)
        assert (record.failures, record.node_failures) == (blamed, blamed)

    def test_a_failure_that_is_not_the_nodes_is_noted_as_such(self) -> None:
        stopped = a_worker(State.FAILED, cause=Cause.STOPPED, reason="evicted")
        for node in (verified(), doubtful(2), doubtful(9)):
            decision = look(node, stopped)
            assert decision.reason == "evicted (does not count against the node)"
            assert [type(effect) for effect in decision.effects] == [WriteStatus]
            assert written(decision).failures == node.record.failures

    def test_a_rejected_pod_took_no_time_and_is_retried_after_a_resync(self) -> None:
        decision = worker_creation_rejected(Snapshot(NOW, doubtful(2), version="7"), 5, POLICY, "quota")
        assert (decision.phase, decision.recheck) == (Phase.VERIFIED, POLICY.resync)
        record = written(decision)
        assert (record.seconds, record.checks, record.at, record.since) == (0, (), NOW, VERIFIED)

    def test_a_pod_that_is_not_genuine_is_named_in_the_record(self) -> None:
        decision = worker_not_genuine(Snapshot(NOW, doubtful(2)), 5, POLICY, "it runs another image")
        assert (decision.phase, decision.recheck) == (Phase.VERIFIED, POLICY.resync)
        assert written(decision).reason == "it runs another image"


class TestTheGate:
    def test_a_closed_gate_begins_a_new_count_that_no_boot_proves(self) -> None:
        worker, node = a_worker(State.FAILED, finished=False), doubtful(2)
        decision = look(node, worker)
        why = "failed 3 times in a row, so the gate is restored: dns: timeout"
        record = VerificationRecord(
            5,
            failures=1,
            outcome=Outcome.FAILED,
            at=NOW,
            since=NOW,
            cause=Cause.CHECKS,
            node_failures=1,
            reason="dns: timeout",
            seconds=2.5,
        )
        effects = (
            EmitEvent(node, EventReason.GATE_RESTORED, why, 5, warning=True),
            CloseGate(node, record, "7"),
            WriteStatus(node, record),
            DiscardAttempt(worker),
        )
        assert decision == Decision(Phase.FAILED, why, effects, verdict=worker)

    @pytest.mark.parametrize(
        ("before", "threshold", "closes"), [(0, 1, True), (0, 2, False), (1, 2, True), (1, 3, False), (5, 3, True)]
    )
    def test_the_gate_closes_at_the_threshold(
        self,
        before: int,
        threshold: int,
        closes: bool,  # noqa: FBT001  a table
    ) -> None:
        policy = replace(POLICY, reverification=replace(RULE, threshold=threshold))
        node = doubtful(before) if before else verified()
        assert (look(node, a_worker(State.FAILED), policy=policy).phase is Phase.FAILED) is closes

    @pytest.mark.parametrize(
        ("node", "fleet", "closes"),
        [
            # The node itself counts as failing: once, whether or not it failed before.
            (doubtful(2), Fleet(managed=10, failing=0, degraded=2), True),
            (doubtful(2), Fleet(managed=10, failing=0, degraded=3), False),
            (doubtful(2), Fleet(managed=10, failing=1, degraded=2), False),
            (doubtful(2), Fleet(managed=10, failing=1, degraded=1), True),
            (verified(), Fleet(managed=10, failing=0, degraded=1), True),
            (verified(), Fleet(managed=10, failing=0, degraded=2), False),
            (verified(), Fleet(managed=10, failing=2, degraded=0), False),
            # The last node that is well is not gated, however many failures are allowed.
            (doubtful(2), Fleet(managed=2, failing=0, degraded=1), True),
            (doubtful(2), Fleet(managed=2, failing=1, degraded=1), False),
            (verified(), Fleet(managed=2, failing=0, degraded=0), True),
            (verified(), Fleet(managed=1, failing=0, degraded=0), False),
        ],
    )
    def test_the_gate_stays_open_if_too_many_nodes_fail(
        self,
        node: Node,
        fleet: Fleet,
        closes: bool,  # noqa: FBT001  a table
    ) -> None:
        policy = replace(POLICY, reverification=replace(RULE, threshold=1))
        decision = look(node, a_worker(State.FAILED), policy=policy, fleet=fleet)
        assert any(isinstance(effect, CloseGate) for effect in decision.effects) is closes
        assert (decision.phase is Phase.FAILED) is closes

    def test_a_gate_that_is_kept_open_is_a_warning_with_the_reason(self) -> None:
        node = doubtful(2)
        kept, _ = look(node, a_worker(State.FAILED), fleet=Fleet(managed=1, degraded=1)).effects
        why = (
            "failed 3 times in a row, but the gate stays open: no other node is healthy, so the problem might be "
            "cluster-wide. Last: dns: timeout"
        )
        assert kept == EmitEvent(node, EventReason.GATE_KEPT_OPEN, why, 5, warning=True)


class TestAWorkerWithoutANode:
    @pytest.mark.parametrize(
        ("age", "deadline", "recheck"),
        [
            (SECOND, 5 * MINUTE, 30 * SECOND),
            (SECOND, 20 * SECOND, 19 * SECOND),  # it is late before that
        ],
    )
    def test_a_worker_without_a_node_is_reconciled_within_thirty_seconds(
        self, age: timedelta, deadline: timedelta, recheck: timedelta
    ) -> None:
        decision = look(verified(), waiting(age), policy=replace(POLICY, deadline=deadline))
        assert (decision.phase, decision.recheck) == (Phase.REVERIFYING, recheck)

    @pytest.mark.parametrize(
        ("worker", "given_up"),
        [
            (waiting(30 * SECOND - TICK), False),
            (waiting(30 * SECOND), True),
            (waiting(HOUR, created=None), False),  # its age is not known
            (waiting(30 * SECOND, node_name="a"), False),  # it has a node, and so all of its time
        ],
    )
    def test_a_worker_without_a_node_is_abandoned_after_thirty_seconds(self, worker: Worker, given_up: bool) -> None:  # noqa: FBT001  a table
        decision = look(verified(), worker)
        assert (decision.phase, decision.effects == ()) == (
            (Phase.VERIFIED, False) if given_up else (Phase.REVERIFYING, True)
        )

    @pytest.mark.parametrize(
        ("reason", "words"),
        [("", "not scheduled within 30 s"), ("Insufficient cpu", "not scheduled within 30 s: Insufficient cpu")],
    )
    def test_a_worker_without_a_node_is_recorded_with_what_it_waited_for(self, reason: str, words: str) -> None:
        worker = waiting(31 * SECOND, reason=reason)
        decision = look(doubtful(2), worker)
        record = written(decision)
        assert (record.reason, record.cause, record.failures, record.is_proof) == (words, Cause.NOT_STARTED, 2, False)
        assert decision.effects[-1] == DiscardAttempt(worker), "it must not start later"

    def test_a_worker_with_a_node_is_reconciled_at_its_deadline(self) -> None:
        decision = look(verified(), a_worker(State.RUNNING, created=NOW - MINUTE, finished=False))
        assert decision.recheck == POLICY.deadline - MINUTE


class TestBetweenAttempts:
    # Its turn began at this moment, and was served.
    SERVED = next_turn(UID, HOUR, NOW)

    @pytest.mark.parametrize(
        ("node", "words"),
        [
            (verified(), "it is verified"),
            (verified(cause=Cause.REFUSED, reason="quota"), "it is verified"),
            (doubtful(1), "it is verified, but failed once since: dns: timeout"),
            (doubtful(2), "it is verified, but failed 2 times in a row since: dns: timeout"),
        ],
    )
    def test_the_standing_of_a_node_states_its_failures(self, node: Node, words: str) -> None:
        decision = look(node, now=self.SERVED - SECOND)
        assert (decision.phase, decision.reason, decision.recheck) == (Phase.VERIFIED, words, SECOND)

    def test_the_next_attempt_drops_the_workers_of_earlier_ones(self) -> None:
        node = doubtful(1)
        earlier = (a_worker(State.FAILED, 3), a_worker(State.FAILED, 4))
        decision = look(node, *earlier, now=self.SERVED)
        assert (decision.phase, decision.reason) == (Phase.REVERIFYING, "attempt 5 begins")
        assert decision.effects == (StartAttempt(node, 5), *map(DiscardAttempt, earlier))

    @pytest.mark.parametrize(("node", "kept"), [(doubtful(1), True), (verified(), False)])
    def test_only_the_logs_of_a_failure_are_kept(self, node: Node, kept: bool) -> None:  # noqa: FBT001  a table
        workers = (a_worker(State.FAILED, 3), a_worker(State.PASSED, 4))
        late = replace(node, record=replace(node.record, at=VERIFIED + TICK))  # its Event is written
        decision = look(late, *workers, now=self.SERVED - SECOND)
        assert decision.effects == tuple(map(DiscardAttempt, workers[:1] if kept else workers))

    def test_while_a_worker_runs_earlier_ones_are_dropped(self) -> None:
        earlier, running = a_worker(State.FAILED, 4), a_worker(State.RUNNING, finished=False)
        assert look(doubtful(1), earlier, running).effects == (DiscardAttempt(earlier),)


class TestTurns:
    """The turn of a node begins once per interval, at a moment of its own."""

    TURN = next_turn(UID, HOUR, NOW)

    def begins(self, node: Node, into_turn: timedelta, interval: timedelta = HOUR) -> bool:
        policy = replace(POLICY, reverification=replace(RULE, interval=interval))
        decision = look(node, policy=policy, now=next_turn(UID, interval, NOW) + into_turn)
        return any(isinstance(effect, StartAttempt) for effect in decision.effects)

    @pytest.mark.parametrize(
        ("interval", "into_turn", "begins"),
        [
            (HOUR, timedelta(), True),
            (HOUR, 6 * MINUTE - TICK, True),  # a tenth of the interval
            (HOUR, 6 * MINUTE, False),
            (HOUR, -TICK, False),
            (MINUTE, 10 * SECOND - TICK, True),  # at least ten seconds, so that a look falls into it
            (MINUTE, 10 * SECOND, False),
        ],
    )
    def test_a_turn_lasts_for_a_tenth_of_the_interval(
        self,
        interval: timedelta,
        into_turn: timedelta,
        begins: bool,  # noqa: FBT001  a table
    ) -> None:
        assert self.begins(verified(), into_turn, interval) is begins

    @pytest.mark.parametrize(
        ("ago", "took", "begins"),
        [
            (30 * MINUTE, 0, True),  # half an interval after the last attempt began
            (30 * MINUTE - TICK, 0, False),
            (25 * MINUTE, 5 * 60, True),  # it began earlier than it ended
            (25 * MINUTE - TICK, 5 * 60, False),
        ],
    )
    def test_half_an_interval_lies_between_two_attempts(
        self,
        ago: timedelta,
        took: float,
        begins: bool,  # noqa: FBT001  a table
    ) -> None:
        assert self.begins(verified(at=self.TURN - ago, seconds=took), timedelta()) is begins

    @pytest.mark.parametrize(("into_turn", "wait"), [(-TICK, TICK), (6 * MINUTE, 54 * MINUTE), (HOUR / 2, HOUR / 2)])
    def test_a_node_outside_its_turn_waits_for_the_next(self, into_turn: timedelta, wait: timedelta) -> None:
        assert look(verified(), now=self.TURN + into_turn).recheck == wait

    @pytest.mark.parametrize(
        ("interval", "ago", "wait"),
        [
            (HOUR, SECOND, 59 * SECOND),
            (HOUR, MINUTE - TICK, TICK),
            (HOUR, MINUTE, None),
            (30 * SECOND, SECOND, 29 * SECOND),
        ],
    )
    def test_a_reboot_is_followed_by_an_attempt_within_a_minute_or_an_interval(
        self, interval: timedelta, ago: timedelta, wait: timedelta | None
    ) -> None:
        policy = replace(POLICY, reverification=replace(RULE, interval=interval))
        rebooted = replace(verified(at=NOW - ago), boot="boot-2")
        decision = look(rebooted, policy=policy)
        assert (decision.phase, decision.recheck) == (Phase.VERIFIED if wait else Phase.REVERIFYING, wait)

    def test_a_record_without_a_boot_is_checked_at_its_turn(self) -> None:
        """Adopted nodes have such records. All of them would be checked together otherwise."""
        assert look(verified(boot=""), now=self.TURN - SECOND).recheck == SECOND

    def test_a_rebooted_node_that_failed_since_is_checked_at_its_turn(self) -> None:
        assert look(replace(doubtful(1), boot="boot-2"), now=self.TURN - SECOND).recheck == SECOND


@pytest.mark.parametrize(
    ("node", "doubts"),
    [
        (doubtful(1), True),
        (verified(), False),
        (replace(doubtful(1), labelled=False), False),  # its label was removed: it has to be verified anyway
        (doubtful(1, outcome=Outcome.FAILED), False),  # it failed, and counts as failing
        (doubtful(1, outcome=Outcome.PENDING), False),
    ],
)
def test_a_node_is_in_doubt_if_it_is_open_and_failed_since_it_passed(node: Node, doubts: bool) -> None:  # noqa: FBT001
    assert is_degraded(node) is doubts
