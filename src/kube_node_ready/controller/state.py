"""Index the informers' objects, and build consistent snapshots of them for decisions.

Synchronous: a snapshot shows one point in time, because nothing else runs meanwhile.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta

from msgspec.structs import replace

from kube_node_ready.api.record import Outcome
from kube_node_ready.controller import removal_ledger
from kube_node_ready.controller.genuine_workers import GenuineWorkers
from kube_node_ready.verification import reverify
from kube_node_ready.verification.model import Fleet, Node, Policy, Pool, Snapshot, Worker

_ORPHAN_AGE = timedelta(hours=1)
_BURST = 32
"""More verifications than this at a time are a burst."""
_MAX_RECHECKS = 32
"""How many verified nodes are checked again at a time."""
_MAX_WORKERS = 16
"""How many pods are kept as workers of one node: each event of one takes time for all of them."""
_MAX_WORKERS_OF_UNKNOWN = 1000
"""Until the node is known, it is not known which of its workers matter."""


def _unknown(_: str) -> str:
    return ""


class ClusterState:
    """The state of the cluster. The informers own the objects; this class keeps the indexes."""

    def __init__(
        self, policy: Policy, nodes: Mapping[str, Node], slots: int, version: Callable[[str], str] = _unknown
    ) -> None:
        self.ledger = removal_ledger.MISSING
        self._policy = policy
        self._nodes = nodes
        self._version = version
        self._slots = slots
        self._managed: Counter[str] = Counter()
        self._failing = 0
        self._degraded = 0
        self._unregistered = 0
        self._names: dict[str, str] = {}
        self._workers: defaultdict[str, dict[str, Worker]] = defaultdict(dict)
        self._verifying: set[str] = set()
        self._rechecks: set[str] = set()
        self._genuine = GenuineWorkers()
        self._starting: set[str] = set()
        self._known: set[str] = set()
        self._deleted: set[str] = set()
        self._settled: set[str] = set()
        self._witnessed: dict[str, int] = {}
        self._pools: dict[str, Pool] = {}

    def snapshot(self, name: str, now: datetime) -> Snapshot | None:
        """Return a snapshot of the node, or None if it does not exist."""
        node = self._nodes.get(name)
        if node is None:
            return None
        workers = tuple(self._judged(worker) for worker in self._of(node.uid) if worker.uid not in self._deleted)
        if (pool := self._pools.get(node.uid)) is not None:
            node = replace(node, pool=pool.name, claimed=pool.claimed)
        return Snapshot(
            now,
            node,
            workers,
            slot_free=self.free_slots > 0,
            fleet=self._fleet(node),
            version=self._version(name),
            burst=self.burst,
            recheck_limit_reached=len(self._rechecks) >= _MAX_RECHECKS,
            witnessed=self._witnessed.get(node.uid, 0),
        )

    @property
    def free_slots(self) -> int:
        return max(0, self._slots - len(self._verifying) - len(self._starting))

    @property
    def burst(self) -> bool:
        return len(self._verifying) - len(self._rechecks) > _BURST

    @property
    def has_work_in_flight(self) -> bool:
        """Whether a worker is running, Karpenter has not registered a node yet, or a node might be removed.

        For a removal, the cache must be current.
        """
        return bool(self._verifying or self._unregistered or (self._policy.removal and self._failing))

    def due_for_resync(self) -> Iterator[str]:
        """Yield nodes that have to be verified or checked again, have a worker, or have the label but no record."""
        for name, node in self._nodes.items():
            watched_over = node.labelled and (self._policy.reverification or not node.record.attempt)
            if watched_over or node.uid in self._workers or self._policy.guards(node):
                yield name

    def orphans(self, now: datetime) -> Iterator[Worker]:
        """Yield workers of nodes that are no longer watched, for example because they lost a label that is selected by.

        Only old ones: they might belong to another controller that selects other nodes.
        """
        for worker in self.workers():
            unseen = worker.finished and worker.node_uid not in self._names
            if unseen and worker.created and now - worker.created > _ORPHAN_AGE:
                yield worker

    def workers(self) -> Iterator[Worker]:
        for workers in list(self._workers.values()):
            yield from list(workers.values())

    @contextmanager
    def starting(self, name: str) -> Iterator[None]:
        """Reserve a slot for a worker until the informer has it."""
        self._starting.add(name)
        try:
            yield
        finally:
            self._starting.discard(name)

    def worker_deleted(self, uid: str) -> None:
        """Ignore a worker that we deleted, before the watch reports the deletion."""
        if uid in self._known:
            self._deleted.add(uid)

    def admitted(self, fingerprint: str) -> None:
        """The server created a worker with this fingerprint from our template, so such workers are genuine."""
        is_first = not self._genuine.any_admitted
        changed = self._genuine.admit(fingerprint)
        if not changed:
            return
        for uid, workers in list(self._workers.items()):
            if is_first or any(worker.fingerprint in changed for worker in workers.values()):
                self._count_slots(uid)

    def witnessed(self, node: Node, attempt: int) -> None:
        """A genuine worker failed on this node, and the node is at fault."""
        self._witnessed[node.uid] = attempt

    def pool_found(self, node: Node, pool: Pool) -> None:
        """Use the pool of the node's NodeClaim, regardless of the labels and owners of the Node."""
        self._pools[node.uid] = pool

    def node_changed(self, before: Node | None, after: Node | None) -> None:
        if before and (after is None or after.uid != before.uid):
            for known in (self._names, self._witnessed, self._pools):
                known.pop(before.uid, None)
        if after:
            self._names[after.uid] = after.name
            self._settle(after)
        self._count(before, -1)
        self._count(after, 1)
        for uid in {node.uid for node in (before, after) if node}:
            self._count_slots(uid)

    def trimmed(self, worker: Worker) -> Worker:
        """Return what the informer keeps: in a flood, not the texts, which take most of the memory."""
        return worker if self._has_room_for(worker) else replace(worker, report=None, reason="")

    def worker_changed(self, before: Worker | None, after: Worker | None) -> str | None:
        """Update the indexes. Return the name of the worker's node, if it is known."""
        if before and (after is None or after.uid != before.uid):
            self._forget(before)
        if after and self._has_room_for(after):
            self._genuine.changed(before, after, is_known=after.uid in self._known)
            self._known.add(after.uid)
            self._workers[after.node_uid][after.name] = after
            self._count_slots(after.node_uid)
            if node := self._nodes.get(self._names.get(after.node_uid, "")):
                self._settle(node)
        either = after or before
        return self._names.get(either.node_uid) if either else None

    def _has_room_for(self, worker: Worker) -> bool:
        """A node has at most two workers: one that runs and one that is kept for its logs. More are an attack."""
        mine = self._workers.get(worker.node_uid, {})
        node = self._nodes.get(self._names.get(worker.node_uid, ""))
        if worker.name in mine or len(mine) < (_MAX_WORKERS if node else _MAX_WORKERS_OF_UNKNOWN):
            return True
        return node is not None and worker.number in (node.record.attempt, node.record.attempt + 1)

    def _count_slots(self, uid: str) -> None:
        """A node occupies one slot while a worker runs on it, regardless of how many pods look like its workers.

        Workers of nodes that are deleted, being deleted, or not known yet occupy none.
        """
        node = self._nodes.get(self._names.get(uid, ""))
        if node is None or node.deleting:
            self._verifying.discard(uid)
            self._rechecks.discard(uid)
            return
        runs = any(self._takes_slot(worker, node) for worker in self._of(uid))
        is_recheck = runs and node.labelled
        (self._verifying.add if runs else self._verifying.discard)(uid)
        (self._rechecks.add if is_recheck else self._rechecks.discard)(uid)

    def _takes_slot(self, worker: Worker, node: Node) -> bool:
        """Pods of other clients occupy none. Until one is confirmed, any pod can be a worker of a previous process."""
        if not worker.belongs_to(node) or worker.finished or worker.deleting:
            return False
        return self._genuine.is_genuine(worker) or not self._genuine.any_admitted

    def _judged(self, worker: Worker) -> Worker:
        is_genuine, is_edited = self._genuine.is_genuine(worker), self._genuine.is_edited(worker)
        return replace(worker, genuine=is_genuine, edited=is_edited, settled=worker.uid in self._settled)

    def _settle(self, node: Node) -> None:
        for worker in self._of(node.uid):
            if worker.number <= node.record.attempt:
                self._settled.add(worker.uid)

    def _forget(self, worker: Worker) -> None:
        for uids in (self._known, self._deleted, self._settled):
            uids.discard(worker.uid)
        self._genuine.forget(worker.uid)
        mine = self._workers[worker.node_uid]
        mine.pop(worker.name, None)
        if not mine:
            del self._workers[worker.node_uid]
        self._count_slots(worker.node_uid)

    def _of(self, uid: str) -> list[Worker]:
        return list(self._workers[uid].values()) if uid in self._workers else []

    def _count(self, node: Node | None, by: int) -> None:
        """Update the counts with each change: in an outage, every reconcile needs the number of failing nodes."""
        if node is None:
            return
        guarded = self._policy.guards(node)
        if guarded or node.labelled:
            self._managed[node.pool] += by
            if not self._managed[node.pool]:  # its kubelet can name any number of pools, one after the other
                del self._managed[node.pool]
        if guarded and not node.registered:
            self._unregistered += by
        if guarded and node.record.outcome is Outcome.FAILED:
            self._failing += by
        if self._policy.reverification and not guarded and reverify.is_degraded(node):
            self._degraded += by

    def _fleet(self, node: Node) -> Fleet:
        return Fleet(
            managed=self._managed.total(),
            failing=self._failing,
            degraded=self._degraded,
            in_pool=max(1, self._managed[node.pool]),  # a pool without a label has at least this node
            ledger=self.ledger,
        )
