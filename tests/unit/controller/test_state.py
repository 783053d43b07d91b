"""What is seen of the cluster, beyond what the scenarios show."""

from datetime import timedelta

from msgspec.structs import replace

from kube_node_ready.api.record import Outcome, VerificationRecord
from kube_node_ready.api.report import Report, TargetResult
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.controller.state import ClusterState
from kube_node_ready.verification.model import Node, Pool, State, Worker
from tests.support.model_cluster import POLICY, START

HOUR = timedelta(hours=1)


def a_worker(node_uid: str, *, finished: bool = True) -> Worker:
    return Worker("w", "pod-uid", node_uid, "a", number=1, created=START, state=State.FAILED, finished=finished)


def test_a_worker_of_an_unknown_node_becomes_an_orphan() -> None:
    node = Node("a", "node-uid")
    view = ClusterState(POLICY, {"a": node}, 10)
    view.node_changed(None, node)
    view.worker_changed(None, a_worker("node-uid"))
    assert not list(view.orphans(START + 2 * HOUR)), "its node is there"
    view.node_changed(node, None)
    assert not list(view.orphans(START + HOUR / 2)), "it may be another controller's"
    assert list(view.orphans(START + 2 * HOUR)) == [a_worker("node-uid")]


def test_a_running_worker_is_not_an_orphan() -> None:
    view = ClusterState(POLICY, {}, 10)
    view.worker_changed(None, a_worker("node-uid", finished=False))
    assert not list(view.orphans(START + 2 * HOUR))


def test_reverification_is_not_a_burst() -> None:
    nodes = {f"n{number}": Node(f"n{number}", f"uid-{number}", labelled=True) for number in range(40)}
    view = ClusterState(POLICY, nodes, slots=100)
    for number, node in enumerate(nodes.values()):
        view.node_changed(None, node)
        view.worker_changed(None, Worker(f"w{number}", f"w-uid-{number}", node.uid, number=2))
    seen = view.snapshot("n0", START)
    assert seen
    assert not seen.burst
    assert seen.recheck_limit_reached
    for number, node in enumerate(nodes.values()):
        done = Worker(f"w{number}", f"w-uid-{number}", node.uid, number=2, finished=True)
        view.worker_changed(Worker(f"w{number}", f"w-uid-{number}", node.uid, number=2), done)
    seen = view.snapshot("n0", START)
    assert seen
    assert not seen.recheck_limit_reached


def running(number: int, node: Node, *, ran_on: str = "") -> Worker:
    return Worker(f"w{number}", f"w-uid-{number}", node.uid, ran_on, number=number + 1)


def test_slots_are_taken_by_workers_of_existing_nodes() -> None:
    node = Node("a", "node-uid")
    nodes = {"a": node}
    view = ClusterState(POLICY, nodes, slots=1)
    view.worker_changed(None, running(1, node))
    assert view.free_slots == 1, "its node is not known yet"
    view.node_changed(None, node)
    assert view.free_slots == 0
    del nodes["a"]
    view.node_changed(node, None)
    assert view.free_slots == 1, "its node is gone"


def test_a_node_that_is_being_deleted_gives_its_slot_back() -> None:
    node = Node("a", "node-uid")
    leaving = Node("a", "node-uid", deleting=True)
    nodes = {"a": node}
    view = ClusterState(POLICY, nodes, slots=1)
    view.node_changed(None, node)
    view.worker_changed(None, running(1, node))
    assert view.free_slots == 0
    nodes["a"] = leaving
    view.node_changed(node, leaving)
    assert view.free_slots == 1


def test_a_node_takes_one_slot_with_any_number_of_pods() -> None:
    node = Node("a", "node-uid")
    view = ClusterState(POLICY, {"a": node}, slots=2)
    view.node_changed(None, node)
    for number in range(20):
        view.worker_changed(None, running(number, node))
    view.worker_changed(None, running(20, Node("b", "unknown")))
    assert view.free_slots == 1
    for number in range(20):
        view.worker_changed(running(number, node), None)
    assert view.free_slots == 2


def test_pods_of_other_clients_take_no_slots() -> None:
    nodes = {name: Node(name, f"uid-{name}") for name in ("ours", "theirs", "edited")}
    view = ClusterState(POLICY, nodes, slots=3)
    for name, node in nodes.items():
        view.node_changed(None, node)
        view.worker_changed(None, replace(running(1, node), uid=name, fingerprint=name))
    assert view.free_slots == 0, "each can be the worker of a previous process"
    view.admitted("ours")
    assert view.free_slots == 2
    view.admitted("edited")
    assert view.free_slots == 1
    edited = replace(running(1, nodes["edited"]), uid="edited", fingerprint="edited")
    view.worker_changed(edited, replace(edited, fingerprint="other"))
    view.worker_changed(replace(edited, fingerprint="other"), edited)
    assert view.free_slots == 2


def test_a_worker_on_another_node_takes_no_slot() -> None:
    node = Node("a", "node-uid")
    view = ClusterState(POLICY, {"a": node}, slots=1)
    view.node_changed(None, node)
    view.worker_changed(None, running(1, node, ran_on="b"))
    assert view.free_slots == 1


def test_a_node_of_the_same_name_does_not_inherit_the_slot_of_the_one_before() -> None:
    before, after = Node("a", "old"), Node("a", "new")
    nodes = {"a": before}
    view = ClusterState(POLICY, nodes, slots=1)
    view.node_changed(None, before)
    view.worker_changed(None, running(1, before))
    nodes["a"] = after
    view.node_changed(before, after)
    assert view.free_slots == 1


