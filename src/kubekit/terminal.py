"""Text of other parties -> text that a terminal prints and does not obey.

Manifests, file names, servers and pods can hold escape sequences that clear a screen or forge a line, and characters
that reverse or hide text. Every text that is printed passes through one of these functions: a line through
`on_one_line`, a document through the one of its format, whose escapes a parser reads as the same characters.
"""

import json
import unicodedata
from collections.abc import Callable

# Controls, invisible formatting such as U+202E, lone surrogates, and the line ends that are not "\n".
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def on_one_line(text: str) -> str:
    """Shows line ends, too: a text of another party must not pass for two lines."""
    return "".join(one if one.isprintable() else _python_escape(one) for one in text)


def is_hidden(letter: str) -> bool:
    """What a document must not hold unescaped. Its own line ends and tabs are fine."""
    return letter not in "\n\t" and unicodedata.category(letter) in _HIDDEN


def in_json(text: str) -> str:
    """JSON that json.dumps wrote. Such characters occur in its strings only."""
    return _escaped(text, lambda letter: json.dumps(letter)[1:-1])


def in_yaml(text: str) -> str:
    """YAML in which every scalar with such a character is in double quotes, as `dump.to_yaml` writes it."""
    return _escaped(text, _python_escape)  # \x1b, \u202e and \U000e0041 mean the same in YAML


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    return text.translate({ord(letter): escape(letter) for letter in set(text) if is_hidden(letter)})


def _python_escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode()
