"""Execute effects. Nothing but this module and `removal` writes to the cluster.

Every effect is idempotent: what exists already counts as success.
"""

from contextlib import suppress
from typing import assert_never

import msgspec

from kube_node_ready.api.contract import APP, WORKER_COMPONENT
from kube_node_ready.api.nesting import tolerant
from kube_node_ready.api.objects import Pod
from kube_node_ready.api.paths import collection_path, object_path
from kube_node_ready.controller import removal_ledger, transition_log
from kube_node_ready.controller.execution import CacheSink, ExecutorContext, ForeignWorker, RecentKeys
from kube_node_ready.controller.removal import Remover, node_path
from kube_node_ready.kube.client import KubeClient, PatchKind
from kube_node_ready.kube.errors import AlreadyExists, Conflict, NotFound, Rejected
from kube_node_ready.log import log
from kube_node_ready.verification import events, patches
from kube_node_ready.verification.effects import (
    AdoptNode,
    CloseGate,
    ConfirmAttempt,
    DiscardAttempt,
    Effect,
    EmitEvent,
    OpenGate,
    RemoveNode,
    StartAttempt,
    WriteStatus,
)
from kube_node_ready.verification.fingerprint import fingerprint
from kube_node_ready.verification.model import Node, Policy, Worker
from kube_node_ready.verification.worker_pod import WorkerPodTemplate, probe_pod, worker_name, worker_pod
from kube_node_ready.verification.worker_status import read_worker

COMPONENT = "kube-node-ready-controller"
_encode = msgspec.json.encode


