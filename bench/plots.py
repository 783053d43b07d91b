"""Plots as SVG: the same figures produce the same bytes.

They have their own background, so that they are legible on light and dark pages.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

NOT_MEASURED = "not measured yet"
_MISSING = "-"
_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 28, 92, 62
_PLOT_WIDTH, _PLOT_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_TICKS = (4, 5, 6)
_STEPS = (1, 2, 2.5, 5, 10)
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""The colors of Okabe and Ito, which are distinguishable with color blindness."""
_LETTER = 7.3
"""The approximate maximum width of a character in the legend."""
_STYLE = f"""\
text {{ font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif }}
text {{ font-size: 13px; fill: #24292f }}
.title {{ font-size: 16px; font-weight: 600 }}
.value {{ font-size: 12px }}
.paper {{ fill: #ffffff }}
.grid {{ stroke: #d0d7de; stroke-width: 1 }}
.axis {{ stroke: #57606a; stroke-width: 1.5 }}
{" ".join(f".c{number} {{ fill: {colour} }}" for number, colour in enumerate(_COLOURS))}
@media (prefers-color-scheme: dark) {{
text {{ fill: #e6edf3 }}
.paper {{ fill: #0d1117 }}
.grid {{ stroke: #30363d }}
.axis {{ stroke: #8b949e }}
}}
"""


@dataclass(frozen=True)
class Titles:
    """The texts of a plot."""

    title: str
    description: str
    """Alternative text."""
    across: str
    up: str
    """With its unit."""


Series = Mapping[str, Sequence[float | None]]


def bars(titles: Titles, groups: Sequence[str], series: Series) -> str:
    """Return a bar chart: for each group one bar per series. A missing value is a dash."""
    top, scale = _scale(value for values in series.values() for value in values)
    slot = _PLOT_WIDTH / max(len(groups), 1)
    width = slot * 0.8 / max(len(series), 1)
    drawn: list[str] = []
    for number, values in enumerate(series.values()):
        for at, value in enumerate(values):
            left = _LEFT + at * slot + slot * 0.1 + number * width
            shown = _MISSING if value is None else digits(value)
            height = 0 if value is None else value / top * _PLOT_HEIGHT
            if value is not None:
                drawn.append(_box(left, _floor() - height, width * 0.94, height, number))
            drawn.append(_text(left + width * 0.47, _floor() - height - 5, shown, "value", "middle"))
    return _framed(titles, [*scale, *drawn, *_groups(groups, slot)], list(series), _is_empty(series))


def stacks(titles: Titles, groups: Sequence[str], series: Series) -> str:
    """Return a stacked bar chart: for each group one bar of all series, with the sum on top."""
    sums = [sum(value or 0 for value in column) for column in zip(*series.values(), strict=True)]
    top, scale = _scale(sums)
    slot = _PLOT_WIDTH / max(len(groups), 1)
    drawn: list[str] = []
    for at, total in enumerate(sums):
        left, height = _LEFT + at * slot + slot * 0.25, 0.0
        for number, values in enumerate(series.values()):
            part = (values[at] or 0) / top * _PLOT_HEIGHT
            height += part
            drawn.append(_box(left, _floor() - height, slot * 0.5, part, number))
        shown = digits(total) if total else _MISSING
        drawn.append(_text(left + slot * 0.25, _floor() - height - 5, shown, "value", "middle"))
    return _framed(titles, [*scale, *drawn, *_groups(groups, slot)], list(series), _is_empty(series))


def areas(titles: Titles, series: Mapping[str, Sequence[float]]) -> str:
    """Return stacked areas over 0 to 100 %, the first one lowest: each value is the middle of a share of all."""
    heights = [list(itertools.accumulate(column)) for column in zip(*series.values(), strict=True)]
    top, scale = _scale(value for column in heights for value in column)
    across = [_LEFT + (at + 0.5) / max(len(heights), 1) * _PLOT_WIDTH for at in range(len(heights))]
    below, drawn = [_floor()] * len(heights), list[str]()
    for number in range(len(series)):
        above = [_floor() - column[number] / top * _PLOT_HEIGHT for column in heights]
        outline = [*zip(across, above, strict=True), *reversed(list(zip(across, below, strict=True)))]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in outline)
        drawn.append(f'<polygon class="c{number}" points="{points}"/>')
        below = above
    marks = [
        _text(_LEFT + share / 100 * _PLOT_WIDTH, _floor() + 18, f"{share} %", "", "middle")
        for share in (0, 25, 50, 75, 100)
    ]
    return _framed(titles, [*scale, *drawn, *marks], list(series), empty=not heights)


