"""The page's tables of measurements: the operator's scenarios, and the worker."""

from collections.abc import Sequence

from bench import formatting, plan, targets
from bench.plots import NOT_MEASURED
from bench.results import Result, Results

_QUIET = 0.05
"""The maximum share of other processes for comparable wall times."""


_READ_SO = """\
Latencies and times in the queue in seconds, as p50 / p95 / p99. Of 5,000 nodes, 1,000 are verified at the same time
(`maxConcurrentVerifications`): waiting for that counts as the controller's. With more than 1,000 nodes, controller
manager and leases stand still ([above](#how-it-is-measured)), which leaves more of the machine to the rest: such rows
compare with each other, and not with smaller ones. Ten nodes per second are more than two cores of control plane can
take, so they queue there; five are not.
"""
_COUNTED = """\
By the audit log, over the whole run. In a burst the server closes watches that fall behind; each resumes from where it
was, and nothing is listed again.
"""


def scenarios(found: Results) -> str:
    lines = ["## All scenarios\n"]
    lines.append(_READ_SO)
    head = ("scenario", "nodes", "all released, s", "latency", "of which controller", "of which control plane")
    lines.append(formatting.table((*head, "CPU s", "peak MiB", "queue, s", "noise"), _load_rows(found)))
    lines += [_outage(found), _churn(found), _idle(found), _calls(found)]
    return "\n".join(lines)


def _load_rows(found: Results) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = []
    for scenario, nodes in _wanted(found, ("floor", "burst", "crowd", "trickle", "churn")):
        result = found.get(scenario, nodes)
        if result is None:
            rows.append((named(scenario), f"{nodes:,}", NOT_MEASURED, *[""] * 7))
            continue
        rows.append(
            (
                named(scenario),
                f"{nodes:,}",
                _of(result, "seconds_until_all_released"),
                _spread(result, "seconds", "latency"),
                "" if scenario == "floor" else _spread(result, "seconds_until_asked", "until_both_were"),
                "" if scenario == "floor" else _spread(result, "seconds_until_asked", "all_the_rest"),
                "" if scenario == "floor" else _of(result, "controller_cpu_seconds"),
                "" if scenario == "floor" else _of(result, "controller_peak_mebibytes"),
                _bounds(result, "seconds_in_the_queue_at_most"),
                _noise(result),
            )
        )
    return rows


def _outage(found: Results) -> str:
    lines = [
        "### A fleet-wide failure\n",
        "All nodes join simultaneously and every worker fails, until a minute after the first failure; then all pass.",
        "Removal of failed nodes is switched on. In that time no node fails often enough to come to it, and with so",
        "many failing simultaneously none would be removed either, which tests verify.\n",
    ]
    head = ("nodes", "released", "removed", "attempts per node", "CPU s per minute", "calls per minute")
    rows = []
    for _, nodes in _wanted(found, ("outage",)):
        result = found.get("outage", nodes)
        if result is None:
            rows.append((f"{nodes:,}", NOT_MEASURED, *[""] * 7))
            continue
        attempts = result.at("attempts_a_node") or {}
        rows.append(
            (
                f"{nodes:,}",
                str(result.at("released")),
                _of(result, "nodes_removed_by_the_controller"),
                f"{formatting.number(attempts.get('mean'))} (most {formatting.number(attempts.get('most'))})",
                _of(result, "while_it_lasted", "controller_cpu_seconds_a_minute"),
                _of(result, "while_it_lasted", "controller_calls_a_minute"),
                _of(result, "seconds_from_its_end_until_all_released"),
                _of(result, "controller_peak_mebibytes"),
                _noise(result),
            )
        )
    return "\n".join(
        [*lines, formatting.table((*head, "from its end until all released, s", "peak MiB", "noise"), rows)]
    )


def _churn(found: Results) -> str:
    lines = [
        "### Nodes that come and go\n",
        "In a fleet of verified nodes, five per second are replaced for a minute; one in five that are deleted is",
        "new, and is being verified. The controller manager deletes the workers of those, which takes a minute.\n",
    ]
    rows = []
    for _, nodes in _wanted(found, ("churn",)):
        result = found.get("churn", nodes)
        if result is None:
            rows.append((f"{nodes:,}", NOT_MEASURED, *[""] * 6))
            continue
        memory = f"{_of(result, 'controller_mebibytes_before')} and {_of(result, 'controller_mebibytes_after')}"
        rows.append(
            (
                f"{nodes:,}",
                str(result.at("released")),
                f"{_of(result, 'nodes_gone')} ({_of(result, 'nodes_gone_that_were_new')})",
                _of(result, "pods_left_of_nodes_gone"),
                _of(result, "nodes_gone_and_remembered"),
                _of(result, "seconds_from_then_until_no_worker_was_left"),
                memory,
                _noise(result),
            )
        )
    head = ("fleet", "newcomers released", "nodes deleted (new ones)", "pods left of them", "left in its metrics")
    more = ("no worker left, s after the last release", "MiB before and after", "noise")
    return "\n".join([*lines, formatting.table((*head, *more), rows)])


def _idle(found: Results) -> str:
    rows = []
    for _, nodes in _wanted(found, ("idle",)):
        result = found.get("idle", nodes)
        if result is None:
            rows.append((f"{nodes:,}", NOT_MEASURED, *[""] * 3))
            continue
        calls = sum((result.at("controller_calls") or {}).values())
        cpu = _of(result, "controller_cpu_seconds_a_minute")
        rows.append((f"{nodes:,}", cpu, _of(result, "controller_mebibytes"), f"{calls:,}", _noise(result)))
    head = ("verified nodes", "controller CPU s per minute", "MiB", "calls in that minute", "noise")
    return "\n".join(["### At rest\n", "Each node has a heartbeat every five minutes.\n", formatting.table(head, rows)])


