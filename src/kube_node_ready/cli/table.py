"""Format the status of nodes as lines of text. Pure: the width is an argument."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from kube_node_ready.api.report import CheckResult, printable
from kube_node_ready.checks.check import CHECKS
from kube_node_ready.cli import words
from kube_node_ready.cli.fleet import GROUPS, NodeStatus, natural
from kube_node_ready.verification.model import Phase
from kubekit import durations

RED, GREEN, YELLOW, DIM, BOLD = "red", "green", "yellow", "dim", "bold"
FAILED_MARK = "!"
_STYLES = {
    Phase.VERIFIED: GREEN,
    Phase.REVERIFYING: GREEN,
    Phase.VERIFYING: YELLOW,
    Phase.WAITING: YELLOW,
    Phase.IGNORED: DIM,
}
_UNKNOWN = "-"
_NOT_APPLICABLE = "n/a"
_GAP = "  "
_ROOM_FOR_REASON = 24
_LONGEST_NAME = 253
_POOL = ("POOL",)
_WIDE = ("GATES", "POOL", "BOOT", "SINCE", "WORKER")
_TOO_NARROW = "(not all checks are shown: the terminal is too narrow; -o json has them)"


class Cell(Struct, frozen=True):
    text: str
    style: str = ""
    right: bool = False


class Style(Struct, frozen=True):
    """`width` is None where nothing is truncated, as in a pipe."""

    width: int | None = None
    wide: bool = False
    group: str | None = None
    """`pool` or `zone`: a table with a part for each."""


def lines(statuses: Sequence[NodeStatus], style: Style, now: datetime) -> list[Text]:
    """Return a heading, and one line per node. Columns of checks are those that any of these nodes has.

    Where the reasons would have no room, first the checks that passed on all nodes are left out, and then all of them.
    A last line reports it.
    """
    all_checks = [check for status in statuses for check in status.node.record.checks]
    extra = _WIDE if style.wide else _POOL if _has_pools(statuses) and style.group != "pool" else ()
    rows = every = _rows(statuses, _ordered(all_checks), now, extra)
    for checks in (_ordered(check for check in all_checks if not check.ok), []):
        if not _fits(rows, style):
            rows = _rows(statuses, checks, now, extra)
    widths = _widths(rows)
    shown = [_line(row, widths, style) for row in rows]
    if style.group:
        shown = [shown[0], *_grouped(statuses, shown[1:], style)]
    if len(rows[0]) == len(every[0]):
        return shown
    return [*shown, Text(truncate(_TOO_NARROW, style.width or 0), DIM)]


def _has_pools(statuses: Iterable[NodeStatus]) -> bool:
    return len({status.node.pool for status in statuses} - {""}) > 1


def _grouped(statuses: Sequence[NodeStatus], shown: Sequence[Text], style: Style) -> Iterator[Text]:
    """Yield the lines below a title for each group; those without a pool or zone are last. The order is kept."""
    group = GROUPS[style.group or ""]
    parts: dict[str, list[int]] = {}
    for number, status in enumerate(statuses):
        parts.setdefault(group(status), []).append(number)
    for name in sorted(parts, key=lambda name: (not name, natural(name))):
        title = f"{style.group} {printable(name)}" if name else f"no {style.group}"
        yield Text(truncate_to(f"{title}: {summary(statuses[number] for number in parts[name])}", style.width), BOLD)
        yield from (shown[number] for number in parts[name])


def _fits(rows: Sequence[Sequence[Cell]], style: Style) -> bool:
    if style.width is None:
        return True
    reason = max(cell_len(row[-1].text) for row in rows)
    return _room(_widths(rows), style.width) >= min(reason, _ROOM_FOR_REASON)


def _rows(
    statuses: Sequence[NodeStatus], checks: Sequence[str], now: datetime, extra: Sequence[str]
) -> list[list[Cell]]:
    numbers = ["ATTEMPT", *(name.upper() for name in checks)]
    names = ["NODE", "PHASE", *numbers, "AGE", *extra, "WAITS FOR"]
    head = [Cell(name, BOLD, right=name in numbers) for name in names]
    return [head, *(_row(status, checks, now, extra) for status in statuses)]


def _widths(rows: Sequence[Sequence[Cell]]) -> list[int]:
    """Return the widths of all columns but the last."""
    return [max(cell_len(row[at].text) for row in rows) for at in range(len(rows[0]) - 1)]


def _room(widths: Sequence[int], width: int) -> int:
    return max(0, width - sum(widths) - len(_GAP) * len(widths))


def summary(statuses: Iterable[NodeStatus]) -> str:
    """`3 nodes: 2 verified, 1 backing-off`."""
    counted = Counter(status.phase for status in statuses)
    counts = ", ".join(f"{counted[phase]:,} {phase}" for phase in Phase if counted[phase])
    return f"{durations.plural(counted.total(), 'node', thousands=',')}{f': {counts}' if counts else ''}"


def truncate(text: str, width: int) -> str:
    return text if cell_len(text) <= width else f"{set_cell_size(text, max(0, width - 1)).rstrip()}…"


def truncate_to(text: str, width: int | None) -> str:
    return text if width is None else truncate(text, width)


def phase_style(phase: Phase) -> str:
    return _STYLES.get(phase, RED)


def _ordered(checks: Iterable[CheckResult]) -> list[str]:
    """Of checks that there are: a record is the kubelet's to write, and must not make up columns."""
    names = {check.name for check in checks}
    return [name for name in CHECKS if name in names]


