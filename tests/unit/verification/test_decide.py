"""The state machine, promise by promise."""

from datetime import timedelta

import msgspec
import pytest

from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.api.report import CheckResult, Report, TargetResult
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.verification import patches
from kube_node_ready.verification.decide import decide, worker_creation_rejected, worker_not_genuine
from kube_node_ready.verification.effects import (
    ConfirmAttempt,
    DiscardAttempt,
    EmitEvent,
    OpenGate,
    RemoveNode,
    StartAttempt,
    WriteStatus,
)
from kube_node_ready.verification.model import (
    Fleet,
    Ledger,
    Node,
    Phase,
    Policy,
    Removal,
    RemovalPolicy,
    Snapshot,
    State,
    Worker,
)
from tests.support.model_cluster import POLICY, START, Cluster

UID = "00000000-0000-0000-0000-000000000001"
GATE = Taint("node-ready/unverified", "NoSchedule", "true")
REMOVING = Policy(POLICY.gates, removal=RemovalPolicy())
SECOND = timedelta(seconds=1)


def a_node(*, gated: bool = True, **facts: object) -> Node:
    defaults = {"name": "a", "uid": UID, "boot": "boot-1", "taints": (GATE,) if gated else ()}
    return Node(**(defaults | facts))  # type: ignore[arg-type]


def a_worker(number: int = 1, state: State = State.PASSED, **facts: object) -> Worker:
    defaults: dict[str, object] = {"name": f"worker-{number}", "uid": f"pod-{number}", "created": START}
    defaults |= {"node_uid": UID, "node_name": "a", "genuine": True}
    return Worker(number=number, state=state, **(defaults | facts))  # type: ignore[arg-type]


def failed(failures: int, **facts: object) -> VerificationRecord:
    defaults = {
        "attempt": failures,
        "failures": failures,
        "node_failures": failures,
        "at": START,
        "cause": Cause.CHECKS,
    }
    return VerificationRecord(outcome=Outcome.FAILED, **(defaults | facts))  # type: ignore[arg-type]


def passed(attempt: int = 1, **facts: object) -> VerificationRecord:
    return VerificationRecord(attempt, outcome=Outcome.PASSED, at=START, since=START, boot="boot-1", **facts)  # type: ignore[arg-type]


def seen(node: Node, *workers: Worker, after: timedelta = SECOND, **facts: object) -> Snapshot:
    return Snapshot(START + after, node, workers, **facts)  # type: ignore[arg-type]


def kinds(effects: tuple[object, ...]) -> list[type]:
    return [type(effect) for effect in effects]


def test_a_gated_node_gets_a_worker() -> None:
    decision = decide(seen(a_node()), POLICY)
    assert decision.phase is Phase.VERIFYING
    assert decision.effects == (StartAttempt(a_node(), 1),)


def test_a_node_that_was_never_gated_is_ignored() -> None:
    assert decide(seen(a_node(gated=False)), POLICY).phase is Phase.IGNORED


def test_without_gates_every_unlabeled_node_is_verified() -> None:
    everyone = Policy(())
    assert decide(seen(a_node(gated=False)), everyone).phase is Phase.VERIFYING
    assert decide(seen(a_node(gated=False, labelled=True)), everyone).phase is Phase.IGNORED


def test_a_node_being_deleted_is_left_alone() -> None:
    decision = decide(seen(a_node(deleting=True), a_worker()), POLICY)
    assert decision.phase is Phase.IGNORED
    assert not decision.effects


def test_a_node_is_ignored_until_karpenter_registers_it() -> None:
    decision = decide(seen(a_node(registered=False)), POLICY)
    assert decision.phase is Phase.WAITING
    assert not decision.effects


def test_a_passed_worker_opens_the_gate_first() -> None:
    decision = decide(seen(a_node(), a_worker()), POLICY)
    assert decision.phase is Phase.VERIFIED
    assert kinds(decision.effects) == [OpenGate]


@pytest.mark.parametrize("state", State)
def test_a_worker_on_another_node_is_neither_proof_nor_failure(state: State) -> None:
    elsewhere = a_worker(state=state, node_name="b")
    decision = decide(seen(a_node(), elsewhere), POLICY)
    assert decision.effects == (DiscardAttempt(elsewhere), StartAttempt(a_node(), 1)), "its name is free first"


