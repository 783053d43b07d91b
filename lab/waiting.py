"""Wait for a condition, and stop early if it cannot be met."""

import time
from collections.abc import Callable
from typing import TypeVar

from lab.errors import NotReadyInTimeError

T = TypeVar("T")
_PAUSE_SECONDS = 0.1


def _nothing_can_die() -> None:
    return None


def until(
    what: str,
    answer: Callable[[], T | None],
    seconds: float,
    *,
    alive: Callable[[], None] = _nothing_can_die,
) -> T:
    """Call a function until its result is truthy; an exception counts as not yet.

    `alive` raises an error when waiting is pointless, because a required program has exited.
    """
    deadline = time.monotonic() + seconds
    last: Exception | None = None
    while True:
        alive()
        try:
            result = answer()
            last = None
        except Exception as error:  # noqa: BLE001  any failure of the thing waited for means "not yet"
            result, last = None, error
        if result:
            return result
        if time.monotonic() > deadline:
            because = f"; at the last try: {last}" if last else ""
            raise NotReadyInTimeError(f"{what}: not within {seconds:g} s{because}")
        time.sleep(_PAUSE_SECONDS)
