"""CPU time and memory of processes from /proc, and distributions of figures. Independent of Kubernetes."""

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_RESET_PEAK = "5"
_OWN_TIME = slice(11, 15)
"""User and system time, and those of exited children: indexes after the command's name in /proc/PID/stat."""
_BUSY = ("user", "nice", "system", "irq", "softirq")
_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True)
class Spread:
    """The distribution of a figure over the nodes."""

    p50: float
    p95: float
    p99: float
    worst: float


def spread(values: Sequence[float]) -> Spread | None:
    """Return the distribution, or None without values: a missing figure must not look like a good one."""
    if not values:
        return None
    ordered = sorted(values)
    return Spread(percentile(ordered, 0.50), percentile(ordered, 0.95), percentile(ordered, 0.99), ordered[-1])


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all values does not exceed."""
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1]


@dataclass(frozen=True)
class Reading:
    """CPU time of each process and of the whole machine at one moment."""

    at: float
    seconds: Mapping[str, float]
    busy: float
    stolen: float


@dataclass(frozen=True)
class Cost:
    """The CPU time between two readings."""

    elapsed: float
    seconds: Mapping[str, float]
    other: float
    """CPU seconds of processes outside the run: noise. Wall times are comparable only if it is small."""
    stolen: float
    """CPU seconds that the host gave to other virtual machines (steal time)."""


def read(processes: Mapping[str, int]) -> Reading:
    """Read the CPU time of these processes, each with its children that are not listed separately."""
    machine = _machine()
    counted = frozenset(processes.values())
    seconds = {name: sum(map(_cpu_seconds, _family(pid, counted))) for name, pid in processes.items()}
    return Reading(time.monotonic(), seconds, sum(machine[field] for field in _BUSY), machine["steal"])


def cost(before: Reading, after: Reading) -> Cost:
    used = {name: after.seconds[name] - before.seconds[name] for name in before.seconds}
    return Cost(
        elapsed=after.at - before.at,
        seconds=used,
        other=max(after.busy - before.busy - sum(used.values()), 0.0),
        stolen=after.stolen - before.stolen,
    )


def children(pid: int) -> dict[str, int]:
    """Return its running child processes by program name; a second one of a name is `name 2`."""
    found: dict[str, int] = {}
    for child in sorted(_children(pid)):
        program = Path(f"/proc/{child}/comm").read_text().strip()
        namesakes = sum(name.split()[0] == program for name in found)
        found[f"{program} {namesakes + 1}" if namesakes else program] = child
    return found


def reset_peak(pid: int) -> None:
    """Reset `peak_mebibytes`."""
    for member in _family(pid):
        Path(f"/proc/{member}/clear_refs").write_text(_RESET_PEAK)


def peak_mebibytes(pid: int) -> float:
    return sum(_status_mebibytes(member, "VmHWM") for member in _family(pid))


def resident_mebibytes(pid: int) -> float:
    return sum(_status_mebibytes(member, "VmRSS") for member in _family(pid))


def cpu_ticks(stat: str) -> int:
    """Return the CPU time from /proc/PID/stat. The command's name can contain brackets and spaces."""
    return sum(int(ticks) for ticks in stat.rpartition(")")[2].split()[_OWN_TIME])


def _cpu_seconds(pid: int) -> float:
    return cpu_ticks(Path(f"/proc/{pid}/stat").read_text()) / _TICKS_A_SECOND


def _family(pid: int, apart: frozenset[int] = frozenset()) -> Iterator[int]:
    """Yield a process and its descendants, except those that are listed separately."""
    yield pid
    for child in _children(pid):
        if child not in apart:
            yield from _family(child, apart)


def _children(pid: int) -> Iterator[int]:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            found = (thread / "children").read_text()
        except (FileNotFoundError, ProcessLookupError):  # threads come and go
            continue
        yield from map(int, found.split())


def _machine() -> dict[str, float]:
    ticks = Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
    return {field: int(number) / _TICKS_A_SECOND for field, number in zip(_FIELDS, ticks, strict=False)}


def _status_mebibytes(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / 1024
    raise ValueError(f"/proc/{pid}/status has no {field}")
