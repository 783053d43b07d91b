"""Nodes that wait for a slot or for the end of a burst."""

from typing import TYPE_CHECKING, cast

import pytest

from kube_node_ready.controller.waiting import WaitingNodes

if TYPE_CHECKING:
    from kube_node_ready.controller.state import ClusterState
    from kube_node_ready.kube.workqueue import WorkQueue


class State:
    free_slots = 0
    burst = False


class Queue:
    def __init__(self) -> None:
        self.added: list[tuple[str, float]] = []

    def add(self, name: str, after: float = 0) -> None:
        self.added.append((name, after))


def waiting(state: State, queue: Queue) -> WaitingNodes:
    return WaitingNodes(cast("ClusterState", state), cast("WorkQueue", queue))


def test_as_many_nodes_are_woken_as_there_are_slots_in_the_order_in_which_they_came() -> None:
    state, queue = State(), Queue()
    nodes = waiting(state, queue)
    for name in ("a", "b", "a", "c"):
        nodes.for_slot(name)
    nodes.wake()
    assert queue.added == []
    state.free_slots = 2
    nodes.wake()
    assert queue.added == [("a", 0), ("b", 0)]
    nodes.wake()
    nodes.wake()
    assert queue.added == [("a", 0), ("b", 0), ("c", 0)]


def test_announcements_wait_for_the_end_of_the_burst_and_are_spread() -> None:
    state, queue = State(), Queue()
    nodes = waiting(state, queue)
    state.burst = True
    for name in ("a", "b", "c"):
        nodes.to_announce(name)
    nodes.announce()
    assert queue.added == []
    state.burst = False
    nodes.announce()
    nodes.announce()
    assert queue.added == [("a", 0), ("b", pytest.approx(0.04)), ("c", pytest.approx(0.08))]


def test_a_node_that_is_gone_is_not_woken() -> None:
    state, queue = State(), Queue()
    nodes = waiting(state, queue)
    for name in ("a", "b"):
        nodes.for_slot(name)
        nodes.to_announce(name)
    nodes.forget("a")
    nodes.forget_slot("b")
    state.free_slots = 9
    nodes.wake()
    nodes.announce()
    assert queue.added == [("b", 0)]