def test_a_worker_is_genuine_once_the_server_has_made_one_like_it_of_our_template() -> None:
    node = Node("a", "node-uid")
    view = ClusterState(POLICY, {"a": node}, slots=1)
    view.node_changed(None, node)
    view.worker_changed(None, Worker("w", "w-uid", node.uid, "a", number=1, fingerprint="ours"))

    def genuine() -> list[bool]:
        seen = view.snapshot("a", START)
        assert seen
        return [isinstance(worker, Worker) and worker.genuine for worker in seen.attempts]

    assert genuine() == [False]
    view.admitted("another")
    assert genuine() == [False]
    view.admitted("ours")
    assert genuine() == [True]


class TestWhichWorkersCount:
    """A verdict counts if the worker is what we asked for, and it counts once."""

    NODE = Node("a", "node-uid")

    def a_view(self, node: Node = NODE) -> ClusterState:
        view = ClusterState(POLICY, {"a": node}, 10)
        view.node_changed(None, node)
        view.admitted("ours")
        return view

    def worker(self, number: int = 1, *, uid: str = "pod-uid", fingerprint: str = "ours") -> Worker:
        created = START + timedelta(seconds=10)
        return Worker(f"w{number}", uid, "node-uid", "a", number=number, created=created, fingerprint=fingerprint)

    def seen(self, view: ClusterState) -> Worker:
        snapshot = view.snapshot("a", START)
        assert snapshot
        (worker,) = snapshot.attempts
        assert isinstance(worker, Worker)
        return worker

    def test_one_that_was_edited_and_edited_back_is_not_genuine(self) -> None:
        view = self.a_view()
        view.worker_changed(None, self.worker())
        view.worker_changed(self.worker(), self.worker(fingerprint="theirs"))
        view.worker_changed(self.worker(fingerprint="theirs"), self.worker())
        assert (self.seen(view).genuine, self.seen(view).edited) == (False, True)

    def test_one_that_was_edited_and_edited_back_before_it_was_seen_is_not_genuine(self) -> None:
        """Its generation shows it. That of a worker which is created here grows only by scheduling."""
        view = self.a_view()
        view.worker_changed(None, replace(self.worker(), generation=3))
        assert (self.seen(view).genuine, self.seen(view).edited) == (False, True)
        view = self.a_view()
        created = replace(self.worker(), generation=1)
        view.worker_changed(None, created)
        view.worker_changed(created, replace(created, generation=2))
        assert (self.seen(view).genuine, self.seen(view).edited) == (True, False)

    def test_one_whose_verdict_was_on_record_is_settled_even_if_the_record_is_deleted(self) -> None:
        passed = Node("a", "node-uid", record=VerificationRecord(1, outcome=Outcome.PASSED))
        for first in ("worker", "record"):
            nodes = {"a": passed if first == "record" else self.NODE}
            view = ClusterState(POLICY, nodes, 10)
            view.node_changed(None, nodes["a"])
            view.worker_changed(None, self.worker())
            if first == "worker":
                assert not self.seen(view).settled
                nodes["a"] = passed
                view.node_changed(self.NODE, passed)
            nodes["a"] = self.NODE
            view.node_changed(passed, self.NODE)
            assert self.seen(view).settled

    def test_pools_without_nodes_are_forgotten(self) -> None:
        """A kubelet chooses the labels that name the pool, and can change them any number of times."""
        nodes = {"a": self.NODE}
        view = ClusterState(POLICY, nodes, 10)
        view.node_changed(None, self.NODE)
        for number in range(100):
            before, nodes["a"] = nodes["a"], replace(self.NODE, labelled=True, pool=f"pool-{number}")
            view.node_changed(before, nodes["a"])
        assert dict(view._managed) == {"pool-99": 1}

    def test_witnessed_failures_belong_to_one_node(self) -> None:
        nodes = {"a": self.NODE}
        view = ClusterState(POLICY, nodes, 10)
        view.node_changed(None, self.NODE)
        view.witnessed(self.NODE, 3)
        view.pool_found(self.NODE, Pool("claims", claimed=True))
        seen = view.snapshot("a", START)
        assert seen
        assert (seen.witnessed, seen.node.pool, seen.node.claimed, seen.fleet.in_pool) == (3, "claims", True, 1)
        nodes["a"] = Node("a", "other-uid")
        view.node_changed(self.NODE, nodes["a"])
        again = view.snapshot("a", START)
        assert again
        assert (again.witnessed, again.node.pool) == (0, "")
        nodes["a"] = self.NODE
        view.node_changed(Node("a", "other-uid"), self.NODE)
        back = view.snapshot("a", START)
        assert back
        assert (back.witnessed, back.node.pool) == (0, "")

    def test_a_flood_of_workers_of_one_node_is_not_kept(self) -> None:
        view = self.a_view()
        for attempt in range(2, 2000):
            view.worker_changed(None, self.worker(attempt, uid=f"pod-{attempt}"))
        view.worker_changed(None, self.worker())
        seen = view.snapshot("a", START)
        assert seen
        assert len(seen.attempts) == 17
        assert any(attempt.number == 1 for attempt in seen.attempts), "the one that is due counts all the same"

    def test_the_texts_of_a_flood_are_not_kept(self) -> None:
        """A report takes more memory than everything else that is known of a worker."""
        view = self.a_view()
        reported = replace(
            self.worker(), report=Report((TargetResult("dns", Verdict.FAILED),)), reason="dns: no answer"
        )
        for attempt in range(2, 18):
            forged = replace(reported, name=f"w{attempt}", uid=f"pod-{attempt}", number=attempt)
            assert view.trimmed(forged) == forged
            view.worker_changed(None, forged)
        assert view.trimmed(replace(reported, name="w18", number=18)) == replace(self.worker(), name="w18", number=18)
        assert view.trimmed(reported) == reported, "the one that is due"
