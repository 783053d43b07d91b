"""Formatting of figures in the page's tables."""

from collections.abc import Iterable, Sequence

from bench import plots
from bench.plots import NOT_MEASURED


def shown(value: float | None, unit: str = "") -> str:
    return NOT_MEASURED if value is None else f"{number(value)} {unit}".strip()


def number(value: float | None) -> str:
    """Return the figure, or a dash if it is missing."""
    return "-" if value is None else plots.digits(value)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
