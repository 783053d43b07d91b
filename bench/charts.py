"""The plots of the page and their data."""

from bench import peers, plan, plots
from bench.plots import Titles
from bench.results import Results

_BURST = 1000
TITLES = {
    "latency": Titles(
        "A burst of 1,000 nodes: what each waits for",
        "Each node's seconds from its creation to its release, the fastest node at the left, as two areas upon each "
        "other: what the controller took, and above it what the control plane took with the pod's own second.",
        "nodes, from the fastest to the slowest",
        "seconds",
    ),
    "cpu": Titles(
        "CPU time of the controller in a burst",
        "Bars of CPU seconds by number of nodes that join simultaneously, ours beside the Go original's.",
        "nodes that join simultaneously",
        "CPU seconds",
    ),
    "memory": Titles(
        "Peak memory of the controller in a burst",
        "Bars of MiB by number of nodes that join simultaneously, ours beside the Go original's.",
        "nodes that join simultaneously",
        "MiB",
    ),
    "idle": Titles(
        "CPU time of the controller at rest",
        "Bars of CPU seconds per minute by number of verified nodes, ours beside two others.",
        "verified nodes, each with a heartbeat every five minutes",
        "CPU seconds per minute",
    ),
    "calls": Titles(
        "API calls of the controller in a burst, for each node",
        "Bars of calls per node by number of nodes that join together, divided by verb and resource; without leases.",
        "nodes that join simultaneously",
        "calls per node",
    ),
}


def drawn(found: Results) -> dict[str, str]:
    """Return the SVG of each plot by name."""
    return {
        "latency": _latency(found),
        "cpu": _burst(found, "cpu", "controller_cpu_seconds", "cpu_seconds"),
        "memory": _burst(found, "memory", "controller_peak_mebibytes", "peak_mebibytes"),
        "idle": _idle(found),
        "calls": _calls(found),
    }


def _latency(found: Results) -> str:
    result = found.get("burst", _BURST)
    series = {name: (result.at("seconds_by_node", name) if result else None) or [] for name in _PARTS}
    return plots.areas(TITLES["latency"], {title: series[name] for name, title in _PARTS.items()})


_PARTS = {"controller": "the controller", "control_plane": "the control plane, with the pod's own second"}


def _burst(found: Results, name: str, ours: str, theirs: str) -> str:
    original = peers.PEERS[0]
    series = {
        "ours": [found.value("burst", nodes, ours) for nodes in plan.BURSTS],
        f"{original.short}, {peers.MEASURED}": [
            getattr(original.bursts.get(nodes), theirs, None) for nodes in plan.BURSTS
        ],
    }
    return plots.bars(TITLES[name], _sizes(plan.BURSTS), series)


def _idle(found: Results) -> str:
    series = {"ours": [found.value("idle", nodes, "controller_cpu_seconds_a_minute") for nodes in plan.IDLE]}
    for peer in peers.PEERS:
        if peer.idle_cpu_seconds_a_minute is not None:
            series[f"{peer.short}, {peers.MEASURED}"] = [
                peer.idle_cpu_seconds_a_minute if nodes == _BURST else None for nodes in plan.IDLE
            ]
    return plots.bars(TITLES["idle"], _sizes(plan.IDLE), series)


def _calls(found: Results) -> str:
    """Return the most frequent kinds; those with fewer than one request per ten nodes are combined."""
    by_size = [_calls_a_node(found, nodes) for nodes in plan.BURSTS]
    kinds = sorted({kind for calls in by_size for kind, number in calls.items() if number >= _SELDOM})
    series = {kind: [calls.get(kind) for calls in by_size] for kind in kinds}
    rest = [sum(number for kind, number in calls.items() if kind not in kinds) or None for calls in by_size]
    return plots.stacks(TITLES["calls"], _sizes(plan.BURSTS), {**series, "all others": rest})


_SELDOM = 0.1


def _calls_a_node(found: Results, nodes: int) -> dict[str, float]:
    result = found.get("burst", nodes)
    calls = (result.at("controller_calls") if result else None) or {}
    return {kind: number / nodes for kind, number in calls.items() if "leases" not in kind}


def _sizes(numbers: tuple[int, ...]) -> list[str]:
    return [f"{number:,}" for number in numbers]