class Executor:
    def __init__(
        self, kube: KubeClient, sink: CacheSink, policy: Policy, template: WorkerPodTemplate, context: ExecutorContext
    ) -> None:
        self._client = kube
        self._sink = sink
        self._policy = policy
        self._template = template
        self._context = context
        self._gate = policy.reverification.gate if policy.reverification else None
        self._pods = collection_path("v1", "pods", namespace=template.namespace)
        self._sent_events = RecentKeys()
        self._remover = Remover(kube, sink, policy, context, self._emit_event)

    async def apply(self, effect: Effect) -> bool:
        """Execute the effect. Return False if nothing was written."""
        match effect:
            case StartAttempt(node, number):
                await self._start_worker(node, number)
            case ConfirmAttempt():
                return await self._confirm_worker(effect)
            case OpenGate() | CloseGate() | WriteStatus() | AdoptNode():
                await self._write_node(effect)
            case EmitEvent():
                return await self._emit_event(effect)
            case DiscardAttempt(attempt):
                assert isinstance(attempt, Worker)
                await self._delete_worker(attempt)
            case RemoveNode():
                return await self._remover.remove(effect)
            case _:
                assert_never(effect)
        return True

    async def _write_node(self, effect: OpenGate | CloseGate | WriteStatus | AdoptNode) -> None:
        is_condition_only = isinstance(effect, WriteStatus) and not effect.version
        if not is_condition_only:
            self._sink.record_sent(effect.node, effect.record)
        self._sink.node_written(await self._patch_node(effect))

    async def _patch_node(self, effect: OpenGate | CloseGate | WriteStatus | AdoptNode) -> bytes:
        path = node_path(effect.node)
        match effect:
            case OpenGate(node, record, version):
                patch = patches.open_gate(node, record, self._policy, version)
                return await self._client.patch(path, _encode(patch), PatchKind.JSON)
            case CloseGate(node, record, version):
                patch = patches.close_gate(node, record, self._policy, self._gate, version)
                return await self._client.patch(path, _encode(patch), PatchKind.JSON)
            case WriteStatus(node, record, version):
                status = patches.write_status(node, record, self._policy, version)
                return await self._client.patch(node_path(node, "status"), _encode(status), PatchKind.STRATEGIC)
            case AdoptNode(node, record, version):
                merge = patches.adopt_node(node, record, version)
                return await self._client.patch(path, _encode(merge), PatchKind.MERGE)
            case _:
                assert_never(effect)

    async def ensure_ledger(self) -> None:
        """Create the removal ledger if it does not exist."""
        collection, _, name = self._context.ledger_path.rpartition("/")
        body = _encode(removal_ledger.empty(name, self._template.namespace))
        with suppress(AlreadyExists):
            await self._client.create(collection, body)

    async def _start_worker(self, node: Node, attempt: int) -> None:
        transition_log.worker_starting(node, attempt)
        body = _encode(worker_pod(node, attempt, self._template))
        name = worker_name(node.uid, attempt)
        try:
            pod = _read_pod(await self._client.create(self._pods, body))
        except AlreadyExists:
            await self._find_worker(node, name)
            return
        if not _is_worker_of(pod, node):
            await self._delete_pod(pod)
            raise Rejected(0, "Changed", "admission changed its owner or its labels, so it cannot be recognized")
        self._sink.worker_admitted(fingerprint(pod.spec))
        self._sink.worker_written(pod)

    async def _find_worker(self, node: Node, name: str) -> None:
        """Find the pod that has the worker's name: a previous process created it, or another client."""
        try:
            pod = _read_pod(await self._client.get(self._pod_path(name)))
        except NotFound as error:
            raise Conflict(0, "Vanished", f"pod {name} must be created again") from error
        if pod.metadata.deletion_timestamp:  # a finalizer keeps it, and so its name
            raise ForeignWorker(f"pod {name} has the name of the worker, and cannot be deleted")
        if _is_worker_of(pod, node):
            self._sink.worker_found(pod)
            return
        await self._delete_pod(pod)
        log("Unusable worker pod deleted", level="warn", node=node.name, pod=name, ran_on=pod.spec.get("nodeName"))
        raise Conflict(0, "Unusable", f"pod {name} must be created again")

    async def _delete_worker(self, worker: Worker) -> None:
        with suppress(NotFound, Conflict):  # it is deleted, or another pod has its name
            await self._client.delete(self._pod_path(worker.name), uid=worker.uid, grace_seconds=0)
        self._sink.worker_deleted(worker.uid)

    async def _delete_pod(self, pod: Pod) -> None:
        with suppress(NotFound):
            await self._client.delete(self._pod_path(pod.metadata.name), uid=pod.metadata.uid, grace_seconds=0)

    def _pod_path(self, name: str) -> str:
        return object_path("v1", "pods", name, namespace=self._template.namespace)

    async def _confirm_worker(self, effect: ConfirmAttempt) -> bool:
        """Compare the worker with a dry run of its creation: that is what a previous process got."""
        worker = effect.worker
        if worker.edited:
            raise ForeignWorker(f"pod {worker.name} was changed while it ran, by another client")
        body = _encode(probe_pod(effect.node, self._template))
        try:
            pod = _read_pod(await self._client.create(self._pods, body, dryRun="All"))
        except (Rejected, NotFound) as error:
            if effect.early:  # running workers can exhaust a quota, which proves nothing about this one
                return False
            raise ForeignWorker(f"cannot confirm that pod {worker.name} is a worker: {error.message}") from error
        expected = fingerprint(pod.spec)
        self._sink.worker_admitted(expected)
        if worker.fingerprint != expected:
            raise ForeignWorker(
                f"pod {worker.name} does not match the worker template: "
                "it was changed or created by another client, or worker settings changed since"
            )
        return True

    async def _emit_event(self, effect: EmitEvent) -> bool:
        event = events.event_object(effect, self._context.now(), COMPONENT, self._context.identity)
        name = event["metadata"]["name"]
        if name in self._sent_events:
            return False
        try:
            await self._client.create(events.PATH, _encode(event))
        except AlreadyExists:
            pass
        except (Rejected, NotFound) as error:  # forbidden, or a quota: no gate must wait for that
            log("Failed to write Event", level="warn", reason=effect.reason, error=error.message, status=error.status)
        self._sent_events.add(name)
        return True


_read_pod = tolerant(msgspec.json.Decoder(Pod).decode)


def _is_worker_of(pod: Pod, node: Node) -> bool:
    """Whether the informer of workers includes the pod, and decisions accept it as a worker of this node."""
    labels = pod.metadata.labels or {}
    is_watched = labels.get("app") == APP and labels.get("component") == WORKER_COMPONENT
    worker = read_worker(pod)
    return is_watched and worker is not None and worker.belongs_to(node)
