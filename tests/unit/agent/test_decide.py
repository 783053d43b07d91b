"""What a node needs next in DaemonSet mode: a function of what it shows and what its last checks said."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from msgspec.structs import replace

from kube_node_ready.agent.decide import decide, decide_without_api, wait_after_run
from kube_node_ready.agent.model import (
    AgentDecision,
    AgentPolicy,
    AgentState,
    CheckRun,
    Effect,
    Observation,
    Rules,
    RunChecks,
)
from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.api.report import CheckResult, Report, TargetResult
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.verification import decide as verification
from kube_node_ready.verification import patches
from kube_node_ready.verification.effects import CloseGate, DiscardAttempt, EmitEvent, OpenGate, WriteStatus
from kube_node_ready.verification.model import Attempt, Gate, Node, Phase, Snapshot, State

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GATE = Taint("node-ready/unverified", "NoSchedule", "true")
FOREIGN = Taint("example.com/foreign", "NoSchedule")
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
ONCE = Rules(AgentPolicy((Gate(GATE.key, GATE.effect),), max_failures=6), GATE)
CONTINUOUS = replace(ONCE, policy=replace(ONCE.policy, slow_retry=MINUTE), continuous=True, poll_interval=MINUTE)
PASSES = Report((TargetResult("dns", Verdict.PASSED, ms=3, target="a.example"),))
FAILS = Report((TargetResult("dns", Verdict.FAILED, ms=10, target="a.example", error="timed out"),))
UNJUDGED = Report((TargetResult("network", Verdict.INCONCLUSIVE, ms=10, error="not judged: lost"),))
LARGE, SMALL = 5000, 1400
"""Bytes of a Node as it is sent."""
PROOF = VerificationRecord(1, outcome=Outcome.PASSED, at=NOW, since=NOW, boot="boot-1")


def gated(record: VerificationRecord | None = None, *others: Taint) -> Node:
    return Node("a", "uid-a", taints=(*others, GATE), record=record or VerificationRecord(), boot="boot-1")


def verified(*taints: Taint) -> Node:
    return Node("a", "uid-a", labelled=True, taints=taints, record=PROOF, boot="boot-1")


def failed(times: int, *, at: datetime = NOW, since: datetime = NOW) -> VerificationRecord:
    return VerificationRecord(
        times, failures=times, outcome=Outcome.FAILED, at=at, since=since, reason="dns: timed out"
    )


def a_round(report: Report = PASSES, *, attempt: int = 0, at: datetime = NOW, api_reachable: bool = True) -> CheckRun:
    return CheckRun(at, at, report, attempt, api_reachable)


PARTIAL = replace(a_round(), omitted=("services", "payload", "matrix"))
PARTIAL_FAILURE = replace(PARTIAL, report=FAILS)


def decided(run: CheckRun) -> Attempt:
    """The attempt that a run decides."""
    return Attempt(
        number=run.attempt,
        created=run.started,
        state=State.PASSED if run.passed else State.FAILED,
        cause=Cause.NONE if run.passed else Cause.CHECKS,
        reason=run.reason,
        report=run.report,
        finished=True,
        settled=run.released,
    )


def memory(*rounds: CheckRun) -> AgentState:
    known = AgentState()
    for one in rounds:
        known = known.after_run(one)
    return known


def look(
    node: Node, known: AgentState | None = None, rules: Rules = ONCE, *, after: timedelta = timedelta()
) -> AgentDecision:
    shown = {Outcome.PASSED: "True", Outcome.FAILED: "False"}.get(node.record.outcome, "")
    return decide(Observation(NOW + after, node, "7", shown), known or AgentState(), rules)


def kinds(step: AgentDecision) -> list[type[Effect]]:
    return [type(effect) for effect in step.effects]


class TestOnce:
    def test_a_gated_node_is_checked(self) -> None:
        assert look(gated()).effects == (RunChecks(1),)

    def test_a_node_without_label_is_checked_even_if_it_was_never_gated(self) -> None:
        assert look(Node("a", "uid-a", taints=(FOREIGN,))).effects == (RunChecks(1),)

    def test_a_passed_node_is_released_immediately(self) -> None:
        step = look(gated(), memory(a_round(attempt=1)))
        (release,) = step.effects
        assert isinstance(release, OpenGate)
        assert (release.record.attempt, release.record.outcome, release.record.boot) == (1, Outcome.PASSED, "boot-1")
        assert step.recheck == timedelta()

    def test_a_pass_that_could_not_be_written_for_long_is_repeated(self) -> None:
        known = memory(a_round(attempt=1))
        assert kinds(look(gated(), known, after=MINUTE)) == [OpenGate]
        assert look(gated(), known, after=MINUTE + SECOND).effects == (RunChecks(1),)
        slow = memory(CheckRun(NOW, NOW + 5 * MINUTE, PASSES, attempt=1))
        assert kinds(look(gated(), slow, after=5 * MINUTE)) == [OpenGate], "it took that long"

    def test_a_release_is_reported_by_condition_and_event_and_then_forgotten(self) -> None:
        step = look(verified(), memory(a_round(attempt=1)))
        assert kinds(step) == [WriteStatus, EmitEvent, DiscardAttempt]
        assert step.effects[1].reason == "Verified"  # type: ignore[union-attr]

    def test_a_released_node_causes_no_further_effects(self) -> None:
        step = look(verified())
        assert (step.phase, step.effects, step.recheck) == (Phase.VERIFIED, (), ONCE.poll_interval)

    def test_a_failure_is_reported_and_recorded_over_the_observed_record(self) -> None:
        step = look(gated(), memory(a_round(FAILS, attempt=1)))
        assert kinds(step) == [EmitEvent, WriteStatus]
        assert step.effects[0].message == "dns: a.example: timed out (attempt 1 of 6)"  # type: ignore[union-attr]
        assert step.effects[1].version == "7"  # type: ignore[union-attr]

    @pytest.mark.parametrize(("failures", "wait"), [(1, 1), (2, 2), (3, 4), (4, 8)])
    def test_retries_wait_longer_each_time(self, failures: int, wait: float) -> None:
        """Each with up to a tenth of spread."""
        step = look(gated(failed(failures)), memory(a_round(FAILS, attempt=failures)))
        assert step.phase is Phase.BACKING_OFF
        assert not step.effects
        assert wait <= step.recheck.total_seconds() <= wait * 1.1

    def test_a_long_wait_is_interrupted_by_reads(self) -> None:
        assert look(gated(failed(5))).recheck == ONCE.poll_interval

    def test_the_next_attempt_begins_after_the_wait(self) -> None:
        step = look(gated(failed(2)), memory(a_round(FAILS, attempt=2)), after=3 * SECOND)
        assert step.effects == (RunChecks(3), DiscardAttempt(decided(a_round(FAILS, attempt=2))))

    def test_too_many_failures_are_reported_once_and_followed_by_slow_retries(self) -> None:
        last = look(gated(failed(5)), memory(a_round(FAILS, attempt=6)))
        assert [effect.reason for effect in last.effects if isinstance(effect, EmitEvent)] == [
            "VerificationFailed",
            "VerificationExhausted",
        ]
        assert look(gated(failed(6))).phase is Phase.EXHAUSTED
        assert not look(gated(failed(6)), after=4 * MINUTE).effects
        assert look(gated(failed(6)), after=5 * MINUTE).effects == (RunChecks(7),)
        later = look(gated(failed(6)), memory(a_round(FAILS, attempt=7, at=NOW + 6 * MINUTE)), after=6 * MINUTE)
        assert [news.reason for news in later.effects if isinstance(news, EmitEvent)] == ["VerificationFailed"]

    def test_removing_the_label_requires_a_new_proof(self) -> None:
        asked = look(replace(verified(), labelled=False))
        (pending,) = asked.effects
        assert isinstance(pending, WriteStatus)
        assert pending.record.outcome is Outcome.PENDING
        assert asked.recheck == timedelta()
        assert look(Node("a", "uid-a", record=pending.record)).effects == (RunChecks(2),)

    def test_a_gate_that_returns_needs_a_new_proof(self) -> None:
        asked = look(verified(GATE))
        (pending,) = asked.effects
        assert isinstance(pending, WriteStatus)
        assert (pending.record.outcome, pending.record.contested) == (Outcome.PENDING, 1)
        assert asked.recheck == timedelta()
        assert look(replace(verified(GATE), record=pending.record)).effects == (RunChecks(2),)

    def test_a_node_that_karpenter_has_not_registered_waits(self) -> None:
        step = look(replace(gated(), registered=False))
        assert (step.phase, step.effects, step.recheck) == (Phase.WAITING, (), 2 * SECOND)

    def test_a_node_that_is_being_deleted_is_left_alone(self) -> None:
        assert not look(replace(gated(), deleting=True), memory(a_round(attempt=1))).effects

    def test_a_label_of_another_client_is_accepted(self) -> None:
        assert not look(Node("a", "uid-a", labelled=True)).effects

    def test_failing_rounds_never_close_a_gate(self) -> None:
        assert not look(verified(), memory(*[a_round(FAILS)] * 9)).effects


class TestInitialTimeout:
    def test_within_it_retries_are_quick(self) -> None:
        assert look(gated(failed(3)), after=10 * SECOND).effects == (RunChecks(4),)

    def test_the_first_failure_after_it_announces_slow_retries(self) -> None:
        step = look(gated(failed(3)), memory(a_round(FAILS, attempt=4, at=NOW + 5 * MINUTE)), after=5 * MINUTE)
        reasons = [effect.reason for effect in step.effects if isinstance(effect, EmitEvent)]
        assert reasons == ["VerificationFailed", "VerificationExhausted"]
        assert step.policy.max_failures == 4

    def test_after_that_retries_are_slow_and_not_announced_again(self) -> None:
        late = failed(4, since=NOW - 6 * MINUTE)
        assert look(gated(late), after=MINUTE).phase is Phase.EXHAUSTED
        step = look(gated(late), memory(a_round(FAILS, attempt=5, at=NOW + 6 * MINUTE)), after=6 * MINUTE)
        assert [effect.reason for effect in step.effects if isinstance(effect, EmitEvent)] == ["VerificationFailed"]


class TestTheConditionFollowsTheRecord:
    @pytest.mark.parametrize(
        ("node", "shown"),
        [(verified(), ""), (verified(), "False"), (gated(failed(9)), "True")],
        ids=["untold", "old", "restored"],
    )
    def test_a_different_condition_is_written_again(self, node: Node, shown: str) -> None:
        step = decide(Observation(NOW, node, "7", shown), AgentState(), ONCE)
        assert step.effects == (WriteStatus(node, node.record, "7"),)
        assert step.recheck == ONCE.poll_interval, "not fought over without pause"

    def test_conditions_are_not_written_without_permission(self) -> None:
        assert not decide(Observation(NOW, verified(), "7", None), AgentState(), ONCE).effects

    def test_without_a_proof_no_condition_is_needed(self) -> None:
        node = Node("a", "uid-a", labelled=True, record=VerificationRecord(1, reason="labeled by another client"))
        assert not decide(Observation(NOW, node, "7", ""), AgentState(), ONCE).effects


class TestContinuous:
    def test_a_verified_node_is_checked_immediately_and_then_every_interval(self) -> None:
        assert look(verified(), rules=CONTINUOUS).effects == (RunChecks(0),)
        known = memory(a_round())
        early = look(verified(), known, CONTINUOUS, after=20 * SECOND)
        assert not early.effects
        assert 10 * SECOND <= early.recheck <= 70 * SECOND, "at the node's own time"
        assert kinds(look(verified(), known, CONTINUOUS, after=20 * SECOND + early.recheck)) == [RunChecks]

    def test_nodes_whose_pods_start_together_are_checked_at_different_times(self) -> None:
        known = memory(a_round())
        nodes = [replace(verified(), uid=f"uid-{number}") for number in range(50)]
        waits = {look(node, known, CONTINUOUS, after=SECOND).recheck for node in nodes}
        assert len(waits) > 20, "the others wait for the longest look"

    def test_a_node_that_another_client_verified_is_checked_too(self) -> None:
        assert look(Node("a", "uid-a", labelled=True), rules=CONTINUOUS).effects == (RunChecks(0),)

    @pytest.mark.parametrize("failures", [1, 2])
    def test_one_or_two_failures_change_nothing(self, failures: int) -> None:
        known = memory(*[a_round(FAILS)] * failures)
        assert not look(verified(FOREIGN), known, CONTINUOUS, after=SECOND).effects

    def test_three_failures_in_a_row_close_the_gate_with_their_record(self) -> None:
        step = look(verified(FOREIGN), memory(*[a_round(FAILS)] * 3), CONTINUOUS)
        news, closed = step.effects
        assert isinstance(closed, CloseGate)
        assert (closed.record.attempt, closed.record.failures, closed.record.outcome) == (2, 1, Outcome.FAILED)
        assert closed.record.reason == "dns: a.example: timed out"
        assert closed.version == "7"
        assert isinstance(news, EmitEvent)
        assert (news.reason, news.warning) == ("GateRestored", True)
        assert "failed 3 times in a row" in news.message

    def test_a_success_resets_the_count(self) -> None:
        rounds = [a_round(FAILS), a_round(FAILS), a_round(), a_round(FAILS), a_round(FAILS)]
        assert not look(verified(), memory(*rounds), CONTINUOUS, after=SECOND).effects

    def test_failures_while_the_node_could_not_be_read_do_not_count(self) -> None:
        """An outage of the API server must not close the gates of all nodes when it ends."""
        known = memory(*[a_round(FAILS, api_reachable=False)] * 9)
        assert known.streak == 0
        assert not look(verified(), known, CONTINUOUS, after=SECOND).effects

    def test_a_closed_gate_is_not_closed_again(self) -> None:
        step = look(gated(failed(3)), memory(*[a_round(FAILS)] * 9), CONTINUOUS)
        assert step.phase is Phase.BACKING_OFF
        assert not step.effects

    def test_a_manual_label_on_a_failing_node_closes_the_gate(self) -> None:
        node = replace(gated(failed(3)), labelled=True)
        step = look(node, memory(*[a_round(FAILS)] * 4), CONTINUOUS)
        assert kinds(step) == [EmitEvent, CloseGate]
        assert step.effects[1].record == node.record  # type: ignore[union-attr]

    def test_attempts_that_fail_close_no_gate(self) -> None:
        """Three of them take seconds. A wrong setting would gate every node of a cluster that was never gated."""
        known = memory(*[a_round(FAILS, attempt=number) for number in range(1, 9)])
        assert known.streak == 0
        for node in (Node("a", "uid-a", record=failed(3)), verified()):
            assert CloseGate not in kinds(look(node, known, CONTINUOUS))

    def test_recovery_takes_an_attempt_that_passes(self) -> None:
        node = gated(failed(3), FOREIGN)
        assert look(node, rules=CONTINUOUS, after=5 * SECOND).effects == (RunChecks(4),)
        known = memory(*[a_round(FAILS)] * 3, a_round(attempt=4))
        assert known.streak == 0
        assert kinds(look(node, known, CONTINUOUS)) == [OpenGate]

    def test_an_exhausted_node_is_tried_every_interval(self) -> None:
        node = gated(failed(6))
        assert not look(node, rules=CONTINUOUS, after=59 * SECOND).effects
        assert look(node, rules=CONTINUOUS, after=MINUTE).effects == (RunChecks(7),)

    @pytest.mark.parametrize("change", [{"deleting": True}, {"registered": False}], ids=str)
    def test_the_gate_of_a_deleted_or_unregistered_node_is_not_closed(self, change: dict[str, bool]) -> None:
        step = look(replace(verified(), **change), memory(*[a_round(FAILS)] * 3), CONTINUOUS, after=SECOND)
        assert CloseGate not in kinds(step)

    def test_a_clock_that_was_set_back_stops_no_rounds(self) -> None:
        known = memory(a_round(at=NOW + timedelta(days=365)))
        assert look(verified(), known, CONTINUOUS).effects == (RunChecks(0),)


def later(known: AgentState, node: Node | None = None, *, after: timedelta, size: int = LARGE) -> AgentDecision:
    """What is decided about a verified node at a later look, which the API server answered with so many bytes."""
    return decide(Observation(NOW + after, node or verified(), "7", "True", size), known, CONTINUOUS)


def turn(known: AgentState) -> timedelta:
    """How long after NOW the node's next round is due."""
    return SECOND + later(known, after=SECOND).recheck


