"""Exit codes. In a module of its own: the command line has them before it knows whether a verb can be loaded."""

from typing import Final

OK: Final = 0
FOUND: Final = 1  # errors by `validate`, differences by `diff`
BAD_INPUT: Final = 2
CLUSTER: Final = 3
LATE: Final = 4
INTERRUPTED: Final = 130  # as a shell says it of SIGINT
NOBODY_READS: Final = 141  # and of SIGPIPE
