"""What is wrong with a manifest, and where: the one shape in which every layer says so."""

from dataclasses import dataclass
from enum import Enum

from kubernetes_daemonset.terminal import on_one_line


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written: a file's name or what stands for it, and the line and column in it, from 1 on."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong: the field, what is wrong with it, and what would be right."""

    path: str
    text: str
    place: Place
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        field = f"{self.path}: " if self.path else ""
        return on_one_line(f"{self.place}: {field}{self.text}")


class ManifestError(Exception):
    """A manifest cannot be read. Holds every mistake that was found, not the first alone."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


class UnreadableError(ManifestError):
    """There is no manifest to find mistakes in."""
