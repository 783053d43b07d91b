"""Find the NodeClaim of a Node, in any API version that the server serves.

A kubelet chooses its Node's owner references and providerID when it registers, so neither proves whose claim it is. The
claim's status does, since only Karpenter writes that: the claim of a node is the one whose status names the node.
"""

import msgspec

from kube_node_ready.api.nesting import tolerant
from kube_node_ready.api.objects import ApiGroup, ApiGroups, NodeClaim, NodeClaims
from kube_node_ready.api.paths import GROUPS_PATH, InvalidNameError, collection_path, group_path, object_path
from kube_node_ready.api.report import printable
from kube_node_ready.kube.client import MAX_PAGE_BYTES, KubeClient
from kube_node_ready.kube.errors import KubeError, NotFound
from kube_node_ready.verification.model import Node

POOL_LABEL = "karpenter.sh/nodepool"
_GROUP = "karpenter.sh"
_RESOURCE = "nodeclaims"
_KNOWN_VERSIONS = ("v1", "v1beta1")
_decode_group = tolerant(msgspec.json.Decoder(ApiGroup).decode)
_decode_groups = tolerant(msgspec.json.Decoder(ApiGroups).decode)
_decode_claim = tolerant(msgspec.json.Decoder(NodeClaim).decode)
_decode_claims = tolerant(msgspec.json.Decoder(NodeClaims).decode)


class ClaimLookupFailed(Exception):  # noqa: N818  an event, not a fault
    """It is not known whether there is a NodeClaim, so the node is not removed: that might bypass Karpenter."""


class Claim(msgspec.Struct, frozen=True):
    path: str
    name: str
    uid: str
    pool: str
    deleting: bool


async def find_claim(kube: KubeClient, node: Node) -> Claim | None:
    """Return the node's claim. None only if Karpenter is not installed or has no claim for the node."""
    try:
        api = await _api(kube)
        if api is None:
            return None
        claim = await _owner(kube, api, node) or await _by_node_name(kube, api, node)
        if claim is None:
            return None
        _check_machine(claim, node)
        return _read(claim, api)
    except (KubeError, msgspec.DecodeError, InvalidNameError) as error:
        raise ClaimLookupFailed(f"cannot look up its NodeClaim: {error}") from error


async def _api(kube: KubeClient) -> str | None:
    try:
        group = _decode_group(await kube.get(group_path(_GROUP)))
    except NotFound:
        await _check_not_served(kube)
        return None
    served = [version.version for version in group.versions]
    version = next((known for known in _KNOWN_VERSIONS if known in served), None)
    if version is None:
        raise ClaimLookupFailed(
            f"Karpenter's API is served as {', '.join(served) or 'nothing'}; {' and '.join(_KNOWN_VERSIONS)} are known"
        )
    return f"{_GROUP}/{version}"


async def _check_not_served(kube: KubeClient) -> None:
    """A 404 alone proves nothing: a proxy can answer so, too. The list of groups is an answer of the API server."""
    groups = _decode_groups(await kube.get(GROUPS_PATH, max_bytes=MAX_PAGE_BYTES))
    if groups.kind != "APIGroupList":
        raise ClaimLookupFailed(f"{GROUPS_PATH} returned a {printable(groups.kind)}, expected an APIGroupList")
    if any(group.name == _GROUP for group in groups.groups):
        raise ClaimLookupFailed(f"the API server lists {_GROUP}, but returns 404 for it")


async def _owner(kube: KubeClient, api: str, node: Node) -> NodeClaim | None:
    """Return the claim that the Node names as its owner: one request instead of a list of all claims."""
    if not node.claim:
        return None
    try:
        claim = _decode_claim(await kube.get(object_path(api, _RESOURCE, node.claim_name)))
    except NotFound:
        return None
    if claim.metadata.uid != node.claim:  # a later one of the same name
        return None
    if claim.status.node_name != node.name:
        names = f"node {claim.status.node_name}" if claim.status.node_name else "no node yet"
        raise ClaimLookupFailed(f"its owner, NodeClaim {node.claim_name}, belongs to {names}")
    return claim


async def _by_node_name(kube: KubeClient, api: str, node: Node) -> NodeClaim | None:
    answer = await kube.get(collection_path(api, _RESOURCE), max_bytes=MAX_PAGE_BYTES)
    claims = _decode_claims(answer).items
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
    """Check the provider ID: a Node that took over a name is not the machine that Karpenter would terminate."""
    expected = claim.status.provider_id
    if expected and node.provider_id and node.provider_id != expected:
        raise ClaimLookupFailed(
            f"its NodeClaim {claim.metadata.name} has providerID {expected}, the Node has {printable(node.provider_id)}"
        )