ENDED = {
    "passed": a_worker(genuine=False),
    "failed": a_worker(state=State.FAILED, cause=Cause.CHECKS, genuine=False),
    "late": a_worker(state=State.RUNNING, created=START - timedelta(hours=1), genuine=False),
}


@pytest.mark.parametrize("worker", ENDED.values(), ids=ENDED)
def test_no_verdict_counts_before_its_worker_is_confirmed(worker: Worker) -> None:
    decision = decide(seen(a_node(), worker), POLICY)
    assert decision.phase is Phase.VERIFYING
    assert decision.effects == (ConfirmAttempt(a_node(), worker),)


@pytest.mark.parametrize(("deleting", "blamed"), [(False, 1), (True, 0)])
def test_a_late_worker_in_deletion_does_not_blame_its_node(deleting: bool, blamed: int) -> None:  # noqa: FBT001
    late = a_worker(state=State.RUNNING, created=START - timedelta(hours=1), deleting=deleting)
    (written,) = [e for e in decide(seen(a_node(), late), POLICY).effects if isinstance(e, WriteStatus)]
    assert written.record.node_failures == blamed


@pytest.mark.parametrize("state", [State.PENDING, State.RUNNING])
def test_a_worker_in_progress_is_confirmed_early(state: State) -> None:
    """Otherwise a pod of another client, which can stay pending, would stop its node until the deadline."""
    worker = a_worker(state=state, genuine=False)
    decision = decide(seen(a_node(), worker), POLICY)
    assert decision.effects == (ConfirmAttempt(a_node(), worker, early=True),)
    assert decision.recheck == decide(seen(a_node(), msgspec.structs.replace(worker, genuine=True)), POLICY).recheck


@pytest.mark.parametrize("worker", ENDED.values(), ids=ENDED)
def test_a_worker_that_is_not_genuine_is_dropped_and_does_not_blame_its_node(worker: Worker) -> None:
    forged = msgspec.structs.replace(worker, report=Report((TargetResult("dns", Verdict.FAILED),)))
    decision = worker_not_genuine(seen(a_node(), forged), forged.number, POLICY, "it runs something else")
    announced, written, dropped = decision.effects
    assert decision.phase is Phase.FAILED
    assert isinstance(announced, EmitEvent)
    assert isinstance(written, WriteStatus)
    assert (written.record.cause, written.record.node_failures, written.record.checks) == (Cause.STOPPED, 0, ())
    assert dropped == DiscardAttempt(forged)


@pytest.mark.parametrize("retries", [1, 2, 5])
def test_workers_that_are_not_genuine_never_exhaust_a_node(retries: int) -> None:
    policy = Policy(POLICY.gates, max_failures=retries, slow_retry=None)
    node = a_node()
    for attempt in range(1, 10):
        forged = a_worker(attempt, genuine=False)
        _, written, _ = worker_not_genuine(seen(node, forged), forged.number, policy, "it runs something else").effects
        assert isinstance(written, WriteStatus)
        assert written.record.attempt == attempt
        node = a_node(record=written.record)
    assert decide(seen(node, after=timedelta(hours=1)), policy).effects[0] == StartAttempt(node, 10)
    assert patches.write_status(node, node.record, policy)["status"]["conditions"][0]["reason"] == "VerificationFailed"


def test_a_worker_that_is_not_genuine_does_not_lead_to_removal() -> None:
    node = a_node(record=failed(6, node_failures=6, attempt=6))
    forged = a_worker(7, genuine=False)
    _, written, _ = worker_not_genuine(seen(node, forged), forged.number, REMOVING, "it runs something else").effects
    assert isinstance(written, WriteStatus)
    assert (written.record.failures, written.record.node_failures) == (6, 0)
    assert RemoveNode not in kinds(decide(seen(a_node(record=written.record)), REMOVING).effects)


def test_the_reason_of_a_rejected_worker_is_one_short_line() -> None:
    forged = a_worker(genuine=False)
    decision = worker_not_genuine(seen(a_node(), forged), forged.number, POLICY, "webhook: \x1b[31m" + "x\n" * 5000)
    assert decision.reason.isprintable()
    assert len(decision.reason) <= 500


