"""How a command ends: exit codes, one message per error, and streams that are closed."""

import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path

from kube_node_ready.cli import words
from kube_node_ready.exit_codes import ExitCode


class Ended(Exception):  # noqa: N818  it is raised for mistakes of users as well
    """The command cannot continue. The text is for the user."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def run(prog: str, command: Callable[[], int]) -> int:
    """Run a command and return its exit code. Every error is one message on stderr."""
    _prepare_streams()
    try:
        try:
            return command()
        finally:  # an error of the last write must not be reported by the interpreter
            sys.stdout.flush()
    except BrokenPipeError:  # the reader ended first
        _discard_output()
        return ExitCode.BROKEN_PIPE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Ended as error:
        return _failed(prog, str(error), error.code)
    except Exception as error:  # noqa: BLE001  a bug, which is reported in one line
        _discard_output()
        return _failed(prog, f"unexpected {type(error).__name__}: {error}", ExitCode.UNEXPECTED)


def _discard_output() -> None:
    """Discard what cannot be written. Otherwise Python tries it again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _prepare_streams() -> None:
    """Accept closed streams, and terminals that lack characters such as …"""
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115  for as long as the process runs
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115  as above
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _failed(prog: str, message: str, code: int) -> int:
    sys.stdout.flush()
    sys.stderr.writelines(f"{words.safe(line)}\n" for line in f"{prog}: {message}".split("\n"))
    return code
