"""What a terminal and a pipe get, byte by byte."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import StringIO
from types import FrameType
from typing import Any

import pytest

from kube_node_ready.cli import screen
from kube_node_ready.cli.screen import Frame
from tests.support.model_cluster import START
from tests.support.shell import ROOT
from tests.support.terminals import on_a_terminal
from tests.unit.cli.test_views import gated, statuses, verified

TEXT = "[bold]x[/bold] \x1b[2J\x9b31m \u202e :smile: 日本語 1.5"
PRINTS = f"""
import sys
from rich.text import Text
from kube_node_ready.cli import output
output.out([Text({TEXT!r}, "red"), Text("x" * 100)])
"""
LIVE = """
import sys, time
from datetime import UTC, datetime
from kube_node_ready.cli import screen
from kube_node_ready.cli.screen import Frame
try:
    with screen.live() as shown:
        while True:
            shown.show(Frame([], datetime.now(UTC)))
            time.sleep(0.01)
except KeyboardInterrupt:
    sys.exit(130)
"""
SHOWN = "[bold]x[/bold] \ufffd[2J\ufffd31m \ufffd :smile: 日本語 1.5"
ENTER, LEAVE = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"


def environ(**variables: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
    return {**plain, "PYTHONPATH": str(ROOT), "TERM": "xterm", **variables}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, f"\x1b[31m{SHOWN}\x1b[0m\n"),
        ({"NO_COLOR": "1"}, f"{SHOWN}\n"),
        ({"TERM": "dumb"}, f"{SHOWN}\n"),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, f"{SHOWN}\n"),
    ],
    ids=["colors", "NO_COLOR", "dumb", "forced"],
)
def test_a_terminal_gets_colors_if_enabled(variables: dict[str, str], expected: str) -> None:
    done = on_a_terminal([sys.executable, "-c", PRINTS], environ(**variables), columns=80)
    assert (done.code, done.text) == (0, expected + "x" * 100 + "\n"), "nothing is wrapped or cut here"


@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1"}, {"COLUMNS": "20"}])
def test_a_pipe_gets_plain_and_complete_lines(variables: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRINTS], env=environ(**variables), capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{SHOWN}\n{'x' * 100}\n"


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=str,
)
def test_a_terminal_is_restored_after_a_signal(number: signal.Signals, code: int) -> None:
    done = on_a_terminal([sys.executable, "-c", LIVE], environ(), until=b"No nodes.", send=number)
    assert done.code == code
    assert done.shown.startswith(ENTER)
    assert done.shown.endswith(LEAVE)
    assert done.shown.count(ENTER) == 1
    assert b"Traceback" not in done.shown


def test_a_dumb_terminal_gets_lines() -> None:
    shows = LIVE.replace("Frame([], ", "Frame(statuses(gated('a')), ")
    program = f"from tests.unit.cli.test_views import gated, statuses\n{shows}"
    done = on_a_terminal([sys.executable, "-c", program], environ(TERM="dumb"), until=b"a  verifying")
    assert (done.code, b"\x1b" in done.shown) == (130, False)


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def _default_handler() -> Iterator[None]:
    """A signal can arrive while the handlers of before are restored; then the process ends without them."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def interrupted(at: int) -> int:
    """Show two frames, and get SIGTERM at a line of the module. Return how many of its lines were run."""
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:  # noqa: ANN401  Python's
        nonlocal lines
        if not frame.f_code.co_filename.endswith("screen.py"):
            return None
        handler = signal.getsignal(signal.SIGTERM)
        if event == "line" and callable(handler):
            lines += 1
            if lines == at:
                sys.settrace(None)
                handler(signal.SIGTERM, None)
        return trace

    sys.settrace(trace)
    try:
        with suppress(SystemExit), screen.live() as shown:
            for _ in range(2):
                shown.show(Frame(statuses(gated("a"), verified("b")), START))
    finally:
        sys.settrace(None)
    return lines


@pytest.mark.usefixtures("_default_handler")
def test_a_terminal_is_restored_after_a_signal_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", Terminal())
    total = interrupted(0)
    assert total > 50
    for at in range(1, total + 1):
        stream = Terminal()
        monkeypatch.setattr(sys, "stdout", stream)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        interrupted(at)
        shown = stream.getvalue().encode()
        assert shown.rfind(LEAVE) >= shown.rfind(ENTER), f"at line {at} of {total}"
