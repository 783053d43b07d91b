"""What the operator costs, and how fast it is, beside what the control plane itself costs.

Four scenarios, each on a fresh control plane with fresh processes. Nodes are simulated (KWOK plays the kubelets and
the worker pods, which take a second); everything shares this machine's cores, so a wall time means something only
beside the floor's, and only where `other_cpu_seconds` is small.

- floor: nodes, pods, releases, all at once, by the generator itself: what an ideal controller could reach
- burst: the same nodes at once, and the controller does the rest
- crowd: the same burst in a fleet of 5,000 nodes that are verified already
- idle: nodes verified long ago, each with a heartbeat every five minutes; the controller's cost of a minute
"""

import argparse
import os
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from bench import api, journal, measure, reaction, report
from bench.generator import Result
from bench.journal import Moment
from bench.rig import Bench, Generator, fresh
from lab import errors
from lab.progress import say

AGENT = "kube-node-ready-controller"
_CONTROLLER = f".venv/bin/{AGENT}"
_SETTLE_SECONDS = 25.0
_AFTERWARDS_SECONDS = 3.0
_IDLE_SECONDS = 60.0
_CROWD = 5000
_MOST_KUBELETS = 1000
"""Two cores cannot renew the leases of many more. Larger idle fleets do without kubelets, and are born Ready."""

Figures = dict[str, Any]


def floor(nodes: int, _command: Sequence[str]) -> Figures:
    with fresh((), nodes) as bench, bench.generator("floor") as generator:
        result, cost = _burst(generator, bench.processes(generator=generator.pid))
        return {**burst_figures(result, nodes), **reaction_figures(bench, result, api.AGENT), **cost_figures(cost)}


def burst(nodes: int, command: Sequence[str]) -> Figures:
    with fresh(command, nodes) as bench:
        return _burst_on(bench)


def crowd(nodes: int, command: Sequence[str]) -> Figures:
    with fresh(command, nodes) as bench, bench.generator("idle", kubelets=False, crowd=_CROWD) as verified:
        bench.plane.controller_manager.pause()  # it would declare them unreachable
        verified.go()
        verified.answer(str)
        say(f"{_CROWD} verified nodes created")
        return _burst_on(bench)


def _burst_on(bench: Bench) -> Figures:
    nodes = bench.nodes
    with (
        bench.controller() as controller,
        bench.generator("burst", alive=controller.check) as generator,
    ):
        pids = bench.processes(generator=generator.pid, controller=controller.pid)
        with bench.plane.audit.window() as calls:
            result, cost = _burst(generator, pids, lambda: measure.reset_peak(controller.pid), bench.wait_until_quiet)
        peak = measure.peak_mebibytes(controller.pid)
        if released(result) < nodes:
            say(f"the end of the controller's log:\n{controller.last_lines()}")
        return {
            **burst_figures(result, nodes),
            **reaction_figures(bench, result, AGENT),
            "seconds_in_the_queue_at_most": report.shares(controller.queue_waits()),
            "controller_cpu_seconds": cost.seconds["controller"],
            "controller_peak_mebibytes": peak,
            **report.call_figures(calls, AGENT, nodes),
            **cost_figures(cost),
        }


def idle(nodes: int, command: Sequence[str]) -> Figures:
    kubelets = nodes <= _MOST_KUBELETS
    with fresh(command, nodes) as bench, bench.generator("idle", kubelets=kubelets) as generator:
        if not kubelets:
            bench.plane.controller_manager.pause()  # it would declare them unreachable
        generator.go()
        generator.answer(str)
        say(f"{nodes} nodes created; they settle")
        time.sleep(2 * _SETTLE_SECONDS)
        with bench.controller() as controller:
            time.sleep(_SETTLE_SECONDS)
            say(f"a minute of {nodes} nodes and nothing to do")
            with bench.plane.audit.window() as calls:
                pids = bench.processes(generator=generator.pid, controller=controller.pid)
                before = measure.read(pids)
                time.sleep(_IDLE_SECONDS)
                cost = measure.cost(before, measure.read(pids))
            return {
                "controller_cpu_seconds_a_minute": cost.seconds["controller"] * 60 / cost.elapsed,
                "controller_mebibytes": measure.resident_mebibytes(controller.pid),
                "controller_peak_mebibytes_since_its_start": measure.peak_mebibytes(controller.pid),
                **report.call_figures(calls, AGENT, nodes),
                **cost_figures(cost),
            }


