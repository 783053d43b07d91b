"""How figures stand in the page's tables."""

from collections.abc import Iterable, Sequence

from bench.plots import NOT_MEASURED


def shown(value: float | None, unit: str = "") -> str:
    return NOT_MEASURED if value is None else f"{number(value)} {unit}".strip()


def number(value: float | None) -> str:
    """Three digits say enough; a figure that is absent must not look like one."""
    if value is None:
        return "-"
    if value == int(value) or value >= 100:  # noqa: PLR2004
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"  # noqa: PLR2004


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
