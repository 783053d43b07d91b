"""Verified nodes that have to prove themselves again."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from kube_node_ready.api.contract import RECORD_ANNOTATION, EventReason
from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord, encode_record
from kube_node_ready.verification import removal_budget
from kube_node_ready.verification.decide import decide, worker_creation_rejected, worker_not_genuine
from kube_node_ready.verification.effects import (
    CloseGate,
    ConfirmAttempt,
    Decision,
    DiscardAttempt,
    EmitEvent,
    StartAttempt,
    WriteStatus,
)
from kube_node_ready.verification.model import (
    Fleet,
    Node,
    Phase,
    Policy,
    RemovalPolicy,
    Reverification,
    Snapshot,
    State,
    Worker,
)
from kube_node_ready.verification.worker_pod import WorkerPodTemplate, worker_pod
from tests.support.model_cluster import GATE, POLICY, START, Cluster

INTERVAL = timedelta(minutes=10)
RULE = Reverification(interval=INTERVAL, gate=Taint(**GATE))
WATCHING = replace(POLICY, reverification=RULE)
BIG = Fleet(managed=100)
FOREIGN = {"key": "example.com/gpu", "value": "true", "effect": "NoSchedule"}


def a_node(**facts: object) -> Node:
    record = VerificationRecord(4, outcome=Outcome.PASSED, at=START, since=START, boot="boot-1")
    return replace(Node("a", "uid-a", labelled=True, boot="boot-1", record=record), **facts)


def doubtful(failures: int, **facts: object) -> Node:
    node = a_node(**facts)
    known = replace(node.record, failures=failures, node_failures=failures, cause=Cause.CHECKS, reason="dns: no answer")
    return replace(node, record=known)


def look(node: Node, worker: Worker | None = None, *, after: timedelta = INTERVAL * 2, **facts: Any) -> Decision:  # noqa: ANN401
    workers = (worker,) if worker else ()
    return decide(replace(Snapshot(START + after, node, workers, fleet=BIG, version="7"), **facts), WATCHING)


def a_worker(state: State, cause: Cause = Cause.CHECKS, **facts: object) -> Worker:
    worker = Worker(
        "w", "w-uid", "uid-a", "a", number=5, created=START + INTERVAL, state=state, finished=True, genuine=True
    )
    if state is State.FAILED:
        worker = replace(worker, cause=cause, reason="dns: no answer")
    return replace(worker, **facts)


def kinds(decision: Decision) -> list[type]:
    return [type(effect) for effect in decision.effects]


@pytest.mark.parametrize("state", [State.PASSED, State.FAILED])
def test_no_verdict_counts_before_its_worker_is_confirmed(state: State) -> None:
    worker = a_worker(state, genuine=False)
    decision = look(doubtful(2), worker)
    assert decision.phase is Phase.REVERIFYING
    assert decision.effects == (ConfirmAttempt(doubtful(2), worker),)


def test_a_worker_in_progress_is_confirmed_early() -> None:
    worker = a_worker(State.RUNNING, finished=False, genuine=False)
    decision = look(doubtful(2), worker, after=INTERVAL)
    assert decision.phase is Phase.REVERIFYING
    assert decision.effects == (ConfirmAttempt(doubtful(2), worker, early=True),)


@pytest.mark.parametrize("state", State)
def test_a_worker_on_another_node_closes_nothing(state: State) -> None:
    decision = look(doubtful(2), a_worker(state, node_name="b"))
    assert CloseGate not in kinds(decision)
    assert WriteStatus not in kinds(decision)


def test_a_worker_that_is_not_genuine_closes_nothing_and_is_dropped() -> None:
    forged, node = a_worker(State.FAILED, genuine=False), doubtful(2)
    decision = worker_not_genuine(
        Snapshot(START + INTERVAL, node, (forged,), version="7"), forged.number, WATCHING, "forged"
    )
    assert decision.phase is Phase.VERIFIED
    note, dropped = decision.effects
    assert isinstance(note, WriteStatus)
    assert (note.record.outcome, note.record.failures, note.record.cause) == (Outcome.PASSED, 2, Cause.STOPPED)
    assert dropped == DiscardAttempt(forged)


def turns(node: Node, policy: Policy = WATCHING, hours: int = 3) -> list[timedelta]:
    """The moments at which the node would be checked if it never was, by reconciles that are as late as possible."""
    found, now = [], START
    while now < START + timedelta(hours=hours):
        decision = decide(Snapshot(now, node, fleet=BIG), policy)
        if StartAttempt in kinds(decision):
            found.append(now - START)
            now += timedelta(minutes=2)
        else:
            assert decision.recheck
            now += decision.recheck
    return found


@pytest.mark.parametrize("policy", [WATCHING, POLICY], ids=["watched", "no longer"])
def test_a_repeated_proof_is_not_announced_again_after_a_restart(
    policy: Policy,
) -> None:
    passed = a_worker(State.PASSED)
    (written, *_) = look(a_node(), passed).effects
    assert isinstance(written, WriteStatus)
    next_life = Snapshot(START + INTERVAL * 2, a_node(record=written.record), (passed,), fleet=BIG)
    assert kinds(decide(next_life, policy)) == [DiscardAttempt]


class TestWhen:
    def test_reverification_is_off_by_default(self) -> None:
        decision = decide(Snapshot(START + INTERVAL * 1000, a_node()), POLICY)
        assert (decision.phase, decision.effects, decision.recheck) == (Phase.VERIFIED, (), None)

    def test_once_per_interval_at_the_nodes_own_time(self) -> None:
        found = turns(a_node())
        assert len(found) >= 15
        assert {later - sooner for sooner, later in pairwise(found)} == {INTERVAL}

    def test_a_fleet_that_joined_simultaneously_is_spread_over_the_interval(self) -> None:
        firsts = sorted(turns(a_node(uid=f"uid-{number}"), hours=1)[0] for number in range(200))
        assert firsts[0] >= INTERVAL / 2, "what was proved just now is not asked again"
        assert firsts[-1] <= INTERVAL * 1.5
        in_any_minute = max(sum(at <= other < at + timedelta(minutes=1) for other in firsts) for at in firsts)
        assert in_any_minute < 40, "a tenth of them, more or less"

    def test_a_fleet_verified_long_ago_is_not_checked_simultaneously(self) -> None:
        """As when reverification is enabled."""
        now = START + timedelta(days=30)
        nodes = [a_node(uid=f"uid-{number}") for number in range(200)]
        started = [node for node in nodes if decide(Snapshot(now, node, fleet=BIG), WATCHING).effects]
        assert 5 < len(started) < 40

    def test_a_node_in_doubt_keeps_its_place(self) -> None:
        """Were it sooner, the first nodes would be gated before anyone knew that all others fail, too."""
        assert turns(doubtful(1)) == turns(a_node())

    def test_a_reboot_requires_a_proof_soon(self) -> None:
        assert kinds(look(a_node(boot="boot-2"), after=timedelta(minutes=1))) == [StartAttempt]

    def test_a_rebooted_node_that_failed_is_checked_at_its_turn(self) -> None:
        """Nodes that reboot one after another in a broken cluster would be gated before it is known to be broken."""
        assert turns(doubtful(1, boot="boot-2")) == turns(a_node())

    @pytest.mark.parametrize("facts", [{"burst": True}, {"recheck_limit_reached": True}, {"slot_free": False}])
    def test_new_nodes_go_first(self, facts: dict[str, Any]) -> None:
        decision = look(a_node(boot="boot-2"), **facts)
        assert (decision.phase, decision.effects, decision.recheck) == (Phase.VERIFIED, (), POLICY.resync)

    def test_a_node_that_another_client_labeled_is_reverified(self) -> None:
        adopted = VerificationRecord(
            1, outcome=Outcome.PENDING, at=START, since=START, reason="labeled by another client"
        )
        assert turns(a_node(record=adopted))

    def test_a_date_in_the_future_does_not_postpone_it_indefinitely(self) -> None:
        confused = replace(a_node().record, at=START + timedelta(days=1000))
        assert turns(a_node(record=confused))


class TestVerdicts:
    def test_a_running_worker_is_waited_for(self) -> None:
        decision = look(a_node(), a_worker(State.RUNNING, finished=False), after=INTERVAL + timedelta(seconds=5))
        assert (decision.phase, decision.effects) == (Phase.REVERIFYING, ())
        assert decision.recheck == POLICY.deadline - timedelta(seconds=5)

    def test_a_pass_is_recorded_in_one_write(self) -> None:
        worker = a_worker(State.PASSED)
        write, drop = look(doubtful(2), worker).effects
        assert isinstance(write, WriteStatus)
        assert write.version == "7"
        assert (write.record.attempt, write.record.failures, write.record.is_proof) == (5, 0, True)
        assert write.record.since == START, "it was verified all the time"
        assert drop == DiscardAttempt(worker)

    @pytest.mark.parametrize("before", [0, 1])
    def test_a_failure_is_noted_and_the_gate_stays_open(self, before: int) -> None:
        decision = look(doubtful(before) if before else a_node(), a_worker(State.FAILED))
        (write,) = decision.effects
        assert isinstance(write, WriteStatus)
        assert (write.record.outcome, write.record.failures) == (Outcome.PASSED, before + 1)
        assert decision.phase is Phase.VERIFIED
        assert decision.reason == f"dns: no answer (failure {before + 1} of 3)"

    def test_the_third_failure_in_a_row_closes_the_gate(self) -> None:
        decision = look(doubtful(2), a_worker(State.FAILED))
        assert decision.phase is Phase.FAILED
        news, close, condition = decision.effects
        assert isinstance(news, EmitEvent)
        assert news.message == "failed 3 times in a row, so the gate is restored: dns: no answer"
        assert isinstance(close, CloseGate)
        assert (close.record.outcome, close.record.failures, close.version) == (Outcome.FAILED, 1, "7")
        assert condition == WriteStatus(close.node, close.record)

    @pytest.mark.parametrize("cause", [cause for cause in Cause if not cause.blames_node])
    def test_failures_that_do_not_blame_the_node_do_not_count(self, cause: Cause) -> None:
        (write,) = look(doubtful(2), a_worker(State.FAILED, cause)).effects
        assert isinstance(write, WriteStatus)
        assert write.record.failures == 2

    def test_a_worker_that_hangs_is_stopped_and_counts(self) -> None:
        late = a_worker(State.RUNNING, finished=False)
        write, drop = look(a_node(), late, after=INTERVAL + POLICY.deadline).effects
        assert isinstance(write, WriteStatus)
        assert (write.record.cause, write.record.failures) == (Cause.LATE, 1)
        assert drop == DiscardAttempt(late)

    def test_a_rejected_worker_does_not_blame_the_node(self) -> None:
        seen = Snapshot(START + INTERVAL, doubtful(2), fleet=BIG, version="7")
        (write,) = worker_creation_rejected(seen, 5, WATCHING, "quota").effects
        assert isinstance(write, WriteStatus)
        assert (write.record.outcome, write.record.failures) == (Outcome.PASSED, 2)
        assert write.record.reason == "worker pod rejected: quota"

    def test_a_rejected_worker_leaves_no_announcement_of_a_pass(self) -> None:
        node = a_node()
        refused = replace(node, record=replace(node.record, attempt=5, cause=Cause.REFUSED, reason="no such image"))
        left = a_worker(State.FAILED, Cause.NOT_STARTED)
        assert EmitEvent not in kinds(look(refused, left, after=timedelta(seconds=1)))

    def test_an_unschedulable_worker_is_abandoned_and_does_not_blame_its_node(self) -> None:
        waits = a_worker(State.PENDING, finished=False, node_name="", reason="Insufficient cpu")
        assert not look(a_node(), waits, after=INTERVAL + timedelta(seconds=29)).effects
        write, drop = look(a_node(), waits, after=INTERVAL + timedelta(seconds=30)).effects
        assert isinstance(write, WriteStatus)
        assert write.record.reason == "not scheduled within 30 s: Insufficient cpu"
        assert (write.record.failures, write.record.outcome) == (0, Outcome.PASSED)
        assert drop == DiscardAttempt(waits)

    def test_a_worker_that_timed_out_does_not_skip_the_next_turn(self) -> None:
        slow = replace(a_node().record, at=START + timedelta(seconds=305), seconds=305)
        assert turns(a_node(record=slow), hours=1)[0] <= turns(a_node(), hours=1)[0] + INTERVAL / 2

    def test_a_worker_preempts_no_workload(self) -> None:
        urgent = WorkerPodTemplate("kube-system", "image:1", POLICY.gates, priority_class="system-cluster-critical")
        assert worker_pod(a_node(), 5, urgent)["spec"]["priorityClassName"] == ""
        assert worker_pod(a_node(labelled=False), 5, urgent)["spec"]["priorityClassName"] == "system-cluster-critical"


class TestManyFailures:
    def test_no_gate_is_closed_while_many_nodes_fail(self) -> None:
        decision = look(doubtful(2), a_worker(State.FAILED), fleet=Fleet(managed=10, failing=1, degraded=3))
        news, write = decision.effects
        assert isinstance(news, EmitEvent)
        assert (news.reason, news.warning) == ("GateKeptOpen", True)
        assert "4 of 10 nodes are failing (limit 2: " in news.message
        assert isinstance(write, WriteStatus)
        assert (write.record.outcome, write.record.failures) == (Outcome.PASSED, 3)

    def test_a_gate_that_is_kept_open_is_reported_once(self) -> None:
        decision = look(doubtful(3), a_worker(State.FAILED), fleet=Fleet(managed=10, failing=1, degraded=3))
        assert kinds(decision) == [WriteStatus]

    def test_the_last_open_node_stays_open(self) -> None:
        decision = look(doubtful(2), a_worker(State.FAILED), fleet=Fleet(managed=2, failing=1, degraded=1))
        assert CloseGate not in kinds(decision)
        assert "no other node is healthy" in decision.reason

    def test_the_next_failure_closes_after_others_recover(self) -> None:
        assert CloseGate in kinds(look(doubtful(7), a_worker(State.FAILED), fleet=Fleet(managed=10, degraded=1)))

    def test_nodes_in_doubt_block_removal(self) -> None:
        seen = Snapshot(START, a_node(), fleet=Fleet(managed=10, failing=1, degraded=2, in_pool=10))
        assert removal_budget.blocked_reason(seen, RemovalPolicy())


class TestAfterwards:
    def test_a_returned_gate_on_a_node_in_doubt_is_not_opened_by_the_earlier_proof(self) -> None:
        decision = look(doubtful(1, taints=(Taint(**GATE),)))
        (write,) = decision.effects
        assert isinstance(write, WriteStatus)
        assert write.record.outcome is Outcome.PENDING
        assert "the last check had not passed" in write.record.reason


def a_fleet(policy: Policy = WATCHING) -> Cluster:
    cluster = Cluster(policy)
    for number in range(5):
        cluster.join(f"n{number}", taints=[FOREIGN, GATE])
    cluster.settle(60)
    return cluster


class TestRemoval:
    REMOVING = replace(WATCHING, removal=RemovalPolicy(max_percent=100))

    @pytest.mark.parametrize("policy", [REMOVING, replace(REMOVING, max_failures=1)], ids=["often", "once"])
    def test_a_node_recovers_after_its_gate_was_closed(self, policy: Policy) -> None:
        """However often it had failed while its gate was kept open."""
        cluster = a_fleet(policy)
        annotation = cluster.nodes["n1"]["metadata"]["annotations"]
        annotation[RECORD_ANNOTATION] = encode_record(replace(doubtful(8).record, attempt=9, at=cluster.now))
        cluster.verdicts["n1"] = "fails"
        cluster.settle(3600, stop=lambda: not cluster.node("n1").labelled)
        cluster.step("n1")
        assert "n1" in cluster.nodes
        assert cluster.node("n1").record.failures == 1

    def test_doubts_without_reverification_block_nothing(self) -> None:
        cluster = a_fleet()
        for name in ("n2", "n3", "n4"):
            annotation = cluster.nodes[name]["metadata"]["annotations"]
            annotation[RECORD_ANNOTATION] = encode_record(doubtful(1).record)
        cluster.policy = replace(self.REMOVING, reverification=None)
        cluster.join("bad", verdict="fails")
        cluster.settle(3600, stop=lambda: "bad" not in cluster.nodes)
        assert [removal.node for removal in cluster.removed] == ["bad"]


class TestLifetime:
    def test_healthy_nodes_are_left_open(self) -> None:
        cluster = a_fleet()
        cluster.settle(3600)
        for name in cluster.nodes:
            node = cluster.node(name)
            assert node.labelled
            assert node.record.attempt >= 5
        assert {news.reason for news in cluster.news.values()} == {"Verified"}
        assert len(cluster.news) == 5, "a proof that is repeated is no news"

    def test_a_broken_node_is_gated_and_recovers(self) -> None:
        cluster = a_fleet()
        cluster.verdicts["n1"] = "fails"
        cluster.settle(3600, stop=lambda: not cluster.node("n1").labelled)
        assert cluster.nodes["n1"]["spec"]["taints"] == [FOREIGN, GATE]
        cluster.settle(10)
        assert cluster.condition("n1")["status"] == "False"
        cluster.verdicts["n1"] = "passes"
        cluster.settle(600, stop=lambda: cluster.node("n1").labelled)
        assert cluster.nodes["n1"]["spec"]["taints"] == [FOREIGN]
        assert [news.reason for news in cluster.news.values() if news.node.name == "n1"].count(
            EventReason.GATE_RESTORED
        ) == 1

    def test_an_outage_of_the_whole_cluster_closes_no_gate(self) -> None:
        cluster = a_fleet()
        for name in cluster.nodes:
            cluster.verdicts[name] = "fails"
        cluster.settle(4 * 3600)
        for name in cluster.nodes:
            assert cluster.node(name).record.failures > RULE.threshold
            assert cluster.node(name).labelled

    def test_with_no_taints_the_missing_label_is_the_gate(self) -> None:
        cluster = a_fleet(Policy((), reverification=replace(RULE, gate=None)))
        cluster.verdicts["n1"] = "fails"
        cluster.settle(3600, stop=lambda: not cluster.node("n1").labelled)
        assert cluster.nodes["n1"]["spec"]["taints"] == [FOREIGN, GATE], "as it joined"
