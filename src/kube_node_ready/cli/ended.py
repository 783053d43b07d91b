"""How a command ends: exit codes, one message per error, and streams that are closed."""

import sys
from collections.abc import Callable

from kube_node_ready.exit_codes import ExitCode
from kubekit import streams
from kubekit.terminal import replaced


class Ended(Exception):  # noqa: N818  it is raised for mistakes of users as well
    """The command cannot continue. The text is for the user."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def run(prog: str, command: Callable[[], int]) -> int:
    """Run a command and return its exit code. Every error is one message on stderr."""
    streams.prepare("replace")
    try:
        try:
            return command()
        finally:  # an error of the last write must not be reported by the interpreter
            sys.stdout.flush()
    except BrokenPipeError:  # the reader ended first
        streams.discard_output()
        return ExitCode.BROKEN_PIPE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Ended as error:
        return _failed(prog, str(error), error.code)
    except Exception as error:  # noqa: BLE001  a bug, which is reported in one line
        streams.discard_output()
        return _failed(prog, f"unexpected {type(error).__name__}: {error}", ExitCode.UNEXPECTED)


def _failed(prog: str, message: str, code: int) -> int:
    sys.stdout.flush()
    sys.stderr.writelines(f"{replaced(line)}\n" for line in f"{prog}: {message}".split("\n"))
    return code
