"""Limit how often the controller writes because of one node.

Each change of a Node or a worker pod makes the controller reconcile the node, and usually write. A client that undoes
each write, or a kubelet that keeps editing its Node, would cause a write each time, at the cost of all other nodes:
they share one rate limit. So each node has a budget of its own.
"""

import time
from collections.abc import Callable

_BURST = 30
"""A failed attempt takes about five writes."""
_PER_SECOND = 2.0
_MANY_NODES = 1000


class Pace:
    """A token bucket per node, kept only while it is not full."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._full_at: dict[str, float] = {}
        self._forget_above = _MANY_NODES

    def wait(self, node: str) -> float:
        """How many seconds to wait before the node is reconciled again."""
        return max(0.0, (self._missing(node) - (_BURST - 1)) / _PER_SECOND)

    def wrote(self, node: str) -> None:
        self._full_at[node] = self._clock() + (self._missing(node) + 1) / _PER_SECOND
        if len(self._full_at) > self._forget_above:
            now = self._clock()
            self._full_at = {name: full for name, full in self._full_at.items() if full > now}
            self._forget_above = max(_MANY_NODES, 2 * len(self._full_at))

    def _missing(self, node: str) -> float:
        return max(0.0, (self._full_at.get(node, 0.0) - self._clock()) * _PER_SECOND)
