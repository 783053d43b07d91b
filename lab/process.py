"""A program of a plane or a node: start, watch, pause and stop it, with its output in a file."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab import waiting
from lab.errors import ComponentDiedError, LabError

_LAST_LINES = 15


class Process:
    """A program that should run until it is stopped.

    With `through`, a command that enters or creates namespaces and then starts the program as its child (nsenter and
    unshare do, for a pid namespace); signals go to that child.
    """

    def __init__(
        self, name: str, argv: Sequence[str], log: Path, environment: Mapping[str, str], *, through: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.log = log
        self._argv = [*through, *argv]
        self._enters_namespaces = bool(through)
        self._environment = environment
        self._popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self.running:
            raise LabError(f"{self.name} is running already")
        with self.log.open("ab") as output:
            self._popen = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(self._environment),
                start_new_session=True,  # Ctrl-C in a terminal is for the user of the lab, not for its components
            )

    @property
    def pid(self) -> int:
        """The PID of the program itself on this machine."""
        if self._popen is None:
            raise LabError(f"{self.name} is not running")
        if not self._enters_namespaces:
            return self._popen.pid
        return waiting.until(f"{self.name} starts", self._child, 60, alive=self.check)

    @property
    def running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def check(self) -> None:
        """Raise an error if the program exited by itself."""
        if self._popen is not None and (code := self._popen.poll()) is not None:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise ComponentDiedError(f"{self.name} died ({how}); the end of {self.log}:\n{self.last_lines()}")

    def last_lines(self) -> str:
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LAST_LINES:])
        return "(no log)"

    def pause(self) -> None:
        """Pause the program: connections stay open without responses."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self._wake()

    def kill(self) -> None:
        """Kill the program unexpectedly: `check` then finds it dead."""
        if self.running:
            with contextlib.suppress(ProcessLookupError, ComponentDiedError):
                os.kill(self.pid, signal.SIGKILL)
            self._wake()

    def stop(self) -> None:
        """Kill the program immediately: with open watches, an API server takes up to a minute after SIGTERM."""
        self.kill()
        if self._popen:
            self._popen.wait()
            self._popen = None

    def _wake(self) -> None:
        """Continue nsenter, which stops itself when its child is stopped and would not notice that the child exits."""
        if self._popen:
            self._popen.send_signal(signal.SIGCONT)

    def _child(self) -> int | None:
        assert self._popen is not None
        children = Path(f"/proc/{self._popen.pid}/task/{self._popen.pid}/children").read_text().split()
        return int(children[0]) if children else None
