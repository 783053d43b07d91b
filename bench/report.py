"""Print figures as a table, and save them to a file for comparisons."""

import datetime as dt
import importlib.metadata
import json
import math
import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import build
from lab.audit import Calls

RESULTS = Path("bench/results")
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_NODES = ("nodes", "nodes/status")
_PACKAGES = ("kube-node-ready", "httptools", "msgspec", "protobuf", "protovalidate", "pyyaml", "uvloop")
_FIRST_ERROR = 400


def calls_by_kind(calls: Calls, agent: str) -> dict[str, int]:
    """Return the API requests of one client by kind."""
    asked: Counter[str] = Counter()
    for call, number in calls.by_kind.items():
        if call.agent == agent:
            refused = "" if call.code < _FIRST_ERROR else f" answered {call.code}"
            asked[f"{call.verb} {call.resource}{refused}"] += number
    return dict(sorted(asked.items()))


def call_figures(calls: Calls, agent: str, nodes: int) -> dict[str, Any]:
    """Return the requests of one client, in total and per node. Lease renewals depend on time and count separately."""
    writes = [call for call in calls.by_kind if call.verb in _WRITES]
    own = [call for call in writes if call.agent == agent and call.resource != "leases"]
    changes = [call for call in writes if call.resource in _NODES and call.code < _FIRST_ERROR]
    return {
        "controller_calls": calls_by_kind(calls, agent),
        "controller_writes_a_node": sum(calls.by_kind[call] for call in own) / nodes,
        "calls_of_all_clients": calls.count(),
        "node_changes_by_all_clients": sum(calls.by_kind[call] for call in changes),
    }


def shares(buckets: Sequence[tuple[float, int]]) -> dict[str, float | None]:
    """Return upper bounds of quantiles from a Prometheus histogram; None if it has no values."""
    total = buckets[-1][1] if buckets else 0
    return {f"p{percent:g}": _bound(buckets, total * percent / 100) for percent in (50, 95, 99, 99.9)}


def _bound(buckets: Sequence[tuple[float, int]], wanted: float) -> float | None:
    found = next((bound for bound, count in buckets if wanted and count >= wanted), math.inf)
    return found if math.isfinite(found) else None


def table(title: str, figures: Mapping[str, Any]) -> str:
    rows = list(_rows("", figures))
    width = max(len(name) for name, _ in rows)
    return "\n".join([title, *(f"  {name:<{width}}  {value}" for name, value in rows)])


def save(scenario: str, size: int, figures: Mapping[str, Any], of: str = "nodes") -> Path:
    """Save the latest result of each scenario and size. Earlier ones are in git."""
    now = dt.datetime.now(dt.UTC)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{now:%Y-%m-%dT%H%M%SZ}-{scenario}-{size}.json"
    content = {
        "scenario": scenario,
        "size": size,
        "of": of,
        "date": now.isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "figures": _rounded(figures),
    }
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
    for older in RESULTS.glob(f"*Z-{scenario}-{size}.json"):
        if older != path:
            older.unlink()
    return path


def machine() -> dict[str, Any]:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _cpu_model(Path("/proc/cpuinfo").read_text()),
        "cores": os.cpu_count(),
        "memory_gibibytes": round(pages / 2**30, 1),
        "kernel": platform.release(),
    }


def versions() -> dict[str, str]:
    packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"kubernetes": build.KUBERNETES_VERSION, "python": platform.python_version(), **packages}


def _cpu_model(cpuinfo: str) -> str:
    lines = (line.partition(":") for line in cpuinfo.splitlines())
    return next((value.strip() for name, _, value in lines if name.strip() == "model name"), platform.machine())


def _rows(prefix: str, figures: Mapping[str, Any]) -> "list[tuple[str, str]]":
    """Return rows: one for a group of single figures, and one per group for a group of groups."""
    rows: list[tuple[str, str]] = []
    for name, value in figures.items():
        if _is_series(value):
            continue
        label = f"{prefix}{name.replace('_', ' ')}"
        if isinstance(value, Mapping) and any(isinstance(inner, Mapping) for inner in value.values()):
            rows += _rows(f"{label}: ", value)
        elif isinstance(value, Mapping):
            rows.append((label, " · ".join(f"{inner} {_shown(number)}" for inner, number in value.items()) or "none"))
        else:
            rows.append((label, _shown(value)))
    return rows


def _is_series(value: object) -> bool:
    """Return whether these figures are for a plot and not for a table."""
    return isinstance(value, Mapping) and any(isinstance(inner, list) for inner in value.values())


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _rounded(value: Any) -> Any:  # noqa: ANN401  any JSON
    if isinstance(value, Mapping):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return round(value, 3) if isinstance(value, float) else value
