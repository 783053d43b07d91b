"""The only writer. Every effect is absolute and may be carried out twice; what is there already is success."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Protocol, assert_never

import msgspec

from kube_node_ready import karpenter, ledger
from kube_node_ready.api_paths import collection_path, object_path
from kube_node_ready.kube.client import Kube, PatchKind
from kube_node_ready.kube.errors import AlreadyExists, LostRace, NotFound, Refused
from kube_node_ready.log import log
from kube_node_ready.objects import Pod, Taint
from kube_node_ready.verify import budget, events, patches
from kube_node_ready.verify.fingerprint import fingerprint
from kube_node_ready.verify.model import (
    Adopt,
    Announce,
    CloseGate,
    ConfirmWorker,
    DropWorker,
    Effect,
    Node,
    Policy,
    Pool,
    Record,
    Release,
    Removal,
    RemoveNode,
    StartWorker,
    WithoutClaim,
    Worker,
    WriteRecord,
)
from kube_node_ready.verify.report import printable
from kube_node_ready.verify.workerpod import PodTemplate, name_of, probe_pod, read_worker, worker_pod

COMPONENT = "kube-node-ready-controller"
_REMEMBERED = 10_000
_encode = msgspec.json.encode


class Stores(Protocol):
    """Where the answers to our own writes go, so that the next look already sees them."""

    def node_written(self, answer: bytes) -> None: ...
    def worker_written(self, pod: Pod) -> None: ...
    def worker_admitted(self, fingerprint: str) -> None: ...
    def worker_dropped(self, uid: str) -> None: ...
    def ledger_written(self, answer: bytes) -> None: ...
    def ledger_assumed(self) -> None: ...
    def record_sent(self, node: Node, record: Record) -> None: ...
    def pool_found(self, node: Node, pool: Pool) -> None: ...


class RemovalImpossible(Exception):  # noqa: N818  a state of affairs, not a fault
    """The node must stay for now, for a reason that is not the budget's."""


class ForeignWorker(Exception):  # noqa: N818  a finding, not a fault
    """A pod looks like a worker but does not run what the controller asks for, or that cannot be determined."""


class Setup(msgspec.Struct, frozen=True):
    """What a writer must be told of its surroundings."""

    now: Callable[[], datetime]
    identity: str
    ledger_path: str
    removal_dry_run: bool = False