class TestLaterRounds:
    """Most rounds over a verified node leave out the checks that ask the API server."""

    def test_after_all_checks_passed_a_round_skips_checks_of_the_api_server(self) -> None:
        known = memory(a_round())
        assert later(known, after=turn(known)).effects == (RunChecks(omit=("services", "payload", "matrix")),)

    def test_an_attempt_that_passed_counts_as_a_round_of_all_checks(self) -> None:
        known = memory(a_round(attempt=1)).without_attempt(1)
        assert later(known, after=turn(known)).effects == (RunChecks(omit=("services", "payload", "matrix")),)

    def test_of_ten_rounds_one_runs_all_checks_and_of_three_one_the_matrix(self) -> None:
        known, omitted, now = memory(a_round()), [], timedelta()
        for _ in range(40):
            now += MINUTE
            (expected,) = later(known, after=now + 30 * SECOND).effects
            assert isinstance(expected, RunChecks)
            omitted.append(expected.omit)
            known = known.after_run(replace(a_round(at=NOW + now), omitted=expected.omit))
        full = [number for number, names in enumerate(omitted) if not names]
        assert {after - before for before, after in pairwise(full)} == {10}
        assert full[0] <= 10
        for three in zip(omitted, omitted[1:], omitted[2:], strict=False):
            assert any("matrix" not in names for names in three)

    def test_a_small_node_object_does_not_replace_the_payload_check(self) -> None:
        """It would arrive even where full-size packets are lost."""
        known = memory(a_round())
        assert later(known, after=turn(known), size=SMALL).effects == (RunChecks(omit=("services", "matrix")),)

    @pytest.mark.parametrize(
        "last",
        [
            a_round(FAILS),
            a_round(api_reachable=False),
            a_round(FAILS, api_reachable=False),
            replace(a_round(), skipped=1),
        ],
        ids=["failed", "blind", "failed, blind", "skipped"],
    )
    def test_all_checks_run_unless_the_last_round_passed(self, last: CheckRun) -> None:
        known = memory(a_round(), last)
        assert later(known, after=2 * MINUTE).effects == (RunChecks(),)

    def test_all_checks_run_after_a_failure_until_they_pass(self) -> None:
        known = memory(a_round(), a_round(FAILS), a_round(FAILS))
        assert later(known, after=2 * MINUTE).effects == (RunChecks(),)
        known = known.after_run(a_round(at=NOW + 2 * MINUTE))
        assert later(known, after=4 * MINUTE).effects == (RunChecks(omit=("services", "payload", "matrix")),)

    def test_a_failed_partial_round_is_repeated_immediately_with_all_checks(self) -> None:
        known = memory(a_round(), PARTIAL_FAILURE)
        assert known.streak == 0, "it does not count"
        assert later(known, after=SECOND).effects == (RunChecks(),)
        known = known.after_run(a_round(FAILS))
        assert known.streak == 1
        assert not later(known, after=SECOND).effects, "only once; then at the node's turn"

    def test_partial_rounds_close_no_gate(self) -> None:
        known = memory(a_round(), *[PARTIAL_FAILURE] * 9)
        assert CloseGate not in kinds(later(known, after=SECOND))

    def test_inconclusive_rounds_neither_close_a_gate_nor_end_a_streak(self) -> None:
        known = memory(a_round(FAILS), *[a_round(UNJUDGED)] * 9)
        assert known.streak == 1
        assert CloseGate not in kinds(later(known, after=2 * MINUTE))
        assert later(known, after=2 * MINUTE).effects == (RunChecks(),)

    def test_partial_rounds_end_no_streak(self) -> None:
        known = memory(a_round(FAILS), a_round(FAILS), PARTIAL)
        assert known.streak == 2

    def test_partial_rounds_open_no_gate(self) -> None:
        assert not PARTIAL.passed
        known = memory(replace(PARTIAL, attempt=1))
        assert OpenGate not in kinds(look(gated(), known, CONTINUOUS))

    def test_a_changed_taint_runs_all_checks_immediately(self) -> None:
        known = memory(a_round()).after_read((FOREIGN,))
        assert not later(known.after_read((FOREIGN,)), after=SECOND).effects
        assert later(known.after_read(()), after=SECOND).effects == (RunChecks(),)

    def test_a_changed_taint_within_a_streak_does_not_accelerate_rounds(self) -> None:
        """Otherwise a client that flips a taint during a short fault would close the gate."""
        known = memory(a_round(FAILS)).after_read(()).after_read((FOREIGN,))
        assert not later(known, after=SECOND).effects

    def test_the_node_is_not_read_between_passed_rounds(self) -> None:
        known = memory(a_round())
        assert wait_after_run("uid-a", NOW + SECOND, known, CONTINUOUS) == later(known, after=SECOND).recheck
        assert wait_after_run("uid-a", NOW, memory(a_round(FAILS)), CONTINUOUS) == timedelta()

    def test_the_full_rounds_of_a_fleet_are_spread(self) -> None:
        """Pods of a rollout start together."""
        known = memory(a_round())
        due = [
            not expected.omit
            for number in range(500)
            for expected in later(known, replace(verified(), uid=f"uid-{number}"), after=5 * MINUTE).effects
            if isinstance(expected, RunChecks)
        ]
        assert len(due) == 500
        assert 150 < sum(due) < 350, "about half of ten minutes' worth"


