"""Define the controller's metrics.

Counters and histograms are updated by events. Gauges of the current state (nodes by status, worker pods, series per
node) are read from the caches on each scrape: they cannot drift, and the series of a deleted node disappear.
"""

import time
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from kube_node_ready import __built__, __commit__, __version__
from kube_node_ready.api.contract import EventReason
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.api.report import TargetResult
from kube_node_ready.checks.check import CHECKS
from kube_node_ready.controller.state_metrics import StateCollector, StateView
from kube_node_ready.kube.client import Call
from kube_node_ready.verification.effects import (
    CloseGate,
    Decision,
    DiscardAttempt,
    Effect,
    EmitEvent,
    OpenGate,
    RemoveNode,
    StartAttempt,
    WriteStatus,
)
from kube_node_ready.verification.model import Attempt, Node, Phase, Policy

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for every counter, which is not needed
_PREFIX = "kube_node_ready"
_CONTROLLER = f"{_PREFIX}_controller"
_KUBERNETES_CHECKS = {"api": "api", "services": "service_discovery"}
_CHECK_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30)
_RECONCILE_SECONDS = (0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 30)
_WORKER_SECONDS = (1, 2, 5, 10, 30, 60, 120, 300, 600)
_QUEUE_SECONDS = (0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60)
_CALL_SECONDS = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30)
_OTHER = "other"
_CAUSES = tuple(cause.value or _OTHER for cause in Cause)
_REJECTION_REASONS = (
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
    _OTHER,
)
"""Reasons of the API server, and one of our own. A webhook can answer with any text."""