def _burst(
    generator: Generator,
    pids: dict[str, int],
    begin: Callable[[], None] = lambda: None,
    end: Callable[[], None] = lambda: None,
) -> tuple[Result, measure.Cost]:
    time.sleep(_SETTLE_SECONDS)
    begin()
    before = measure.read(pids)
    generator.go()
    result = generator.answer(Result)
    if released(result) == len(result.moments[Moment.POSTED]):
        end()
    time.sleep(_AFTERWARDS_SECONDS)
    return result, measure.cost(before, measure.read(pids))


def released(result: Result) -> int:
    return len(result.moments[Moment.RELEASED])


def burst_figures(result: Result, nodes: int) -> Figures:
    moments = result.moments
    last = {moment: max(at.values(), default=result.begun) - result.begun for moment, at in moments.items()}
    all_released = last[Moment.RELEASED] if released(result) == nodes else None
    return {
        "released": f"{released(result)} of {nodes}",
        "seconds_until_all_released": all_released,
        "seconds_until_all_created": last[Moment.POSTED],
        "seconds": asdict(journal.timings(moments)),
        "pods_seen": len(result.pods),
        "generator_lost_races": result.lost_races,
        "generator_retries": result.retries,
        "generator_watches_resumed": result.watches_resumed,
        "generator_lists": result.lists,
    }


def reaction_figures(bench: Bench, result: Result, agent: str) -> Figures:
    with bench.audit_log.open("rb") as log:
        requests = reaction.asked(log, agent)
    return {"seconds_until_asked": asdict(reaction.reactions(result.moments, result.pods, requests))}


def cost_figures(cost: measure.Cost) -> Figures:
    return {
        "measured_seconds": cost.elapsed,
        "cpu_seconds": dict(cost.seconds),
        "other_cpu_seconds": cost.other,
        "other_share_of_the_machine": cost.other / (cost.elapsed * (os.cpu_count() or 1)),
        "stolen_cpu_seconds": cost.stolen,
    }


SCENARIOS: dict[str, Callable[[int, Sequence[str]], Figures]] = {
    "floor": floor,
    "burst": burst,
    "crowd": crowd,
    "idle": idle,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.operator", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenario", choices=[*SCENARIOS, "all"])
    parser.add_argument("nodes", type=int, nargs="?", default=1000, help="how many (1000)")
    parser.add_argument("--controller", default=_CONTROLLER, help=f"the command to measure ({_CONTROLLER})")
    parser.add_argument("--save", action="store_true", help=f"keep the figures under {report.RESULTS}/")
    asked = parser.parse_args()
    if asked.nodes < 1:
        parser.error(f"nodes: {asked.nodes} is too few to measure; 1 or more can be")
    chosen = SCENARIOS if asked.scenario == "all" else {asked.scenario: SCENARIOS[asked.scenario]}
    for name, scenario in chosen.items():
        say(f"{name}, {asked.nodes} nodes")
        try:
            figures = scenario(asked.nodes, shlex.split(asked.controller))
        except (errors.LabError, OSError) as why:
            parser.exit(1, f"{name}: {why}\n")
        print(report.table(f"{name}, {asked.nodes} nodes", figures), flush=True)
        if asked.save:
            say(f"kept in {report.save(name, asked.nodes, figures)}")


if __name__ == "__main__":
    main()