def test_a_worker_whose_verdict_is_on_record_opens_nothing() -> None:
    decision = decide(seen(a_node(record=failed(1)), a_worker(1)), POLICY)
    assert OpenGate not in kinds(decision.effects)


def test_a_worker_of_another_attempt_than_the_current_one_proves_nothing() -> None:
    decision = decide(seen(a_node(), a_worker(99999999)), POLICY)
    assert decision.effects == (StartAttempt(a_node(), 1), DiscardAttempt(a_worker(99999999)))


def test_a_worker_that_waits_for_an_image_is_dropped() -> None:
    stuck = a_worker(1, State.FAILED, cause=Cause.NOT_STARTED, reason="ImagePullBackOff")
    assert DiscardAttempt(stuck) in decide(seen(a_node(), stuck), POLICY).effects


def test_a_record_is_written_only_over_the_observed_one() -> None:
    broken = a_worker(1, State.FAILED, cause=Cause.CHECKS, reason="dns: broken")
    decision = decide(seen(a_node(), broken, version="42"), POLICY)
    (written,) = [effect for effect in decision.effects if isinstance(effect, WriteStatus)]
    assert written.version == "42"


def test_a_failure_is_reported_before_it_is_recorded_and_its_pod_stays() -> None:
    report = Report((TargetResult("dns", Verdict.FAILED, ms=10003, target="google.com", error="timed out after 10 s"),))
    broken = a_worker(1, State.FAILED, cause=Cause.CHECKS, reason=report.reason, report=report, finished=True)
    decision = decide(seen(a_node(), broken), POLICY)
    assert decision.phase is Phase.FAILED
    assert kinds(decision.effects) == [EmitEvent, WriteStatus]
    reported, written = decision.effects
    assert isinstance(reported, EmitEvent)
    assert reported.message == "dns: google.com: timed out after 10 s (attempt 1 of 5)"
    assert isinstance(written, WriteStatus)
    assert (written.record.attempt, written.record.failures) == (1, 1)
    assert written.record.checks == (CheckResult("dns", ok=False, ms=10003),)


@pytest.mark.parametrize(
    ("failures", "wait"), [(1, 1), (2, 2), (3, 4), (4, 8)], ids=["first", "second", "third", "fourth"]
)
def test_the_wait_doubles_with_every_failure(failures: int, wait: int) -> None:
    node = a_node(record=failed(failures))
    waiting = decide(seen(node, after=timedelta(seconds=wait * 0.99)), POLICY)
    assert waiting.phase is Phase.BACKING_OFF
    assert waiting.recheck
    assert waiting.recheck <= timedelta(seconds=wait * 0.12)
    over = decide(seen(node, after=timedelta(seconds=wait * 1.1)), POLICY)
    assert over.phase is Phase.VERIFYING
    assert StartAttempt(node, failures + 1) in over.effects


def test_a_linear_wait_stays_the_same_and_a_long_one_is_capped() -> None:
    linear = Policy(POLICY.gates, exponential=False, first_backoff=5 * SECOND)
    assert decide(seen(a_node(record=failed(4)), after=5.6 * SECOND), linear).phase is Phase.VERIFYING
    capped = Policy(POLICY.gates, max_backoff=3 * SECOND)
    assert decide(seen(a_node(record=failed(4)), after=3.4 * SECOND), capped).phase is Phase.VERIFYING


def test_the_next_attempt_deletes_the_failed_pod() -> None:
    decision = decide(seen(a_node(record=failed(1)), a_worker(1, State.FAILED), after=2 * SECOND), POLICY)
    assert kinds(decision.effects) == [StartAttempt, EmitEvent, DiscardAttempt]


def test_a_worker_without_a_verdict_in_time_fails_and_is_dropped() -> None:
    hung = a_worker(1, State.RUNNING)
    assert decide(seen(a_node(), hung), POLICY).recheck == POLICY.deadline - SECOND
    decision = decide(seen(a_node(), hung, after=POLICY.deadline), POLICY)
    assert decision.phase is Phase.FAILED
    assert kinds(decision.effects) == [EmitEvent, WriteStatus, DiscardAttempt]
    assert "no verdict within 300 s" in decision.reason


