"""Every series, declared once.

Counters and histograms grow as things happen. What describes the present (nodes by status, worker pods, each node's own
series) is read from the caches when someone scrapes: it cannot drift, and a node's series go when the node goes.
"""

import time
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kube_node_ready import __built__, __commit__, __version__
from kube_node_ready.checks.model import CHECKS
from kube_node_ready.kube.client import Call
from kube_node_ready.verify import budget, reverify
from kube_node_ready.verify.decide import is_contested
from kube_node_ready.verify.model import (
    Announce,
    Cause,
    CloseGate,
    Decision,
    DropWorker,
    Effect,
    Node,
    Outcome,
    Phase,
    Policy,
    Record,
    Release,
    Removal,
    RemovalPolicy,
    RemoveNode,
    StartWorker,
    State,
    Worker,
    WriteRecord,
)
from kube_node_ready.verify.report import CheckResult

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for every counter, of no use to anybody
_PREFIX = "kube_node_ready"
_CONTROLLER = f"{_PREFIX}_controller"
_KUBERNETES_CHECKS = {"api": "api", "services": "service_discovery"}
_CHECK_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30)
_RECONCILE_SECONDS = (0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 30)
_WORKER_SECONDS = (1, 2, 5, 10, 30, 60, 120, 300, 600)
_QUEUE_SECONDS = (0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60)
_CALL_SECONDS = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30)
_ANY_OTHER = "other"
_CAUSES = tuple(cause.value or _ANY_OTHER for cause in Cause)
_REFUSALS = (
    "BadRequest",
    "Changed",
    "Expired",
    "Forbidden",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "Unauthorized",
    "UnsupportedMediaType",
    _ANY_OTHER,
)
"""Reasons of the API server, and one of our own. A webhook can answer with any text."""
EVENTS = (
    "Verifying",
    "Verified",
    "VerificationFailed",
    "VerificationExhausted",
    "GateRestored",
    "GateKeptOpen",
    "RemovalBlocked",
    "Removing",
    "Cordoned",
    "GateContested",
    "ReleaseRejected",
    "RecordRejected",
    "RecordChanged",
)


class Present(Protocol):
    """What can be asked about the present."""

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


