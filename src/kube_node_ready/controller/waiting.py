"""Nodes that wait for other nodes: for a free slot, or for the end of a burst."""

from kube_node_ready.controller.state import ClusterState
from kube_node_ready.kube.workqueue import WorkQueue

_ANNOUNCEMENT_SPACING_SECONDS = 0.04
"""An announcement takes three writes. Most of `qps` is left for opening gates."""


class WaitingNodes:
    def __init__(self, state: ClusterState, queue: WorkQueue) -> None:
        self._state = state
        self._queue = queue
        self._for_slot: dict[str, None] = {}
        self._to_announce: dict[str, None] = {}

    def for_slot(self, name: str) -> None:
        self._for_slot[name] = None

    def to_announce(self, name: str) -> None:
        """The node's condition and Event are delayed by the burst."""
        self._to_announce[name] = None

    def forget(self, name: str) -> None:
        self.forget_slot(name)
        self._to_announce.pop(name, None)

    def forget_slot(self, name: str) -> None:
        self._for_slot.pop(name, None)

    def wake(self) -> None:
        """Queue as many nodes as there are free slots."""
        for name in list(self._for_slot)[: self._state.free_slots]:
            del self._for_slot[name]
            self._queue.add(name)

    def announce(self) -> None:
        """Spread the announcements: the last nodes of a burst must not wait for those of all others."""
        if self._state.burst:
            return
        for number, name in enumerate(self._to_announce):
            self._queue.add(name, after=number * _ANNOUNCEMENT_SPACING_SECONDS)
        self._to_announce.clear()
