"""Redraw a terminal without flicker, or print one line per change to a pipe.

The table uses the terminal's alternate screen, as a pager does. The terminal is restored on every kind of exit; why
`rich.live` does not do it is in docs/decisions/0015-rich-for-text-not-for-layout.md.
"""

import os
import signal
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from types import FrameType
from typing import Protocol, Self, TextIO

from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from kube_node_ready.api.report import printable
from kube_node_ready.cli import output, table
from kube_node_ready.cli.fleet import GROUPS, NodeStatus
from kube_node_ready.cli.table import Style
from kubekit.terminal import can_redraw, replaced

_ENTER = "\033[?1049h\033[?25l"  # another screen; no cursor
_LEAVE = "\033[?25h\033[?1049l"
_HOME, _ERASE_LINE, _ERASE_BELOW = "\033[H", "\033[K", "\033[J"
_ENDED_BY = 128
_PLAIN = Style()


class Frame(Struct, frozen=True):
    statuses: Sequence[NodeStatus]
    now: datetime
    notes: Sequence[str] = ()
    problem: str = ""
    """Why this might be outdated."""
    existing: Collection[str] = ()
    """All nodes that exist, shown or not."""


class View(Protocol):
    def show(self, frame: Frame) -> None: ...


def drawn(frame: Frame, style: Style, height: int) -> list[Text]:
    """Return the lines of a frame, which fit."""
    width = style.width or 0
    head = f"{frame.now.astimezone():%H:%M:%S}  {table.summary(frame.statuses)}"
    warnings = [*filter(None, [frame.problem]), *frame.notes]
    foot = [Text(table.truncate(text, width), table.YELLOW) for text in warnings]
    foot.append(Text(table.truncate("Press Ctrl-C to end.", width), table.DIM))
    titles = len(set(map(GROUPS[style.group], frame.statuses))) if style.group else 0
    room = max(1, height - len(foot) - 5 - titles)
    left = len(frame.statuses) - room
    listed = frame.statuses if left <= 0 else frame.statuses[: room - 1]
    more = [Text(f"… and {len(frame.statuses) - len(listed):,} more")] if left > 0 else []
    body = table.lines(listed, style, frame.now) if frame.statuses else [Text("No nodes.")]
    return [Text(table.truncate(head, width)), Text(), *body, *more, Text(), *foot][:height]


class Screen:
    """Takes the terminal over with the first frame, and restores it at the end of the block."""

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._stream = stream
        self._style = style
        self._taken = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def show(self, frame: Frame) -> None:
        # After a line as wide as the terminal, the cursor would be beyond its end, and erase its last character.
        lines = drawn(frame, replace(self._style, width=output.columns() - 1), output.rows())
        shown = output.rendered(lines, output.console(self._stream)).replace("\n", f"{_ERASE_LINE}\r\n")
        taking = "" if self._taken else _ENTER
        self._taken = True  # before it is: whatever interrupts the write, the terminal is restored
        self._stream.write(f"{taking}{_HOME}{shown}{_ERASE_LINE}{_ERASE_BELOW}")
        self._stream.flush()

    def give_back(self) -> None:
        if self._taken:
            self._stream.write(_LEAVE)
            self._stream.flush()
            self._taken = False  # after it is: a signal in between restores it once more


class Pipe:
    """One line for each change of phase, whole and plain."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._phases: dict[str, str] = {}
        self._said: set[str] = set()

    def show(self, frame: Frame) -> None:
        self._stream.writelines(f"{replaced(line)}\n" for line in self._changes(frame))
        self._stream.flush()
        output.note(text for text in self._new([*frame.notes, *filter(None, [frame.problem])]))

    def _changes(self, frame: Frame) -> Iterator[str]:
        time = f"{frame.now.astimezone():%H:%M:%S}"
        for status in frame.statuses:
            if self._phases.get(status.name) != status.phase:
                self._phases[status.name] = status.phase
                reason = f"  {status.waits_for}" if status.waits_for else ""
                yield f"{time}  {printable(status.name)}  {status.phase}{reason}"
        for name in self._phases.keys() - {status.name for status in frame.statuses}:
            del self._phases[name]
            yield f"{time}  {printable(name)}  {'is no longer selected' if name in frame.existing else 'gone'}"

    def _new(self, texts: Sequence[str]) -> list[str]:
        fresh = [text for text in texts if text not in self._said]
        self._said = set(texts)
        return fresh


@contextmanager
def live(style: Style = _PLAIN) -> Iterator[View]:
    """Yield what stdout needs. Signals that end or suspend the process restore the terminal first."""
    if not can_redraw(sys.stdout):
        yield Pipe(sys.stdout)
        return
    screen = Screen(sys.stdout, style)
    with _handled(screen), screen:
        yield screen


@contextmanager
def _handled(screen: Screen) -> Iterator[None]:
    def end(number: int, _: FrameType | None) -> None:
        with suppress(RuntimeError):  # in the middle of a write; then the end of the block restores the terminal
            screen.give_back()
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
