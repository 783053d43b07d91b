"""The end of a process whose checks may still hang."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def leave(code: int) -> NoReturn:
    """Without waiting for a thread that is stuck in libc's resolver, as an ordinary exit would."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    atexit._run_exitfuncs()  # noqa: SLF001  what was unpacked for one run only is deleted by one
    os._exit(code)
