"""What is printed, and to whom: a person at a terminal, or a program at the end of a pipe.

Everything that comes from the cluster leaves through here: `safe` for text, `escaped` for JSON. A node's kubelet, or
anyone who can write an Event, must not be able to control the user's terminal.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable
from typing import TextIO

from kube_node_ready.console.table import COLOURS, Look

_OWN_COLOURS = re.compile("|".join(map(re.escape, COLOURS)))
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def look(stream: TextIO, *, wide: bool = False) -> Look:
    """Cut and coloured for people; whole and plain for programs."""
    if not stream.isatty():
        return Look(wide=wide)
    return Look(colour=not os.environ.get("NO_COLOR"), width=None if wide else columns(), wide=wide)


def columns() -> int:
    return shutil.get_terminal_size().columns


def rows() -> int:
    return shutil.get_terminal_size().lines


def safe(line: str) -> str:
    """The line with nothing in it that is not printable, except for our own colors."""
    if line.isprintable():
        return line
    at = 0
    parts = []
    for colour in _OWN_COLOURS.finditer(line):
        parts += [_replaced(line[at : colour.start()]), colour.group()]
        at = colour.end()
    return "".join((*parts, _replaced(line[at:])))


def _replaced(text: str) -> str:
    return "".join(letter if letter.isprintable() else _REPLACEMENT for letter in text)


def escaped(json: str) -> str:
    """The same JSON, with everything that is not printable as an escape. Outside of strings only line breaks are."""
    return "".join(letter if letter.isprintable() or letter == "\n" else _escape(letter) for letter in json)


def _escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def out(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{safe(line)}\n" for line in lines)


def note(sentences: Iterable[str]) -> None:
    """For the person, and not for whatever reads our output."""
    sys.stdout.flush()
    sys.stderr.writelines(f"note: {safe(sentence)}\n" for sentence in sentences)


def say(sentences: str) -> None:
    """One per line."""
    sys.stdout.flush()
    sys.stderr.writelines(f"{safe(sentence)}\n" for sentence in sentences.split("\n"))
