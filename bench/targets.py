"""The performance targets of the operator, and its results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import formatting, peers, plan
from bench.results import Results

_HEAD = ("", "at most", "measured", "")
_HOW = f"""\
They were set by what was measured on {peers.MEASURED}. The machine shares its processors with others, so the same work
takes more CPU seconds on one day than on another. The floor shows the difference:
"""


@dataclass(frozen=True)
class Bar:
    what: str
    most: float
    measured: Callable[[Results], float | None]
    is_cpu_time: bool = False


def _figure(scenario: str, nodes: int, *path: str) -> Callable[[Results], float | None]:
    return lambda found: found.value(scenario, nodes, *path)


def floors(found: Results, nodes: int = 1000) -> float | None:
    """Return the ratio of the time until all nodes were released to that of the baseline."""
    ours, floor = (found.value(name, nodes, "seconds_until_all_released") for name in ("burst", "floor"))
    return ours / floor if ours and floor else None


def slower(found: Results) -> float | None:
    """Return the ratio of the baseline's CPU seconds to those on the day of the peers' measurements."""
    ours = found.value("floor", 1000, "cpu_seconds", "kube-apiserver")
    return ours / peers.FLOOR_API_SERVER_CPU_SECONDS if ours else None


def _growth_at_rest(found: Results) -> float | None:
    few, many = (found.value("idle", nodes, "controller_cpu_seconds_a_minute") for nodes in plan.IDLE)
    return many / few if few and many else None


BARS = (
    Bar("1,000 nodes simultaneously: time to all released, relative to the floor", 1.15, floors),
    Bar(
        "… seconds that a node waits for the controller, p99",
        1,
        _figure("burst", 1000, "seconds_until_asked", "until_both_were", "p99"),
    ),
    Bar("… API writes per node", 5, _figure("burst", 1000, "controller_writes_a_node")),
    Bar("… CPU seconds of the controller", 9, _figure("burst", 1000, "controller_cpu_seconds"), is_cpu_time=True),
    Bar("… its peak memory, MiB", 76, _figure("burst", 1000, "controller_peak_mebibytes")),
    Bar(
        "the same beside 5,000 verified nodes: peak memory, MiB",
        100,
        _figure("crowd", 1000, "controller_peak_mebibytes"),
    ),
    Bar(
        "1,000 verified nodes at rest: CPU seconds per minute",
        0.1,
        _figure("idle", 1000, "controller_cpu_seconds_a_minute"),
    ),
    Bar("… with 5,000, in times of that", 2, _growth_at_rest),
    Bar(
        "the worker as a process: CPU milliseconds, median",
        80,
        _figure("worker", 1, "as_a_process", "cpu_milliseconds", "median"),
        is_cpu_time=True,
    ),
    Bar("… its peak memory, MiB, at worst", 22.9, _figure("worker", 1, "as_a_process", "peak_mebibytes", "worst")),
)


def section(found: Results) -> str:
    return "\n".join(
        ["## What was promised\n", formatting.table(_HEAD, [_row(bar, found) for bar in BARS]), _HOW, _days(found)]
    )


def _row(bar: Bar, found: Results) -> Sequence[str]:
    measured = bar.measured(found)
    return (bar.what, formatting.number(bar.most), formatting.shown(measured), _verdict(bar, measured, slower(found)))


def _verdict(bar: Bar, measured: float | None, scale: float | None) -> str:
    if measured is None:
        return ""
    if measured <= bar.most:
        return "holds"
    missed = f"**{measured / bar.most:.2f} times that**"
    if bar.is_cpu_time and scale:
        return f"{missed}; {formatting.number(measured / scale)} when scaled to that day's speed"
    return missed


def _days(found: Results) -> str:
    floor = found.get("floor", 1000)
    seconds = floor.value("seconds_until_all_released") if floor else None
    cpu = floor.value("cpu_seconds", "kube-apiserver") if floor else None
    rows = [
        ("seconds until all were released", formatting.number(peers.FLOOR_SECONDS), formatting.shown(seconds)),
        ("CPU seconds of the API server", formatting.number(peers.FLOOR_API_SERVER_CPU_SECONDS), formatting.shown(cpu)),
    ]
    head = ("the floor of 1,000 nodes", peers.MEASURED, floor.date[:10] if floor else "")
    return formatting.table(head, rows)