def test_when_no_slot_is_free_the_node_waits() -> None:
    decision = decide(seen(a_node(), slot_free=False), POLICY)
    assert decision.phase is Phase.WAITING
    assert not decision.effects


def test_a_returned_gate_is_not_opened_by_the_record() -> None:
    decision = decide(seen(a_node(labelled=True, record=passed())), POLICY)
    assert decision.phase is Phase.VERIFYING
    (written,) = decision.effects
    assert isinstance(written, WriteStatus)
    assert written.record.outcome is Outcome.PENDING


def test_a_gate_that_returns_after_a_reboot_needs_a_new_proof() -> None:
    decision = decide(seen(a_node(labelled=True, record=passed(), boot="boot-2")), POLICY)
    assert decision.phase is Phase.VERIFYING
    assert kinds(decision.effects) == [WriteStatus]


def test_a_label_set_by_hand_opens_no_gate() -> None:
    decision = decide(seen(a_node(labelled=True)), POLICY)
    assert kinds(decision.effects) == [StartAttempt]


@pytest.mark.parametrize("gated", [True, False])
def test_removing_the_label_requires_a_new_proof_with_or_without_taints(*, gated: bool) -> None:
    verified = a_node(gated=gated, record=passed(3))
    reopened = decide(seen(verified), POLICY)
    (write,) = reopened.effects
    assert isinstance(write, WriteStatus)
    assert write.record.outcome is Outcome.PENDING
    again = decide(seen(a_node(gated=gated, record=write.record)), POLICY)
    assert StartAttempt(a_node(gated=gated, record=write.record), 4) in again.effects


def test_a_verified_node_with_a_leftover_worker_is_reported_again_and_the_worker_dropped() -> None:
    decision = decide(seen(a_node(gated=False, labelled=True, record=passed()), a_worker()), POLICY)
    assert decision.phase is Phase.VERIFIED
    assert kinds(decision.effects) == [WriteStatus, EmitEvent, DiscardAttempt]


def test_in_a_burst_releases_precede_their_events() -> None:
    verified = a_node(gated=False, labelled=True, record=passed())
    rush = msgspec.structs.replace(seen(verified, a_worker()), burst=True)
    waits = decide(rush, POLICY)
    assert waits.phase is Phase.VERIFIED
    assert not waits.effects
    assert waits.recheck
    at_last = decide(msgspec.structs.replace(rush, now=rush.now + waits.recheck), POLICY)
    assert kinds(at_last.effects) == [WriteStatus, EmitEvent, DiscardAttempt]


def test_a_verified_node_has_no_effects() -> None:
    decision = decide(seen(a_node(gated=False, labelled=True, record=passed())), POLICY)
    assert decision.phase is Phase.VERIFIED
    assert not decision.effects


def test_a_rejected_worker_is_a_failed_attempt_with_that_reason() -> None:
    decision = worker_creation_rejected(seen(a_node()), 1, POLICY, "denied by policy")
    assert decision.phase is Phase.FAILED
    assert decision.reason == "worker pod rejected: denied by policy"
    written = decision.effects[-1]
    assert isinstance(written, WriteStatus)
    assert written.record.cause is Cause.REFUSED


def test_the_last_allowed_failure_is_announced() -> None:
    broken = a_worker(5, State.FAILED, cause=Cause.CHECKS, reason="dns: broken")
    decision = decide(seen(a_node(record=failed(4)), broken), POLICY)
    reasons = [effect.reason for effect in decision.effects if isinstance(effect, EmitEvent)]
    assert reasons == ["VerificationFailed", "VerificationExhausted"]


def test_an_exhausted_node_is_retried_slowly() -> None:
    node = a_node(record=failed(5))
    resting = decide(seen(node, after=timedelta(minutes=4)), POLICY)
    assert (resting.phase, resting.recheck) == (Phase.EXHAUSTED, timedelta(minutes=1))
    assert StartAttempt(node, 6) in decide(seen(node, after=timedelta(minutes=5)), POLICY).effects