class Writer:
    def __init__(self, kube: Kube, stores: Stores, policy: Policy, template: PodTemplate, setup: Setup) -> None:
        self._kube = kube
        self._stores = stores
        self._policy = policy
        self._template = template
        self._setup = setup
        self._gate = policy.reverification.gate if policy.reverification else None
        self._pods = collection_path("v1", "pods", namespace=template.namespace)
        self._told = _Recent()

    async def apply(self, effect: Effect) -> bool:
        """Carry it out. False if it had been, and nothing was written."""
        match effect:
            case StartWorker(node, attempt):
                await self._start_worker(node, attempt)
            case ConfirmWorker(node, worker):
                await self._confirm_worker(node, worker)
            case Release() | CloseGate() | WriteRecord() | Adopt():
                await self._write_node(effect)
            case Announce():
                return await self._announce(effect)
            case DropWorker(name, uid):
                with suppress(NotFound, LostRace):  # it is gone, or another one has its name
                    await self._kube.delete(self._pod_path(name), uid=uid, grace_seconds=0)
                self._stores.worker_dropped(uid)
            case RemoveNode():
                return await self._remove(effect)
            case _:
                assert_never(effect)
        return True

    async def _write_node(self, effect: Release | CloseGate | WriteRecord | Adopt) -> None:
        is_condition_only = isinstance(effect, WriteRecord) and not effect.version
        if not is_condition_only:
            self._stores.record_sent(effect.node, effect.record)
        self._stores.node_written(await self._patch_node(effect))

    async def _patch_node(self, effect: Release | CloseGate | WriteRecord | Adopt) -> bytes:
        path = _path(effect.node)
        match effect:
            case Release(node, record):
                patch = patches.release(node, record, self._policy)
                return await self._kube.patch(path, _encode(patch), PatchKind.JSON)
            case CloseGate(node, record, version):
                patch = patches.engage(node, record, self._policy, self._gate, version)
                return await self._kube.patch(path, _encode(patch), PatchKind.JSON)
            case WriteRecord(node, record, version):
                status = patches.status(node, record, self._policy, version)
                return await self._kube.patch(_path(node, "status"), _encode(status), PatchKind.STRATEGIC)
            case Adopt(node, record, version):
                merge = patches.adoption(node, record, version)
                return await self._kube.patch(path, _encode(merge), PatchKind.MERGE)
            case _:
                assert_never(effect)

    async def open_ledger(self) -> None:
        """So that there is something to write removals down in."""
        collection, _, name = self._setup.ledger_path.rpartition("/")
        body = _encode(ledger.empty(name, self._template.namespace))
        with suppress(AlreadyExists):
            await self._kube.create(collection, body)

    async def _start_worker(self, node: Node, attempt: int) -> None:
        body = _encode(worker_pod(node, attempt, self._template))
        name = name_of(node.uid, attempt)
        try:
            pod = _read_pod(await self._kube.create(self._pods, body))
        except AlreadyExists:
            await self._find_worker(node, name)
            return
        if not _is_worker_of(pod, node):
            await self._delete_pod(pod)
            raise Refused(0, "Changed", "admission changed its owner or its labels, so it cannot be recognized")
        self._stores.worker_admitted(fingerprint(pod.spec))
        self._stores.worker_written(pod)

    async def _find_worker(self, node: Node, name: str) -> None:
        """A previous process created it, and the watch has yet to show it; or another client took its name."""
        try:
            pod = _read_pod(await self._kube.get(self._pod_path(name)))
        except NotFound as why:
            raise LostRace(409, "Vanished", f"pod {name} is to be made again") from why
        if pod.metadata.deletion_timestamp:  # a finalizer keeps it, and so its name
            raise ForeignWorker(f"pod {name} has the name of the worker, and cannot be deleted")
        if _is_worker_of(pod, node):
            self._stores.worker_written(pod)
            return
        await self._delete_pod(pod)
        log("Unusable worker pod deleted", level="warn", node=node.name, pod=name, ranOn=pod.spec.get("nodeName"))
        raise LostRace(409, "Unusable", f"pod {name} is to be made again")

    async def _delete_pod(self, pod: Pod) -> None:
        with suppress(NotFound):
            await self._kube.delete(self._pod_path(pod.metadata.name), uid=pod.metadata.uid, grace_seconds=0)

    def _pod_path(self, name: str) -> str:
        return object_path("v1", "pods", name, namespace=self._template.namespace)

    async def _confirm_worker(self, node: Node, worker: Worker) -> None:
        """Compare it with what the server makes of our template now: a worker of a previous process is just that."""
        if worker.edited:
            raise ForeignWorker(f"pod {worker.name} was changed while it ran, by another client")
        body = _encode(probe_pod(node, self._template))
        try:
            pod = _read_pod(await self._kube.create(self._pods, body, dryRun="All"))
        except (Refused, NotFound) as error:
            raise ForeignWorker(f"cannot confirm that pod {worker.name} is a worker: {error.message}") from error
        expected = fingerprint(pod.spec)
        self._stores.worker_admitted(expected)
        if worker.fingerprint != expected:
            raise ForeignWorker(
                f"pod {worker.name} does not run what the controller asks for: "
                "it was changed or created by another client, or worker settings changed since"
            )

    async def _announce(self, news: Announce) -> bool:
        event = events.event(news, self._setup.now(), COMPONENT, self._setup.identity)
        name = event["metadata"]["name"]
        if name in self._told:
            return False
        try:
            await self._kube.create(events.PATH, _encode(event))
        except AlreadyExists:
            pass
        except (Refused, NotFound) as why:  # no right to, or a quota: nobody must wait at the gate for that
            log("An Event could not be written", level="warn", reason=news.reason, trouble=why.message)
        self._told.add(name)
        return True

    async def _remove(self, effect: RemoveNode) -> bool:
        """Look first, then write it down and tell it, then do it.

        Whatever kills us in between, the budget is never overspent; and of a node that is gone, nobody could tell.
        """
        node = effect.node
        claim = await karpenter.find_claim(self._kube, node)
        self._check_pool(node, claim)
        if claim is None and (reason := self._why_cordon(node)):
            return await self._cordon(effect, reason)
        what = f"NodeClaim {claim.name}" if claim else "the Node"
        if self._setup.removal_dry_run:
            raise RemovalImpossible(f"dry run: would remove {what}")
        try:
            await self._book(effect)
            news = f"deleting {what}: {effect.reason}"
            await self._announce(Announce(node, "Removing", news, node.record.attempt, warning=True))
            return await self._delete(node, claim)
        except Refused as why:
            raise RemovalImpossible(f"{what} cannot be deleted: {why}") from why

    def _check_pool(self, node: Node, claim: karpenter.Claim | None) -> None:
        """The budget was checked for the pool that the Node names. Its NodeClaim knows better, or there is none."""
        pool = Pool(claim.pool if claim else node.pool, claimed=claim is not None)
        if pool != Pool(node.pool, node.claimed):
            self._stores.pool_found(node, pool)
            raise LostRace(409, "OtherPool", f"node {node.name} is of another pool than its labels and owners say")

    def _why_cordon(self, node: Node) -> str:
        """Why the Node is not deleted though it has no NodeClaim; empty if it is.

        The machine of a deleted Node runs on, and its kubelet registers a new Node, without the taints that others had
        put on the old one: workloads would lose their isolation.
        """
        assert self._policy.removal
        if self._policy.removal.without_claim is WithoutClaim.CORDON:
            return "removal.withoutClaim is cordon"
        if lost := [taint for taint in node.taints if not self._policy.is_gate(taint) and not _is_automatic(taint)]:
            return f"a new registration would lose its taint {printable(lost[0].key)}"
        return ""

    async def _cordon(self, effect: RemoveNode, reason: str) -> bool:
        node = effect.node
        if self._setup.removal_dry_run:
            raise RemovalImpossible(f"dry run: would cordon the Node ({reason})")
        if node.cordoned:
            raise RemovalImpossible(f"cordoned instead of deleted: it has no NodeClaim, and {reason}")
        try:
            await self._book(effect)
            message = f"cordoning instead of deleting: it has no NodeClaim, and {reason}. It failed: {effect.reason}"
            await self._announce(Announce(node, "Cordoned", message, node.record.attempt, warning=True))
            answer = await self._kube.patch(_path(node), _encode(patches.cordon(node)), PatchKind.JSON)
        except Refused as error:
            raise RemovalImpossible(f"the Node cannot be cordoned: {error}") from error
        self._stores.node_written(answer)
        log("Node cordoned", level="warn", node=node.name, reason=reason)
        return False

    async def _delete(self, node: Node, claim: karpenter.Claim | None) -> bool:
        if claim and claim.deleting:  # draining its node may take Karpenter a while
            return False
        if claim:
            log("Found NodeClaim for failed node, deleting NodeClaim instead", nodeClaim=claim.name, node=node.name)
        try:
            await self._kube.delete(claim.path if claim else _path(node), uid=claim.uid if claim else node.uid)
        except NotFound:
            return False
        if claim:
            log("Successfully deleted NodeClaim, node should be terminated by Karpenter", nodeClaim=claim.name)
        return True

    async def _book(self, effect: RemoveNode) -> None:
        assert self._policy.removal
        if budget.is_booked(effect.node, effect.ledger, self._setup.now(), self._policy.removal):
            return
        if not effect.ledger.version:  # a patch that names no version would overwrite whatever is there by now
            raise LostRace(409, "NoLedger", "the ledger of removals is not there yet")
        node, now = effect.node, self._setup.now()
        removal = Removal(node.uid, node.name, node.pool, now, claimed=node.claimed)
        removals = ledger.with_removal(effect.ledger.removals, removal, self._policy.removal.window, now)
        body = _encode(ledger.patch(effect.ledger.version, removals))
        self._stores.ledger_written(await self._kube.patch(self._setup.ledger_path, body, PatchKind.MERGE))


