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
from kube_node_ready.objects import Pod
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
    Release,
    Removal,
    RemoveNode,
    StartWorker,
    Worker,
    WriteRecord,
)
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
            case Release(node, record):
                body = _encode(patches.release(node, record, self._policy))
                self._stores.node_written(await self._kube.patch(_path(node), body, PatchKind.JSON))
            case CloseGate(node, record, version):
                body = _encode(patches.engage(node, record, self._policy, self._gate, version))
                self._stores.node_written(await self._kube.patch(_path(node), body, PatchKind.JSON))
            case WriteRecord(node, record, version):
                body = _encode(patches.status(node, record, self._policy, version))
                answer = await self._kube.patch(_path(node, "status"), body, PatchKind.STRATEGIC)
                self._stores.node_written(answer)
            case Adopt(node, record, version):
                body = _encode(patches.adoption(node, record, version))
                self._stores.node_written(await self._kube.patch(_path(node), body, PatchKind.MERGE))
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

    async def open_ledger(self) -> None:
        """So that there is something to write removals down in."""
        collection, _, name = self._setup.ledger_path.rpartition("/")
        body = _encode(ledger.empty(name, self._template.namespace))
        with suppress(AlreadyExists):
            await self._kube.create(collection, body)

    async def _start_worker(self, node: Node, attempt: int) -> None:
        body = _encode(worker_pod(node, attempt, self._template))
        try:
            pod = _read_pod(await self._kube.create(self._pods, body))
        except AlreadyExists:
            await self._find_worker(node, name_of(node.uid, attempt))
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
        if _is_worker_of(pod, node):
            self._stores.worker_written(pod)
            return
        if pod.metadata.deletion_timestamp:  # a finalizer keeps it, and so its name
            raise ForeignWorker(f"pod {name} has the name of the worker, is not one, and cannot be deleted")
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
        removal = Removal(node.uid, node.name, node.pool, now)
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