class Metrics:
    """`known_targets` are the allowed label values: a worker's report must not add new ones."""

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

    def export_state(self, state: StateView, *, per_node: bool) -> None:
        """Export the current state, too."""
        collector = StateCollector(state, self._policy, self.workers_succeeded, per_node=per_node)
        self.registry.register(collector)

    def on_decision(self, before: Phase | None, decision: Decision) -> None:
        """Count a decision. It is made again after a conflict, but its verdict counts once."""
        self.reconciliations.labels(decision.phase.value).inc()
        if before is decision.phase or not (decision.verdict or decision.phase is Phase.FAILED):
            return
        (record,) = (effect.record for effect in decision.effects if isinstance(effect, OpenGate | WriteStatus))
        self._verdict(record, decision.verdict)

    def on_effect(self, effect: Effect) -> None:
        """Count an executed effect."""
        match effect:
            case StartAttempt():
                self.workers_created.inc()
            case OpenGate(node, _, _):
                self._gate_opened(node)
            case CloseGate():
                self.gates_closed.inc()
            case WriteStatus(_, record):
                self._recorded(record)
            case EmitEvent():
                self._announced(effect)
            case RemoveNode():
                self.deletions.labels("success").inc()
                self.events.labels(EventReason.REMOVING).inc()  # removal and Event are one effect
            case DiscardAttempt():
                self.workers_deleted.inc()

    def on_api_call(self, call: Call) -> None:
        self.api_requests.labels(call.verb, call.resource, str(call.status or "none")).inc()
        if call.verb != "watch":
            self.api_seconds.labels(call.verb).observe(call.seconds)

    def _recorded(self, record: VerificationRecord) -> None:
        if record.outcome is Outcome.PENDING and record.is_contested:
            self.gates_contested.inc()
        if record.outcome is Outcome.FAILED:
            self.retries.inc()
            if record.failures == self._policy.max_failures:
                self.exhausted.inc()

    def _announced(self, event: EmitEvent) -> None:
        self.events.labels(event.reason).inc()
        if event.reason is EventReason.REMOVAL_BLOCKED:
            self.removals_blocked.inc()
        elif event.reason is EventReason.GATE_KEPT_OPEN:
            self.gates_kept_open.inc()

    def _gate_opened(self, node: Node) -> None:
        self.label_adds.labels("success").inc()
        self.labels_applied.labels(self._policy.label).inc()
        for taint in filter(self._policy.is_gate, node.taints):
            self.taint_removals.labels("success").inc()
            self.taints_removed.labels(taint.key).inc()

    def _verdict(self, record: VerificationRecord, attempt: Attempt | None) -> None:
        status = "success" if record.is_proof else "failed"
        self.verifications.labels(status).inc()
        self.attempts.labels(status).inc()
        if record.is_proof:
            self.workers_succeeded.inc()
        else:
            self.workers_failed.labels(record.cause.value or _OTHER).inc()
        if attempt:
            self.worker_seconds.labels(status).observe(record.seconds)
        for check in attempt.report.checks if attempt and attempt.report else ():
            self._checked(check)

    def _checked(self, check: TargetResult) -> None:
        name = check.name if check.name in CHECKS else _OTHER
        status, seconds = "success" if check.ok else "failed", check.ms / 1000
        self.check_seconds.labels(name).observe(seconds)
        if not check.ok:
            self.check_failures.labels(name).inc()
        target = check.target if check.target in self._known_targets else _OTHER
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
        self.verifications = self._counter("verifications", "Completed attempts", status=statuses)
        self.attempts = self._counter(
            "verification_attempts", "Completed attempts, under the older name of the series", status=statuses
        )
        self.retries = self._counter("verification_retries", "Failed attempts that are retried")
        self.exhausted = self._counter("verification_exhausted", "Nodes that failed maxRetries times in a row")
        self.check_failures = self._counter("check_failures", "Failed targets, by check", check=CHECKS)
        self.check_seconds = self._histogram(
            "check_duration_seconds", "Duration of a check on the node", _CHECK_SECONDS, check=CHECKS
        )
        targets = (*sorted(self._known_targets), _OTHER)
        self.dns_checks = self._counter("dns_check", "Checks of a DNS name, by result", domain=targets, status=statuses)
        self.dns_seconds = self._histogram(
            "dns_check_duration_seconds", "Duration of a DNS check", _CHECK_SECONDS, domain=targets
        )
        self.network_checks = self._counter(
            "network_check", "Checks of a network target, by result", address=targets, status=statuses
        )
        self.network_seconds = self._histogram(
            "network_check_duration_seconds", "Duration of a network check", _CHECK_SECONDS, address=targets
        )
        kinds = tuple(_KUBERNETES_CHECKS.values())
        self.kubernetes_checks = self._counter(
            "kubernetes_check", "Checks that query the API server", check_type=kinds, status=statuses
        )
        self.kubernetes_seconds = self._histogram(
            "kubernetes_check_duration_seconds",
            "Duration of a check that queries the API server",
            _CHECK_SECONDS,
            check_type=kinds,
        )

    def _declare_controller(self) -> None:
        self.build = Gauge(
            f"{_PREFIX}_build_info", "Always 1", ["version", "commit_hash", "build_date"], registry=self.registry
        )
        self.healthy = self._gauge("controller_healthy", "1 while this process is healthy")
        self.start_time = self._gauge("controller_start_time_seconds", "Start time of this process")
        self.leader = self._gauge("controller_leader_election_status", "1 while this process holds the Lease")
        self.lease_duration = self._gauge(
            "controller_leader_election_lease_duration_seconds", "Configured duration of the Lease"
        )
        self.transitions = self._counter("controller_leader_election_transitions", "Observed changes of the leader")
        self.reconciliations = self._counter(
            "controller_reconciliation", "Reconciles, by the resulting phase of the node", result=tuple(Phase)
        )
        self.reconcile_errors = self._counter("controller_reconcile_errors", "Reconciles that ended with an error")
        self.errors_by_type = self._counter(
            "controller_reconciliation_errors", "Reconciles that ended with an error, by type", error_type=()
        )
        self.reconcile_seconds = self._histogram(
            "controller_reconciliation_duration_seconds",
            "Duration of a reconcile, including its writes",
            _RECONCILE_SECONDS,
        )
        self.queue_seconds = self._histogram(
            "controller_reconcile_queue_latency_seconds", "Time a node waited in the queue", _QUEUE_SECONDS
        )
        self.api_requests = self._counter(
            "controller_api_requests", "Requests to the API server", verb=(), resource=(), code=()
        )
        self.api_seconds = self._histogram(
            "controller_api_request_duration_seconds", "Duration of requests to the API server", _CALL_SECONDS, verb=()
        )
        self.events = self._counter("controller_events", "Events written on Nodes", reason=tuple(EventReason))
        self.conflicts = self._counter(
            "controller_lost_races", "Writes rejected because another client changed the object"
        )
        self.watch_errors = self._counter("controller_watch_errors", "Watches restarted after an error")

    def _declare_nodes_written(self) -> None:
        self.workers_created = self._counter("controller_worker_pods_created", "Worker pods created")
        self.workers_succeeded = self._counter("controller_worker_pods_succeeded", "Worker pods that passed")
        self.workers_failed = self._counter("controller_worker_pods_failed", "Worker pods that failed", reason=_CAUSES)
        self.workers_deleted = self._counter("controller_worker_pods_deleted", "Worker pods deleted")
        counter = self._counter(
            "controller_worker_pod_creation_errors",
            "Worker pods that could not be created",
            error_type=_REJECTION_REASONS,
        )
        self.creation_errors = ClosedCounter(counter, _REJECTION_REASONS)
        self.worker_seconds = self._histogram(
            "controller_worker_pod_duration_seconds",
            "Time from the creation of a worker pod to its result",
            _WORKER_SECONDS,
            result=("success", "failed"),
        )
        self.taint_removals = self._counter("node_taint_removal", "Gate taints removed", status=("success",))
        self.label_adds = self._counter("node_label_add", "Verified labels set", status=("success",))
        self.taints_removed = self._counter(
            "controller_taints_removed",
            "Gate taints removed, by key",
            taint_key=[gate.key for gate in self._policy.gates],
        )
        self.labels_applied = self._counter(
            "controller_labels_applied", "Verified labels set, by key", label_key=[self._policy.label]
        )
        self.deletions = self._counter(
            "node_deletion", "Attempts to remove a failed node, by result", status=("success", "failed")
        )
        self.gates_closed = self._counter("gates_closed", "Gates restored after repeated failures of a verified node")
        self.gates_kept_open = self._counter(
            "gates_kept_open", "Gates not restored, because too many nodes were failing at the same time"
        )
        self.gates_contested = self._counter("gates_contested", "Releases that another client undid repeatedly")
        self.writes_rejected = self._counter(
            "node_writes_rejected",
            "Releases or records that the API server rejected",
            write=("release", "record"),
        )
        self.records_changed = self._counter(
            "records_changed", "Verification records that another client changed to a verdict"
        )
        self.removals_blocked = self._counter("removals_blocked", "Removals blocked, such as by the budget or a pause")

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
    """Create all known series: alerts need a series that exists before the first failure."""
    series: list[tuple[str, ...]] = [()]
    for values in labels.values():
        series = [(*known, value) for known in series for value in values]
    for values in series:
        if values:
            metric.labels(*values)


class ClosedCounter:
    """A counter whose label value comes from outside: unknown values count as `other`."""

    def __init__(self, counter: Counter, known: Iterable[str]) -> None:
        self._counter = counter
        self._known = frozenset(known)

    def labels(self, value: str) -> Counter:
        return self._counter.labels(value if value in self._known else _OTHER)