class Metrics:
    """`known_targets` are the names that may be label values: a worker's report must not make up new ones."""

    def __init__(self, policy: Policy, known_targets: frozenset[str] = frozenset()) -> None:
        self.registry = CollectorRegistry()
        self._known_targets = known_targets
        self._policy = policy
        self._declare_verification()
        self._declare_controller()
        self._declare_nodes_written()
        self.healthy.set(1)
        self.start_time.set(time.time())
        self.build.labels(__version__, __commit__ or "from source", __built__).set(1)

    def describe(self, present: Present, *, per_node: bool) -> None:
        """From now on the present is exported too."""
        self.registry.register(_PresentCollector(present, self._policy, per_node=per_node))

    def decided(self, before: Phase | None, decision: Decision) -> None:
        """A decision is made again when its effects lost a race; its verdict counts once."""
        self.reconciliations.labels(decision.phase.value).inc()
        if before is decision.phase or not (decision.verdict or decision.phase is Phase.FAILED):
            return
        (record,) = (effect.record for effect in decision.effects if isinstance(effect, Release | WriteRecord))
        self._verdict(record, decision.verdict)

    def done(self, effect: Effect) -> None:
        """An effect was carried out."""
        match effect:
            case StartWorker():
                self.workers_created.inc()
            case Release(node, _):
                self._released(node)
            case CloseGate():
                self.gates_closed.inc()
            case WriteRecord(_, record):
                self._recorded(record)
            case Announce():
                self._announced(effect)
            case RemoveNode():
                self.deletions.labels("success").inc()
                self.events.labels("Removing").inc()  # the deed and its Event are one effect
            case DropWorker():
                self.workers_deleted.inc()

    def called(self, call: Call) -> None:
        self.api_requests.labels(call.verb, call.resource, str(call.status or "none")).inc()
        if call.verb != "watch":
            self.api_seconds.labels(call.verb).observe(call.seconds)

    def _recorded(self, record: Record) -> None:
        if record.outcome is Outcome.PENDING and is_contested(record):
            self.gates_contested.inc()
        if record.outcome is Outcome.FAILED:
            self.retries.inc()
            if record.failures == self._policy.max_failures:
                self.exhausted.inc()

    def _announced(self, news: Announce) -> None:
        self.events.labels(news.reason).inc()
        if news.reason == "RemovalBlocked":
            self.removals_blocked.inc()
        elif news.reason == "GateKeptOpen":
            self.gates_kept_open.inc()

    def _released(self, node: Node) -> None:
        self.label_adds.labels("success").inc()
        self.labels_applied.labels(self._policy.label).inc()
        for taint in filter(self._policy.is_gate, node.taints):
            self.taint_removals.labels("success").inc()
            self.taints_removed.labels(taint.key).inc()

    def _verdict(self, record: Record, worker: Worker | None) -> None:
        status = "success" if record.is_proof else "failed"
        self.verifications.labels(status).inc()
        self.attempts.labels(status).inc()
        if record.is_proof:
            self.workers_succeeded.inc()
        else:
            self.workers_failed.labels(record.cause.value or _ANY_OTHER).inc()
        if worker:
            self.worker_seconds.labels(status).observe(record.seconds)
        for check in worker.report.checks if worker and worker.report else ():
            self._checked(check)

    def _checked(self, check: CheckResult) -> None:
        name = check.name if check.name in CHECKS else _ANY_OTHER
        status, seconds = "success" if check.ok else "failed", check.ms / 1000
        self.check_seconds.labels(name).observe(seconds)
        if not check.ok:
            self.check_failures.labels(name).inc()
        target = check.target if check.target in self._known_targets else _ANY_OTHER
        if name == "dns":
            self.dns_checks.labels(target, status).inc()
            self.dns_seconds.labels(target).observe(seconds)
        elif name == "network":
            self.network_checks.labels(target, status).inc()
            self.network_seconds.labels(target).observe(seconds)
        elif kind := _KUBERNETES_CHECKS.get(name):
            self.kubernetes_checks.labels(kind, status).inc()
            self.kubernetes_seconds.labels(kind).observe(seconds)

    def _declare_verification(self) -> None:
        statuses = ("success", "failed")
        self.verifications = self._counter("verifications", "Attempts that came to a verdict", status=statuses)
        self.attempts = self._counter("verification_attempts", "The same, under its older name", status=statuses)
        self.retries = self._counter("verification_retries", "Failures on record, each followed by another attempt")
        self.exhausted = self._counter("verification_exhausted", "Nodes that failed maxRetries times in a row")
        self.check_failures = self._counter("check_failures", "Targets that failed, by check", check=CHECKS)
        self.check_seconds = self._histogram(
            "check_duration_seconds", "Time a check took on the node", _CHECK_SECONDS, check=CHECKS
        )
        took, targets = "Time they took", (*sorted(self._known_targets), _ANY_OTHER)
        self.dns_checks = self._counter("dns_check", "Names asked for", domain=targets, status=statuses)
        self.dns_seconds = self._histogram("dns_check_duration_seconds", took, _CHECK_SECONDS, domain=targets)
        self.network_checks = self._counter("network_check", "Connections tried", address=targets, status=statuses)
        self.network_seconds = self._histogram("network_check_duration_seconds", took, _CHECK_SECONDS, address=targets)
        kinds = tuple(_KUBERNETES_CHECKS.values())
        self.kubernetes_checks = self._counter(
            "kubernetes_check", "Questions to the API server", check_type=kinds, status=statuses
        )
        self.kubernetes_seconds = self._histogram(
            "kubernetes_check_duration_seconds", took, _CHECK_SECONDS, check_type=kinds
        )

    def _declare_controller(self) -> None:
        self.build = Gauge(
            f"{_PREFIX}_build_info", "Always 1", ["version", "commit_hash", "build_date"], registry=self.registry
        )
        self.healthy = self._gauge("controller_healthy", "1 while this process works")
        self.start_time = self._gauge("controller_start_time_seconds", "When this process started")
        self.leader = self._gauge("controller_leader_election_status", "1 while this process holds the Lease")
        self.lease_duration = self._gauge("controller_leader_election_lease_duration_seconds", "As configured")
        self.transitions = self._counter(
            "controller_leader_election_transitions", "Changes of the Lease's holder that we saw"
        )
        self.reconciliations = self._counter(
            "controller_reconciliation", "Looks at a node, by what came of it", result=tuple(Phase)
        )
        self.reconcile_errors = self._counter("controller_reconcile_errors", "Looks that ended in an error")
        self.errors_by_type = self._counter(
            "controller_reconciliation_errors", "The same, by kind of error", error_type=()
        )
        self.reconcile_seconds = self._histogram(
            "controller_reconciliation_duration_seconds", "Time one look took, writes included", _RECONCILE_SECONDS
        )
        self.queue_seconds = self._histogram(
            "controller_reconcile_queue_latency_seconds", "Time a node waited for its turn", _QUEUE_SECONDS
        )
        self.api_requests = self._counter(
            "controller_api_requests", "Requests to the API server", verb=(), resource=(), code=()
        )
        self.api_seconds = self._histogram(
            "controller_api_request_duration_seconds", "Time until they were answered", _CALL_SECONDS, verb=()
        )
        self.events = self._counter("controller_events", "Events written on Nodes", reason=EVENTS)
        self.lost_races = self._counter("controller_lost_races", "Writes that another writer came before")
        self.complaints = self._counter("controller_watch_errors", "Watches that had to be opened again for an error")

    def _declare_nodes_written(self) -> None:
        self.workers_created = self._counter("controller_worker_pods_created", "Worker pods made")
        self.workers_succeeded = self._counter("controller_worker_pods_succeeded", "Worker pods that passed")
        self.workers_failed = self._counter("controller_worker_pods_failed", "Worker pods that failed", reason=_CAUSES)
        self.workers_deleted = self._counter("controller_worker_pods_deleted", "Worker pods deleted")
        refused = self._counter(
            "controller_worker_pod_creation_errors", "Worker pods that could not be made", error_type=_REFUSALS
        )
        self.creation_errors = ClosedCounter(refused, _REFUSALS)
        self.worker_seconds = self._histogram(
            "controller_worker_pod_duration_seconds",
            "From creation to verdict",
            _WORKER_SECONDS,
            result=("success", "failed"),
        )
        self.taint_removals = self._counter("node_taint_removal", "Gate taints removed", status=("success",))
        self.label_adds = self._counter("node_label_add", "Verified labels set", status=("success",))
        self.taints_removed = self._counter(
            "controller_taints_removed", "Gate taints removed", taint_key=[gate.key for gate in self._policy.gates]
        )
        self.labels_applied = self._counter("controller_labels_applied", "Labels set", label_key=[self._policy.label])
        self.deletions = self._counter("node_deletion", "Failed nodes removed", status=("success", "failed"))
        self.gates_closed = self._counter("gates_closed", "Gates closed again, since a verified node kept failing")
        self.gates_kept_open = self._counter(
            "gates_kept_open", "Gates not closed, since so many nodes failed that the cluster must be at fault"
        )
        self.gates_contested = self._counter("gates_contested", "Releases that another client undid, again and again")
        self.writes_rejected = self._counter(
            "node_writes_rejected",
            "Nodes whose release or record the API server rejected",
            write=("release", "record"),
        )
        self.records_changed = self._counter(
            "records_changed", "Verification records that another client changed to a verdict"
        )
        self.removals_blocked = self._counter("removals_blocked", "Removals that the budget or a halt forbade")

    def _counter(self, name: str, text: str, **labels: Iterable[str]) -> Counter:
        metric = Counter(f"{_PREFIX}_{name}", text, list(labels), registry=self.registry)
        _start_at_zero(metric, labels)
        return metric

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], **labels: Iterable[str]) -> Histogram:
        metric = Histogram(f"{_PREFIX}_{name}", text, list(labels), buckets=buckets, registry=self.registry)
        _start_at_zero(metric, labels)
        return metric

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", text, registry=self.registry)


