"""The NodeClaim behind a Node: by whichever API version the server serves."""

import msgspec

from kube_node_ready.kube.client import Kube
from kube_node_ready.kube.errors import KubeError, NotFound
from kube_node_ready.objects import ApiGroup, Metadata, NodeClaim, NodeClaims
from kube_node_ready.verify.model import Node

_GROUP = "/apis/karpenter.sh"
_KNOWN_VERSIONS = ("v1", "v1beta1")


class LookUpFailed(Exception):  # noqa: N818  it says what happened
    """Whether there is a NodeClaim is not known, so the node must stay: its removal might go past Karpenter."""


class Claim(msgspec.Struct, frozen=True):
    path: str
    name: str
    uid: str
    deleting: bool


async def find_claim(kube: Kube, node: Node) -> Claim | None:
    """The node's claim. None only if there is no Karpenter here, or Karpenter has no claim for the node."""
    try:
        folder = await _folder(kube)
        if folder is None:
            return None
        found = await _owner(kube, folder, node) or await _by_node_name(kube, folder, node)
    except (KubeError, msgspec.DecodeError) as why:
        raise LookUpFailed(f"its NodeClaim cannot be looked up: {why}") from why
    if found is None:
        return None
    return Claim(f"{folder}/{found.name}", found.name, found.uid, found.deletion_timestamp is not None)


async def _folder(kube: Kube) -> str | None:
    try:
        group = msgspec.json.decode(await kube.get(_GROUP), type=ApiGroup)
    except NotFound:
        return None
    served = [version.version for version in group.versions]
    version = next((known for known in _KNOWN_VERSIONS if known in served), None)
    if version is None:
        raise LookUpFailed(
            f"Karpenter's API is served as {', '.join(served) or 'nothing'}; {' and '.join(_KNOWN_VERSIONS)} are known"
        )
    return f"{_GROUP}/{version}/nodeclaims"


async def _owner(kube: Kube, folder: str, node: Node) -> Metadata | None:
    if not node.claim:
        return None
    try:
        claim = msgspec.json.decode(await kube.get(f"{folder}/{node.claim_name}"), type=NodeClaim)
    except NotFound:
        return None
    if claim.metadata.uid != node.claim:  # a later one of the same name
        return None
    if claim.status.node_name not in ("", node.name):
        raise LookUpFailed(f"its owner, NodeClaim {node.claim_name}, says that its node is {claim.status.node_name}")
    return claim.metadata


async def _by_node_name(kube: Kube, folder: str, node: Node) -> Metadata | None:
    claims = msgspec.json.decode(await kube.get(folder), type=NodeClaims).items
    return next((claim.metadata for claim in claims if claim.status.node_name == node.name), None)
