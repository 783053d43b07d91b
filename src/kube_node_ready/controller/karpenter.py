"""The NodeClaim behind a Node: by whichever API version the server serves.

A kubelet chooses its Node's owner references and providerID when it registers, so neither proves whose claim it is. The
claim's status does, since only Karpenter writes that: the claim of a node is the one whose status names the node.
"""

import msgspec

from kube_node_ready.api_paths import InvalidNameError, collection_path, group_path, object_path
from kube_node_ready.kube.client import MAX_PAGE_BYTES, Kube
from kube_node_ready.kube.errors import KubeError, NotFound
from kube_node_ready.objects import ApiGroup, NodeClaim, NodeClaims
from kube_node_ready.verify.model import Node
from kube_node_ready.verify.report import printable

POOL_LABEL = "karpenter.sh/nodepool"
_GROUP = "karpenter.sh"
_RESOURCE = "nodeclaims"
_KNOWN_VERSIONS = ("v1", "v1beta1")


class LookUpFailed(Exception):  # noqa: N818  it says what happened
    """Whether there is a NodeClaim is not known, so the node must stay: its removal might go past Karpenter."""


class Claim(msgspec.Struct, frozen=True):
    path: str
    name: str
    uid: str
    pool: str
    deleting: bool


async def find_claim(kube: Kube, node: Node) -> Claim | None:
    """The node's claim. None only if there is no Karpenter here, or Karpenter has no claim for the node."""
    try:
        api = await _api(kube)
        if api is None:
            return None
        found = await _owner(kube, api, node) or await _by_node_name(kube, api, node)
        if found is None:
            return None
        _check_machine(found, node)
        return _read(found, api)
    except (KubeError, msgspec.DecodeError, InvalidNameError) as error:
        raise LookUpFailed(f"cannot look up its NodeClaim: {error}") from error


async def _api(kube: Kube) -> str | None:
    try:
        group = msgspec.json.decode(await kube.get(group_path(_GROUP)), type=ApiGroup)
    except NotFound:
        return None
    served = [version.version for version in group.versions]
    version = next((known for known in _KNOWN_VERSIONS if known in served), None)
    if version is None:
        raise LookUpFailed(
            f"Karpenter's API is served as {', '.join(served) or 'nothing'}; {' and '.join(_KNOWN_VERSIONS)} are known"
        )
    return f"{_GROUP}/{version}"


async def _owner(kube: Kube, api: str, node: Node) -> NodeClaim | None:
    """The claim that the Node names as its owner: one small request instead of a list of all claims."""
    if not node.claim:
        return None
    try:
        claim = msgspec.json.decode(await kube.get(object_path(api, _RESOURCE, node.claim_name)), type=NodeClaim)
    except NotFound:
        return None
    if claim.metadata.uid != node.claim:  # a later one of the same name
        return None
    if claim.status.node_name != node.name:
        names = f"node {claim.status.node_name}" if claim.status.node_name else "no node yet"
        raise LookUpFailed(f"its owner, NodeClaim {node.claim_name}, belongs to {names}")
    return claim


async def _by_node_name(kube: Kube, api: str, node: Node) -> NodeClaim | None:
    answer = await kube.get(collection_path(api, _RESOURCE), max_bytes=MAX_PAGE_BYTES)
    claims = msgspec.json.decode(answer, type=NodeClaims).items
    return next((claim for claim in claims if claim.status.node_name == node.name), None)


def _read(claim: NodeClaim, api: str) -> Claim:
    metadata = claim.metadata
    return Claim(
        path=object_path(api, _RESOURCE, metadata.name),
        name=metadata.name,
        uid=metadata.uid,
        pool=(metadata.labels or {}).get(POOL_LABEL, ""),
        deleting=metadata.deletion_timestamp is not None,
    )


def _check_machine(claim: NodeClaim, node: Node) -> None:
    """A Node that took over the name of another one is not the machine that Karpenter would terminate."""
    expected = claim.status.provider_id
    if expected and node.provider_id and node.provider_id != expected:
        raise LookUpFailed(
            f"its NodeClaim {claim.metadata.name} has providerID {expected}, the Node has {printable(node.provider_id)}"
        )
