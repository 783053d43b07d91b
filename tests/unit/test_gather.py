"""What is seen of the cluster, beyond what the scenarios show."""

from datetime import timedelta

from kube_node_ready.gather import View
from kube_node_ready.verify.model import Node, State, Worker
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
