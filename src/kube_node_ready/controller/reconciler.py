"""Reconcile one node: snapshot -> decision -> log and metrics -> effects; and requeue it after an error.

All durable state is in the API server, so the process can be restarted at any time.
"""

from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from typing import Protocol

from kube_node_ready.api.contract import EventReason
from kube_node_ready.controller import transition_log
from kube_node_ready.controller.cache import ClusterCache
from kube_node_ready.controller.execution import ForeignWorker, RemovalBlocked
from kube_node_ready.controller.karpenter import ClaimLookupFailed
from kube_node_ready.controller.metrics import Metrics
from kube_node_ready.kube.errors import Conflict, KubeError, NotFound, Rejected, Throttled, Unreachable
from kube_node_ready.kube.leader_election import LeaseLost
from kube_node_ready.kube.workqueue import WorkQueue
from kube_node_ready.log import log
from kube_node_ready.verification.decide import decide, worker_creation_rejected, worker_not_genuine, write_rejected
from kube_node_ready.verification.effects import (
    AdoptNode,
    CloseGate,
    ConfirmAttempt,
    Decision,
    Effect,
    EmitEvent,
    OpenGate,
    RemoveNode,
    StartAttempt,
    WriteStatus,
)
from kube_node_ready.verification.model import Node, Phase, Policy, Snapshot

_MANY_CONFLICTS = 5


class Executes(Protocol):
    async def apply(self, effect: Effect) -> bool: ...
    async def ensure_ledger(self) -> None: ...