def _start_at_zero(metric: Counter | Histogram, labels: dict[str, Iterable[str]]) -> None:
    """A series that appears with its first failure cannot be alerted on: every known one is there from the start."""
    series: list[tuple[str, ...]] = [()]
    for values in labels.values():
        series = [(*known, value) for known in series for value in values]
    for values in series:
        if values:
            metric.labels(*values)


class ClosedCounter:
    """A counter by one label, whose value another party chooses: what is not known beforehand counts as `other`."""

    def __init__(self, counter: Counter, known: Iterable[str]) -> None:
        self._counter = counter
        self._known = frozenset(known)

    def labels(self, value: str) -> Counter:
        return self._counter.labels(value if value in self._known else _ANY_OTHER)


class _PresentCollector(Collector):
    def __init__(self, present: Present, policy: Policy, *, per_node: bool) -> None:
        self._present = present
        self._policy = policy
        self._per_node = per_node

    def collect(self) -> Iterator[Metric]:
        nodes = [node for node in self._present.nodes if node.labelled or self._policy.guards(node)]
        statuses = Tally(_status(node, self._present.phases.get(node.name), self._policy) for node in nodes)
        for status in ("unverified", "verifying", "verified", "failed"):
            yield _one(f"{_CONTROLLER}_nodes_{status}", f"Nodes that are {status}", statuses[status])
        doubtful = sum(map(reverify.is_doubtful, nodes)) if self._policy.reverification else 0
        yield _one(f"{_CONTROLLER}_nodes_doubtful", "Verified nodes that failed when they were checked again", doubtful)
        yield _one(f"{_CONTROLLER}_reconcile_queue_depth", "Nodes waiting for their turn", self._present.queue_depth)
        yield from self._workers()
        if self._policy.removal:
            yield from _budget(nodes, self._present.removals, self._policy.removal)
        if self._per_node:
            yield from _each_node(nodes, self._present.phases, self._policy)

    def _workers(self) -> Iterator[Metric]:
        states = Tally(worker.state for worker in self._present.workers)
        by_status = GaugeMetricFamily(f"{_PREFIX}_worker_pods", "Worker pods there are, by status", labels=["status"])
        words = {State.PENDING: "pending", State.RUNNING: "running", State.PASSED: "succeeded", State.FAILED: "failed"}
        for state, word in words.items():
            by_status.add_metric([word], states[state])
        yield by_status
        active = states[State.PENDING] + states[State.RUNNING]
        yield _one(f"{_CONTROLLER}_worker_pods_active", "Worker pods that have no verdict yet", active)


def _budget(nodes: list[Node], removals: Iterable[Removal], policy: RemovalPolicy) -> Iterator[Metric]:
    text = "Nodes of a pool that may be removed within one window"
    allowed = GaugeMetricFamily(f"{_PREFIX}_removal_budget_limit", text, labels=["pool"])
    used = GaugeMetricFamily(f"{_PREFIX}_removal_budget_used", "Nodes removed within the window", labels=["pool"])
    since = datetime.now(UTC) - policy.window
    gone = Tally(removal.pool for removal in removals if removal.at > since)
    for pool, count in Tally(node.pool for node in nodes).items():
        allowed.add_metric([pool], budget.limit(count, policy))
        used.add_metric([pool], gone[pool])
    yield from (allowed, used)


def _each_node(nodes: list[Node], phases: Mapping[str, Phase], policy: Policy) -> Iterator[Metric]:
    status = GaugeMetricFamily(
        f"{_PREFIX}_verification_status", "1 for the status a node has", labels=["node", "status"]
    )
    seconds = GaugeMetricFamily(
        f"{_PREFIX}_verification_duration_seconds", "Time the last attempt took", labels=["node"]
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


def _one(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)