def test_an_exhausted_node_is_never_tried_again_if_so_configured() -> None:
    never = Policy(POLICY.gates, slow_retry=None)
    decision = decide(seen(a_node(record=failed(5)), after=timedelta(days=9)), never)
    assert (decision.phase, decision.recheck) == (Phase.EXHAUSTED, None)


def test_a_record_from_the_future_does_not_delay_a_node() -> None:
    node = a_node(record=failed(1, at=START + timedelta(days=9)))
    assert decide(seen(node), POLICY).phase is Phase.VERIFYING


class TestRemoval:
    def fleet(self, **facts: object) -> Fleet:
        return Fleet(**({"managed": 100, "failing": 1, "in_pool": 10} | facts))  # type: ignore[arg-type]

    def test_removal_is_off_by_default(self) -> None:
        decision = decide(seen(a_node(record=failed(9)), fleet=self.fleet()), POLICY)
        assert RemoveNode not in kinds(decision.effects)

    def test_removal_requires_one_more_recent_failure(self) -> None:
        node = a_node(record=failed(5))
        checked_once_more = decide(seen(node, fleet=self.fleet(), after=20 * SECOND), REMOVING)
        assert StartAttempt(node, 6) in checked_once_more.effects
        gone = decide(seen(a_node(record=failed(6)), fleet=self.fleet(), witnessed=6), REMOVING)
        assert gone.phase is Phase.REMOVING
        assert kinds(gone.effects) == [RemoveNode]

    def test_an_old_failure_does_not_lead_to_removal(self) -> None:
        node = a_node(record=failed(6))
        stale = decide(seen(node, fleet=self.fleet(), after=timedelta(minutes=2)), REMOVING)
        assert (stale.phase, stale.effects) == (Phase.EXHAUSTED, ())
        looked_again = decide(seen(node, fleet=self.fleet(), after=timedelta(minutes=6)), REMOVING)
        assert kinds(looked_again.effects) == [StartAttempt, EmitEvent]

    def test_removal_is_blocked_when_many_nodes_fail_simultaneously(self) -> None:
        decision = decide(seen(a_node(record=failed(6)), fleet=self.fleet(failing=30)), REMOVING)
        assert decision.phase is Phase.HELD
        assert "30 of 100 nodes are failing (limit 20: " in decision.reason
        assert kinds(decision.effects) == [EmitEvent]

    def test_removal_is_blocked_by_the_pools_budget(self) -> None:
        before = Ledger((Removal("other", "b", "", START),))
        decision = decide(seen(a_node(record=failed(6)), fleet=self.fleet(ledger=before)), REMOVING)
        assert decision.phase is Phase.HELD
        assert "removal budget exhausted: 1 of 1 removals used in 3600 s" in decision.reason

    def test_removal_resumes_after_the_window_or_for_other_pools(self) -> None:
        long_ago = Ledger((Removal("other", "b", "", START - timedelta(hours=2)),))
        elsewhere = Ledger((Removal("other", "b", "gpu", START),))
        for before in (long_ago, elsewhere):
            seen_now = seen(a_node(record=failed(6)), fleet=self.fleet(ledger=before), witnessed=6)
            assert decide(seen_now, REMOVING).phase is Phase.REMOVING

    def test_a_small_pool_can_lose_one_node(self) -> None:
        small = self.fleet(managed=3, in_pool=3)
        decision = decide(seen(a_node(record=failed(6)), fleet=small, witnessed=6), REMOVING)
        assert decision.phase is Phase.REMOVING

    def test_a_recorded_removal_is_repeated_without_using_the_budget_again(self) -> None:
        booked = Ledger((Removal(UID, "a", "", START),))
        decision = decide(seen(a_node(record=failed(6)), fleet=self.fleet(ledger=booked), witnessed=6), REMOVING)
        assert kinds(decision.effects) == [RemoveNode]

    @pytest.mark.parametrize("pause", ["node", "all", "trouble"])
    def test_removal_is_blocked_by_a_pause_or_an_unreadable_ledger(self, pause: str) -> None:
        node = a_node(record=failed(6), removal_paused=pause == "node")
        book = Ledger(paused=pause == "all", error="it is garbled" if pause == "trouble" else "")
        assert decide(seen(node, fleet=self.fleet(ledger=book)), REMOVING).phase is Phase.HELD

    def test_a_removal_before_the_window_no_longer_counts(self) -> None:
        long_ago = Ledger((Removal(UID, "a", "", START - timedelta(days=30)), Removal("other", "b", "", START)))
        decision = decide(seen(a_node(record=failed(6)), fleet=self.fleet(ledger=long_ago)), REMOVING)
        assert decision.phase is Phase.HELD

    def test_a_recorded_removal_waits_while_many_nodes_fail(self) -> None:
        booked = Ledger((Removal(UID, "a", "", START),))
        decision = decide(seen(a_node(record=failed(6)), fleet=self.fleet(failing=90, ledger=booked)), REMOVING)
        assert decision.phase is Phase.HELD

    def test_only_failures_that_blame_the_node_count_for_removal(self) -> None:
        registry_was_down = failed(5, node_failures=0, cause=Cause.NOT_STARTED)
        broken = a_worker(6, State.FAILED, cause=Cause.CHECKS, reason="dns: broken")
        decision = decide(seen(a_node(record=registry_was_down), broken), REMOVING)
        written = next(effect for effect in decision.effects if isinstance(effect, WriteStatus))
        assert (written.record.failures, written.record.node_failures) == (6, 1)
        after = decide(seen(a_node(record=written.record), fleet=self.fleet()), REMOVING)
        assert after.phase is Phase.EXHAUSTED

    @pytest.mark.parametrize("cause", [Cause.REFUSED, Cause.MISCONFIGURED, Cause.NOT_STARTED, Cause.STOPPED])
    def test_failures_that_a_new_node_would_share_do_not_lead_to_removal(self, cause: Cause) -> None:
        decision = decide(seen(a_node(record=failed(6, cause=cause, node_failures=0)), fleet=self.fleet()), REMOVING)
        assert decision.phase is Phase.EXHAUSTED

    def test_a_manually_opened_node_is_not_removed(self) -> None:
        decision = decide(seen(a_node(gated=False, record=failed(6)), fleet=self.fleet()), REMOVING)
        assert RemoveNode not in kinds(decision.effects)

    def test_attempts_continue_while_removal_is_blocked(self) -> None:
        node = a_node(record=failed(6))
        decision = decide(seen(node, fleet=self.fleet(failing=30), after=timedelta(minutes=6)), REMOVING)
        assert StartAttempt(node, 7) in decision.effects


