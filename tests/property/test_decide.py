"""What holds for every history: whatever others do, whenever we are killed."""

import copy
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kube_node_ready.api.objects import Taint
from kube_node_ready.verification.effects import CloseGate, Effect, OpenGate, RemoveNode, StartAttempt
from kube_node_ready.verification.model import Policy, RemovalPolicy, Reverification, State, Worker
from kube_node_ready.verification.removal_budget import limit
from tests.support.model_cluster import GATE, POLICY, Cluster, LostRace

NAMES = ("a", "b", "c")
FOREIGN = [
    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
    {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"},
    {"key": "node-ready/unverified", "effect": "NoExecute"},
    {"key": "example.com/gpu", "value": "true", "effect": "NoSchedule"},
]
VERDICTS = ("passes", "fails", "hangs", "stuck", "unschedulable", "misconfigured")
REMOVAL = RemovalPolicy(max_count=1, max_percent=100, window=timedelta(minutes=10), max_failing_count=2)
REVERIFICATION = Reverification(
    interval=timedelta(seconds=60), threshold=2, gate=Taint(**GATE), max_failing_percent=100
)
PATIENT = msgspec.structs.replace(
    POLICY, max_failures=2, deadline=timedelta(seconds=20), removal=REMOVAL, reverification=REVERIFICATION
)
LONGEST_TO_SETTLE = 900


class Histories(RuleBasedStateMachine):
    """A running controller among other clients, with decisions that can be outdated when they are executed."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Watched(PATIENT)
        self.stale: list[Effect] = []
        self.started_late = 0

    @rule(name=st.sampled_from(NAMES), verdict=st.sampled_from(VERDICTS), foreign=st.sampled_from(FOREIGN))
    def a_node_joins(self, name: str, verdict: str, foreign: dict[str, str]) -> None:
        if name in self.cluster.nodes:
            self.cluster.leave(name)  # and comes back under the same name
        self.cluster.join(name, taints=[foreign, GATE], verdict=verdict)

    @rule(name=st.sampled_from(NAMES), verdict=st.sampled_from(VERDICTS))
    def its_verdict_changes(self, name: str, verdict: str) -> None:
        self.cluster.verdicts[name] = verdict

    @precondition(lambda self: self.cluster.nodes)
    @rule(data=st.data(), kill_after=st.integers(0, 4) | st.none())
    def the_controller_looks(self, data: st.DataObject, kill_after: int | None) -> None:
        self.cluster.step(data.draw(st.sampled_from(sorted(self.cluster.nodes))), only=kill_after)

    @precondition(lambda self: self.cluster.nodes)
    @rule(data=st.data())
    def the_controller_decides_and_is_slow(self, data: st.DataObject) -> None:
        self.stale += self.cluster.decide(data.draw(st.sampled_from(sorted(self.cluster.nodes)))).effects

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def a_slow_write_arrives(self, data: st.DataObject) -> None:
        late = self.stale.pop(data.draw(st.integers(0, len(self.stale) - 1)))
        self.started_late += isinstance(late, StartAttempt)
        with suppress(LostRace):
            self.cluster.apply(late)

    @rule(seconds=st.sampled_from([0.3, 1, 5, 60, 400]))
    def time_passes(self, seconds: float) -> None:
        self.cluster.pass_time(timedelta(seconds=seconds))

    @rule()
    def the_controller_works_on(self) -> None:
        self.cluster.settle(20)

    @precondition(lambda self: self._open())
    @rule(data=st.data(), minutes=st.integers(1, 4))
    def a_verified_node_breaks(self, data: st.DataObject, minutes: int) -> None:
        self.cluster.verdicts[data.draw(st.sampled_from(self._open()))] = "fails"
        self.cluster.settle(60 * minutes)

    @precondition(lambda self: self.cluster.nodes)
    @rule(data=st.data(), foreign=st.sampled_from(FOREIGN), at=st.integers(0, 3))
    def a_rival_rewrites_taints(self, data: st.DataObject, foreign: dict[str, str], at: int) -> None:
        taints = self.cluster.nodes[data.draw(st.sampled_from(sorted(self.cluster.nodes)))]["spec"]["taints"]
        if foreign in taints:
            taints.remove(foreign)
        else:
            taints.insert(at, copy.deepcopy(foreign))

    @precondition(lambda self: self.cluster.nodes)
    @rule(data=st.data())
    def the_gate_comes_back(self, data: st.DataObject) -> None:
        taints = self.cluster.nodes[data.draw(st.sampled_from(sorted(self.cluster.nodes)))]["spec"]["taints"]
        if GATE not in taints:
            taints.append(dict(GATE))

    @precondition(lambda self: self.cluster.nodes)
    @rule(data=st.data())
    def another_client_removes_the_label(self, data: st.DataObject) -> None:
        self.cluster.unlabel(data.draw(st.sampled_from(sorted(self.cluster.nodes))))

    @precondition(lambda self: self.cluster.pods)
    @rule(data=st.data())
    def another_client_deletes_a_worker(self, data: st.DataObject) -> None:
        del self.cluster.pods[data.draw(st.sampled_from(sorted(self.cluster.pods)))]

    @precondition(lambda self: self.cluster.nodes)
    @rule(data=st.data(), text=st.text(max_size=20) | st.just('{"attempt":3,"failures":2,"outcome":"passed"}'))
    def another_client_changes_our_annotation(self, data: st.DataObject, text: str) -> None:
        """Nonsense, or a proof that was never given: who can write that can also remove the taint."""
        name = data.draw(st.sampled_from(sorted(self.cluster.nodes)))
        if "passed" not in text:
            self.cluster.nodes[name]["metadata"]["annotations"]["node-ready/verification"] = text

    @invariant()
    def no_two_workers_run_on_one_node(self) -> None:
        active = [worker.node_uid for worker in self.cluster.workers() if not worker.ended]
        assert len(active) <= len(set(active)) + self.started_late, "only a stale decision may overlap"

    def teardown(self) -> None:
        """Left alone in a healthy cluster, every node is verified and no worker is left."""
        for name in self.cluster.nodes:
            self.cluster.verdicts[name] = "passes"
        self.cluster.settle(LONGEST_TO_SETTLE, stop=self._is_settled)
        for name in self.cluster.nodes:
            node = self.cluster.node(name)
            assert not self.cluster.policy.guards(node), f"{name} is still gated: {node}"
        assert not self.cluster.pods
        self.cluster.policy = msgspec.structs.replace(PATIENT, reverification=None)
        self.cluster.settle(2)  # a label whose record someone spoilt is noted again
        before = self.cluster.writes
        self.cluster.settle(2)
        assert self.cluster.writes == before, "a settled cluster is left in peace"

    def _open(self) -> list[str]:
        return sorted(name for name in self.cluster.nodes if self.cluster.node(name).labelled)

    def _is_settled(self) -> bool:
        nodes = [self.cluster.node(name) for name in self.cluster.nodes]
        return not self.cluster.pods and not any(self.cluster.policy.guards(node) for node in nodes)


class Watched(Cluster):
    """A cluster that checks every write of ours."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.proved: set[tuple[str, int]] = set()
        self.failed: set[tuple[str, int]] = set()

    def pass_time(self, span: timedelta) -> None:
        super().pass_time(span)
        for worker in self.workers():
            if worker.state is State.PASSED:
                self.proved.add((worker.node_uid, worker.number))
            elif worker.state is State.FAILED or self._is_late(worker):
                self.failed.add((worker.node_uid, worker.number))

    def _is_late(self, worker: Worker) -> bool:
        return worker.created is not None and self.now - worker.created >= self.policy.deadline

    def apply(self, effect: Effect) -> None:
        before = copy.deepcopy(self.nodes)
        ledger = self.ledger
        super().apply(effect)
        if isinstance(effect, RemoveNode):
            self._check_removal(effect, ledger.removals)
            return
        for name, node in self.nodes.items():
            assert _foreign(node) == _foreign(before[name]), "a foreign taint was touched"
        if isinstance(effect, OpenGate):
            self._check_release(effect, before)
        if isinstance(effect, CloseGate):
            self._check_closing(effect)
        if isinstance(effect, StartAttempt):
            assert effect.number > effect.node.record.attempt

    def _check_release(self, effect: OpenGate, before: dict[str, Any]) -> None:
        assert before[effect.node.name]["metadata"]["uid"] == effect.node.uid, "another node of that name was released"
        assert (effect.node.uid, effect.record.attempt) in self.proved, "released without a passing worker"

    def _check_closing(self, effect: CloseGate) -> None:
        """Each node's own worker said no so many times, the last of them just now."""
        node = self.node(effect.node.name)
        assert node.taints.count(Taint(**GATE)) == 1
        assert not node.labelled
        failed = {worker for worker in self.failed if worker[0] == node.uid}
        assert len(failed) >= REVERIFICATION.threshold, f"closed after {len(failed)} failures"
        assert (node.uid, effect.record.attempt) in failed

    def _check_removal(self, effect: RemoveNode, spent: tuple[object, ...]) -> None:
        assert self.policy.removal
        window = self.policy.removal.window
        recent = [removal for removal in self.removed if self.now - removal.at < window]
        assert len(recent) <= limit(100, self.policy.removal), f"{len(recent)} nodes removed; ledger before: {spent}"
        assert effect.node.record.failures > self.policy.max_failures


def _foreign(node: dict[str, Any]) -> list[dict[str, str]]:
    return [taint for taint in node["spec"]["taints"] if taint != GATE]


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=200, stateful_step_count=40)
