"""Whether the watch of all nodes is read as it comes, or now and then.

In a fleet at rest, all that watch brings is heartbeats of verified nodes, one wake-up each. So while nothing goes on it
is left alone for seconds at a time. Whoever should not have to wait for that rings: nodes without our label come by a
watch of their own, which is silent in a fleet at rest.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

_ATTENTIVE_SECONDS = 30.0
_NAP_SECONDS = 10.0
_CATCH_UP_SECONDS = 0.25
"""Enough to read what came meanwhile, ten thousand nodes' heartbeats included."""


class Attention:
    """`busy` tells of what is going on without our doing: then there are no naps. Time is the event loop's."""

    def __init__(self, busy: Callable[[], bool]) -> None:
        self._busy = busy
        self._until = float("-inf")
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Something happens: be attentive for a while."""
        self._until = asyncio.get_running_loop().time() + _ATTENTIVE_SECONDS
        self._rung.set()

    def nap(self) -> Awaitable[None] | None:
        """The next nap, if this is the time for one. It ends when somebody rings."""
        if self._busy() or asyncio.get_running_loop().time() < self._until:
            return None
        self._rung.clear()
        return self._nap()

    async def _nap(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_NAP_SECONDS):
                await self._rung.wait()
        self._until = max(self._until, asyncio.get_running_loop().time() + _CATCH_UP_SECONDS)