class TestBlind:
    """While the Node cannot be read."""

    def test_checks_run_and_their_results_do_not_count(self) -> None:
        assert decide_without_api(NOW, AgentState(), ONCE).effects == (RunChecks(0, api_reachable=False),)

    def test_rounds_without_the_api_back_off(self) -> None:
        known = memory(*[a_round(FAILS, api_reachable=False)] * 3)
        assert not decide_without_api(NOW + 7 * SECOND, known, ONCE).effects
        assert decide_without_api(NOW + 8 * SECOND, known, ONCE).effects
        known = memory(*[a_round(FAILS, api_reachable=False)] * 30)
        assert decide_without_api(NOW + 30 * SECOND, known, ONCE).effects

    def test_in_continuous_mode_rounds_without_the_api_run_every_interval(self) -> None:
        known = memory(a_round(FAILS, api_reachable=False))
        assert not decide_without_api(NOW + 59 * SECOND, known, CONTINUOUS).effects
        assert decide_without_api(NOW + MINUTE, known, CONTINUOUS).effects

    def test_the_node_is_read_during_the_wait(self) -> None:
        known = memory(*[a_round(FAILS, api_reachable=False)] * 9)
        assert decide_without_api(NOW, known, ONCE).recheck == ONCE.poll_interval


class TestContested:
    def test_a_gate_that_returns_twice_is_contested_and_waits(self) -> None:
        """As the controller decides it; the count is on the Node."""
        again = replace(verified(GATE), record=replace(PROOF, attempt=2, contested=1))
        news, pending = look(again).effects
        assert isinstance(news, EmitEvent)
        assert isinstance(pending, WriteStatus)
        assert (news.reason, news.warning) == ("GateContested", True)
        assert (pending.record.outcome, pending.record.contested) == (Outcome.PENDING, 2)
        waiting = replace(again, record=pending.record)
        step = look(waiting)
        assert (step.phase, step.effects) == (Phase.BACKING_OFF, ())
        assert 2 * SECOND <= step.recheck <= 2.2 * SECOND
        assert look(waiting, after=3 * SECOND).effects == (RunChecks(3),)

    def test_a_round_opens_the_gate_once_even_if_the_record_is_deleted(self) -> None:
        done = a_round(attempt=1)
        (release,) = look(gated(), memory(done)).effects
        assert isinstance(release, OpenGate)
        known = memory(done).after_write(release)
        used = decided(replace(done, released=True))
        assert look(gated(), known).effects == (DiscardAttempt(used), RunChecks(1))

    def test_only_the_attempt_that_is_discarded_is_forgotten(self) -> None:
        """The next attempt can have been decided before."""
        known = memory(a_round(FAILS, attempt=2), a_round(attempt=3))
        assert known.without_attempt(2).attempt == a_round(attempt=3)
        assert known.without_attempt(3).attempt is None


