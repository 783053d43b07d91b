"""Progress of long steps: one redrawn line on a terminal, an occasional line elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self

_SECONDS_BETWEEN_LINES = 30.0
_SECONDS_BETWEEN_DRAWINGS = 0.2


def say(text: str) -> None:
    """Print a progress line to standard error, so that standard output has only the command's output."""
    print(f"lab: {text}", file=sys.stderr, flush=True)


class Progress:
    """A progress line: `with Progress("building", total=300, unit="packages") as progress: … progress.advance()`."""

    def __init__(self, title: str, *, total: int, unit: str, note: str = "") -> None:
        self._title = title
        self._total = total
        self._unit = unit
        self._done = 0
        self._begun = self._shown = time.monotonic()
        self._on_terminal = sys.stderr.isatty()
        say(f"{title} ({note})" if note else title)

    def advance(self) -> None:
        self._done += 1
        pause = _SECONDS_BETWEEN_DRAWINGS if self._on_terminal else _SECONDS_BETWEEN_LINES
        if time.monotonic() - self._shown >= pause:
            self._shown = time.monotonic()
            self._show("\r\033[K" if self._on_terminal else "", "" if self._on_terminal else "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._done = self._total
            self._show("\r\033[K" if self._on_terminal else "", "\n")
        elif self._on_terminal:
            print(file=sys.stderr)

    def _show(self, before: str, after: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._begun), 60)
        counted = f"{min(self._done, self._total)} of {self._total} {self._unit}"
        print(
            f"{before}lab: {self._title}: {counted}, {minutes}:{seconds:02d} min",
            end=after,
            file=sys.stderr,
            flush=True,
        )