def axis(most: float) -> list[float]:
    """Return round numbers from 0 to the smallest one that is not below any value."""
    if most <= 0:
        return [0.0, 1.0]
    axes = [[tick * _nice_step(most / ticks) for tick in range(ticks + 1)] for ticks in _TICKS]
    return min(axes, key=lambda marks: marks[-1])


def _nice_step(least: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in _STEPS if factor * power >= least * 0.999_999)


def _scale(values: Iterable[float | None]) -> tuple[float, list[str]]:
    """Return the highest value of the axis, and the axis."""
    marks = axis(max((value for value in values if value is not None), default=0))
    lines: list[str] = []
    for mark in marks:
        height = _floor() - mark / marks[-1] * _PLOT_HEIGHT
        kind = "grid" if mark else "axis"
        lines.append(f'<line class="{kind}" x1="{_LEFT}" y1="{height:.1f}" x2="{_WIDTH - _RIGHT}" y2="{height:.1f}"/>')
        lines.append(_text(_LEFT - 8, height + 4, digits(mark), "", "end"))
    return marks[-1], lines


def _framed(titles: Titles, drawn: Sequence[str], legend: Sequence[str], empty: bool) -> str:  # noqa: FBT001  a fact
    middle = _TOP + _PLOT_HEIGHT / 2
    turned = f'transform="rotate(-90 18 {middle:.1f})" x="18" y="{middle:.1f}" text-anchor="middle"'
    upright = f"<text {turned}>{escape(titles.up)}</text>"
    body = [
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>',
        _text(_LEFT, 30, titles.title, "title"),
        *([] if empty else [*drawn, *_legend(legend)]),
        *([_text(_WIDTH / 2, middle, NOT_MEASURED, "", "middle")] if empty else []),
        _text(_LEFT + _PLOT_WIDTH / 2, _HEIGHT - 18, titles.across, "", "middle"),
        upright,
    ]
    description = f"<title>{escape(titles.title)}</title>\n<desc>{escape(titles.description)}</desc>"
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{description}\n<style>\n{_STYLE}</style>\n'
    return head + "\n".join(body) + "\n</svg>\n"


def _legend(names: Sequence[str]) -> list[str]:
    drawn, left, top = list[str](), float(_LEFT), 46
    for number, name in enumerate(names):
        width = 17 + len(name) * _LETTER
        if left + width > _WIDTH - _RIGHT:
            left, top = float(_LEFT), top + 19
        drawn += [_box(left, top, 12, 12, number), _text(left + 17, top + 11, name)]
        left += width + 16
    return drawn


def _groups(names: Sequence[str], slot: float) -> list[str]:
    return [_text(_LEFT + (at + 0.5) * slot, _floor() + 18, name, "", "middle") for at, name in enumerate(names)]


def _box(left: float, top: float, width: float, height: float, colour: int) -> str:
    place = f'x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="c{colour % len(_COLOURS)}" {place}/>'


def _text(left: float, base: float, text: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    anchored = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text{named} x="{left:.1f}" y="{base:.1f}"{anchored}>{escape(text)}</text>'


def _floor() -> int:
    return _TOP + _PLOT_HEIGHT


def _is_empty(series: Series) -> bool:
    return all(value is None for values in series.values() for value in values)


def digits(value: float) -> str:
    """Format a number with three digits, or two if it is small."""
    if value >= 100 or value == int(value):  # noqa: PLR2004
        return f"{value:,.0f}"
    if value < 0.1:  # noqa: PLR2004
        return f"{value:.2g}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"  # noqa: PLR2004
