"""Compute figures from observations. Pure."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bench import measure, reaction, report, timeline
from bench.generator import Result, gated_name
from bench.reaction import Asked
from bench.timeline import Moment
from lab.audit import Calls

Figures = dict[str, Any]
_GROUPS = 40
"""The number of points in a plot."""


def released(result: Result) -> int:
    return len(result.moments[Moment.RELEASED].keys() - set(result.left))


def is_complete(found: Figures) -> bool:
    """Return whether all expected nodes were released. Otherwise the figures are not comparable."""
    return len(set(str(found.get("released", "")).split(" of "))) == 1


def of_load(result: Result) -> Figures:
    moments = result.moments
    last = {moment: max(at.values(), default=result.begun) - result.begun for moment, at in moments.items()}
    return {
        "released": f"{released(result)} of {result.expected}",
        "seconds_until_all_released": last[Moment.RELEASED] if released(result) == result.expected else None,
        "seconds_until_all_created": last[Moment.POSTED],
        "seconds": {"latency": _spread(timeline.between(moments, Moment.POSTED, Moment.RELEASED))},
        "pods_seen": len(result.pods),
        "generator_lost_races": result.lost_races,
        "generator_retries": result.retries,
        "generator_watches_resumed": result.watches_resumed,
        "generator_lists": result.lists,
    }


def of_reactions(result: Result, requests: Asked) -> Figures:
    """Return the controller's share of each node's latency."""
    waits = reaction.waits(result.moments, result.pods, requests)
    return {
        "seconds_until_asked": asdict(reaction.reactions(result.moments, waits)),
        "seconds_by_node": reaction.grouped(reaction.split(result.moments, waits), _GROUPS),
    }


def of_lateness(result: Result, rate: float) -> Figures:
    """Return how far the load generator lagged behind its plan: a load that it cannot sustain is not measured."""
    posted = result.moments[Moment.POSTED]
    due = {gated_name(number): result.begun + number / rate for number in range(len(posted))}
    late = measure.spread([max(posted[name] - due[name], 0.0) for name in posted if name in due])
    return {"nodes_a_second": rate, "seconds_a_creation_took_from_its_due_time": asdict(late) if late else None}


def of_cost(cost: measure.Cost) -> Figures:
    return {
        "measured_seconds": cost.elapsed,
        "cpu_seconds": dict(cost.seconds),
        "other_cpu_seconds": cost.other,
        "other_share_of_the_machine": cost.other / (cost.elapsed * (os.cpu_count() or 1)),
        "stolen_cpu_seconds": cost.stolen,
    }


def of_an_outage(result: Result, ended: float) -> Figures:
    """Return the time from the end of the cause to the release. The latency would include the outage."""
    after = [at - ended for at in result.moments[Moment.RELEASED].values()]
    spread, complete = measure.spread(after), released(result) == result.expected
    return {
        "released": f"{released(result)} of {result.expected}",
        "seconds_from_its_end_until_all_released": spread.worst if spread and complete else None,
        "seconds_from_its_end": asdict(spread) if spread else None,
        "attempts_a_node": _attempts(result),
        "generator_watches_resumed": result.watches_resumed,
        "generator_lists": result.lists,
    }


def while_it_lasted(cost: measure.Cost, calls: Calls, agent: str) -> Figures:
    minutes = cost.elapsed / 60
    asked = report.calls_by_kind(calls, agent)
    return {
        "while_it_lasted": {
            "seconds": cost.elapsed,
            "controller_cpu_seconds_a_minute": cost.seconds["controller"] / minutes,
            "controller_calls_a_minute": sum(asked.values()) / minutes,
            "other_cpu_seconds": cost.other,
        },
        "controller_calls_a_minute_while_it_lasted": {kind: number / minutes for kind, number in asked.items()},
    }


def of_leftovers(left: Sequence[str], pods: Sequence[str], owners: dict[str, str], remembered: set[str]) -> Figures:
    """Return what remains of deleted nodes: their worker pods, and their state in the controller."""
    gone = set(left)
    return {
        "nodes_gone": len(gone),
        "nodes_gone_that_were_new": sum(name.startswith(gated_name(0)[:-1]) for name in gone),
        "pods_left_of_nodes_gone": sum(owners.get(pod) in gone for pod in pods),
        "nodes_gone_and_remembered": len(gone & remembered),
    }


def _spread(seconds: Mapping[str, float]) -> Figures | None:
    found = measure.spread(list(seconds.values()))
    return asdict(found) if found else None


def _attempts(result: Result) -> Figures:
    counts = Counter(result.pods.values())
    numbers = [counts[name] for name in result.moments[Moment.POSTED]]
    if not numbers:
        return {}
    return {"least": min(numbers), "mean": sum(numbers) / len(numbers), "most": max(numbers)}
