"""Clock of the agent, whose waits end when the process is stopped."""

import queue
import time
from contextlib import suppress
from datetime import UTC, datetime


class Clock:
    def __init__(self) -> None:
        self.stopping = False
        self._wakeups: queue.SimpleQueue[None] = queue.SimpleQueue()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that do not depend on the date."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Wait this long, or until `stop` is called."""
        if seconds > 0 and not self.stopping:
            with suppress(queue.Empty):
                self._wakeups.get(timeout=seconds)

    def stop(self) -> None:
        """End all waits. Any thread can call this."""
        self.stopping = True
        self._wakeups.put(None)
