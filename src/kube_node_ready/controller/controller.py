"""caches -> queue -> gather -> decide -> observe -> apply.

Every event, of whatever kind, ends as a node's name in the queue; nobody asks which event it was. What matters is on
the server: this object can be thrown away at any moment.
"""

import asyncio
import time
import traceback
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from kube_node_ready import ledger, telling, watched
from kube_node_ready.attention import Attention
from kube_node_ready.effects import ForeignWorker, RemovalImpossible
from kube_node_ready.gather import View
from kube_node_ready.karpenter import LookUpFailed
from kube_node_ready.kube.cache import Cache
from kube_node_ready.kube.client import Kube
from kube_node_ready.kube.errors import KubeError, LostRace, NotFound, Refused, Throttled
from kube_node_ready.kube.lease import LeaseLost
from kube_node_ready.kube.queue import Queue
from kube_node_ready.log import log
from kube_node_ready.metrics import Metrics
from kube_node_ready.objects import Pod
from kube_node_ready.pace import Pace
from kube_node_ready.verify import patches
from kube_node_ready.verify.decide import could_not_start, decide, not_genuine, write_rejected
from kube_node_ready.verify.model import (
    Adopt,
    Announce,
    CloseGate,
    ConfirmWorker,
    Decision,
    DropWorker,
    Effect,
    Ledger,
    Node,
    Outcome,
    Phase,
    Policy,
    Pool,
    Record,
    Release,
    Removal,
    RemoveNode,
    Snapshot,
    StartWorker,
    Worker,
    WriteRecord,
)
from kube_node_ready.watched import LEDGER, Scope

_COMPLAINT_SECONDS = 10
_SENT = 4
"""So many records of a node are recognized as ours: the watch can be behind, and an answer can be lost."""
_MANY_RACES = 5
_BETWEEN_NEWS_SECONDS = 0.04
"""Three writes each, so that most of `qps` is left for releases."""


class Applies(Protocol):
    async def apply(self, effect: Effect) -> bool: ...
    async def open_ledger(self) -> None: ...


