"""Escape untrusted text for the terminal, and decide what it can show.

Manifests, file names, servers and pods can contain escape sequences that clear a screen or forge a line, and characters
that reverse or hide text. Every text that is printed passes through one of these functions: a line through
`on_one_line`, a document through the one of its format, whose escapes a parser reads as the same characters.
"""

import os
import re
import unicodedata
from collections.abc import Callable
from typing import TextIO

_WITHOUT_SEQUENCES = ("dumb", "unknown")
# Controls, invisible formatting such as U+202E, lone surrogates, and the line ends that are not "\n".
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Default_Ignorable_Code_Point of the Unicode standard, and the blank of Braille: `str.isprintable` holds for many of
# them, and terminals show nothing. Emoji are still shown after an escaped variation selector (U+FE0F).
_INVISIBLE = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def has_colors(stream: TextIO) -> bool:
    """Return whether escape sequences for colors and weight can be written there, and are wanted."""
    return can_redraw(stream) and not os.environ.get("NO_COLOR")


def can_redraw(stream: TextIO) -> bool:
    """Return whether it is a terminal that can replace lines."""
    return stream.isatty() and os.environ.get("TERM") not in _WITHOUT_SEQUENCES


def on_one_line(text: str) -> str:
    """Return the text with everything escaped that is not printable, so that untrusted text stays on one line."""
    if is_visible(text):
        return text
    return "".join(letter if is_visible(letter) else _python_escape(letter) for letter in text)


def replaced(text: str) -> str:
    """Return the text with a replacement character for each one that is not visible: positions stay the same."""
    if is_visible(text):
        return text
    return "".join(letter if is_visible(letter) else "\N{REPLACEMENT CHARACTER}" for letter in text)


def is_visible(text: str) -> bool:
    """Return whether every character is printable, and none invisible."""
    return text.isprintable() and (text.isascii() or not _INVISIBLE.search(text))


def is_hidden(letter: str) -> bool:
    """Return whether a document must escape the character. Its own line ends and tabs are allowed."""
    return letter not in "\n\t" and (unicodedata.category(letter) in _HIDDEN or _INVISIBLE.match(letter) is not None)


def in_json(text: str) -> str:
    """Escape hidden characters in JSON from json.dumps, where they occur only in strings."""
    import json  # noqa: PLC0415  few commands print it, and `--version` is to be fast

    return _escaped(text, lambda letter: json.dumps(letter)[1:-1])


def in_yaml(text: str) -> str:
    """Escape hidden characters in YAML that has every such scalar in double quotes, as `dump.to_yaml` writes it."""
    return _escaped(text, _python_escape)  # \x1b, \u202e and \U000e0041 mean the same in YAML


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    return text.translate({ord(letter): escape(letter) for letter in set(text) if is_hidden(letter)})


def _python_escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode()