class TestAfterAnOutage:
    """All nodes failed simultaneously, so none was removed. Then the cluster is repaired."""

    POLICY = msgspec.structs.replace(
        POLICY, max_failures=2, slow_retry=timedelta(seconds=4), removal=RemovalPolicy(max_percent=100)
    )

    def an_outage(self, seconds: float) -> Cluster:
        cluster = Cluster(self.POLICY)
        for number in range(5):
            cluster.join(f"n{number}", verdict="fails")
            cluster.settle(0.6 + number * 0.4)
        cluster.settle(seconds)
        return cluster

    @pytest.mark.parametrize("half_seconds", range(12))
    def test_a_node_that_was_not_retried_after_an_outage_is_not_removed(self, half_seconds: int) -> None:
        """Whenever it ends: some have just failed once more, and the others pass."""
        cluster = self.an_outage(60 + half_seconds / 2)
        before = len(cluster.removed)
        for name in cluster.nodes:
            cluster.verdicts[name] = "passes"
        cluster.settle(100)
        assert len(cluster.removed) == before

    def test_a_broken_node_is_removed_after_failures_of_its_own(self) -> None:
        cluster = self.an_outage(120)
        for name in sorted(cluster.nodes)[1:]:
            cluster.verdicts[name] = "passes"
        in_the_outage = cluster.node("n0").record.attempt
        cluster.settle(900, stop=lambda: "n0" not in cluster.nodes)
        assert cluster.removed[-1].node == "n0"
        last = max(news.attempt for news in cluster.news.values() if news.node.name == "n0")
        assert last >= in_the_outage + 2
