"""The lab's command line for hints that can be copied to the current shell."""

import os
import shutil
import sys
from pathlib import Path


def lab(words: str) -> str:
    """Return a command of the lab: `lab("down")` is `python -m lab down`, with the Python that has its packages."""
    found = shutil.which("python")
    if found and Path(found).absolute() == Path(sys.executable):
        return f"python -m lab {words}"
    return f"{os.path.relpath(sys.executable)} -m lab {words}"
