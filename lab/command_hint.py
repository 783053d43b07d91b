"""How to call the lab from the shell it was called from, for hints that can be copied."""

import os
import shutil
import sys
from pathlib import Path


def lab(words: str) -> str:
    """`lab("down")` is `python -m lab down`, with the Python that has the lab's packages."""
    found = shutil.which("python")
    if found and Path(found).absolute() == Path(sys.executable):
        return f"python -m lab {words}"
    return f"{os.path.relpath(sys.executable)} -m lab {words}"
