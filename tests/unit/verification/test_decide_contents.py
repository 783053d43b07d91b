"""What each decision contains: its phase, effects, record, Event and the time of the next look."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kube_node_ready.api.contract import EventReason
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.api.report import CheckResult, Report, TargetResult
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.verification.decide import (
    decide,
    worker_creation_rejected,
    worker_not_genuine,
    write_rejected,
)
from kube_node_ready.verification.effects import (
    AdoptNode,
    CloseGate,
    Decision,
    DiscardAttempt,
    EmitEvent,
    OpenGate,
    WriteStatus,
)
from kube_node_ready.verification.model import Gate, Node, Phase, Policy, Snapshot, State, Worker
from tests.support.verification import DAY, GATE, MINUTE, NOW, SECOND, TICK, UID, ended_worker

POLICY = Policy((Gate(GATE.key, GATE.effect),), max_failures=5, slow_retry=5 * MINUTE)


def gated(record: VerificationRecord | None = None, **facts: Any) -> Node:  # noqa: ANN401  its own fields
    return replace(Node("a", UID, taints=(GATE,), boot="boot-1", record=record or VerificationRecord()), **facts)


def opened(record: VerificationRecord | None = None, **facts: Any) -> Node:  # noqa: ANN401
    return gated(record, **({"taints": (), "labelled": True} | facts))


def failed(times: int, ago: timedelta = SECOND, **facts: Any) -> VerificationRecord:  # noqa: ANN401
    known = VerificationRecord(times, times, Outcome.FAILED, NOW - ago, node_failures=times, reason="dns: timeout")
    return replace(known, **facts)


def passed(attempt: int = 1, ago: timedelta = SECOND, **facts: Any) -> VerificationRecord:  # noqa: ANN401
    known = VerificationRecord(attempt, outcome=Outcome.PASSED, at=NOW - ago, since=NOW - ago, boot="boot-1")
    return replace(known, **facts)


def a_worker(number: int = 1, state: State = State.PASSED, **facts: Any) -> Worker:  # noqa: ANN401
    return ended_worker(number, state, **facts)


def broken(number: int, **facts: Any) -> Worker:  # noqa: ANN401
    return a_worker(number, State.FAILED, **({"cause": Cause.CHECKS, "reason": "dns: timeout"} | facts))


def look(node: Node, *workers: Worker, policy: Policy = POLICY, **facts: Any) -> Decision:  # noqa: ANN401
    return decide(Snapshot(NOW, node, workers, version="7", **facts), policy)


def events(decision: Decision) -> list[EmitEvent]:
    return [effect for effect in decision.effects if isinstance(effect, EmitEvent)]


def records(decision: Decision) -> list[VerificationRecord]:
    return [effect.record for effect in decision.effects if isinstance(effect, WriteStatus | OpenGate)]


class TestNodesWithNothingToProve:
    def test_a_labeled_node_without_a_record_is_adopted_and_foreign_workers_are_dropped(self) -> None:
        node = opened()
        decision = look(node, a_worker())
        adopted = VerificationRecord(1, outcome=Outcome.PENDING, at=NOW, since=NOW, reason="labeled by another client")
        assert decision.phase is Phase.IGNORED
        assert decision.effects == (AdoptNode(node, adopted, "7"), DiscardAttempt(a_worker()))

    def test_a_node_that_never_had_a_gate_only_loses_its_workers(self) -> None:
        decision = look(gated(taints=()), a_worker())
        assert (decision.phase, decision.effects) == (Phase.IGNORED, (DiscardAttempt(a_worker()),))

    @pytest.mark.parametrize(
        ("record", "phase"),
        [
            (passed(), Phase.VERIFIED),
            (VerificationRecord(1, outcome=Outcome.PENDING), Phase.IGNORED),
            (failed(1), Phase.IGNORED),  # released by another client
        ],
    )
    def test_an_open_node_is_verified_only_if_its_record_is_a_pass(
        self, record: VerificationRecord, phase: Phase
    ) -> None:
        assert look(opened(record)).phase is phase

    @pytest.mark.parametrize("outcome", Outcome)
    def test_workers_of_earlier_attempts_are_dropped_from_open_nodes(self, outcome: Outcome) -> None:
        earlier = a_worker(3)
        assert look(opened(VerificationRecord(4, outcome=outcome)), earlier).effects == (DiscardAttempt(earlier),)


class TestAPass:
    REPORT = Report(
        (
            TargetResult("dns", Verdict.PASSED, ms=7),
            TargetResult("dns", Verdict.PASSED, ms=9),
            TargetResult("net", Verdict.PASSED),
        )
    )

    def test_the_record_of_a_pass_is_complete(self) -> None:
        worker = a_worker(3, report=self.REPORT)
        decision = look(gated(failed(2, contested=4)), worker)
        (record,) = records(decision)
        assert record == VerificationRecord(
            3,
            outcome=Outcome.PASSED,
            at=NOW,
            since=NOW,
            boot="boot-1",
            seconds=2.5,
            checks=(CheckResult("dns", ok=True, ms=9), CheckResult("net", ok=True)),
            contested=4,
        )

    def test_a_pass_without_a_report_has_no_results(self) -> None:
        assert records(look(gated(), a_worker()))[0].checks == ()

    def test_the_verdict_is_that_of_the_worker_which_ended(self) -> None:
        worker = a_worker()
        assert look(gated(), worker).verdict == worker
        assert look(gated(), a_worker(state=State.RUNNING)).verdict is None

    def test_a_verdict_that_is_on_record_does_not_count_again(self) -> None:
        """Its Event and condition are written by a later look, which repeats nothing else."""
        assert look(opened(passed()), a_worker()).verdict is None
        assert look(gated(failed(1)), broken(1)).verdict is None

    @pytest.mark.parametrize(
        ("checks", "message"),
        [
            ((), "attempt 1: it passed"),
            (
                (CheckResult("dns", ok=True, ms=7), CheckResult("net", ok=True, ms=31)),
                "attempt 1: 2 checks passed, the slowest in 31 ms",
            ),
            (
                (
                    CheckResult("dns", ok=True, ms=7),
                    CheckResult("matrix", ok=True, ms=31, applies=False, error="not enough peers"),
                ),
                "attempt 1: 1 checks passed, the slowest in 7 ms; not applicable: matrix (not enough peers)",
            ),
        ],
    )
    def test_the_event_of_a_pass_states_the_number_of_checks_and_the_slowest(
        self, checks: tuple[CheckResult, ...], message: str
    ) -> None:
        node = opened(passed(checks=checks))
        decision = look(node, a_worker())
        assert decision.effects == (
            WriteStatus(node, node.record),
            EmitEvent(node, EventReason.VERIFIED, message, 1),
            DiscardAttempt(a_worker()),
        )

    @pytest.mark.parametrize(
        ("ago", "left"), [(SECOND, MINUTE - SECOND), (MINUTE - TICK, TICK), (MINUTE, None), (MINUTE + TICK, None)]
    )
    def test_in_a_burst_the_event_waits_for_at_most_a_minute(self, ago: timedelta, left: timedelta | None) -> None:
        decision = look(opened(passed(ago=ago)), a_worker(), burst=True)
        assert (decision.phase, decision.recheck, bool(decision.effects)) == (Phase.VERIFIED, left, left is None)


class TestAFailure:
    def test_the_record_of_a_failure_is_complete(self) -> None:
        report = Report((TargetResult("dns", Verdict.FAILED, ms=9, target="example.com", error="timeout"),))
        worker = broken(3, report=report)
        decision = look(gated(failed(2, since=NOW - MINUTE, contested=4)), worker)
        assert decision.verdict == worker
        assert records(decision) == [
            VerificationRecord(
                3,
                failures=3,
                outcome=Outcome.FAILED,
                at=NOW,
                since=NOW - MINUTE,
                cause=Cause.CHECKS,
                node_failures=3,
                reason="dns: timeout",
                seconds=2.5,
                checks=(CheckResult("dns", ok=False, ms=9),),
                contested=4,
            )
        ]

    def test_a_pod_that_could_not_be_created_took_no_time(self) -> None:
        decision = worker_creation_rejected(Snapshot(NOW, gated()), 1, POLICY, "quota")
        (record,) = records(decision)
        assert (record.seconds, record.checks, record.failures, record.node_failures) == (0, (), 1, 0)
        assert decision.verdict is None

    def test_a_failure_is_a_warning_that_counts_the_attempts(self) -> None:
        assert events(look(gated(), broken(1))) == [
            EmitEvent(gated(), EventReason.VERIFICATION_FAILED, "dns: timeout (attempt 1 of 5)", 1, warning=True)
        ]

    @pytest.mark.parametrize(
        ("slow_retry", "then"), [(5 * MINUTE, "it is retried every 300 s"), (None, "it is not retried")]
    )
    def test_the_last_allowed_failure_is_a_warning_with_the_consequence(
        self, slow_retry: timedelta | None, then: str
    ) -> None:
        decision = look(gated(failed(4)), broken(5), policy=replace(POLICY, slow_retry=slow_retry))
        _, exhausted = events(decision)
        message = f"failed 5 times in a row; {then}. Last: dns: timeout"
        assert (exhausted.reason, exhausted.message, exhausted.warning) == ("VerificationExhausted", message, True)
        assert exhausted.attempt == 5

    def test_later_failures_are_not_reported_as_the_last_allowed_one(self) -> None:
        assert [event.reason for event in events(look(gated(failed(5)), broken(6)))] == ["VerificationFailed"]

    def test_a_worker_that_is_not_genuine_is_named_in_the_record(self) -> None:
        decision = worker_not_genuine(Snapshot(NOW, gated(failed(1)), version="7"), 2, POLICY, "it runs another image")
        (record,) = records(decision)
        assert (record.reason, decision.reason) == ("it runs another image", "it runs another image")
        assert (record.attempt, record.failures) == (2, 2)

    @pytest.mark.parametrize(("before", "after"), [(0, 1), (2, 3), (3, 4), (4, 4), (5, 5), (9, 9)])
    def test_a_worker_that_is_not_genuine_stops_counting_before_the_limit(self, before: int, after: int) -> None:
        node = gated(failed(before) if before else None)
        decision = worker_not_genuine(Snapshot(NOW, node), before + 1, POLICY, "it runs another image")
        assert records(decision)[0].failures == after

    @pytest.mark.parametrize(
        ("effect", "phase"),
        [
            (OpenGate(gated(), passed(3)), "attempt 3 passed, but the API server rejected the release: no"),
            (WriteStatus(gated(), failed(3)), "the API server rejected the record: no"),
            (CloseGate(gated(), failed(3), "7"), "the API server rejected the record: no"),
            (AdoptNode(gated(), VerificationRecord(3), "7"), "the API server rejected the record: no"),
        ],
    )
    def test_a_rejected_write_is_shown_by_a_condition_of_the_present_moment(
        self, effect: OpenGate | WriteStatus | CloseGate | AdoptNode, phase: str
    ) -> None:
        decision = write_rejected(Snapshot(NOW, gated()), effect, "no")
        assert (decision.phase, decision.reason) == (Phase.BACKING_OFF, phase)
        (shown,) = records(decision)
        assert (shown.attempt, shown.outcome, shown.at, shown.since) == (3, Outcome.PENDING, NOW, NOW)
        assert shown.cause is (Cause.NOT_RELEASED if isinstance(effect, OpenGate) else Cause.NOT_RECORDED)
        assert [event.warning for event in events(decision)] == [True]


class TestTheNextAttempt:
    def test_the_first_attempt_makes_no_event_and_later_ones_do(self) -> None:
        assert events(look(gated())) == []
        node = gated(failed(1, ago=MINUTE))
        assert events(look(node)) == [EmitEvent(node, EventReason.VERIFYING, "attempt 2 begins", 2)]

    @pytest.mark.parametrize(("failures", "words"), [(1, "failed once: dns"), (2, "failed 2 times in a row: dns")])
    def test_a_node_that_backs_off_states_how_often_it_failed(self, failures: int, words: str) -> None:
        decision = look(gated(failed(failures, ago=TICK)))
        assert decision.phase is Phase.BACKING_OFF
        assert decision.reason.startswith(words)

    def test_a_contested_node_backs_off_with_the_reason_of_the_contest(self) -> None:
        contested = VerificationRecord(2, outcome=Outcome.PENDING, at=NOW - TICK, reason="undone", contested=3)
        decision = look(gated(contested))
        assert (decision.phase, decision.reason) == (Phase.BACKING_OFF, "undone")

    def waits(self, policy: Policy, **record: Any) -> list[timedelta]:  # noqa: ANN401
        nodes = [gated(VerificationRecord(4, at=NOW, **record), uid=f"uid-{number}") for number in range(300)]
        return sorted(look(node, policy=policy).recheck or timedelta() for node in nodes)

    def test_waits_of_many_nodes_are_spread_over_a_tenth(self) -> None:
        waits = self.waits(replace(POLICY, first_backoff=10 * SECOND), outcome=Outcome.FAILED, failures=1)
        assert 10 * SECOND <= waits[0] < 10.02 * SECOND
        assert 10.98 * SECOND < waits[-1] <= 11 * SECOND
        assert 10.4 * SECOND < waits[150] < 10.6 * SECOND

    def test_the_same_node_waits_for_another_time_after_each_attempt(self) -> None:
        """Nodes that failed together do not all meet again."""
        records = [failed(1, ago=timedelta(), attempt=attempt) for attempt in range(1, 20)]
        assert len({look(gated(record)).recheck for record in records}) > 15

    @pytest.mark.parametrize(
        ("contested", "seconds"), [(2, 2), (3, 4), (4, 8), (9, 256), (10, 300), (11, 300), (10**9, 300)]
    )
    def test_the_wait_of_a_contest_doubles_up_to_five_minutes(self, contested: int, seconds: int) -> None:
        waits = self.waits(POLICY, contested=contested)
        assert seconds * SECOND <= waits[0]
        assert waits[-1] <= 1.1 * seconds * SECOND

    @pytest.mark.parametrize(("first", "failures"), [(DAY, 31), (DAY, 98), (365 * DAY, 98), (TICK, 60), (TICK, 98)])
    def test_any_configured_wait_can_double_any_number_of_times(self, first: timedelta, failures: int) -> None:
        policy = replace(POLICY, max_failures=99, first_backoff=first, max_backoff=365 * DAY)
        waits = self.waits(policy, outcome=Outcome.FAILED, failures=failures)
        assert 365 * DAY <= waits[0] <= waits[-1] <= 1.1 * 365 * DAY

    def test_the_longer_of_both_waits_counts(self) -> None:
        slow = replace(POLICY, first_backoff=MINUTE, max_backoff=MINUTE)
        assert self.waits(slow, outcome=Outcome.FAILED, failures=1, contested=2)[0] >= MINUTE
        assert self.waits(POLICY, outcome=Outcome.FAILED, failures=1, contested=10)[0] >= 5 * MINUTE

    def test_a_wait_ends_exactly_when_it_is_over(self) -> None:
        wait = look(gated(failed(2, ago=timedelta()))).recheck
        assert wait
        assert look(gated(failed(2, ago=wait - TICK))).phase is Phase.BACKING_OFF
        assert look(gated(failed(2, ago=wait))).phase is Phase.VERIFYING

    def test_workers_that_are_not_of_the_current_attempt_are_dropped_but_the_logs_of_the_last_failure_stay(
        self,
    ) -> None:
        backing_off = look(gated(failed(3, ago=TICK)), broken(2), broken(3))
        assert (backing_off.phase, backing_off.effects) == (Phase.BACKING_OFF, (DiscardAttempt(broken(2)),))
        asked_again = VerificationRecord(3, outcome=Outcome.PENDING, at=NOW - TICK, contested=3)
        workers = (a_worker(2), a_worker(3))
        assert look(gated(asked_again), *workers).effects == tuple(map(DiscardAttempt, workers))

    @pytest.mark.parametrize(
        ("facts", "seen"),
        [
            ({"registered": False}, {}),
            ({}, {"slot_free": False}),
        ],
    )
    def test_a_node_that_has_to_wait_loses_the_workers_it_does_not_need(
        self, facts: dict[str, Any], seen: dict[str, Any]
    ) -> None:
        decision = look(gated(failed(3, ago=MINUTE), **facts), broken(2), broken(3), **seen)
        assert (decision.phase, decision.effects) == (Phase.WAITING, (DiscardAttempt(broken(2)),))

    def test_while_a_worker_runs_earlier_ones_are_dropped(self) -> None:
        running = a_worker(4, State.RUNNING, finished=False, created=NOW - MINUTE)
        decision = look(gated(failed(3)), broken(2), broken(3), running)
        assert (decision.phase, decision.effects) == (Phase.VERIFYING, (DiscardAttempt(broken(2)),))
        assert decision.recheck == POLICY.deadline - MINUTE


class TestAProofThatNoLongerCounts:
    @pytest.mark.parametrize(
        ("node", "why"),
        [
            (gated(passed(3)), "its label was removed"),
            (opened(passed(3), taints=(GATE,)), "the gate came back"),
            (opened(passed(3), taints=(GATE,), boot="boot-2"), "the gate came back after a reboot"),
            (
                opened(passed(3, failures=1, cause=Cause.CHECKS, reason="dns"), taints=(GATE,)),
                "the gate came back, and the last check had not passed",
            ),
        ],
    )
    def test_the_record_states_why_the_node_is_verified_again(self, node: Node, why: str) -> None:
        decision = look(node)
        again = VerificationRecord(3, outcome=Outcome.PENDING, at=NOW, since=NOW, reason=why, contested=1)
        assert (decision.phase, decision.reason) == (Phase.VERIFYING, f"to be verified again: {why}")
        assert decision.effects == (WriteStatus(node, again, "7"),)

    def test_an_attempt_that_began_before_does_not_count(self) -> None:
        """Its checks ran before the gate came back, so the next attempt is the one after it."""
        node = opened(passed(3), taints=(GATE,))
        assert records(look(node, a_worker(4, State.RUNNING, finished=False)))[0].attempt == 4
        assert records(look(node, a_worker(4)))[0].attempt == 4
        assert records(look(node, a_worker(3), a_worker(9)))[0].attempt == 3

    @pytest.mark.parametrize(
        ("ago", "contested"),
        [(10 * MINUTE - TICK, 6), (10 * MINUTE, 0), (10 * MINUTE + TICK, 0)],
    )
    def test_a_release_that_stood_for_ten_minutes_ends_a_contest(self, ago: timedelta, contested: int) -> None:
        assert records(look(gated(passed(ago=ago, contested=5))))[0].contested == contested

    @pytest.mark.parametrize(
        ("before", "reported"),
        [(0, False), (1, True), (2, False), (3, True), (4, False), (6, False), (7, True), (15, True), (16, False)],
    )
    def test_a_contest_makes_an_event_each_time_its_length_doubles(
        self,
        before: int,
        reported: bool,  # noqa: FBT001  a table
    ) -> None:
        decision = look(gated(passed(3, contested=before)))
        assert [event.reason for event in events(decision)] == ["GateContested"] * reported
        assert all(event.warning and event.attempt == 3 for event in events(decision))
        assert (f"undid the release {before + 1} times in a row" in decision.reason) is (before > 0)
