"""The control loop: informers fill the workqueue, workers reconcile what is due, and a resync finds what was missed.

Dependencies have one direction: controller -> reconciler -> executor -> cache and state. Changes go the other way
through the workqueue only.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from kube_node_ready.controller.cache import ClusterCache
from kube_node_ready.controller.metrics import Metrics
from kube_node_ready.controller.reconciler import Executes, Reconciler
from kube_node_ready.kube.errors import KubeError
from kube_node_ready.kube.workqueue import WorkQueue
from kube_node_ready.verification.effects import DiscardAttempt
from kube_node_ready.verification.model import Node, Phase, Policy, Removal, Worker


class Controller:
    def __init__(
        self, cache: ClusterCache, executor: Executes, queue: WorkQueue, policy: Policy, metrics: Metrics
    ) -> None:
        self._cache = cache
        self._executor = executor
        self._queue = queue
        self._policy = policy
        self._metrics = metrics
        self._reconciler = Reconciler(cache, executor, queue, policy, metrics)
        self._draining = False
        self._processing = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def watch(self) -> None:
        """Run the informers indefinitely."""
        await self._cache.run()

    def not_synced(self) -> str | None:
        return None if self._cache.synced else "informers are not synced yet"

    async def work(self, reconciles: int) -> None:
        """Reconcile indefinitely, `reconciles` nodes at a time."""
        await self._cache.wait_for_sync()
        self._queue.clear()  # keys from the time as a standby would distort the metric of waiting times
        self._cache.records.expect_no_others(datetime.now(UTC))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._resync())
            for _ in range(reconciles):
                tasks.create_task(self._reconcile_all())

    async def drain(self, seconds: float) -> None:
        """Start no new reconcile, and wait for those in progress, at most `seconds`."""
        self._draining = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)

    async def _reconcile_all(self) -> None:
        while True:
            name = await self._queue.get()
            if self._draining:
                return
            self._processing += 1
            self._idle.clear()
            started = time.monotonic()
            try:
                await self._reconciler.process(name)
            finally:
                self._processing -= 1
                if not self._processing:
                    self._idle.set()
                self._queue.done(name)
                self._metrics.reconcile_seconds.observe(time.monotonic() - started)
            # A reconcile without writes never yields, and a thousand of them would block the event loop.
            await asyncio.sleep(0)

    async def _resync(self) -> None:
        """Reconcile all unfinished nodes periodically, in case an event was missed."""
        while True:
            for name in list(self._cache.state.due_for_resync()):
                if not (self.phases.get(name) is Phase.VERIFIED and name in self._queue):  # it is queued already
                    self._queue.add(name)
            if self._policy.removal and not self._cache.has_ledger:
                await self._ensure_ledger()
            for orphan in list(self._cache.state.orphans(datetime.now(UTC))):
                await self._delete_orphan(orphan)
            await asyncio.sleep(self._policy.resync.total_seconds())

    async def _delete_orphan(self, orphan: Worker) -> None:
        try:
            await self._executor.apply(DiscardAttempt(orphan))
        except KubeError as error:
            self._cache.errors.api_error(error)

    async def _ensure_ledger(self) -> None:
        try:
            await self._executor.ensure_ledger()
        except KubeError as error:
            self._cache.errors.api_error(error)

    # What the metrics export.

    @property
    def phases(self) -> Mapping[str, Phase]:
        return self._reconciler.phases

    @property
    def nodes(self) -> Iterable[Node]:
        return self._cache.nodes

    @property
    def workers(self) -> Iterable[Worker]:
        return list(self._cache.state.workers())

    @property
    def removals(self) -> Iterable[Removal]:
        return self._cache.state.ledger.removals

    @property
    def queue_depth(self) -> int:
        return self._queue.depth
