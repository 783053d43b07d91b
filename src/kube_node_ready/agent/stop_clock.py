"""Time, and the end of it."""

import queue
import time
from contextlib import suppress
from datetime import UTC, datetime


class Clock:
    def __init__(self) -> None:
        self.stopping = False
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that go on evenly, whatever happens to the date."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """For so long, or until it is time to stop."""
        if seconds > 0 and not self.stopping:
            with suppress(queue.Empty):
                self._bell.get(timeout=seconds)

    def stop(self) -> None:
        """May be called from any thread."""
        self.stopping = True
        self._bell.put(None)
