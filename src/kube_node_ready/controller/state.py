"""The caches, as decisions want to see them. Synchronous: one look is one moment, since nothing else runs meanwhile."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta

from msgspec.structs import replace

from kube_node_ready import ledger
from kube_node_ready.verify import reverify
from kube_node_ready.verify.model import Fleet, Node, Outcome, Policy, Pool, Snapshot, Worker

_STRAY_AGE = timedelta(hours=1)
_RUSH = 32
"""So many verifications at a time make a rush."""
_RECHECKS = 32
"""So many verified nodes are checked again at a time."""
_MOST_WORKERS = 16
"""So many pods that pass for workers of one node are kept: each event of one of them costs time for all of them."""
_MOST_WORKERS_OF_UNKNOWN = 1000
"""Which of them matter is not known before their node is."""
_FINGERPRINTS = 10_000
"""Usually there is one. Admission can also make a different spec of every pod."""


def _unknown(_: str) -> str:
    return ""


class View:
    """What is seen of the cluster. The caches own the objects; this keeps the indexes that make a look cheap."""

    def __init__(
        self, policy: Policy, nodes: Mapping[str, Node], slots: int, version: Callable[[str], str] = _unknown
    ) -> None:
        self.ledger = ledger.MISSING
        self._policy = policy
        self._nodes = nodes
        self._version = version
        self._slots = slots
        self._managed: Counter[str] = Counter()
        self._failing = 0
        self._doubtful = 0
        self._unregistered = 0
        self._names: dict[str, str] = {}
        self._workers: defaultdict[str, dict[str, Worker]] = defaultdict(dict)
        self._verifying: set[str] = set()
        self._rechecks: set[str] = set()
        self._fingerprints: dict[str, None] = {}
        self._starting: set[str] = set()
        self._known: set[str] = set()
        self._dropped: set[str] = set()
        self._edited: set[str] = set()
        self._settled: set[str] = set()
        self._witnessed: dict[str, int] = {}
        self._pools: dict[str, Pool] = {}

    def snapshot(self, name: str, now: datetime) -> Snapshot | None:
        """None if there is no such node."""
        node = self._nodes.get(name)
        if node is None:
            return None
        workers = tuple(self._judged(worker) for worker in self._of(node.uid) if worker.uid not in self._dropped)
        if (pool := self._pools.get(node.uid)) is not None:
            node = replace(node, pool=pool.name, claimed=pool.claimed)
        return Snapshot(
            now,
            node,
            workers,
            slot_free=self.free_slots > 0,
            fleet=self._fleet(node),
            version=self._version(name),
            rush=self.rush,
            many_rechecks=len(self._rechecks) >= _RECHECKS,
            witnessed=self._witnessed.get(node.uid, 0),
        )

    @property
    def free_slots(self) -> int:
        return max(0, self._slots - len(self._verifying) - len(self._starting))

    @property
    def rush(self) -> bool:
        return len(self._verifying) - len(self._rechecks) > _RUSH

    @property
    def waits_for_others(self) -> bool:
        """Whether a worker runs, Karpenter has yet to register a node, or one may be removed, which must not go by old
        news.
        """
        return bool(self._verifying or self._unregistered or (self._policy.removal and self._failing))

    def unfinished(self) -> Iterator[str]:
        """Every node that has something to prove, now or in time, or a worker that should not be there, or is not known
        yet.
        """
        for name, node in self._nodes.items():
            watched_over = node.labelled and (self._policy.reverification or not node.record.attempt)
            if watched_over or node.uid in self._workers or self._policy.guards(node):
                yield name

    def strays(self, now: datetime) -> Iterator[Worker]:
        """Workers of nodes that left our sight, say by losing a label we select by.

        Not before they are old: they may be another controller's, which selects other nodes.
        """
        for worker in self.workers():
            unseen = worker.finished and worker.node_uid not in self._names
            if unseen and worker.created and now - worker.created > _STRAY_AGE:
                yield worker

    def workers(self) -> Iterator[Worker]:
        for workers in list(self._workers.values()):
            yield from list(workers.values())

    @contextmanager
    def starting(self, name: str) -> Iterator[None]:
        """Keeps a slot for a worker until the cache knows it."""
        self._starting.add(name)
        try:
            yield
        finally:
            self._starting.discard(name)

    def dropped(self, uid: str) -> None:
        """A worker we deleted is gone, though the watch may have yet to say so."""
        if uid in self._known:
            self._dropped.add(uid)

    def admitted(self, fingerprint: str) -> None:
        """The server made a worker with this fingerprint of our template, so such workers are genuine."""
        self._fingerprints[fingerprint] = None
        if len(self._fingerprints) > _FINGERPRINTS:
            del self._fingerprints[next(iter(self._fingerprints))]

    def witnessed(self, node: Node, attempt: int) -> None:
        """A worker of ours failed there, by the node's own fault."""
        self._witnessed[node.uid] = attempt

    def pool_found(self, node: Node, pool: Pool) -> None:
        """The pool by the node's NodeClaim, whatever the labels and owners of the Node say."""
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

    def worker_changed(self, before: Worker | None, after: Worker | None) -> str | None:
        """The name of the node this is about, if there is one."""
        if before and (after is None or after.uid != before.uid):
            self._forget(before)
        if after and self._has_room_for(after):
            if before and before.uid == after.uid and before.fingerprint != after.fingerprint:
                self._edited.add(after.uid)
            self._known.add(after.uid)
            self._workers[after.node_uid][after.name] = after
            self._count_slots(after.node_uid)
            if node := self._nodes.get(self._names.get(after.node_uid, "")):
                self._settle(node)
        either = after or before
        return self._names.get(either.node_uid) if either else None

    def _has_room_for(self, worker: Worker) -> bool:
        """A node has two workers at most, one that runs and one kept for its logs. A thousand of them are an attack."""
        mine = self._workers[worker.node_uid]
        node = self._nodes.get(self._names.get(worker.node_uid, ""))
        if worker.name in mine or len(mine) < (_MOST_WORKERS if node else _MOST_WORKERS_OF_UNKNOWN):
            return True
        return node is not None and worker.attempt in (node.record.attempt, node.record.attempt + 1)

    def _count_slots(self, uid: str) -> None:
        """A node takes one slot while a worker runs on it, however many pods pass for its workers.

        Workers of nodes that are gone, are being deleted, or are not known yet, take none.
        """
        node = self._nodes.get(self._names.get(uid, ""))
        if node is None or node.deleting:
            self._verifying.discard(uid)
            self._rechecks.discard(uid)
            return
        runs = any(worker.is_of(node) and not (worker.finished or worker.deleting) for worker in self._of(uid))
        is_recheck = runs and node.labelled
        (self._verifying.add if runs else self._verifying.discard)(uid)
        (self._rechecks.add if is_recheck else self._rechecks.discard)(uid)

    def _judged(self, worker: Worker) -> Worker:
        # Edited and edited back is edited: it ran something else meanwhile.
        is_edited = worker.uid in self._edited
        is_genuine = worker.fingerprint in self._fingerprints and not is_edited
        return replace(worker, genuine=is_genuine, edited=is_edited, settled=worker.uid in self._settled)

    def _settle(self, node: Node) -> None:
        for worker in self._of(node.uid):
            if worker.attempt <= node.record.attempt:
                self._settled.add(worker.uid)

    def _forget(self, worker: Worker) -> None:
        for uids in (self._known, self._dropped, self._edited, self._settled):
            uids.discard(worker.uid)
        mine = self._workers[worker.node_uid]
        mine.pop(worker.name, None)
        if not mine:
            del self._workers[worker.node_uid]
        self._count_slots(worker.node_uid)

    def _of(self, uid: str) -> list[Worker]:
        return list(self._workers[uid].values()) if uid in self._workers else []

    def _count(self, node: Node | None, by: int) -> None:
        """Kept while nodes come and go: in a fleet-wide outage, every node asks how many others fail."""
        if node is None:
            return
        guarded = self._policy.guards(node)
        if guarded or node.labelled:
            self._managed[node.pool] += by
        if guarded and not node.registered:
            self._unregistered += by
        if guarded and node.record.outcome is Outcome.FAILED:
            self._failing += by
        if self._policy.reverification and not guarded and reverify.is_doubtful(node):
            self._doubtful += by

    def _fleet(self, node: Node) -> Fleet:
        return Fleet(
            managed=self._managed.total(),
            failing=self._failing,
            doubtful=self._doubtful,
            in_pool=max(1, self._managed[node.pool]),  # a pool that no label names has this node at least
            ledger=self.ledger,
        )
