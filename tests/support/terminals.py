"""Run a program in a terminal of its own."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping
from typing import NamedTuple

_CHUNK = 65536


class Ended(NamedTuple):
    code: int
    """Negative if a signal ended it."""
    shown: bytes

    @property
    def text(self) -> str:
        return self.shown.decode().replace("\r\n", "\n")


def on_a_terminal(  # noqa: PLR0913  what a terminal is like
    command: list[str],
    environ: Mapping[str, str],
    *,
    until: bytes = b"",
    send: signal.Signals = signal.SIGINT,
    columns: int = 100,
    rows: int = 20,
    seconds: float = 30,
) -> Ended:
    """Return the exit code and everything that was written. When `until` was written, the signal is sent."""
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored by programs in the background, such as the tests
        time.sleep(0.1)  # until the terminal has its size
        os.execve(command[0], command, dict(environ))  # noqa: S606  the terminal is this process's own
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    shown, sent, end = b"", not until, time.monotonic() + seconds
    try:
        while time.monotonic() < end and select.select([terminal], [], [], seconds)[0]:
            try:
                shown += os.read(terminal, _CHUNK)
            except OSError:  # the program closed its end
                break
            if not sent and until in shown:
                sent = True
                os.kill(child, send)
    finally:
        os.close(terminal)
        _, status = os.waitpid(child, 0)
    return Ended(os.waitstatus_to_exitcode(status), shown)
