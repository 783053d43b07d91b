"""Writes docs/performance.md and its plots from the saved results: python -m bench.page > docs/performance.md

The same results make the same bytes. What has not been measured says so.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench import bars, cells, charts, peers, plan, report, results, tables
from bench.results import Result, Results

PAGE = Path("docs/performance.md")
PLOTS = Path("docs/performance")
_ROOT = Path(__file__).parents[1]
_HEAD = """\
# Performance

<!-- Written by `python -m bench.page > docs/performance.md` from bench/results/; measure again, or change the code. -->
"""
_METHOD = """\
## How it is measured

- A **fresh control plane** (etcd, API server, controller manager, scheduler: the real programs, on one machine) and
  fresh processes for every run; 25 s of rest before the clock runs. One run a row.
- **Nodes are simulated**, with Node objects of 14 KB as a cloud's kubelet makes them. KWOK plays their kubelets and
  the worker pods, which succeed after a second. Two cores could not renew the leases of more than 1,000 nodes: where
  there are more, they are born Ready, nobody renews, and the controller manager is paused, for the floor too.
- **The observer is a process of its own** with its own watches. A node's latency runs from the answer to its creation
  until the observer sees the taint gone and the label there.
- That latency is split: *the controller* is waited for from when the observer sees the gated node, or the pod that
  has succeeded, until the controller's request arrives, by the API server's audit log; *the control plane* is all the
  rest, with its watches and the pod's own second. Both hear of it by watches, and either may hear first: where the
  request came before the observer knew why, the controller's part is 0.
- **CPU** is user and system time by /proc, from the first creation until three seconds after the last worker is gone;
  **memory** is the peak of resident memory in that time; **calls** are counted in the audit log; **queue** is how long
  a node waits for its turn, by the controller's own histogram, whose bounds are coarse.
- **The floor** is the same writes with no controller: the generator creates node and pod, patches and deletes, with
  50 requests in flight, and decides nothing. Its pods queue behind its nodes, so it is a mark to hold a controller
  against, and not the least time possible: one that asks as soon as it can may be a little faster.
- Everything shares the machine's cores, and the machine shares its processors with others: the same work takes more
  CPU seconds on one day than on another. So **memory and calls compare between days; CPU seconds and wall times only
  beside the floor of their day**, and wall times only where *noise*, what other programs used of this machine, is
  small.
"""
_LIMITS = """\
## What limits it

- **The control plane.** In a burst, API server, etcd and the simulated kubelets keep the cores busy; the first plot
  shows which part of a node's time is the controller's. With a bigger control plane the same burst is faster, until
  one of these is met:
- `maxConcurrentVerifications` (1,000) worker pods at a time, and `kubernetes.qps` (500) requests a second, of which a
  node takes two until it is released and three afterwards: 250 nodes a second for a while, 100 for ever. Where nodes
  come faster than that, as beside 5,000 verified ones here, they wait for it for some seconds.
- **One core.** The controller is one process with one event loop; what a node costs it in CPU is the bound, here at
  about 100 nodes a second, too. Of that time in a burst, a profile (py-spy, 2026-11-16) finds a quarter in sockets and
  TLS, a quarter in reading watches (each Node comes eight times, 14 KB long), 40 % in looking at nodes, of which half
  is asking the API server, and nothing that stands out.
- **Memory** grows with the nodes that are watched, each kept with the few fields that decisions need, and with those
  in work.
- **After an outage**, exhausted nodes are tried again every `reconciliation.exhaustedRetrySeconds` (300): so long the
  last release may take. It is a setting, and no lack of speed.
