"""Exit codes. A module of its own: the command line needs them before it knows whether a command can be imported."""

from typing import Final

OK: Final = 0
FOUND: Final = 1  # errors by `validate`, differences by `diff`
BAD_INPUT: Final = 2
CLUSTER: Final = 3
LATE: Final = 4
UNEXPECTED: Final = 10  # a bug, or a server that does not conform to Kubernetes
INTERRUPTED: Final = 130  # as in a shell after SIGINT
BROKEN_PIPE: Final = 141  # as in a shell after SIGPIPE