class Controller:
    def __init__(self, kube: Kube, policy: Policy, scope: Scope, metrics: Metrics) -> None:
        self._policy = policy
        self._scope = scope
        self._metrics = metrics
        self._attention = Attention(lambda: self._view.waits_for_others)
        self._nodes = Cache(
            kube, watched.nodes(policy, scope), self._node_changed, self._watch_failed, nap=self._attention.nap
        )
        self._newcomers = Cache(kube, watched.newcomers(policy, scope), self._newcomer, self._watch_failed)
        self._pods = Cache(kube, watched.workers(scope), self._worker_changed, self._watch_failed)
        self._book = Cache(kube, watched.removals(scope), self._ledger_changed, self._watch_failed)
        self._view = View(policy, self._nodes.objects, scope.slots, self._nodes.version)
        self._queue = Queue(observe=metrics.queue_seconds.observe)
        self._without_slot: dict[str, None] = {}
        self._untold: dict[str, None] = {}
        self._blocked: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._forged: set[str] = set()
        self._sent: dict[str, tuple[int, ...]] = {}
        self._pace = Pace()
        self._working = False
        self._last_complaint = 0.0
        self._confessed: set[str] = set()
        self._draining = False
        self._in_work = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.phases: dict[str, Phase] = {}

    async def watch(self) -> None:
        """Keep the caches true, for ever."""
        async with asyncio.TaskGroup() as tasks:
            for cache in self._caches:
                tasks.create_task(cache.run())

    async def work(self, writer: Applies) -> None:
        """Reconcile, for ever. The ledger need not be there: without it, nothing is removed."""
        for cache in (self._nodes, self._pods):
            await cache.ready()
        self._queue.clear()  # what lies there from a standby's life did not wait for us
        self._working = True
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._resync(writer))
            for _ in range(self._scope.reconciles):
                tasks.create_task(self._reconcile_all(writer))

    async def drain(self, seconds: float) -> None:
        """Take up nothing new; wait until what is in work is done, but not for ever."""
        self._draining = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)

    @property
    def _caches(self) -> tuple[Cache[Any, Any], ...]:
        always = (self._nodes, self._newcomers, self._pods)
        return (*always, self._book) if self._policy.removal else always

    def not_synced(self) -> str | None:
        return None if all(cache.synced for cache in self._caches) else "the caches are not filled yet"

    async def reconcile(self, name: str, writer: Applies) -> timedelta | None:
        """Look at one node, decide, act. Returns when to look again."""
        seen = self._view.snapshot(name, _now())
        if seen is None:
            for known in (self.phases, self._without_slot, self._untold, self._blocked, self._refused):
                known.pop(name, None)
            self._forged.discard(name)
            return None
        await self._report_forgery(seen, writer)
        decision = decide(seen, self._policy)
        self._observe(seen, decision)
        starts = any(isinstance(effect, StartWorker) for effect in decision.effects)
        with self._view.starting(name) if starts else nullcontext():
            await self._carry_out(seen, decision, writer)
        if starts:
            self._give_slots()  # it may have been refused
        return decision.recheck

    async def _carry_out(self, seen: Snapshot, decision: Decision, writer: Applies) -> None:
        for effect in decision.effects:
            # Writes that fail count, too: a client could make all of them fail.
            self._pace.wrote(seen.node.name)
            try:
                acted = await writer.apply(effect)
            except (Refused, NotFound) as why:
                if not isinstance(effect, StartWorker):
                    await self._report_refusal(seen, effect, why, writer)
                    raise
                self._metrics.creation_errors.labels(why.reason).inc()
                refused = could_not_start(seen, effect.attempt, self._policy, why.message)
                await self._do_instead(seen, refused, writer)
                return
            except ForeignWorker as error:
                log("Worker pod rejected", level="warn", node=seen.node.name, error=str(error))
                attempt = seen.node.record.attempt + 1
                await self._do_instead(seen, not_genuine(seen, attempt, self._policy, str(error)), writer)
                return
            except (LookUpFailed, RemovalImpossible) as why:
                await self._stay(effect, str(why), writer)
            else:
                if acted:
                    self._remember(seen, decision, effect)
                    self._metrics.done(effect)
                    telling.done(effect, decision, self._policy)
                    if isinstance(effect, ConfirmWorker):  # now its verdict counts
                        self._queue.add(seen.node.name)

    def _remember(self, seen: Snapshot, decision: Decision, effect: Effect) -> None:
        if isinstance(effect, WriteRecord) and decision.verdict and effect.record.cause.blames_node:
            self._view.witnessed(seen.node, effect.record.attempt)
        if isinstance(effect, Release):
            self._refused.pop(seen.node.name, None)

    async def _report_refusal(self, seen: Snapshot, effect: Effect, error: KubeError, writer: Applies) -> None:
        """Show on the Node that the server rejects what has to be written there. Once per message."""
        name, message = seen.node.name, error.message
        if not isinstance(effect, Release | CloseGate | WriteRecord | Adopt):
            return
        if isinstance(error, NotFound) or self._refused.get(name) == message:
            return
        self._refused[name] = message
        self._metrics.writes_rejected.labels("release" if isinstance(effect, Release) else "record").inc()
        log("Node write rejected", level="warn", node=name, error=message, status=error.status)
        decision = write_rejected(seen, effect, message)
        self._observe(seen, decision)
        for report in decision.effects:
            with suppress(Refused):  # it can be the condition itself that the server rejects
                if await writer.apply(report):
                    self._metrics.done(report)

    async def _report_forgery(self, seen: Snapshot, writer: Applies) -> None:
        """An Event, so that it is visible. Decisions do not rely on the record alone, so nothing else follows."""
        if seen.node.name not in self._forged:
            return
        self._forged.discard(seen.node.name)
        text = "another client changed the verification record; this has no effect on verification"
        event = Announce(seen.node, "RecordChanged", text, 0, warning=True)  # by the hour, and not by the attempt
        if await writer.apply(event):
            self._metrics.done(event)

    async def _do_instead(self, seen: Snapshot, decision: Decision, writer: Applies) -> None:
        self._observe(seen, decision)
        await self._carry_out(seen, decision, writer)

    async def _stay(self, effect: Effect, why: str, writer: Applies) -> None:
        assert isinstance(effect, RemoveNode)
        name = effect.node.name
        if self._blocked.get(name) != why:
            self._blocked[name] = why
            self._metrics.deletions.labels("failed").inc()
            log("Removal blocked", level="warn", node=name, reason=why)
        blocked = Announce(effect.node, "RemovalBlocked", why, effect.node.record.attempt, warning=True)
        if await writer.apply(blocked):
            self._metrics.done(blocked)

    async def _reconcile_all(self, writer: Applies) -> None:
        while True:
            name = await self._queue.get()
            if self._draining:
                return
            self._in_work += 1
            self._idle.clear()
            begun = time.monotonic()
            try:
                await self._try(name, writer)
            finally:
                self._in_work -= 1
                if not self._in_work:
                    self._idle.set()
                self._queue.done(name)
                self._metrics.reconcile_seconds.observe(time.monotonic() - begun)
            # A look that needs no write does not wait for anything, and a thousand of them would stop everything else.
            await asyncio.sleep(0)

    async def _try(self, name: str, writer: Applies) -> None:
        """One look at a node. Whatever goes wrong is this node's trouble, and not the others'."""
        if (wait := self._pace.wait(name)) > 0:
            self._queue.add(name, after=wait)
            return
        try:
            recheck = await self.reconcile(name, writer)
        except LeaseLost:
            raise
        except LostRace as why:  # someone else changed the node: look again, decide again
            self._metrics.lost_races.inc()
            self._attention.ring()
            if self._queue.retry(name) >= _MANY_RACES:
                self._complain(str(why))
        except KubeError as why:
            self._complain(str(why))
            self._failed(name, why)
        except Exception as why:  # noqa: BLE001  a mistake of ours, or an answer that is not Kubernetes'
            self._confess(name, why)
            self._failed(name, why)
        else:
            self._queue.forget(name)
            if recheck is not None:
                self._queue.add(name, after=recheck.total_seconds())

    def _failed(self, name: str, why: Exception) -> None:
        self._metrics.reconcile_errors.inc()
        self._metrics.errors_by_type.labels(type(why).__name__).inc()
        self._queue.retry(name, at_least=why.retry_after if isinstance(why, Throttled) else 0)

    def _confess(self, name: str, why: Exception) -> None:
        """Once for each place in the code, however often it fails there."""
        *_, place = traceback.extract_tb(why.__traceback__)
        at = f"{Path(place.filename).name}:{place.lineno}"
        if at not in self._confessed:
            self._confessed.add(at)
            log("A look at a node failed in an unforeseen way", level="error", node=name, error=repr(why), at=at)

    async def _resync(self, writer: Applies) -> None:
        """Look at everything unfinished now and then, whatever was missed."""
        while True:
            for name in list(self._view.unfinished()):
                if not (self.phases.get(name) is Phase.VERIFIED and name in self._queue):  # it will have a turn
                    self._queue.add(name)
            if self._policy.removal and LEDGER not in self._book.objects:
                await self._open_ledger(writer)
            for stray in list(self._view.strays(_now())):
                await self._drop(stray, writer)
            await asyncio.sleep(self._policy.resync.total_seconds())

    async def _drop(self, stray: Worker, writer: Applies) -> None:
        try:
            await writer.apply(DropWorker(stray.name, stray.uid))
        except KubeError as why:
            self._complain(str(why))

    async def _open_ledger(self, writer: Applies) -> None:
        try:
            await writer.open_ledger()
        except KubeError as why:
            self._complain(str(why))

    def _observe(self, seen: Snapshot, decision: Decision) -> None:
        name = seen.node.name
        before, self.phases[name] = self.phases.get(name), decision.phase
        self._metrics.decided(before, decision)
        if decision.phase is Phase.WAITING and seen.node.registered:
            self._without_slot[name] = None
        if decision.phase is Phase.VERIFIED and seen.rush and seen.workers:
            self._untold[name] = None
        telling.decided(before, seen, decision)

    def _newcomer(self, _: str, __: str | None, after: str | None) -> None:
        if after:
            self._attention.ring()

    def _node_changed(self, name: str, before: Node | None, after: Node | None) -> None:
        if any(node and self._policy.guards(node) for node in (before, after)):
            self._attention.ring()
        self._view.node_changed(before, after)
        self._detect_forgery(before, after)
        telling.noticed(before, after, self._policy)
        self._queue.add(name)
        if after is None:
            self._without_slot.pop(name, None)
        if before and (after is None or after.uid != before.uid or after.deleting):
            self._give_slots()

    def _detect_forgery(self, before: Node | None, after: Node | None) -> None:
        """Only the controller writes verdicts. Other clients are allowed to write a pending record: it asks for one."""
        if after is None:
            if before:
                self._sent.pop(before.uid, None)
            return
        is_change = before and before.uid == after.uid and before.record != after.record
        is_verdict = after.record.outcome is not Outcome.PENDING
        if self._working and is_change and is_verdict and hash(after.record) not in self._sent.get(after.uid, ()):
            self._metrics.records_changed.inc()
            if after.name not in self._forged:
                self._forged.add(after.name)
                log("Verification record changed by another client", level="warn", node=after.name)

    def _worker_changed(self, _: str, before: Worker | None, after: Worker | None) -> None:
        if name := self._view.worker_changed(before, after):
            self._queue.add(name)
            self._attention.ring()
        if after is None or after.finished or after.deleting:
            self._give_slots()
            self._tell_after_the_rush()

    def _ledger_changed(self, _: str, __: Ledger | None, after: Ledger | None) -> None:
        self._view.ledger = after or ledger.MISSING

    def _give_slots(self) -> None:
        for name in list(self._without_slot)[: self._view.free_slots]:
            del self._without_slot[name]
            self._queue.add(name)

    def _tell_after_the_rush(self) -> None:
        """Not all at once: the last nodes of a burst should not have to wait for the news of all the others."""
        if self._view.rush:
            return
        for number, name in enumerate(self._untold):
            self._queue.add(name, after=number * _BETWEEN_NEWS_SECONDS)
        self._untold.clear()

    def _watch_failed(self, trouble: str) -> None:
        self._metrics.complaints.inc()
        self._complain(trouble)

    def _complain(self, trouble: str) -> None:
        """Not once for each of a thousand nodes when the API server is away."""
        if (now := time.monotonic()) - self._last_complaint > _COMPLAINT_SECONDS:
            self._last_complaint = now
            log("Kubernetes does not answer as it should", level="warn", trouble=trouble)

    def node_written(self, answer: bytes) -> None:
        self._nodes.put(answer)

    def worker_written(self, pod: Pod) -> None:
        self._pods.put(pod)

    def record_sent(self, node: Node, record: Record) -> None:
        read_back = hash(patches.decode(patches.encode(record)))
        self._sent[node.uid] = (*self._sent.get(node.uid, ()), read_back)[-_SENT:]

    def pool_found(self, node: Node, pool: Pool) -> None:
        self._view.pool_found(node, pool)

    def worker_admitted(self, fingerprint: str) -> None:
        self._view.admitted(fingerprint)

    def worker_dropped(self, uid: str) -> None:
        self._view.dropped(uid)

    def ledger_assumed(self) -> None:
        self._view.ledger = ledger.EMPTY

    def ledger_written(self, answer: bytes) -> None:
        self._book.put(answer)

    @property
    def nodes(self) -> Iterable[Node]:
        return list(self._nodes.objects.values())

    @property
    def workers(self) -> Iterable[Worker]:
        return list(self._view.workers())

    @property
    def removals(self) -> Iterable[Removal]:
        return self._view.ledger.removals

    @property
    def queue_depth(self) -> int:
        return self._queue.depth


def _now() -> datetime:
    return datetime.now(UTC)