"""
_PEER_CAVEATS = f"""\
Read this before quoting it. The peers were measured on {peers.MEASURED}, one run each, on the same kind of machine and
in the same way; ours on the days below. So memory and requests compare; wall times do only beside the floor of their
own day, which is how they are given here. CPU seconds are given as they were read; in their ratios, the peers' are
multiplied by how many times the CPU seconds of their day the same floor's API server took on ours (above). Nor is the
work the same: the node-readiness-controller runs no pods and checks nothing; v0.4.5 leaves a finished Job and its pod
behind for each node, and what a Job makes the controller manager do is in none of these figures but the API server's.
"""


def page(found: Results) -> str:
    parts = [_HEAD, _first(found), bars.section(found), _METHOD, tables.scenarios(found), _growth(found)]
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
    """What most people came for."""
    released = found.value("burst", 1000, "seconds_until_all_released")
    cpu = found.value("burst", 1000, "controller_cpu_seconds")
    peak = found.value("burst", 1000, "controller_peak_mebibytes")
    few, many = (found.value("idle", nodes, "controller_cpu_seconds_a_minute") for nodes in plan.IDLE)
    original = peers.PEERS[0]
    theirs = original.bursts[1000]
    scale = bars.slower(found)
    more = f"{_beside(theirs.cpu_seconds, cpu, scale)}, {_beside(theirs.peak_mebibytes, peak)}"
    times = bars.floors(found)
    longer = f", {cells.number(times)} times as long" if times else ""
    waits = (found.value(*run, "seconds_until_asked", "until_both_were", "p99") for run in _RUSHES)
    rows = [
        (
            "1,000 nodes at once are all released after",
            cells.shown(released, "s"),
            f"beside the floor{longer}: what that machine's control plane takes with no controller",
        ),
        (
            "for that the controller takes",
            f"{cells.shown(cpu, 'CPU s')}, {cells.shown(peak, 'MiB')}",
            f"the Go original, in CPU s and MiB: {more}",
        ),
        (
            "of 1,000 at once, 1,000 beside 5,000 verified ones, and 5,000 at once, one waits for the controller, p99",
            ", ".join(cells.shown(seconds, "s") for seconds in waits),
            "set by `maxConcurrentVerifications` and `kubernetes.qps` ([below](#what-limits-it))",
        ),
        (
            "a minute at rest, with 1,000 and with 5,000 verified nodes, takes",
            f"{cells.shown(few, 'CPU s')}, {cells.shown(many, 'CPU s')}",
            f"the Go original with 1,000, in CPU s: {_beside(original.idle_cpu_seconds_a_minute, few, scale)}",
        ),
    ]
    table = cells.table(("what matters", "measured", "what it means"), rows)
    return f"{table}\nRatios of CPU seconds are by the floor of each one's own day ([below](#beside-others)).\n"


def _growth(found: Results) -> str:
    lines = ["## How cost grows with nodes\n", tables.growth(found)]
    lines += [f"![{chart.title}]({PLOTS.name}/{name}.svg)\n" for name, chart in charts.TITLES.items()]
    return "\n".join(lines)


def _against_peers(found: Results) -> str:
    ours = _ours(found.get("burst", 1000))
    their_runs = [peer.bursts[1000] for peer in peers.PEERS]
    theirs_by_floor = [run.seconds / peers.FLOOR_SECONDS for run in their_runs]
    rows = [_peer_row("time to all released, in floors of its day", bars.floors(found), theirs_by_floor)]
    slower = bars.slower(found)
    for what, name in _COMPARED.items():
        scale = slower if name in _CPU else 1.0
        rows.append(_peer_row(what, ours[name], [getattr(run, name) for run in their_runs], scale))
    rows += [
        _peer_row(
            "at rest, CPU s a minute",
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
    table = cells.table(("1,000 nodes", "ours", *(peer.short for peer in peers.PEERS)), rows)
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
    return (what, cells.shown(ours), *(_beside(value, ours, scale) for value in theirs))


def _again(found: Results) -> str:
    minutes = round(sum(step.seconds for step in plan.STEPS) / 60)
    lines = [
        "## Measure it again\n",
        f"`make bench` takes about {minutes} minutes on two quiet cores, keeps the newest result of each scenario",
        "under bench/results/ with machine and date, and writes this page. `python -m bench.all --list` lists the",
        "single commands; `python -m bench.page > docs/performance.md` writes the page alone.\n",
    ]
    if found.all():
        lines.append(cells.table(("result", "of", "measured", "on"), [_origin(result) for result in _sorted(found)]))
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
    """Their figure, and in brackets how many times ours it is, scaled to our day; no ratio where that is not known."""
    ratio = peers.times_ours(theirs * scale if theirs is not None and scale else None, ours)
    return cells.number(theirs) + (f" ({cells.number(ratio)} times)" if ratio is not None else "")


def main() -> None:
    found = results.read()
    write_plots(_ROOT, found)
    sys.stdout.write(page(found))


if __name__ == "__main__":
    main()
