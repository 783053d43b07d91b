"""Write docs/reference/performance.md and its plots from the saved results: python -m bench.page > FILE

The same results give the same bytes. Values that were not measured are marked.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench import charts, formatting, peers, plan, report, results, tables, targets
from bench.results import Result, Results

PAGE = Path("docs/reference/performance.md")
PLOTS = Path("docs/reference/performance")
_ROOT = Path(__file__).parents[1]
_HEAD = """\
# Performance

<!-- Written by `python -m bench.page` from bench/results/; measure again, or change the code. -->

This page is for operators who plan capacity, and for maintainers: it lists what kube-node-ready costs, how that was
measured, and how to measure it again.
"""
_METHOD = """\
## How it is measured

- A **fresh control plane** (etcd, API server, controller manager, scheduler: the real programs, on one machine) and
  fresh processes for every run, and 25 s idle before the measurement starts. Each row is one run.
- **Nodes are simulated**, with Node objects of 14 KB as in a cloud. KWOK simulates their kubelets and the worker pods,
  which succeed after a second. Two cores cannot renew the leases of more than 1,000 nodes. Beyond that, nodes are
  created Ready, leases are not renewed, and the controller manager is paused, also for the floor.
- **The observer is a separate process** with its own watches. A node's latency is the time from the response to its
  creation until the observer receives the update with the label and without the taint.
- That latency has two parts. *The controller* is the time from when the observer receives the gated node, or the
  succeeded pod, until the controller's request arrives, according to the API server's audit log. *The control plane* is
  the rest, including its watches and the pod's own second. If the controller's watch was faster than the observer's,
  the controller's part is 0.
- **CPU** is user and system time by /proc, from the first creation until three seconds after the last worker is gone;
  **memory** is the peak of resident memory in that time; **calls** are counted in the audit log; **queue** is how long
  a node waits in the queue, by the controller's own histogram, whose bounds are coarse.
- **The floor** is the same writes with no controller: the generator creates node and pod, patches and deletes, with 50
  requests in flight, and decides nothing. Its pods queue behind its nodes, so it is a baseline and not the minimum: a
  controller that sends requests earlier can be slightly faster.
- All processes share the machine's cores, and the machine shares its processors with others: the same work takes more
  CPU seconds on one day than on another. So **memory and calls can be compared between days; CPU seconds and wall times
  only with the floor of the same day**, and wall times only if *noise*, the CPU time of other programs on this machine,
  is small.
"""
_LIMITS = """\
## What limits it

- **The control plane.** In a burst, API server, etcd and the simulated kubelets keep the cores busy; the first plot
  shows which part of a node's time is the controller's. With a larger control plane the same burst is faster, until
  one of these limits is reached:
- `maxConcurrentVerifications` (1,000) worker pods at the same time, and `kubernetes.qps` (500) requests per second. A
  node needs two requests until it is released and three afterwards: 250 nodes per second for a short time, 100 nodes
  per second continuously. If nodes join faster, as in the burst beside 5,000 verified ones here, they wait for some
  seconds.
- **One core.** The controller is one process with one event loop. Its CPU time per node limits it to about 100 nodes
  per second here. A profile of a burst (py-spy, 2026-11-16) shows a quarter of that time in sockets and TLS, a quarter
  in reading watches (each Node is received eight times, with 14 KB), and 40 % in reconciles, half of it in API
  requests.
- **Memory** grows with the number of watched nodes, each reduced to the fields that decisions need, and with the
  verifications in progress.
- **After an outage**, exhausted nodes are retried every `reconciliation.exhaustedRetrySeconds` (300), so the last
  release can take that long. This is a setting and not a limit of throughput.