def _calls(found: Results) -> str:
    """Return the requests by verb and resource, with a column per run."""
    runs = [
        result
        for scenario, nodes in _wanted(found, ("burst", "crowd", "trickle", "outage", "churn", "idle"))
        if (result := found.get(scenario, nodes))
    ]
    title = f"### The controller's API calls\n\n{_COUNTED}"
    if not runs:
        return f"{title}\n{NOT_MEASURED}\n"
    kinds = sorted({kind for result in runs for kind in result.at("controller_calls") or {}})
    rows = [(kind, *(f"{result.at('controller_calls', kind) or 0:,}" for result in runs)) for kind in kinds]
    rows.append(("writes per node, without leases", *(_of(result, "controller_writes_a_node") for result in runs)))
    head = ("", *(f"{named(result.scenario)} {result.size:,}" for result in runs))
    return f"{title}\n{formatting.table(head, rows)}"


def growth(found: Results) -> str:
    """Return the cost of an additional node by the number of nodes."""
    rows = []
    for _, nodes in _wanted(found, ("burst",)):
        result = found.get("burst", nodes)
        cpu = result.value("controller_cpu_seconds") if result else None
        rows.append(
            (
                f"{nodes:,}",
                formatting.shown(cpu * 1000 / nodes if cpu is not None else None),
                formatting.number(result.value("controller_writes_a_node") if result else None),
                formatting.number(targets.floors(found, nodes)),
            )
        )
    head = (
        "nodes that join simultaneously",
        "controller CPU ms per node",
        "writes per node",
        "time to all released, relative to the floor",
    )
    return formatting.table(head, rows)


def worker(found: Results) -> str:
    title = "## The worker\n"
    result = found.get("worker", 1)
    if result is None:
        return f"{title}\n{NOT_MEASURED}\n"
    pod, process = "as_a_pod_on_a_real_node", "as_a_process"
    told = {
        "from the pod's creation to its verdict": _medians(result, pod, "seconds_from_creation_to_verdict", "s"),
        "until an observer sees that": _medians(result, pod, "seconds_from_creation_until_it_is_seen", "s"),
        "from its container's start": _medians(result, pod, "seconds_from_container_start_to_verdict", "s"),
        "CPU, by its control group": _medians(result, pod, "cpu_milliseconds_by_its_cgroup", "ms"),
        "peak memory, by its control group (what earlier runs had read of the image is not in it)": _medians(
            result, pod, "peak_mebibytes_by_its_cgroup", "MiB"
        ),
        "CPU, as a process of its own": _medians(result, process, "cpu_milliseconds", "ms"),
        "peak resident memory, as that": _medians(result, process, "peak_mebibytes", "MiB"),
    }
    rounds = _of(result, "rounds")
    head = (
        f"{rounds} runs on a real node (kubelet, containerd), in the image as it is released; and as many outside, as\n"
        "a process.\n"
    )
    return "\n".join([title, head, formatting.table(("", "median, and the worst"), told.items())])


def component(found: Results) -> str:
    """Return the table of the component: the time that validation takes."""
    title = "## The component\n"
    sizes = found.sizes("validate")
    if not sizes:
        return f"{title}\n{NOT_MEASURED}\n"
    many = sizes[-1]
    told = {
        "`kubernetes-daemonset validate` of one manifest, from a cold process, median": ("validate", "seconds"),
        "at best": ("validate_at_best", "seconds"),
        f"of a folder with {many:,}": (f"{many}_manifests", "seconds"),
    }
    rows = [(what, formatting.shown(found.value("validate", many, *path), "s")) for what, path in told.items()]
    return "\n".join([title, formatting.table(("", ""), rows)])


def _medians(result: Result, part: str, name: str, unit: str) -> str:
    median, worst = (result.value(part, name, which) for which in ("median", "worst"))
    return "could not be read" if median is None else f"{formatting.number(median)} {unit}, {formatting.number(worst)}"


def _wanted(found: Results, scenarios: Sequence[str]) -> list[tuple[str, int]]:
    """Return the planned measurements, including missing ones, and any others that exist."""
    planned = {(step.scenario, step.nodes) for step in plan.STEPS}
    return [
        (scenario, nodes)
        for scenario in scenarios
        for nodes in sorted({size for name, size in planned if name == scenario} | set(found.sizes(scenario)))
    ]


def named(scenario: str) -> str:
    names = {
        "crowd": "burst beside 5,000 verified",
        "trickle": "trickle, 10 per second",
        "churn": "churn, 5 per second",
    }
    return names.get(scenario, scenario)


def _noise(result: Result) -> str:
    share = result.value("other_share_of_the_machine")
    if share is None:
        return ""
    return f"{share:.0%}" + (" (wall times too long)" if share > _QUIET else "")


def _spread(result: Result, *path: str) -> str:
    values = [result.value(*path, name) for name in ("p50", "p95", "p99")]
    return " / ".join(map(formatting.number, values)) if None not in values else ""


def _bounds(result: Result, *path: str) -> str:
    """Format a value of a histogram, of which only the upper bound is known."""
    values = [result.value(*path, name) for name in ("p50", "p95", "p99")]
    return "≤ " + " / ".join(f"{value:g}" for value in values) if None not in values else ""


def _of(result: Result, *path: str) -> str:
    return formatting.number(result.value(*path))
