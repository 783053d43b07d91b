"""Read the saved results."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench import report

FOLDER = Path(__file__).parents[1] / report.RESULTS


class Result(Struct, frozen=True):
    """The saved result of one run."""

    scenario: str
    size: int
    of: str
    date: str
    machine: dict[str, Any]
    versions: dict[str, str]
    figures: dict[str, Any]

    def value(self, *path: str) -> float | None:
        """Return a figure, or None if it is missing."""
        found = self.at(*path)
        return float(found) if isinstance(found, int | float) else None

    def at(self, *path: str) -> Any:  # noqa: ANN401  any JSON
        found: Any = self.figures
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return found


class Results:
    """The latest result of each scenario and size."""

    def __init__(self, found: Iterable[Result]) -> None:
        by_date = sorted(found, key=lambda result: result.date)
        self._newest = {(result.scenario, result.size): result for result in by_date}

    def get(self, scenario: str, size: int) -> Result | None:
        return self._newest.get((scenario, size))

    def value(self, scenario: str, size: int, *path: str) -> float | None:
        result = self.get(scenario, size)
        return result.value(*path) if result else None

    def sizes(self, scenario: str) -> list[int]:
        return sorted(size for name, size in self._newest if name == scenario)

    def all(self) -> list[Result]:
        return list(self._newest.values())


def read(folder: Path = FOLDER) -> Results:
    return Results(msgspec.json.decode(path.read_bytes(), type=Result) for path in sorted(folder.glob("*.json")))
