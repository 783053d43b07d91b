"""Limit the rate of requests with a token bucket that serves waiting callers in order."""

import asyncio


class TokenBucket:
    """Allows `burst` requests immediately, then `qps` per second; `qps` 0 means no limit.

    Each caller reserves the next free time when it calls, so the order is kept without a queue. Time is the event
    loop's.
    """

    def __init__(self, qps: float, burst: int = 1) -> None:
        if qps < 0:
            raise ValueError(f"qps: {qps:g} is invalid; expected 0 (no limit) or more")
        if burst < 1:
            raise ValueError(f"burst: {burst} is invalid; expected 1 or more")
        self._interval = 1 / qps if qps else 0.0
        self._ahead = (burst - 1) * self._interval
        self._next = 0.0

    async def acquire(self) -> None:
        """Wait until one more request is allowed."""
        if not self._interval:
            return
        now = asyncio.get_running_loop().time()
        reserved = max(self._next, now)
        self._next = reserved + self._interval
        if (wait := reserved - self._ahead - now) > 0:
            await asyncio.sleep(wait)
