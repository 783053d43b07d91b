"""Figures of other controllers as data, and their ratios to ours.

Measured by this project on 2026-11-15, before its own controller was finished, on the same kind of machine (2 cores AMD
EPYC, Firecracker, 24 GiB) and in the same way as `bench.operator` measures: a fresh control plane (Kubernetes 1.36.3)
and fresh processes for every run, 25 s of rest, nodes of 14 KB in parallel with 50 requests in flight, worker pods that
KWOK 0.8.0 ends after a second, an observer of its own, CPU time and peak memory from /proc, requests from the audit
log. One run each, but for v0.4.5's, which is one of three that differed by 3 % in CPU and 4 % in memory.
"""

from dataclasses import dataclass

MEASURED = "2026-11-15"
FLOOR_SECONDS = 72.1
"""1,000 nodes on that day: nodes, pods, patches simultaneously, no controller."""
FLOOR_API_SERVER_CPU_SECONDS = 72.6


@dataclass(frozen=True)
class Burst:
    """Figures for nodes that are created at the same time."""

    seconds: float
    p50: float
    p99: float
    cpu_seconds: float
    peak_mebibytes: float
    requests: int
    """Of the controller, without watches and leases."""
    api_server_cpu_seconds: float
    all_requests: int | None = None
    """Of all clients, lease renewals included."""


@dataclass(frozen=True)
class Peer:
    name: str
    short: str
    about: str
    bursts: dict[int, Burst]
    """By number of nodes."""
    idle_cpu_seconds_a_minute: float | None = None
    """1,000 nodes with nothing to do, each with a heartbeat every five minutes."""
    idle_mebibytes: float | None = None
    """The least that was seen."""


PEERS = (
    Peer(
        "imunhatep/kube-node-ready v0.4.5",
        "v0.4.5",
        "the newest version of the Go original that verifies nodes (v0.5.0 starts its Jobs, and releases no node); "
        "one Job per node",
        {
            200: Burst(27.8, 22.5, 24.4, 2.90, 64.5, 403, 29.4, 5619),
            1000: Burst(145.8, 109.5, 119.9, 15.34, 156.4, 2003, 143.7, 35_396),
        },
        idle_cpu_seconds_a_minute=0.33,
        idle_mebibytes=156,
    ),
    Peer(
        "kubernetes-sigs/node-readiness-controller v0.5.0-14-ge5ff8d1",
        "NRC",
        "default settings; it starts no pods and runs no checks, but waits for a condition that another client sets, "
        "here a second after the node's creation",
        {1000: Burst(414.6, 169.6, 408.8, 51.1, 136.1, 3135, 512)},
        idle_cpu_seconds_a_minute=0.26,
        idle_mebibytes=108,
    ),
    Peer(
        "the same with --node-concurrent-reconciles=50",
        "NRC, 50 workers",
        "faster, but 123 of its writes timed out, and its own status listed 4 of 100 nodes in a repetition",
        {1000: Burst(297.3, 144.5, 292.4, 13.8, 126.9, 3207, 478)},
    ),
)


def times_ours(theirs: float | None, ours: float | None) -> float | None:
    """Return the ratio of their figure to ours; None if one of them is unknown."""
    return theirs / ours if theirs is not None and ours else None
