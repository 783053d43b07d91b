"""Prepare the standard streams of a command, and discard output that has no reader."""

import os
import sys
from io import TextIOWrapper
from pathlib import Path


def prepare(errors: str) -> None:
    """Replace closed streams with /dev/null, and set `errors`, the codec's handler for characters a terminal lacks."""
    sys.stdin = sys.stdin or Path(os.devnull).open()  # noqa: SIM115  for as long as the process runs
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115  as above
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115  as above
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=errors)


def discard_output() -> None:
    """Discard what cannot be written. Otherwise Python tries it again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
