"""What is wrong with an input, as data: where it was written, which field it is about, and what was expected.

Readers collect diagnostics instead of stopping at the first one. Messages are built and rendered here, and never parsed
back: what a program has to know about a diagnostic is in its fields.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from kubekit.terminal import on_one_line

_LONGEST_VALUE = 80
_LONGEST_PATH = 200
_MOST_ITEMS = 20
_MOST_BITS = 256
_IN_ONE_LINE = 20
_IN_A_LIST = 100


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


class Location(NamedTuple):
    """Where something was written: a file, a variable or a flag, and the line and column in a file, from 1 on."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        position = ":".join(str(number) for number in (self.line, self.column) if number)
        return f"{self.source}:{position}" if position else self.source


NOWHERE = Location("")
"""Of a default, or of a value that the program made."""


class Diagnostic(NamedTuple):
    path: str
    """The field, such as `worker.image.tag`; empty if it is about the input as a whole."""
    message: str
    location: Location = NOWHERE
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        parts = (str(self.location), truncate(self.path, _LONGEST_PATH), self.message)
        return on_one_line(": ".join(part for part in parts if part))


class DiagnosticsError(ValueError):
    """The input is invalid. As text it is one line, for a log; `listed` is for people at a terminal."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(self._first(_IN_ONE_LINE)))

    def listed(self, subject: str) -> str:
        """One error as it is; several below a title that names the subject, a line each."""
        if len(self.diagnostics) == 1:
            return str(self.diagnostics[0])
        lines = "".join(f"\n  - {line}" for line in self._first(_IN_A_LIST))
        return f"{len(self.diagnostics)} errors in the {subject}:{lines}"

    def _first(self, most: int) -> list[str]:
        more = len(self.diagnostics) - most
        return [*map(str, self.diagnostics[:most]), *([f"and {more} more"] if more > 0 else [])]


def invalid(path: str, value: object, expected: str, location: Location = NOWHERE) -> Diagnostic:
    return Diagnostic(path, f"{quoted(value)} is invalid; expected {expected}", location)


def missing(path: str, expected: str, location: Location = NOWHERE) -> Diagnostic:
    return Diagnostic(path, f"is missing; expected {expected}", location)


def unknown(
    noun: str, path: str, meant: str | None, choices: Iterable[str], location: Location = NOWHERE
) -> Diagnostic:
    """A name that is not known: with the one that was probably meant, or else all that there are."""
    names = sorted(choices)
    known = f"known {noun}s: {', '.join(names)}" if names else ""
    hint = f"did you mean {meant}?" if meant else known
    return Diagnostic(path, f"unknown {noun}{f'; {hint}' if hint else ''}", location)


def join_path(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{truncate(key)}" if path else truncate(key)


def quoted(value: object) -> str:
    """Return a short form of a value. Nested lists are not written out: with aliases, a small file can hold a huge one.

    Text is in quotes, unless it is a YAML scalar without quotes that looks like a number or a boolean.
    """
    if isinstance(value, (list, tuple)):
        items = [_outline(item) for item in value[:_MOST_ITEMS]]
        return truncate(f"[{', '.join([*items, *(['…'] if len(value) > _MOST_ITEMS else [])])}]")
    return _outline(value)


def _outline(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "[…]"
    if isinstance(value, dict):
        return "{…}"
    if isinstance(value, str):
        if getattr(value, "is_null", False):
            return "null"
        return truncate(value) if getattr(value, "is_bare", False) else f'"{on_one_line(truncate(value))}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    # Python does not write such a number.
    is_long = isinstance(value, int) and value.bit_length() > _MOST_BITS
    return "a number with too many digits" if is_long else truncate(str(value))


def truncate(text: str, longest: int = _LONGEST_VALUE) -> str:
    return str(text) if len(text) <= longest else f"{text[:longest]}…"