class _Recent:
    """What was said lately; not all that ever was."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}

    def __contains__(self, saying: str) -> bool:
        return saying in self._said

    def add(self, saying: str) -> None:
        self._said[saying] = None
        if len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]


class DryRun:
    """A writer that only says what it would do, once."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._said = _Recent()

    async def open_ledger(self) -> None:
        """Nothing is written down in a dry run, and nothing was spent."""
        self._stores.ledger_assumed()

    async def apply(self, effect: Effect) -> bool:
        if isinstance(effect, ConfirmWorker):  # nothing follows from its verdict but a line in the log
            self._stores.worker_admitted(effect.worker.fingerprint)
            return True
        node: Node | None = getattr(effect, "node", None)
        attempt = getattr(effect, "attempt", "")
        kind, on = type(effect).__name__, node.name if node else getattr(effect, "name", "")
        if (saying := f"{kind} {on} {attempt}") not in self._said:
            self._said.add(saying)
            log("Dry run: would act", effect=kind, on=on, attempt=attempt)
        return False


def _is_automatic(taint: Taint) -> bool:
    """Kubernetes itself, or the cloud provider, puts it on each Node that needs it, a new one included."""
    return taint.key.startswith(("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"))


def _path(node: Node, subresource: str = "") -> str:
    return object_path("v1", "nodes", node.name, subresource=subresource)


def _read_pod(answer: bytes) -> Pod:
    return msgspec.json.decode(answer, type=Pod)


def _is_worker_of(pod: Pod, node: Node) -> bool:
    """Whether the watch of workers shows it, and decisions take it for a worker of this node."""
    labels = pod.metadata.labels or {}
    is_watched = labels.get("app") == "kube-node-ready" and labels.get("component") == "worker"
    worker = read_worker(pod)
    return is_watched and worker is not None and worker.is_of(node)
