"""How often we may ask: a token bucket in which those who wait are served in the order they came."""

import asyncio


class Limit:
    """`burst` requests at once, then `qps` a second; `qps` 0 is no limit.

    Each caller reserves the next free moment when it asks, so nobody overtakes, and there is no queue to keep.
    Time is the event loop's.
    """

    def __init__(self, qps: float, burst: int = 1) -> None:
        if qps < 0:
            raise ValueError(f"qps is {qps:g}; it must be 0 (no limit) or more")
        if burst < 1:
            raise ValueError(f"burst is {burst}; it must be 1 or more")
        self._interval = 1 / qps if qps else 0.0
        self._ahead = (burst - 1) * self._interval
        self._next = 0.0

    async def take(self) -> None:
        """Return when one more request may be sent."""
        if not self._interval:
            return
        now = asyncio.get_running_loop().time()
        reserved = max(self._next, now)
        self._next = reserved + self._interval
        if (wait := reserved - self._ahead - now) > 0:
            await asyncio.sleep(wait)
