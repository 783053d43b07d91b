"""What is seen of the cluster, beyond what the scenarios show."""

from datetime import timedelta

from kube_node_ready.gather import View
from kube_node_ready.verify.model import Node, Outcome, Pool, Record, State, Worker
from tests.model import POLICY, START

HOUR = timedelta(hours=1)


def a_worker(node_uid: str, *, finished: bool = True) -> Worker:
    return Worker("w", "pod-uid", node_uid, 1, "a", created=START, state=State.FAILED, finished=finished)


def test_a_worker_whose_node_left_our_sight_is_a_stray_after_a_while() -> None:
    node = Node("a", "node-uid")
    view = View(POLICY, {"a": node}, 10)
    view.node_changed(None, node)
    view.worker_changed(None, a_worker("node-uid"))
    assert not list(view.strays(START + 2 * HOUR)), "its node is there"
    view.node_changed(node, None)
    assert not list(view.strays(START + HOUR / 2)), "it may be another controller's"
    assert list(view.strays(START + 2 * HOUR)) == [a_worker("node-uid")]


def test_a_worker_that_runs_is_no_stray() -> None:
    view = View(POLICY, {}, 10)
    view.worker_changed(None, a_worker("node-uid", finished=False))
    assert not list(view.strays(START + 2 * HOUR))


def test_verified_nodes_that_are_checked_again_make_no_rush() -> None:
    nodes = {f"n{number}": Node(f"n{number}", f"uid-{number}", labelled=True) for number in range(40)}
    view = View(POLICY, nodes, slots=100)
    for number, node in enumerate(nodes.values()):
        view.node_changed(None, node)
        view.worker_changed(None, Worker(f"w{number}", f"w-uid-{number}", node.uid, 2))
    seen = view.snapshot("n0", START)
    assert seen
    assert not seen.rush
    assert seen.many_rechecks
    for number, node in enumerate(nodes.values()):
        done = Worker(f"w{number}", f"w-uid-{number}", node.uid, 2, finished=True)
        view.worker_changed(Worker(f"w{number}", f"w-uid-{number}", node.uid, 2), done)
    seen = view.snapshot("n0", START)
    assert seen
    assert not seen.many_rechecks


def running(number: int, node: Node, *, ran_on: str = "") -> Worker:
    return Worker(f"w{number}", f"w-uid-{number}", node.uid, number + 1, ran_on)


def test_slots_are_taken_by_workers_of_nodes_that_are_there() -> None:
    node = Node("a", "node-uid")
    nodes = {"a": node}
    view = View(POLICY, nodes, slots=1)
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
    view = View(POLICY, nodes, slots=1)
    view.node_changed(None, node)
    view.worker_changed(None, running(1, node))
    assert view.free_slots == 0
    nodes["a"] = leaving
    view.node_changed(node, leaving)
    assert view.free_slots == 1


def test_a_node_takes_one_slot_however_many_pods_pass_for_its_workers() -> None:
    node = Node("a", "node-uid")
    view = View(POLICY, {"a": node}, slots=2)
    view.node_changed(None, node)
    for number in range(20):
        view.worker_changed(None, running(number, node))
    view.worker_changed(None, running(20, Node("b", "unknown")))
    assert view.free_slots == 1
    for number in range(20):
        view.worker_changed(running(number, node), None)
    assert view.free_slots == 2


def test_a_worker_on_another_node_takes_no_slot() -> None:
    node = Node("a", "node-uid")
    view = View(POLICY, {"a": node}, slots=1)
    view.node_changed(None, node)
    view.worker_changed(None, running(1, node, ran_on="b"))
    assert view.free_slots == 1


def test_a_node_of_the_same_name_does_not_inherit_the_slot_of_the_one_before() -> None:
    before, after = Node("a", "old"), Node("a", "new")
    nodes = {"a": before}
    view = View(POLICY, nodes, slots=1)
    view.node_changed(None, before)
    view.worker_changed(None, running(1, before))
    nodes["a"] = after
    view.node_changed(before, after)
    assert view.free_slots == 1


def test_a_worker_is_genuine_once_the_server_has_made_one_like_it_of_our_template() -> None:
    node = Node("a", "node-uid")
    view = View(POLICY, {"a": node}, slots=1)
    view.node_changed(None, node)
    view.worker_changed(None, Worker("w", "w-uid", node.uid, 1, "a", fingerprint="ours"))

    def genuine() -> list[bool]:
        seen = view.snapshot("a", START)
        assert seen
        return [worker.genuine for worker in seen.workers]

    assert genuine() == [False]
    view.admitted("another")
    assert genuine() == [False]
    view.admitted("ours")
    assert genuine() == [True]


def test_fingerprints_are_forgotten_before_they_fill_the_memory() -> None:
    view = View(POLICY, {}, slots=1)
    for number in range(20_000):
        view.admitted(str(number))
    assert len(view._fingerprints) == 10_000
    assert "19999" in view._fingerprints


class TestWhichWorkersCount:
    """A verdict counts if the worker is what we asked for, and it counts once."""

    NODE = Node("a", "node-uid")

    def a_view(self, node: Node = NODE) -> View:
        view = View(POLICY, {"a": node}, 10)
        view.node_changed(None, node)
        view.admitted("ours")
        return view

    def worker(self, attempt: int = 1, *, uid: str = "pod-uid", fingerprint: str = "ours") -> Worker:
        created = START + timedelta(seconds=10)
        return Worker(f"w{attempt}", uid, "node-uid", attempt, "a", created, fingerprint=fingerprint)

    def seen(self, view: View) -> Worker:
        snapshot = view.snapshot("a", START)
        assert snapshot
        (worker,) = snapshot.workers
        return worker

    def test_one_that_was_edited_and_edited_back_is_not_genuine(self) -> None:
        view = self.a_view()
        view.worker_changed(None, self.worker())
        view.worker_changed(self.worker(), self.worker(fingerprint="theirs"))
        view.worker_changed(self.worker(fingerprint="theirs"), self.worker())
        assert (self.seen(view).genuine, self.seen(view).edited) == (False, True)

    def test_one_whose_verdict_was_on_record_is_settled_even_if_the_record_is_deleted(self) -> None:
        passed = Node("a", "node-uid", record=Record(1, outcome=Outcome.PASSED))
        for first in ("worker", "record"):
            nodes = {"a": passed if first == "record" else self.NODE}
            view = View(POLICY, nodes, 10)
            view.node_changed(None, nodes["a"])
            view.worker_changed(None, self.worker())
            if first == "worker":
                assert not self.seen(view).settled
                nodes["a"] = passed
                view.node_changed(self.NODE, passed)
            nodes["a"] = self.NODE
            view.node_changed(passed, self.NODE)
            assert self.seen(view).settled

    def test_what_was_witnessed_is_about_one_node(self) -> None:
        nodes = {"a": self.NODE}
        view = View(POLICY, nodes, 10)
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
        assert len(seen.workers) == 17
        assert any(worker.attempt == 1 for worker in seen.workers), "the one that is due counts all the same"
