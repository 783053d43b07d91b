"""Standings as lines of text. Pure: how wide and how colourful is the caller's to say."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from kube_node_ready.checks.model import CHECKS
from kube_node_ready.console import words
from kube_node_ready.console.picture import Standing
from kube_node_ready.verify.model import Phase
from kube_node_ready.verify.report import CheckResult, printable

RED, GREEN, YELLOW, DIM, BOLD = "\033[31m", "\033[32m", "\033[33m", "\033[2m", "\033[1m"
PLAIN = "\033[0m"
COLOURS = (RED, GREEN, YELLOW, DIM, BOLD, PLAIN)
FAILED_MARK = "!"
_COLOURS = {
    Phase.VERIFIED: GREEN,
    Phase.REVERIFYING: GREEN,
    Phase.VERIFYING: YELLOW,
    Phase.WAITING: YELLOW,
    Phase.IGNORED: DIM,
}
_UNKNOWN = "-"
_GAP = "  "
_ROOM_FOR_REASON = 24
_LONGEST_NAME = 253
_WIDE = ("GATES", "POOL", "BOOT", "SINCE", "WORKER")
_TOO_NARROW = "(not all checks are shown: the terminal is too narrow; -o json has them)"


class Cell(Struct, frozen=True):
    text: str
    colour: str = ""
    right: bool = False


class Look(Struct, frozen=True):
    """`width` is None where nothing is to be cut, as in a pipe."""

    colour: bool = False
    width: int | None = None
    wide: bool = False


def lines(standings: Sequence[Standing], look: Look, now: datetime) -> list[str]:
    """A heading, and a line a node. Columns of checks are those that any of these nodes has.

    Where the reasons would have no room, checks that nobody failed are left out first, and then all of them; a last
    line says so.
    """
    found = [check for standing in standings for check in standing.node.record.checks]
    choices = [_ordered(found), _ordered(check for check in found if not check.ok), []]
    tables = [_rows(standings, checks, now, wide=look.wide) for checks in choices]
    rows = next((rows for rows in tables if _fits(rows, look)), tables[-1])
    shown = [_line(row, _widths(rows), look) for row in rows]
    if len(rows[0]) == len(tables[0][0]):
        return shown
    return [*shown, painted(cut(_TOO_NARROW, look.width or 0), DIM, wanted=look.colour)]


def _fits(rows: Sequence[Sequence[Cell]], look: Look) -> bool:
    if look.width is None:
        return True
    reason = max(len(row[-1].text) for row in rows)
    return _room(_widths(rows), look.width) >= min(reason, _ROOM_FOR_REASON)


def _rows(standings: Sequence[Standing], checks: Sequence[str], now: datetime, *, wide: bool) -> list[list[Cell]]:
    numbers = ["ATTEMPT", *(name.upper() for name in checks)]
    names = ["NODE", "PHASE", *numbers, "AGE", *(_WIDE if wide else ()), "WAITS FOR"]
    head = [Cell(name, BOLD, right=name in numbers) for name in names]
    return [head, *(_row(standing, checks, now, wide=wide) for standing in standings)]


def _widths(rows: Sequence[Sequence[Cell]]) -> list[int]:
    """Of all columns but the last."""
    return [max(len(row[at].text) for row in rows) for at in range(len(rows[0]) - 1)]


def _room(widths: Sequence[int], width: int) -> int:
    return max(0, width - sum(widths) - len(_GAP) * len(widths))


def summary(standings: Iterable[Standing]) -> str:
    """`3 nodes: 2 verified, 1 backing-off`."""
    counted = Counter(standing.phase for standing in standings)
    told = ", ".join(f"{counted[phase]:,} {phase}" for phase in Phase if counted[phase])
    return f"{words.count(counted.total(), 'node')}{f': {told}' if told else ''}"


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"


def painted(text: str, colour: str, *, wanted: bool) -> str:
    return f"{colour}{text}{PLAIN}" if colour and wanted and text else text


def phase_colour(phase: Phase) -> str:
    return _COLOURS.get(phase, RED)


def _ordered(checks: Iterable[CheckResult]) -> list[str]:
    """Of checks that there are: a record is the kubelet's to write, and must not make up columns."""
    names = {check.name for check in checks}
    return [name for name in CHECKS if name in names]


def _row(standing: Standing, checks: Sequence[str], now: datetime, *, wide: bool) -> list[Cell]:
    record = standing.node.record
    found = {check.name: check for check in record.checks}
    is_past = standing.attempt > record.attempt
    return [
        Cell(printable(standing.name, _LONGEST_NAME)),
        Cell(standing.phase.value, phase_colour(standing.phase)),
        Cell(str(standing.attempt or _UNKNOWN), right=True),
        *(_check(found.get(name), is_past=is_past) for name in checks),
        Cell(_age(standing.known.created, now)),
        *(_more(standing, now) if wide else ()),
        Cell(standing.waits_for),
    ]


def _check(check: CheckResult | None, *, is_past: bool) -> Cell:
    """`is_past` while the next attempt runs."""
    if check is None:
        return Cell(_UNKNOWN, right=True)
    colour = DIM if is_past else "" if check.ok else RED
    return Cell(f"{'' if check.ok else FAILED_MARK}{check.ms}", colour, right=True)


def _more(standing: Standing, now: datetime) -> Iterator[Cell]:
    node, worker = standing.node, standing.worker
    yield Cell(printable(",".join(standing.gates), words.LONGEST) or _UNKNOWN)
    yield Cell(printable(node.pool) or _UNKNOWN)
    yield Cell(printable(node.boot)[:8] or _UNKNOWN)
    yield Cell(_age(node.record.since, now))
    yield Cell(printable(worker.name) if worker else _UNKNOWN)


def _age(then: datetime | None, now: datetime) -> str:
    return words.age(now - then) if then else _UNKNOWN


def _line(row: Sequence[Cell], widths: Sequence[int], look: Look) -> str:
    """Only the last cell is cut, and the whole line where not even that helps."""
    *cells, last = row
    texts = [_padded(cell, width) for cell, width in zip(cells, widths, strict=True)]
    texts.append(last.text if look.width is None else cut(last.text, _room(widths, look.width)))
    plain = _GAP.join(texts).rstrip()
    if look.width is not None and len(plain) > look.width:
        return cut(plain, look.width)
    return _GAP.join(
        painted(text, cell.colour, wanted=look.colour) for text, cell in zip(texts, row, strict=True)
    ).rstrip()


def _padded(cell: Cell, width: int) -> str:
    return cell.text.rjust(width) if cell.right else cell.text.ljust(width)