RELEASE = OpenGate(gated(), replace(PROOF, attempt=3))
FAILURE = WriteStatus(gated(), failed(3), "7")


def refused(effect: OpenGate | WriteStatus | CloseGate = RELEASE, *, times: int = 1, message: str = "no") -> AgentState:
    known = AgentState()
    for _ in range(times):
        known = known.after_rejection(effect, message, NOW)
    return known


class TestRefused:
    @pytest.mark.parametrize(
        ("times", "wait"), [(1, 1), (2, 2), (3, 4), (4, 8), (9, 256), (10, 300), (99, 300)], ids=str
    )
    def test_each_wait_is_longer(self, times: int, wait: int) -> None:
        rejection = refused(times=times).rejection
        assert rejection
        assert rejection.wait(NOW) == wait * SECOND
        assert rejection.wait(NOW + wait * SECOND) == timedelta()

    def test_the_node_is_read_during_a_contest(self) -> None:
        step = decide(Observation(NOW, gated(), "7", "Unknown"), refused(times=9).after_report(NOW), ONCE)
        assert (step.phase, step.effects, step.recheck) == (Phase.BACKING_OFF, (), ONCE.poll_interval)

    def test_a_clock_that_was_set_back_does_not_prolong_the_wait(self) -> None:
        known = refused(times=9).after_report(NOW)
        assert known.rejection
        assert known.rejection.wait(NOW - MINUTE) == timedelta()

    @pytest.mark.parametrize(
        ("effect", "reason"),
        [
            (RELEASE, "ReleaseRejected"),
            (FAILURE, "RecordRejected"),
            (CloseGate(verified(), failed(3), "7"), "RecordRejected"),
        ],
        ids=["release", "record", "closing"],
    )
    def test_it_is_shown_as_the_controller_shows_it(
        self, effect: OpenGate | WriteStatus | CloseGate, reason: str
    ) -> None:
        step = look(gated(), refused(effect, message="change freeze"))
        shown = verification.write_rejected(Snapshot(NOW, gated()), effect, "change freeze")
        assert step.effects == shown.effects
        news, condition = step.effects
        assert isinstance(news, EmitEvent)
        assert isinstance(condition, WriteStatus)
        assert (news.reason, news.warning) == (reason, True)
        assert "change freeze" in news.message
        written = patches.write_status(gated(), condition.record, ONCE.policy)
        assert written["status"]["conditions"][0]["status"] == "Unknown"
        assert "annotations" not in written["metadata"], "the condition alone"

    def test_it_is_reported_again_only_after_the_event_expires(self) -> None:
        known = refused(times=9).after_report(NOW)
        unknown = Observation(NOW, gated(), "7", "Unknown")
        assert not decide(unknown, known, ONCE).effects
        assert kinds(decide(replace(unknown, now=NOW + 60 * MINUTE), known, ONCE)) == [EmitEvent, WriteStatus]

    def test_another_message_is_reported_too(self) -> None:
        same = refused().after_report(NOW).after_rejection(RELEASE, "no", NOW)
        other = refused().after_report(NOW).after_rejection(RELEASE, "not today", NOW)
        assert not [kind for kind in kinds(look(gated(), same)) if kind is EmitEvent]
        assert EmitEvent in kinds(look(gated(), other))

    def test_the_condition_is_written_until_it_shows_the_rejection(self) -> None:
        known = refused().after_report(NOW)
        assert kinds(decide(Observation(NOW, gated(), "7", "True"), known, ONCE)) == [WriteStatus]
        assert not decide(Observation(NOW, gated(), "7", "Unknown"), known, ONCE).effects
        assert not decide(Observation(NOW, gated(), "7", None), known, ONCE).effects, "no right to write conditions"

    def test_a_condition_that_cannot_be_written_does_not_keep_the_gate_closed(self) -> None:
        known = replace(memory(a_round(attempt=1)), rejection=refused().after_report(NOW).rejection)
        assert kinds(decide(Observation(NOW + SECOND, gated(), "7", "True"), known, ONCE)) == [OpenGate]

    def test_a_node_that_fails_after_a_rejected_release_is_retried_like_any_other(self) -> None:
        """Its checks did not pass, so what is said of a release would not be true any more."""
        known = replace(memory(a_round(FAILS, attempt=1)), rejection=refused().rejection)
        assert kinds(look(gated(), known)) == [EmitEvent, WriteStatus]

    def test_a_node_that_passes_after_a_rejected_record_is_released_immediately(self) -> None:
        known = replace(memory(a_round(attempt=1)), rejection=refused(FAILURE).rejection)
        assert kinds(look(gated(), known)) == [OpenGate]

    def test_an_accepted_write_ends_the_rejection(self) -> None:
        assert refused().after_write(RELEASE).rejection is None
        assert refused().after_write(FAILURE).rejection is None
        condition = replace(FAILURE, version="")
        assert refused().after_write(condition).rejection, "a condition alone shows nothing"

    def test_an_open_gate_ends_a_rejected_release_only(self) -> None:
        assert refused().without_rejected_release().rejection is None
        assert refused(FAILURE).without_rejected_release().rejection

    def test_a_node_that_is_being_deleted_waits_for_nothing(self) -> None:
        assert look(replace(gated(), deleting=True), refused(times=9)).phase is Phase.IGNORED


