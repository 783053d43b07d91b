"""Make text that others wrote safe to show. Times and counts as text are in `kubekit.durations`."""

import unicodedata

from kubekit.terminal import is_visible

LONGEST = 1000
"""The most characters of a reason that are shown."""


def escaped(json: str) -> str:
    """Return the same JSON with everything escaped that is not visible. Outside strings, only line breaks are not."""
    return "".join(letter if is_visible(letter) or letter == "\n" else _escape(letter) for letter in json)


def _escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def columns(text: str) -> int:
    """Return how many columns of a terminal the text takes. Where rich is installed, `rich.cells` does."""
    return sum(_columns(letter) for letter in text)


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("F", "W") else 1
