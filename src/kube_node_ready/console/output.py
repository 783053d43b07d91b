"""What is printed, and to whom: a person at a terminal, or a program at the end of a pipe."""

import os
import shutil
import sys
from collections.abc import Iterable
from typing import TextIO

from kube_node_ready.console.table import Look


def look(stream: TextIO, *, wide: bool = False) -> Look:
    """Cut and coloured for people; whole and plain for programs."""
    if not stream.isatty():
        return Look(wide=wide)
    return Look(colour=not os.environ.get("NO_COLOR"), width=None if wide else columns(), wide=wide)


def columns() -> int:
    return shutil.get_terminal_size().columns


def rows() -> int:
    return shutil.get_terminal_size().lines


def out(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


def note(sentences: Iterable[str]) -> None:
    """For the person, and not for whatever reads our output."""
    sys.stdout.flush()
    sys.stderr.writelines(f"note: {sentence}\n" for sentence in sentences)


def say(sentence: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"{sentence}\n")
