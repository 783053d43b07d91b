"""Exit codes of all programs of the operator, each defined once."""

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    """A check failed, a node is not verified, or the Lease was lost."""
    INVALID = 2
    """The settings or the command line are invalid."""
    NO_ACCESS = 3
    """The API server is not reachable, or a permission is missing."""
    NOT_PROVED = 4
    """No check failed, but nothing was proved: checks were skipped, or this is not a pod on that node."""
    UNEXPECTED = 10
    INTERRUPTED = 130
    """As in a shell after SIGINT."""
    BROKEN_PIPE = 141
    """As in a shell after SIGPIPE."""
    STOPPED = 143
    """As in a shell after SIGTERM."""
