"""The scenarios: their load on a new control plane, and what is measured."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

import lab
from bench import api, figures, measure, reaction, report
from bench.environment import Bench, Controller, Generator, fresh
from bench.figures import Figures
from bench.generator import Result
from bench.timeline import Moment
from lab.progress import say

AGENT = "kube-node-ready-controller"
TRICKLE_A_SECOND = 10.0
CHURN_A_SECOND = 5.0
SECONDS = 60.0
_SETTLE_SECONDS = 25.0
_AFTERWARDS_SECONDS = 3.0
_CROWD = 5000
_MOST_KUBELETS = 1000
"""Two cores cannot renew the leases of more nodes. Nodes of larger fleets have no leases and are created Ready."""
_PATIENCE_AFTER_AN_OUTAGE = 420.0
"""Longer than the retry interval of an exhausted node (`reconciliation.exhaustedRetrySeconds`, 300)."""
_NO_DNS = {"name": "dns", "ok": False, "ms": 10_003, "target": "example.com", "error": "timed out after 10 s"}
_OUTAGE = lab.fails(msgspec.json.encode({"v": 1, "checks": [_NO_DNS]}).decode())


@dataclass(frozen=True)
class Wanted:
    nodes: int
    command: Sequence[str] = ()
    """The command that starts the controller."""
    seconds: float = SECONDS
    """The duration of an outage, a churn or an idle period."""


def floor(wanted: Wanted) -> Figures:
    with (
        _fitting(wanted) as bench,
        bench.generator("floor", gated=wanted.nodes, kubelets=_have_kubelets(wanted)) as generator,
    ):
        result, cost, _ = _load(generator, bench.processes(generator=generator.pid))
        return {**figures.of_load(result), **_reactions(bench, result, api.AGENT), **figures.of_cost(cost)}


def burst(wanted: Wanted) -> Figures:
    with (
        _fitting(wanted) as bench,
        bench.controller() as controller,
        bench.generator("burst", gated=wanted.nodes, kubelets=_have_kubelets(wanted)) as generator,
    ):
        return _measured(bench, controller, generator)[1]


def crowd(wanted: Wanted) -> Figures:
    with fresh(wanted.command) as bench, bench.generator("idle", verified=_CROWD, kubelets=False) as verified:
        bench.plane.controller_manager.pause()  # it would declare them unreachable
        _create_verified(verified, _CROWD)
        with bench.controller() as controller, bench.generator("burst", gated=wanted.nodes) as generator:
            return _measured(bench, controller, generator)[1]


def trickle(wanted: Wanted) -> Figures:
    with (
        _fitting(wanted) as bench,
        bench.controller() as controller,
        bench.generator(
            "trickle", gated=wanted.nodes, rate=TRICKLE_A_SECOND, kubelets=_have_kubelets(wanted)
        ) as generator,
    ):
        result, found = _measured(bench, controller, generator)
        return {**found, **figures.of_lateness(result, TRICKLE_A_SECOND)}


def outage(wanted: Wanted) -> Figures:
    with (
        _fitting(wanted) as bench,
        bench.controller(remove=True) as controller,
        bench.generator(
            "outage", gated=wanted.nodes, patience=_PATIENCE_AFTER_AN_OUTAGE, kubelets=_have_kubelets(wanted)
        ) as generator,
    ):
        generator.needs(controller)
        bench.simulated.decide(_OUTAGE)
        time.sleep(_SETTLE_SECONDS)
        measure.reset_peak(controller.pid)
        pids = bench.processes(generator=generator.pid, controller=controller.pid)
        begun = measure.read(pids)
        with bench.plane.audit.window() as calls:
            generator.go()
            generator.answer(str)
            say(f"the first worker has failed; for {wanted.seconds:g} s all do")
            with bench.plane.audit.window() as meanwhile:
                before = measure.read(pids)
                time.sleep(wanted.seconds)
                lasted = measure.cost(before, measure.read(pids))
            bench.simulated.decide(lab.PASSES)
            ended = time.time()
            result = generator.answer(Result)
            if figures.released(result) == result.expected:
                bench.wait_until_quiet()
            time.sleep(_AFTERWARDS_SECONDS)
        return {
            **figures.of_an_outage(result, ended),
            "nodes_left": bench.count_nodes(),
            "nodes_removed_by_the_controller": calls.count(agent=AGENT, verb="delete", resource="nodes"),
            **figures.while_it_lasted(lasted, meanwhile, AGENT),
            **_controllers(controller, measure.cost(begun, measure.read(pids))),
            **report.call_figures(calls, AGENT, wanted.nodes),
        }


def churn(wanted: Wanted) -> Figures:
    if not _have_kubelets(wanted):
        # The controller manager must run to clean up after deleted nodes, and it reacts to leases that are not renewed.
        raise lab.LabError(f"{wanted.nodes} are too many for a churn: up to {_MOST_KUBELETS} nodes can have kubelets")
    come = round(CHURN_A_SECOND * wanted.seconds)
    with (
        fresh(wanted.command) as bench,
        bench.generator("churn", verified=wanted.nodes, gated=come, rate=CHURN_A_SECOND) as generator,
    ):
        _create_verified(generator, wanted.nodes)
        time.sleep(2 * _SETTLE_SECONDS)
        with bench.controller() as controller:
            before = measure.resident_mebibytes(controller.pid)
            result, found = _measured(bench, controller, generator)
            return {
                **found,
                **figures.of_lateness(result, CHURN_A_SECOND),
                **figures.of_leftovers(result.left, bench.pods(), result.pods, controller.nodes_with_series()),
                "controller_mebibytes_before": before,
                "controller_mebibytes_after": measure.resident_mebibytes(controller.pid),
            }


def idle(wanted: Wanted) -> Figures:
    with (
        _fitting(wanted) as bench,
        bench.generator("idle", verified=wanted.nodes, kubelets=_have_kubelets(wanted)) as generator,
    ):
        _create_verified(generator, wanted.nodes)
        time.sleep(2 * _SETTLE_SECONDS)
        with bench.controller() as controller:
            time.sleep(_SETTLE_SECONDS)
            say(f"{wanted.seconds:g} s of {wanted.nodes} nodes and nothing to do")
            with bench.plane.audit.window() as calls:
                pids = bench.processes(generator=generator.pid, controller=controller.pid)
                before = measure.read(pids)
                time.sleep(wanted.seconds)
                cost = measure.cost(before, measure.read(pids))
            return {
                "controller_cpu_seconds_a_minute": cost.seconds["controller"] * 60 / cost.elapsed,
                "controller_mebibytes": measure.resident_mebibytes(controller.pid),
                "controller_peak_mebibytes_since_its_start": measure.peak_mebibytes(controller.pid),
                **report.call_figures(calls, AGENT, wanted.nodes),
                **figures.of_cost(cost),
            }


SCENARIOS: dict[str, Callable[[Wanted], Figures]] = {
    "floor": floor,
    "burst": burst,
    "crowd": crowd,
    "trickle": trickle,
    "outage": outage,
    "churn": churn,
    "idle": idle,
}


@contextlib.contextmanager
def _fitting(wanted: Wanted) -> Iterator[Bench]:
    with fresh(wanted.command) as bench:
        if not _have_kubelets(wanted):
            bench.without_kubelets()
        yield bench


def _have_kubelets(wanted: Wanted) -> bool:
    return wanted.nodes <= _MOST_KUBELETS


def _create_verified(generator: Generator, nodes: int) -> None:
    generator.go()
    generator.answer(str)
    say(f"{nodes} verified nodes created")


def _measured(bench: Bench, controller: Controller, generator: Generator) -> tuple[Result, Figures]:
    """Create gated nodes and measure until the controller has released them."""
    generator.needs(controller)
    pids = bench.processes(generator=generator.pid, controller=controller.pid)
    with bench.plane.audit.window() as calls:
        begin = functools.partial(measure.reset_peak, controller.pid)
        result, cost, afterwards = _load(generator, pids, begin, bench.wait_until_quiet)
    if figures.released(result) < result.expected:
        say(f"the end of the controller's log:\n{controller.last_lines()}")
        say(f"the workers that are left (KWOK might have lost one):\n{bench.describe_pods()}")
    return result, {
        **figures.of_load(result),
        "seconds_from_then_until_no_worker_was_left": afterwards,
        **_reactions(bench, result, AGENT),
        **_controllers(controller, cost),
        **report.call_figures(calls, AGENT, len(result.moments[Moment.POSTED])),
    }


def _controllers(controller: Controller, cost: measure.Cost) -> Figures:
    return {
        "seconds_in_the_queue_at_most": report.shares(controller.queue_waits()),
        "controller_cpu_seconds": cost.seconds["controller"],
        "controller_peak_mebibytes": measure.peak_mebibytes(controller.pid),
        **figures.of_cost(cost),
    }


def _reactions(bench: Bench, result: Result, agent: str) -> Figures:
    with bench.audit_log.open("rb") as log:
        return figures.of_reactions(result, reaction.asked(log, agent))


def _load(
    generator: Generator,
    pids: dict[str, int],
    begin: Callable[[], None] = lambda: None,
    end: Callable[[], None] = lambda: None,
) -> tuple[Result, measure.Cost, float]:
    """Return results, cost, and the duration of `end`, which is not awaited unless all nodes are released."""
    time.sleep(_SETTLE_SECONDS)
    begin()
    before = measure.read(pids)
    generator.go()
    result = generator.answer(Result)
    done = time.monotonic()
    if figures.released(result) == result.expected:
        end()
    afterwards = time.monotonic() - done
    time.sleep(_AFTERWARDS_SECONDS)
    return result, measure.cost(before, measure.read(pids)), afterwards
