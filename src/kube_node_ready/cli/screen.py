"""A terminal that is drawn over and over, without flicker; and a pipe, which gets a line for each change.

The table has a screen of its own, as a pager's, and the person's terminal comes back as it was, however this ends.
"""

import os
import signal
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import FrameType
from typing import Protocol, Self, TextIO

from msgspec import Struct
from msgspec.structs import replace

from kube_node_ready.console import output, table
from kube_node_ready.console.picture import Standing
from kube_node_ready.console.table import Look
from kube_node_ready.verify.report import printable

_ENTER = "\033[?1049h\033[?25l"  # another screen; no cursor
_LEAVE = "\033[?25h\033[?1049l"
_HOME, _ERASE_LINE, _ERASE_BELOW = "\033[H", "\033[K", "\033[J"
_ENDED_BY = 128


class Frame(Struct, frozen=True):
    standings: Sequence[Standing]
    now: datetime
    notes: Sequence[str] = ()
    trouble: str = ""
    """Why this may be old news."""
    there: Collection[str] = ()
    """All nodes that there are, shown or not."""


class Shown(Protocol):
    def show(self, frame: Frame) -> None: ...


def drawn(frame: Frame, look: Look, height: int) -> list[str]:
    """The lines of a frame, which fit."""
    width = look.width or 0
    head = f"{frame.now.astimezone():%H:%M:%S}  {table.summary(frame.standings)}"
    warnings = [*filter(None, [frame.trouble]), *frame.notes]
    foot = [table.painted(table.cut(text, width), table.YELLOW, wanted=look.colour) for text in warnings]
    foot.append(table.painted("Ctrl-C ends this.", table.DIM, wanted=look.colour))
    room = max(1, height - len(foot) - 5)
    left = len(frame.standings) - room
    listed = frame.standings if left <= 0 else frame.standings[: room - 1]
    more = [f"… and {len(frame.standings) - len(listed):,} more"] if left > 0 else []
    body = table.lines(listed, look, frame.now) if frame.standings else ["No nodes."]
    return [table.cut(head, width), "", *body, *more, "", *foot][:height]


class Screen:
    """Taken over with the first frame, and given back at the end of the block."""

    def __init__(self, stream: TextIO, *, wide: bool = False) -> None:
        self._stream = stream
        self._wide = wide
        self._taken = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def show(self, frame: Frame) -> None:
        # A line as wide as the terminal would leave the cursor nowhere, and its last letter erased.
        look = replace(output.look(self._stream, wide=self._wide), width=output.columns() - 1)
        lines = drawn(frame, look, output.rows())
        taking = "" if self._taken else _ENTER
        self._taken = True
        self._stream.write(
            taking + _HOME + "\r\n".join(f"{output.safe(line)}{_ERASE_LINE}" for line in lines) + _ERASE_BELOW
        )
        self._stream.flush()

    def give_back(self) -> None:
        if self._taken:
            self._taken = False
            self._stream.write(_LEAVE)
            self._stream.flush()


class Pipe:
    """One line for each change of phase, whole and plain."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._phases: dict[str, str] = {}
        self._said: set[str] = set()

    def show(self, frame: Frame) -> None:
        self._stream.writelines(f"{output.safe(line)}\n" for line in self._changes(frame))
        self._stream.flush()
        output.note(text for text in self._new([*frame.notes, *filter(None, [frame.trouble])]))

    def _changes(self, frame: Frame) -> Iterator[str]:
        time = f"{frame.now.astimezone():%H:%M:%S}"
        for standing in frame.standings:
            if self._phases.get(standing.name) != standing.phase:
                self._phases[standing.name] = standing.phase
                why = f"  {standing.waits_for}" if standing.waits_for else ""
                yield f"{time}  {printable(standing.name)}  {standing.phase}{why}"
        for name in self._phases.keys() - {standing.name for standing in frame.standings}:
            del self._phases[name]
            yield f"{time}  {printable(name)}  {'has nothing to prove any more' if name in frame.there else 'gone'}"

    def _new(self, texts: Sequence[str]) -> list[str]:
        fresh = [text for text in texts if text not in self._said]
        self._said = set(texts)
        return fresh


@contextmanager
def live(*, wide: bool = False) -> Iterator[Shown]:
    """Whichever of the two stdout is. Signals that would leave a terminal in disorder put it in order first."""
    if not sys.stdout.isatty():
        yield Pipe(sys.stdout)
        return
    with Screen(sys.stdout, wide=wide) as screen, _handled(screen):
        yield screen


@contextmanager
def _handled(screen: Screen) -> Iterator[None]:
    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(_ENDED_BY + number)

    def suspend(_: int, __: FrameType | None) -> None:
        screen.give_back()
        os.kill(os.getpid(), signal.SIGSTOP)

    handlers = {signal.SIGTERM: end, signal.SIGHUP: end, signal.SIGTSTP: suspend}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
