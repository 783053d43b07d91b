"""Remove a node: delete its NodeClaim or Node, or cordon the Node. Every step is recorded before it happens."""

from collections.abc import Awaitable, Callable

import msgspec

from kube_node_ready.api.contract import EventReason
from kube_node_ready.api.objects import Taint
from kube_node_ready.api.paths import object_path
from kube_node_ready.api.report import printable
from kube_node_ready.controller import karpenter, removal_ledger
from kube_node_ready.controller.execution import CacheSink, ExecutorContext, RemovalBlocked
from kube_node_ready.kube.client import KubeClient, PatchKind
from kube_node_ready.kube.errors import Conflict, NotFound, Rejected
from kube_node_ready.log import log
from kube_node_ready.verification import patches, removal_budget
from kube_node_ready.verification.effects import EmitEvent, RemoveNode
from kube_node_ready.verification.model import Node, Policy, Pool, Removal, WithoutClaim

_encode = msgspec.json.encode

_AUTOMATIC = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/unschedulable",
    }
)
"""Not `node.kubernetes.io/out-of-service`, which an administrator sets."""


class Remover:
    def __init__(
        self,
        kube: KubeClient,
        sink: CacheSink,
        policy: Policy,
        context: ExecutorContext,
        emit_event: Callable[[EmitEvent], Awaitable[bool]],
    ) -> None:
        self._client = kube
        self._sink = sink
        self._policy = policy
        self._context = context
        self._emit_event = emit_event

    async def remove(self, effect: RemoveNode) -> bool:
        """Find the NodeClaim, record the removal, emit the Event, then remove the node.

        So the budget holds even if the process is killed in between, and the Event is emitted while the Node exists.
        """
        node = effect.node
        claim = await karpenter.find_claim(self._client, node)
        self._check_pool(node, claim)
        if claim is None and (reason := self._why_cordon(node)):
            return await self._cordon(effect, reason)
        # Draining its node can take Karpenter longer than a window. It must not use the budget again, nor that of a
        # removal that another client began.
        if claim and claim.deleting:
            return False
        what = f"NodeClaim {claim.name}" if claim else "the Node"
        if self._context.removal_dry_run:
            raise RemovalBlocked(f"dry run: would remove {what}")
        try:
            await self._record_removal(effect)
            message = f"deleting {what}: {effect.reason}"
            await self._emit_event(EmitEvent(node, EventReason.REMOVING, message, node.record.attempt, warning=True))
            return await self._delete(node, claim, effect.version)
        except Rejected as error:
            raise RemovalBlocked(f"cannot delete {what}: {error}") from error

    def _check_pool(self, node: Node, claim: karpenter.Claim | None) -> None:
        """The budget was checked for the pool that the Node names. Check again if its NodeClaim names another."""
        pool = Pool(claim.pool if claim else node.pool, claimed=claim is not None)
        if pool != Pool(node.pool, node.claimed):
            self._sink.pool_found(node, pool)
            raise Conflict(
                0, "OtherPool", f"node {node.name} belongs to another pool than its labels and owners indicate"
            )

    def _why_cordon(self, node: Node) -> str:
        """Return why a Node without a NodeClaim is cordoned instead of deleted; empty if it is deleted.

        The machine of a deleted Node keeps running, and its kubelet registers a new Node without the taints that other
        clients had set: workloads would lose their isolation.
        """
        assert self._policy.removal
        if self._policy.removal.without_claim is WithoutClaim.CORDON:
            return "removal.withoutClaim is cordon"
        if node.cordoned:
            return "a new registration would not be cordoned"
        if lost := [taint for taint in node.taints if not self._policy.is_gate(taint) and not _is_automatic(taint)]:
            return f"a new registration would lose its taint {printable(lost[0].key)}"
        return ""

    async def _cordon(self, effect: RemoveNode, reason: str) -> bool:
        node = effect.node
        if self._context.removal_dry_run:
            raise RemovalBlocked(f"dry run: would cordon the Node ({reason})")
        if node.cordoned:
            raise RemovalBlocked(f"cordoned instead of deleted: it has no NodeClaim, and {reason}")
        try:
            await self._record_removal(effect)
            message = f"cordoning instead of deleting: it has no NodeClaim, and {reason}. It failed: {effect.reason}"
            await self._emit_event(EmitEvent(node, EventReason.CORDONED, message, node.record.attempt, warning=True))
            answer = await self._client.patch(node_path(node), _encode(patches.cordon(node)), PatchKind.JSON)
        except Rejected as error:
            raise RemovalBlocked(f"cannot cordon the Node: {error}") from error
        self._sink.node_written(answer)
        log("Node cordoned", level="warn", node=node.name, reason=reason)
        return False

    async def _delete(self, node: Node, claim: karpenter.Claim | None, version: str) -> bool:
        try:
            if claim is None:
                await self._client.delete(node_path(node), uid=node.uid, version=version)
                return True
            log("Found NodeClaim for failed node, deleting NodeClaim instead", nodeClaim=claim.name, node=node.name)
            await self._client.delete(claim.path, uid=claim.uid)
        except NotFound:
            return False
        log("Successfully deleted NodeClaim, node should be terminated by Karpenter", nodeClaim=claim.name)
        return True

    async def _record_removal(self, effect: RemoveNode) -> None:
        assert self._policy.removal
        if removal_budget.is_recorded(effect.node, effect.ledger, self._context.now(), self._policy.removal):
            return
        if not effect.ledger.version:  # a patch without a version would overwrite other changes
            raise Conflict(0, "NoLedger", "the removal ledger does not exist yet")
        node, now = effect.node, self._context.now()
        removal = Removal(node.uid, node.name, node.pool, now, claimed=node.claimed)
        removals = removal_ledger.with_removal(effect.ledger.removals, removal, self._policy.removal.window, now)
        body = _encode(removal_ledger.patch(effect.ledger.version, removals))
        self._sink.ledger_written(await self._client.patch(self._context.ledger_path, body, PatchKind.MERGE))


def node_path(node: Node, subresource: str = "") -> str:
    return object_path("v1", "nodes", node.name, subresource=subresource)


def _is_automatic(taint: Taint) -> bool:
    """Whether Kubernetes or the cloud provider adds the taint to each Node that needs it, new ones included."""
    return taint.key in _AUTOMATIC or taint.key.startswith("node.cloudprovider.kubernetes.io/")
