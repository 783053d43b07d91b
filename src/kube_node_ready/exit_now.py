"""Exit the process without waiting for stuck threads."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def exit_now(code: int) -> NoReturn:
    """Exit without waiting for threads that are stuck in libc's resolver."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    atexit._run_exitfuncs()  # noqa: SLF001  an exit function deletes temporary files
    os._exit(code)
