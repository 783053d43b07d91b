"""Gauges of the current state: nodes by status, worker pods, removal budgets, and series per node.

They are read from the caches on each scrape: they cannot drift, and the series of a deleted node disappear.
"""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Protocol

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kube_node_ready.api.record import Outcome
from kube_node_ready.verification import removal_budget, reverify
from kube_node_ready.verification.model import Node, Phase, Policy, Removal, RemovalPolicy, State, Worker

_PREFIX = "kube_node_ready"
_CONTROLLER = f"{_PREFIX}_controller"


class StateView(Protocol):
    """The current state, as far as it is exported."""

    @property
    def nodes(self) -> Iterable[Node]: ...
    @property
    def workers(self) -> Iterable[Worker]: ...
    @property
    def phases(self) -> Mapping[str, Phase]: ...
    @property
    def queue_depth(self) -> int: ...
    @property
    def removals(self) -> Iterable[Removal]: ...


class StateCollector(Collector):
    def __init__(self, state: StateView, policy: Policy, succeeded: Counter, *, per_node: bool) -> None:
        self._state = state
        self._policy = policy
        self._succeeded = succeeded
        self._per_node = per_node

    def collect(self) -> Iterator[Metric]:
        nodes = [node for node in self._state.nodes if node.labelled or self._policy.guards(node)]
        statuses = Tally(_status(node, self._state.phases.get(node.name), self._policy) for node in nodes)
        for status in ("unverified", "verifying", "verified", "failed"):
            yield _gauge_family(f"{_CONTROLLER}_nodes_{status}", f"Nodes with status {status}", statuses[status])
        degraded = sum(map(reverify.is_degraded, nodes)) if self._policy.reverification else 0
        yield _gauge_family(
            f"{_CONTROLLER}_nodes_doubtful", "Verified nodes whose last re-verification failed", degraded
        )
        yield _gauge_family(
            f"{_CONTROLLER}_reconcile_queue_depth", "Nodes waiting in the queue", self._state.queue_depth
        )
        yield from self._workers()
        if self._policy.removal:
            yield from _budget(nodes, self._state.removals, self._policy.removal)
        if self._per_node:
            yield from _each_node(nodes, self._state.phases, self._policy)

    def _workers(self) -> Iterator[Metric]:
        states = Tally(worker.state for worker in self._state.workers)
        text = "Worker pods that are pending, running or failed, and those that succeeded since the controller started"
        by_status = GaugeMetricFamily(f"{_PREFIX}_worker_pods", text, labels=["status"])
        for state, word in {State.PENDING: "pending", State.RUNNING: "running", State.FAILED: "failed"}.items():
            by_status.add_metric([word], states[state])
        # Passed pods are deleted immediately, so the number that exist is almost always 0.
        by_status.add_metric(["succeeded"], _value(self._succeeded))
        yield by_status
        active = states[State.PENDING] + states[State.RUNNING]
        yield _gauge_family(f"{_CONTROLLER}_worker_pods_active", "Worker pods that are pending or running", active)


def _value(counter: Counter) -> float:
    (family,) = counter.collect()
    return family.samples[0].value


def _budget(nodes: list[Node], removals: Iterable[Removal], policy: RemovalPolicy) -> Iterator[Metric]:
    text = "Nodes of a pool that can be removed within one window"
    allowed = GaugeMetricFamily(f"{_PREFIX}_removal_budget_limit", text, labels=["pool"])
    used = GaugeMetricFamily(f"{_PREFIX}_removal_budget_used", "Nodes removed within the window", labels=["pool"])
    since = datetime.now(UTC) - policy.window
    gone = Tally(removal.pool for removal in removals if removal.at > since)
    for pool, count in Tally(node.pool for node in nodes).items():
        allowed.add_metric([pool], removal_budget.limit(count, policy))
        used.add_metric([pool], gone[pool])
    yield from (allowed, used)


def _each_node(nodes: list[Node], phases: Mapping[str, Phase], policy: Policy) -> Iterator[Metric]:
    status = GaugeMetricFamily(
        f"{_PREFIX}_verification_status", "1 for the current status of the node", labels=["node", "status"]
    )
    seconds = GaugeMetricFamily(
        f"{_PREFIX}_verification_duration_seconds", "Duration of the last attempt", labels=["node"]
    )
    failures = GaugeMetricFamily(f"{_CONTROLLER}_node_retry_count", "Failures in a row", labels=["node"])
    retries = GaugeMetricFamily(f"{_PREFIX}_retry_attempts_total", "Failures in a row", labels=["node"])
    for node in nodes:
        status.add_metric([node.name, _status(node, phases.get(node.name), policy)], 1)
        if node.record.attempt:
            seconds.add_metric([node.name], node.record.seconds)
        failures.add_metric([node.name], node.record.failures)
        retries.add_metric([node.name], node.record.failures)
    yield from (status, seconds, failures, retries)


def _status(node: Node, phase: Phase | None, policy: Policy) -> str:
    if node.labelled and not policy.guards(node):
        return "verified"
    if phase is Phase.VERIFYING:
        return "verifying"
    return "failed" if node.record.outcome is Outcome.FAILED else "unverified"


def _gauge_family(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)