def _row(status: NodeStatus, checks: Sequence[str], now: datetime, extra: Sequence[str]) -> list[Cell]:
    record = status.node.record
    by_name = {check.name: check for check in record.checks}
    is_past = status.attempt > record.attempt
    return [
        Cell(printable(status.name, _LONGEST_NAME)),
        Cell(status.phase.value, phase_style(status.phase)),
        Cell(str(status.attempt or _UNKNOWN), right=True),
        *(_check(by_name.get(name), is_past=is_past) for name in checks),
        Cell(_age(status.known.created, now)),
        *(Cell(_more(status, name, now)) for name in extra),
        Cell(status.waits_for),
    ]


def _check(check: CheckResult | None, *, is_past: bool) -> Cell:
    """`is_past` while the next attempt runs."""
    if check is None:
        return Cell(_UNKNOWN, right=True)
    if not check.applies:
        return Cell(_NOT_APPLICABLE, DIM, right=True)
    style = DIM if is_past else "" if check.ok else RED
    return Cell(f"{'' if check.ok else FAILED_MARK}{check.ms}", style, right=True)


def _more(status: NodeStatus, column: str, now: datetime) -> str:
    node, worker = status.node, status.worker
    match column:
        case "GATES":
            text = printable(",".join(status.gates), words.LONGEST)
        case "POOL":
            text = printable(node.pool)
        case "BOOT":
            text = printable(node.boot)[:8]
        case "SINCE":
            text = _age(node.record.since, now)
        case _:
            text = printable(worker.name) if worker else ""
    return text or _UNKNOWN


def _age(then: datetime | None, now: datetime) -> str:
    return durations.format_age(now - then) if then else _UNKNOWN


def _line(row: Sequence[Cell], widths: Sequence[int], style: Style) -> Text:
    """Return one line. Only the last cell is truncated, and the whole line where that is not sufficient."""
    *cells, last = row
    line = Text()
    for cell, width in zip(cells, widths, strict=True):
        _append(line, cell, width)
    reason = last.text if style.width is None else truncate(last.text, _room(widths, style.width))
    line.append(reason, last.style)
    line.rstrip()
    if style.width is not None:
        line.truncate(style.width, overflow="ellipsis")
    return line


def _append(line: Text, cell: Cell, width: int) -> None:
    padding = " " * (width - cell_len(cell.text))
    line.append(padding if cell.right else "")
    line.append(cell.text, cell.style)
    line.append(("" if cell.right else padding) + _GAP)