class TestProof:
    def test_a_skipped_check_opens_no_gate(self) -> None:
        skipped = replace(a_round(attempt=1), skipped=1)
        assert not skipped.passed
        assert not skipped.failed
        step = look(gated(), memory(skipped))
        assert OpenGate not in kinds(step)
        assert "a skipped check proves nothing" in step.reason

    def test_skipped_checks_are_named_and_not_counted(self) -> None:
        reason = "not enough peers: 0 of 2"
        inapplicable = TargetResult("matrix", Verdict.NOT_APPLICABLE, error=reason)
        done = a_round(Report((*PASSES.checks, inapplicable)), attempt=1)
        assert done.passed
        (release,) = look(gated(), memory(done)).effects
        assert isinstance(release, OpenGate)
        assert release.record.checks[-1] == CheckResult("matrix", ok=True, error=reason, applies=False)
        reported = look(replace(verified(), record=replace(PROOF, checks=release.record.checks)), memory(done)).effects[
            1
        ]
        assert isinstance(reported, EmitEvent)
        assert (
            reported.message
            == "attempt 1: 1 checks passed, the slowest in 3 ms; not applicable: matrix (not enough peers: 0 of 2)"
        )

    def test_skipped_checks_alone_are_not_a_proof(self) -> None:
        nothing = Report((TargetResult("matrix", Verdict.NOT_APPLICABLE, error="not enough peers: 0 of 2"),))
        assert not a_round(nothing).passed


def test_a_round_without_results_is_not_a_proof() -> None:
    assert not a_round(Report()).passed
    assert not a_round(Report(error="no token")).passed
