"""Keep the state of the cluster current: from the watches, and from the responses to our own writes.

Every change adds the name of a node to the workqueue; the kind of change does not matter.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from kube_node_ready.api.objects import Pod
from kube_node_ready.api.record import VerificationRecord
from kube_node_ready.controller import removal_ledger, resources, transition_log
from kube_node_ready.controller.error_log import ErrorLog
from kube_node_ready.controller.idle_throttle import IdleThrottle
from kube_node_ready.controller.metrics import Metrics
from kube_node_ready.controller.own_records import OwnRecords
from kube_node_ready.controller.resources import LEDGER, Scope
from kube_node_ready.controller.state import ClusterState
from kube_node_ready.controller.waiting import WaitingNodes
from kube_node_ready.kube.client import KubeClient
from kube_node_ready.kube.errors import KubeError
from kube_node_ready.kube.informer import Informer
from kube_node_ready.kube.pace import Pace
from kube_node_ready.kube.workqueue import WorkQueue
from kube_node_ready.verification.model import Ledger, Node, Policy, Pool, Worker


class ClusterCache:
    """The informers, and the state that they feed. As the executor's sink, it sees our own writes immediately."""

    def __init__(self, kube: KubeClient, policy: Policy, scope: Scope, metrics: Metrics, queue: WorkQueue) -> None:
        self._policy = policy
        self._metrics = metrics
        self._queue = queue
        self._throttle = IdleThrottle(lambda: self.state.has_work_in_flight)
        nodes = resources.nodes(policy, scope)
        self._nodes = Informer(kube, nodes, self._node_changed, self._watch_failed, pause=self._throttle.pause)
        self._unlabelled_nodes = Informer(
            kube, resources.unlabelled_nodes(policy, scope), self._unlabelled_changed, self._watch_failed
        )
        self.state = ClusterState(policy, self._nodes.objects, scope.slots, self._nodes.version)
        workers = resources.workers(scope, self.state.trimmed)
        self._pods = Informer(kube, workers, self._worker_changed, self._watch_failed)
        self._ledger = Informer(kube, resources.removals(scope), self._ledger_changed, self._watch_failed)
        self.waiting = WaitingNodes(self.state, queue)
        self.records = OwnRecords(metrics.records_changed.inc)
        self.pace = Pace()
        self.errors = ErrorLog()

    async def run(self) -> None:
        """Run the informers indefinitely."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers:
                tasks.create_task(informer.run())

    async def wait_for_sync(self) -> None:
        """Wait for nodes and workers. The ledger can be missing: without it, no node is removed."""
        for informer in (self._nodes, self._pods):
            await informer.wait_for_sync()

    @property
    def synced(self) -> bool:
        return all(informer.synced for informer in self._informers)

    @property
    def nodes(self) -> Iterable[Node]:
        return list(self._nodes.objects.values())

    @property
    def has_ledger(self) -> bool:
        return LEDGER in self._ledger.objects

    def wake(self) -> None:
        """Read the watch of nodes without pauses for a while."""
        self._throttle.wake()

    @property
    def _informers(self) -> tuple[Informer[Any, Any], ...]:
        always = (self._nodes, self._unlabelled_nodes, self._pods)
        return (*always, self._ledger) if self._policy.removal else always

    def _unlabelled_changed(self, _: str, __: str | None, after: str | None) -> None:
        if after:
            self._throttle.wake()

    def _node_changed(self, name: str, before: Node | None, after: Node | None) -> None:
        if any(node and self._policy.guards(node) for node in (before, after)):
            self._throttle.wake()
        self.state.node_changed(before, after)
        self.records.node_changed(before, after)
        # A kubelet can remove and set the label of its Node at any rate, so log lines count as writes.
        if transition_log.node_queued(before, after, self._policy, quiet=self.pace.wait(name) > 0):
            self.pace.wrote(name)
        self._queue.add(name)
        if after is None:
            self.waiting.forget_slot(name)
        if before and (after is None or after.uid != before.uid or after.deleting):
            self.waiting.wake()

    def _worker_changed(self, _: str, before: Worker | None, after: Worker | None) -> None:
        if name := self.state.worker_changed(before, after):
            self._queue.add(name)
            self._throttle.wake()
        if after is None or after.finished or after.deleting:
            self.waiting.wake()
            self.waiting.announce()

    def _ledger_changed(self, _: str, __: Ledger | None, after: Ledger | None) -> None:
        self.state.ledger = after or removal_ledger.MISSING

    def _watch_failed(self, error: KubeError) -> None:
        self._metrics.watch_errors.inc()
        self.errors.api_error(error)

    # Responses to our own writes.

    def node_written(self, answer: bytes) -> None:
        self._nodes.observe_write(answer)

    def worker_written(self, pod: Pod) -> None:
        self._pods.observe_write(pod)

    def worker_found(self, pod: Pod) -> None:
        """The pod has the name of the worker that is due. In a flood, the state leaves out pods that are not due."""
        self._pods.observe_write(pod)
        if worker := self._pods.objects.get(pod.metadata.name):
            self._worker_changed(pod.metadata.name, worker, worker)

    def worker_admitted(self, fingerprint: str) -> None:
        self.state.admitted(fingerprint)
        self.waiting.wake()  # pods with another fingerprint no longer occupy slots

    def worker_deleted(self, uid: str) -> None:
        self.state.worker_deleted(uid)

    def record_sent(self, node: Node, record: VerificationRecord) -> None:
        self.records.sent(node, record)

    def pool_found(self, node: Node, pool: Pool) -> None:
        self.state.pool_found(node, pool)

    def assume_empty_ledger(self) -> None:
        self.state.ledger = removal_ledger.EMPTY

    def ledger_written(self, answer: bytes) -> None:
        self._ledger.observe_write(answer)
