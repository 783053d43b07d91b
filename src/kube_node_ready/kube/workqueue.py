"""Workqueue of keys: each is queued at most once, never processed twice at the same time, and can be delayed.

A key is *waiting* (it has a due time), *processing* (handed out, not yet done), or both: a key that is added during its
processing is handed out again after `done`. All waiting keys that are not processing are in one heap. A key that was
moved to an earlier time leaves its old entry behind, which is recognized by its time and skipped. One timer serves all
keys. Time is the event loop's.
"""

import asyncio
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable

_FIRST_RETRY_SECONDS = 0.05
_MAX_RETRY_SECONDS = 30.0
_MAX_DOUBLINGS = 20
_STALE_ENTRIES = 64


def _ignore(_: float) -> None:
    return None


class WorkQueue:
    """`on_wait` is called for each key that is handed out, with the seconds since it was due."""

    def __init__(self, on_wait: Callable[[float], None] = _ignore) -> None:
        self._on_wait = on_wait
        self._due: dict[str, float] = {}
        self._processing: set[str] = set()
        self._failures: dict[str, int] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._order = itertools.count()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        """The number of waiting keys, due or not."""
        return len(self._due)

    def __contains__(self, key: str) -> bool:
        """Whether the key is waiting, due or not."""
        return key in self._due

    @property
    def depth(self) -> int:
        """The number of keys that are due. Any thread can call this."""
        if self._loop is None:
            return 0
        now = self._loop.time()
        return sum(due <= now for due in list(self._due.values()))

    @property
    def _clock(self) -> asyncio.AbstractEventLoop:
        """The event loop, looked up once: in Python 3.11, each lookup is a system call."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def add(self, key: str, after: float = 0) -> None:
        """Hand out this key in `after` seconds; if it is waiting already, at the earlier of both times."""
        due = self._clock.time() + max(0.0, after)
        if due >= self._due.get(key, float("inf")):
            return
        self._due[key] = due
        if key not in self._processing:
            self._push(key, due)

    def retry(self, key: str, at_least: float = 0) -> int:
        """Hand out this key after a backoff that doubles with every call until `forget`. Return how many there were."""
        failures = self._failures.get(key, 0)
        self._failures[key] = min(failures + 1, _MAX_DOUBLINGS)
        pause = min(_FIRST_RETRY_SECONDS * 2**failures, _MAX_RETRY_SECONDS)
        self.add(key, max(at_least, pause * random.uniform(0.5, 1)))  # noqa: S311  spreads load, keeps no secret
        return self._failures[key]

    def forget(self, key: str) -> None:
        """Reset the backoff of this key."""
        self._failures.pop(key, None)

    def clear(self) -> None:
        """Remove all waiting keys."""
        self._due.clear()
        self._heap.clear()

    async def get(self) -> str:
        """Wait for a key that is due, and return the oldest. It is processing until `done`."""
        while (key := self._take()) is None:
            turn = self._clock.create_future()
            self._idle.append(turn)
            self._arm()
            try:
                await turn
            except asyncio.CancelledError:
                # This caller might have been woken for a key that another one must take now.
                if turn in self._idle:
                    self._idle.remove(turn)
                self._arm()
                raise
        return key

    def done(self, key: str) -> None:
        self._processing.remove(key)
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
        return self._due.get(key) == due and key not in self._processing

    def _take(self) -> str | None:
        now = self._clock.time()
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if self._waits(entry):
                due, _, key = entry
                del self._due[key]
                self._processing.add(key)
                self._arm()
                self._on_wait(now - due)
                return key
        return None

    def _arm(self) -> None:
        """Wake the next idle `get` when the next key is due."""
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