class Reconciler:
    def __init__(
        self, cache: ClusterCache, executor: Executes, queue: WorkQueue, policy: Policy, metrics: Metrics
    ) -> None:
        self._cache = cache
        self._executor = executor
        self._queue = queue
        self._policy = policy
        self._metrics = metrics
        self._blocked: dict[str, str] = {}
        self._rejected: dict[str, str] = {}
        self._failed_releases: dict[str, int] = {}
        self.phases: dict[str, Phase] = {}

    async def process(self, name: str) -> None:
        """Reconcile one node, and queue it again if that is due. An error affects only this node."""
        if (wait := self._cache.pace.wait(name)) > 0:
            self._queue.add(name, after=wait)
            return
        try:
            recheck = await self.reconcile(name)
        except LeaseLost:
            raise
        except Conflict as error:  # another client changed the node
            self._metrics.conflicts.inc()
            self._cache.wake()
            if self._queue.retry(name) >= _MANY_CONFLICTS:
                self._cache.errors.api_error(error)
        except KubeError as error:
            self._cache.errors.api_error(error)
            self._failed(name, error)
        except Exception as error:  # noqa: BLE001  a bug, or a response that is not from Kubernetes
            self._cache.errors.unexpected(name, error)
            self._failed(name, error)
        else:
            self._queue.forget(name)
            if recheck is not None:
                self._queue.add(name, after=recheck.total_seconds())

    async def reconcile(self, name: str) -> timedelta | None:
        """Reconcile one node. Return when to reconcile it again."""
        state = self._cache.state
        snapshot = state.snapshot(name, _now())
        if snapshot is None:
            self._forget(name)
            return None
        await self._report_forgery(snapshot)
        decision = decide(snapshot, self._policy)
        self._observe(snapshot, decision)
        starts = any(isinstance(effect, StartAttempt) for effect in decision.effects)
        with state.starting(name) if starts else nullcontext():
            await self._execute(snapshot, decision)
        if starts:
            self._cache.waiting.wake()  # the worker might have been rejected, so its slot is free
        return decision.recheck

    def _forget(self, name: str) -> None:
        self.phases.pop(name, None)
        self._blocked.pop(name, None)
        self._rejected.pop(name, None)
        self._failed_releases.pop(name, None)
        self._cache.waiting.forget(name)
        self._cache.records.take_forgery(name)

    def _observe(self, snapshot: Snapshot, decision: Decision) -> None:
        name = snapshot.node.name
        before, self.phases[name] = self.phases.get(name), decision.phase
        self._metrics.on_decision(before, decision)
        if decision.phase is Phase.WAITING and snapshot.node.registered:
            self._cache.waiting.for_slot(name)
        if decision.phase is Phase.VERIFIED and snapshot.burst and snapshot.attempts:
            self._cache.waiting.to_announce(name)
        if before is not decision.phase and not decision.effects:
            self._cache.pace.wrote(name)  # a log line without a write, such as "Node waiting"
        transition_log.phase_changed(before, snapshot, decision, self._policy)

    async def _execute(self, snapshot: Snapshot, decision: Decision) -> None:
        for effect in decision.effects:
            # Failed writes count, too: another client could make all of them fail.
            self._cache.pace.wrote(snapshot.node.name)
            try:
                acted = await self._executor.apply(effect)
            except KubeError as error:
                if isinstance(effect, StartAttempt) and isinstance(error, Rejected | NotFound):
                    self._metrics.creation_errors.labels(error.reason).inc()
                    rejected = worker_creation_rejected(snapshot, effect.number, self._policy, error.message)
                    await self._execute_instead(snapshot, rejected)
                    return
                if isinstance(error, Rejected) or self._is_lasting(snapshot.node, effect, error):
                    await self._report_rejection(snapshot, effect, error)
                raise
            except ForeignWorker as error:
                log("Foreign worker pod discarded", level="warn", node=snapshot.node.name, error=str(error))
                number = snapshot.node.record.attempt + 1
                await self._execute_instead(snapshot, worker_not_genuine(snapshot, number, self._policy, str(error)))
                return
            except (ClaimLookupFailed, RemovalBlocked) as error:
                await self._report_blocked_removal(effect, str(error))
            else:
                if acted:
                    self._on_executed(snapshot, decision, effect)

    async def _execute_instead(self, snapshot: Snapshot, decision: Decision) -> None:
        self._observe(snapshot, decision)
        await self._execute(snapshot, decision)

    def _on_executed(self, snapshot: Snapshot, decision: Decision, effect: Effect) -> None:
        if isinstance(effect, WriteStatus) and decision.verdict and effect.record.cause.blames_node:
            self._cache.state.witnessed(snapshot.node, effect.record.attempt)
        if isinstance(effect, OpenGate):
            self._rejected.pop(snapshot.node.name, None)
            self._failed_releases.pop(snapshot.node.name, None)
        self._metrics.on_effect(effect)
        transition_log.effect_applied(effect, decision, self._policy)
        if isinstance(effect, ConfirmAttempt):  # now its verdict counts
            self._queue.add(snapshot.node.name)

    def _is_lasting(self, node: Node, effect: Effect, error: KubeError) -> bool:
        """Return whether the API server has rejected this release several times in a row.

        A webhook can reject the patch with a response that looks like a conflict, or always fail with 429 or 5xx.
        """
        if not isinstance(effect, OpenGate) or not error.status:
            return False
        failed = self._failed_releases[node.name] = self._failed_releases.get(node.name, 0) + 1
        return failed >= _MANY_CONFLICTS

    async def _report_rejection(self, snapshot: Snapshot, effect: Effect, error: KubeError) -> None:
        """Report on the Node that the server rejects a write to it. Once per message."""
        name, message = snapshot.node.name, error.message
        if not isinstance(effect, OpenGate | CloseGate | WriteStatus | AdoptNode):
            return
        if self._rejected.get(name) == message:
            return
        self._rejected[name] = message
        self._metrics.writes_rejected.labels("release" if isinstance(effect, OpenGate) else "record").inc()
        log("Node write rejected", level="warn", node=name, error=message, status=error.status)
        decision = write_rejected(snapshot, effect, message)
        self._observe(snapshot, decision)
        for report in decision.effects:
            with suppress(Rejected, Unreachable, NotFound):  # the server might reject the condition, too
                if await self._executor.apply(report):
                    self._metrics.on_effect(report)

    async def _report_forgery(self, snapshot: Snapshot) -> None:
        """Report it once per hour. Decisions do not rely on the record alone, so nothing else follows."""
        if not self._cache.records.take_forgery(snapshot.node.name):
            return
        text = "another client changed the verification record; this has no effect on verification"
        # Without an attempt: once per hour, not per attempt.
        event = EmitEvent(snapshot.node, EventReason.RECORD_CHANGED, text, 0, warning=True)
        if await self._executor.apply(event):
            self._cache.pace.wrote(snapshot.node.name)
            self._metrics.on_effect(event)
            log("Verification record changed by another client", level="warn", node=snapshot.node.name)

    async def _report_blocked_removal(self, effect: Effect, reason: str) -> None:
        assert isinstance(effect, RemoveNode)
        name = effect.node.name
        if self._blocked.get(name) != reason:
            self._blocked[name] = reason
            self._metrics.deletions.labels("failed").inc()
            log("Removal blocked", level="warn", node=name, reason=reason)
        attempt = effect.node.record.attempt
        blocked = EmitEvent(effect.node, EventReason.REMOVAL_BLOCKED, reason, attempt, warning=True)
        if await self._executor.apply(blocked):
            self._metrics.on_effect(blocked)

    def _failed(self, name: str, error: Exception) -> None:
        self._metrics.reconcile_errors.inc()
        self._metrics.errors_by_type.labels(_error_type(error)).inc()
        self._queue.retry(name, at_least=error.retry_after if isinstance(error, Throttled) else 0)


def _error_type(error: Exception) -> str:
    """The value of a metric's label, which stays the same when a class is renamed."""
    return "Refused" if isinstance(error, Rejected) else type(error).__name__


def _now() -> datetime:
    return datetime.now(UTC)
