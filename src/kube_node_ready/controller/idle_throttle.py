"""Pause reading the watch of all nodes while the fleet is idle.

In an idle fleet, that watch delivers only heartbeats of verified nodes, each of which wakes the process. So while
nothing is in progress, it is not read for seconds at a time. Events that must not wait end the pause: nodes without our
label have a separate watch, which is silent in an idle fleet.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

_ACTIVE_SECONDS = 30.0
_PAUSE_SECONDS = 10.0
_CATCH_UP_SECONDS = 0.25
"""Enough to read what arrived during the pause, such as the heartbeats of ten thousand nodes."""


class IdleThrottle:
    """While `has_pending_work` returns true, there are no pauses. Time is the event loop's."""

    def __init__(self, has_pending_work: Callable[[], bool]) -> None:
        self._has_pending_work = has_pending_work
        self._until = float("-inf")
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """End the pause, and read without pauses for a while."""
        self._until = asyncio.get_running_loop().time() + _ACTIVE_SECONDS
        self._woken.set()

    def pause(self) -> Awaitable[None] | None:
        """Return a pause that ends with `wake`, or None if there is work."""
        if self._has_pending_work() or asyncio.get_running_loop().time() < self._until:
            return None
        self._woken.clear()
        return self._pause()

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_PAUSE_SECONDS):
                await self._woken.wait()
        self._until = max(self._until, asyncio.get_running_loop().time() + _CATCH_UP_SECONDS)
