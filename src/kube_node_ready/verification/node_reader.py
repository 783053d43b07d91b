"""A Node object, read as far as verification is concerned."""

from collections.abc import Mapping

from msgspec import UNSET

from kube_node_ready import objects
from kube_node_ready.api_paths import is_dns_subdomain
from kube_node_ready.verify import patches
from kube_node_ready.verify.model import Node, Policy
from kube_node_ready.verify.report import printable

PAUSE_ANNOTATION = "node-ready/pause-removal"
"""On a Node: this node is not to be removed. On the ledger: no node is."""

_UNREGISTERED_TAINT = "karpenter.sh/unregistered"
_REGISTERED_LABEL = "karpenter.sh/registered"
_POOL_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
)


def read_node(wire: objects.Node, policy: Policy) -> Node:
    metadata = wire.metadata
    labels = metadata.labels or {}
    annotations = metadata.annotations or {}
    claim = next((owner for owner in metadata.owner_references if _is_claim(owner)), None)
    return Node(
        name=metadata.name,
        uid=metadata.uid,
        labelled=labels.get(policy.label) == policy.label_value,
        taints=wire.spec.taints,
        record=patches.decode(annotations.get(patches.ANNOTATION)),
        deleting=metadata.deletion_timestamp is not None,
        registered=_registered(wire, labels),
        pool=next((labels[name] for name in _POOL_LABELS if name in labels), ""),
        claim=claim.uid if claim else "",
        claim_name=claim.name if claim else "",
        claimed=claim is not None,
        provider_id=wire.spec.provider_id,
        boot=printable(wire.status.node_info.boot_id, patches.LONGEST_BOOT),
        cordoned=wire.spec.unschedulable,
        removal_paused=is_paused(annotations),
        has_labels=metadata.labels is not UNSET,
        has_annotations=metadata.annotations is not UNSET,
    )


def is_paused(annotations: Mapping[str, str]) -> bool:
    """Whoever sets the annotation means it, unless it says false."""
    return annotations.get(PAUSE_ANNOTATION, "false").lower() != "false"


def _is_claim(owner: objects.OwnerReference) -> bool:
    """A kubelet registers its Node with whatever owners it likes, and the server does not check their names."""
    is_claim = owner.kind == "NodeClaim" and owner.api_version.startswith("karpenter.sh/")
    return is_claim and is_dns_subdomain(owner.name) and owner.uid != ""


def _registered(wire: objects.Node, labels: Mapping[str, str]) -> bool:
    if any(taint.key == _UNREGISTERED_TAINT for taint in wire.spec.taints):
        return False
    karpenters = _POOL_LABELS[0] in labels
    return not karpenters or labels.get(_REGISTERED_LABEL) == "true"
