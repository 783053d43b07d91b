"""Keys that want attention: each at most once in the queue, never twice in work, not before its time.

A key is *waiting* (it has a due time), *in work* (handed out, not yet done), or both: a key that is added while in work
is handed out again after `done`. All waiting keys that are not in work lie in one heap; a key that was moved to an
earlier time leaves its old entry behind, which is recognised by its time and skipped. One timer serves all.
Time is the event loop's.
"""

import asyncio
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable

_FIRST_RETRY_SECONDS = 0.05
_LAST_RETRY_SECONDS = 30.0
_MOST_DOUBLINGS = 20
_STALE_ENTRIES = 64


def _nobody_measures(_: float) -> None:
    return None


class Queue:
    """`observe` gets the seconds that a key waited beyond its due time, whenever one is handed out."""

    def __init__(self, observe: Callable[[float], None] = _nobody_measures) -> None:
        self._observe = observe
        self._due: dict[str, float] = {}
        self._in_work: set[str] = set()
        self._failures: dict[str, int] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._order = itertools.count()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        """Keys waiting, due or not."""
        return len(self._due)

    def __contains__(self, key: str) -> bool:
        """Whether it waits, due or not."""
        return key in self._due

    @property
    def depth(self) -> int:
        """Keys that are due and wait for somebody to take them. Any thread may ask."""
        if self._loop is None:
            return 0
        now = self._loop.time()
        return sum(due <= now for due in list(self._due.values()))

    @property
    def _clock(self) -> asyncio.AbstractEventLoop:
        """Asked for once: in Python 3.11, each time is a system call."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def add(self, key: str, after: float = 0) -> None:
        """Hand out this key in `after` seconds; if it waits already, at the earlier of both times."""
        due = self._clock.time() + max(0.0, after)
        if due >= self._due.get(key, float("inf")):
            return
        self._due[key] = due
        if key not in self._in_work:
            self._push(key, due)

    def retry(self, key: str, at_least: float = 0) -> int:
        """Hand out this key after a pause that doubles with every call, until it is forgotten. Counts them."""
        failures = self._failures.get(key, 0)
        self._failures[key] = min(failures + 1, _MOST_DOUBLINGS)
        pause = min(_FIRST_RETRY_SECONDS * 2**failures, _LAST_RETRY_SECONDS)
        self.add(key, max(at_least, pause * random.uniform(0.5, 1)))  # noqa: S311  spreads load, keeps no secret
        return self._failures[key]

    def forget(self, key: str) -> None:
        """Its next failure is its first."""
        self._failures.pop(key, None)

    def clear(self) -> None:
        """Nothing waits any more."""
        self._due.clear()
        self._heap.clear()

    async def get(self) -> str:
        """The key that has been due longest, as soon as there is one. It is in work until `done`."""
        while (key := self._take()) is None:
            turn = self._clock.create_future()
            self._idle.append(turn)
            self._arm()
            try:
                await turn
            except asyncio.CancelledError:
                # Whoever leaves may have been woken for a key that somebody else must take now.
                if turn in self._idle:
                    self._idle.remove(turn)
                self._arm()
                raise
        return key

    def done(self, key: str) -> None:
        self._in_work.remove(key)
        if key in self._due:
            self._push(key, self._due[key])

    def _push(self, key: str, due: float) -> None:
        heapq.heappush(self._heap, (due, next(self._order), key))
        if len(self._heap) > 2 * len(self._due) + _STALE_ENTRIES:
            self._heap = [entry for entry in self._heap if self._waits(entry)]
            heapq.heapify(self._heap)
        if self._idle and self._heap[0][0] >= due:
            self._arm()

    def _waits(self, entry: tuple[float, int, str]) -> bool:
        due, _, key = entry
        return self._due.get(key) == due and key not in self._in_work

    def _take(self) -> str | None:
        now = self._clock.time()
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if self._waits(entry):
                due, _, key = entry
                del self._due[key]
                self._in_work.add(key)
                self._arm()
                self._observe(now - due)
                return key
        return None

    def _arm(self) -> None:
        """See to it that the next idle `get` wakes when the next key is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._idle or not self._heap:
            return
        due = self._heap[0][0]
        if due <= self._clock.time():
            self._wake()
        else:
            self._timer = self._clock.call_at(due, self._wake)

    def _wake(self) -> None:
        while self._idle:
            turn = self._idle.popleft()
            if not turn.done():
                turn.set_result(None)
                return
