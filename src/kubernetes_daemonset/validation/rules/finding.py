"""The result type of rules."""

import re
from dataclasses import dataclass
from typing import Final

from kubekit.diagnostics import Severity

_LONGEST_VALUE: Final = 80  # characters
_LONGEST_TEXT: Final = 1_000
_LONG_VALUE: Final = re.compile(f'"([^"]{{{_LONGEST_VALUE}}})[^"]+"')


@dataclass(frozen=True, slots=True)
class Finding:
    """A field, and what is wrong with it."""

    path: str
    text: str
    because: tuple[str, ...] = ()
    """Other fields that the finding depends on; if one of them cannot be read, the finding is uncertain."""
    severity: Severity = Severity.ERROR

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", _shortened(self.text))


def _shortened(text: str) -> str:
    """Truncate quoted values, and leave out the middle of what is still long: the end is what was expected.

    Aliases can make a thousand values of 60 KB in a file of 130 KB.
    """
    short = _LONG_VALUE.sub(r'"\1…"', text)
    half = _LONGEST_TEXT // 2
    return short if len(short) <= _LONGEST_TEXT else f"{short[:half]}…{short[-half:]}"