"""
_PEER_CAVEATS = f"""\
Read this before you quote it. The peers were measured on {peers.MEASURED}, one run each, on the same kind of machine
and in the same way; ours on the days below. So memory and requests can be compared directly. Wall times are given
relative to the floor of their own day. CPU seconds are given as measured; for the ratios, those of the peers are scaled
by the CPU seconds of the API server in the floor of both days (above). The work differs, too: the
node-readiness-controller runs no pods and no checks. v0.4.5 leaves a finished Job and its pod for each node; the work
of the controller manager for Jobs is visible only in the figures of the API server.
"""


def page(found: Results) -> str:
    parts = [_HEAD, _first(found), targets.section(found), _METHOD, tables.scenarios(found), _growth(found)]
    parts += [_against_peers(found), _LIMITS, tables.worker(found), tables.component(found)]
    return "\n".join([*parts, _again(found)])


def write(root: Path = _ROOT) -> None:
    found = results.read(root / report.RESULTS)
    (root / PAGE).write_text(page(found))
    write_plots(root, found)


def write_plots(root: Path, found: Results) -> None:
    drawn = charts.drawn(found)
    (root / PLOTS).mkdir(parents=True, exist_ok=True)
    for stale in (root / PLOTS).glob("*.svg"):
        if stale.stem not in drawn:
            stale.unlink()
    for name, svg in drawn.items():
        (root / PLOTS / f"{name}.svg").write_text(svg)


_RUSHES = (("burst", 1000), ("crowd", 1000), ("burst", 5000))


def _first(found: Results) -> str:
    """Return the summary."""
    released = found.value("burst", 1000, "seconds_until_all_released")
    cpu = found.value("burst", 1000, "controller_cpu_seconds")
    peak = found.value("burst", 1000, "controller_peak_mebibytes")
    few, many = (found.value("idle", nodes, "controller_cpu_seconds_a_minute") for nodes in plan.IDLE)
    original = peers.PEERS[0]
    theirs = original.bursts[1000]
    scale = targets.slower(found)
    more = f"{_beside(theirs.cpu_seconds, cpu, scale)}, {_beside(theirs.peak_mebibytes, peak)}"
    times = targets.floors(found)
    longer = f", {formatting.number(times)} times as long" if times else ""
    waits = (found.value(*run, "seconds_until_asked", "until_both_were", "p99") for run in _RUSHES)
    rows = [
        (
            "1,000 nodes that join simultaneously are all released after",
            formatting.shown(released, "s"),
            f"beside the floor{longer}: what that machine's control plane takes with no controller",
        ),
        (
            "for that the controller takes",
            f"{formatting.shown(cpu, 'CPU s')}, {formatting.shown(peak, 'MiB')}",
            f"the Go original, in CPU s and MiB: {more}",
        ),
        (
            "p99 of the wait for the controller: 1,000 nodes that join together, 1,000 beside 5,000 verified, 5,000",
            ", ".join(formatting.shown(seconds, "s") for seconds in waits),
            "set by `maxConcurrentVerifications` and `kubernetes.qps` ([below](#what-limits-it))",
        ),
        (
            "per minute at rest, with 1,000 and with 5,000 verified nodes, takes",
            f"{formatting.shown(few, 'CPU s')}, {formatting.shown(many, 'CPU s')}",
            f"the Go original with 1,000, in CPU s: {_beside(original.idle_cpu_seconds_a_minute, few, scale)}",
        ),
    ]
    table = formatting.table(("what matters", "measured", "what it means"), rows)
    return f"{table}\nRatios of CPU seconds are by the floor of each one's own day ([below](#beside-others)).\n"


def _growth(found: Results) -> str:
    lines = ["## How cost grows with nodes\n", tables.growth(found)]
    lines += [f"![{chart.title}]({PLOTS.name}/{name}.svg)\n" for name, chart in charts.TITLES.items()]
    return "\n".join(lines)


def _against_peers(found: Results) -> str:
    ours = _ours(found.get("burst", 1000))
    their_runs = [peer.bursts[1000] for peer in peers.PEERS]
    theirs_by_floor = [run.seconds / peers.FLOOR_SECONDS for run in their_runs]
    rows = [_peer_row("time to all released, relative to the floor of its day", targets.floors(found), theirs_by_floor)]
    slower = targets.slower(found)
    for what, name in _COMPARED.items():
        scale = slower if name in _CPU else 1.0
        rows.append(_peer_row(what, ours[name], [getattr(run, name) for run in their_runs], scale))
    rows += [
        _peer_row(
            "at rest, CPU s per minute",
            found.value("idle", 1000, "controller_cpu_seconds_a_minute"),
            [peer.idle_cpu_seconds_a_minute for peer in peers.PEERS],
            slower,
        ),
        _peer_row(
            "at rest, MiB",
            found.value("idle", 1000, "controller_mebibytes"),
            [peer.idle_mebibytes for peer in peers.PEERS],
        ),
    ]
    who = "\n".join(f"- **{peer.short}**: {peer.name}; {peer.about}." for peer in peers.PEERS)
    table = formatting.table(("1,000 nodes", "ours", *(peer.short for peer in peers.PEERS)), rows)
    return f"## Beside others\n\n{table}\nIn brackets: how many times ours that is.\n\n{who}\n\n{_PEER_CAVEATS}"


_COMPARED = {
    "controller CPU s": "cpu_seconds",
    "peak MiB": "peak_mebibytes",
    "requests without watches and leases": "requests",
    "requests of all clients, lease renewals included": "all_requests",
    "API server CPU s": "api_server_cpu_seconds",
}
_CPU = ("cpu_seconds", "api_server_cpu_seconds")


def _ours(burst: Result | None) -> dict[str, float | None]:
    if burst is None:
        return dict.fromkeys(_COMPARED.values())
    calls = burst.at("controller_calls") or {}
    counted = [number for kind, number in calls.items() if not kind.startswith("watch ") and "leases" not in kind]
    return {
        "cpu_seconds": burst.value("controller_cpu_seconds"),
        "peak_mebibytes": burst.value("controller_peak_mebibytes"),
        "requests": float(sum(counted)),
        "all_requests": burst.value("calls_of_all_clients"),
        "api_server_cpu_seconds": burst.value("cpu_seconds", "kube-apiserver"),
    }


def _peer_row(
    what: str, ours: float | None, theirs: Iterable[float | None], scale: float | None = 1.0
) -> Sequence[str]:
    return (what, formatting.shown(ours), *(_beside(value, ours, scale) for value in theirs))


def _again(found: Results) -> str:
    minutes = round(sum(step.seconds for step in plan.STEPS) / 60)
    lines = [
        "## Measure it again\n",
        f"`make bench` takes about {minutes} minutes on two quiet cores, keeps the newest result of each scenario",
        "under bench/results/ with machine and date, and writes this page. `python -m bench.all --list` lists the",
        "single commands; `python -m bench.page > docs/reference/performance.md` writes only the page.\n",
    ]
    if found.all():
        lines.append(
            formatting.table(("result", "of", "measured", "on"), [_origin(result) for result in _sorted(found)])
        )
    return "\n".join(lines)


def _origin(result: Result) -> Sequence[str]:
    machine, versions = result.machine, result.versions
    on = f"{machine.get('cores')} cores {machine.get('cpu')}, {machine.get('memory_gibibytes')} GiB; "
    on += f"Linux {machine.get('kernel')}, Kubernetes {versions.get('kubernetes')}, Python {versions.get('python')}"
    of = result.of if result.size > 1 else result.of.removesuffix("s")
    return (tables.named(result.scenario), f"{result.size:,} {of}", result.date, on)


def _sorted(found: Results) -> list[Result]:
    order = {step.scenario: at for at, step in enumerate(plan.STEPS)}
    return sorted(
        found.all(), key=lambda result: (order.get(result.scenario, len(order)), result.scenario, result.size)
    )


def _beside(theirs: float | None, ours: float | None, scale: float | None = 1.0) -> str:
    """Return their figure, and in brackets its ratio to ours, scaled to the same day; no ratio if it is unknown."""
    ratio = peers.times_ours(theirs * scale if theirs is not None and scale else None, ours)
    return formatting.number(theirs) + (f" ({formatting.number(ratio)} times)" if ratio is not None else "")


def main() -> None:
    found = results.read()
    write_plots(_ROOT, found)
    sys.stdout.write(page(found))


if __name__ == "__main__":
    main()
