"""Read what verification needs from a Node object."""

from collections.abc import Mapping

from msgspec import UNSET
from msgspec.structs import replace

from kube_node_ready.api import objects
from kube_node_ready.api.contract import PAUSE_ANNOTATION, RECORD_ANNOTATION
from kube_node_ready.api.paths import is_dns_subdomain
from kube_node_ready.api.record import MAX_BOOT_LENGTH, decode_record
from kube_node_ready.api.report import printable
from kube_node_ready.verification.model import Node, Policy

_MAX_KEPT = 16_384
"""Longer than any record of ours: a kubelet can write 256 KiB."""
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
    node = Node(
        name=metadata.name,
        uid=metadata.uid,
        labelled=labels.get(policy.label) == policy.label_value,
        taints=wire.spec.taints,
        record=decode_record(annotations.get(RECORD_ANNOTATION)),
        deleting=metadata.deletion_timestamp is not None,
        registered=_registered(wire, labels),
        pool=next((labels[name] for name in _POOL_LABELS if name in labels), ""),
        claim=claim.uid if claim else "",
        claim_name=claim.name if claim else "",
        claimed=claim is not None,
        provider_id=wire.spec.provider_id,
        boot=printable(wire.status.node_info.boot_id, MAX_BOOT_LENGTH),
        cordoned=wire.spec.unschedulable,
        removal_paused=is_paused(annotations),
        has_labels=metadata.labels is not UNSET,
        has_annotations=metadata.annotations is not UNSET,
        created=metadata.creation_timestamp,
    )
    # Only gates of such nodes are opened; the texts of all others would take memory.
    return replace(node, record_text=_kept(annotations.get(RECORD_ANNOTATION))) if policy.guards(node) else node


def _kept(annotation: str | None) -> str | None:
    return annotation if annotation is None or len(annotation) <= _MAX_KEPT else ""


def is_paused(annotations: Mapping[str, str]) -> bool:
    """Whether the annotation is set to anything but false."""
    return annotations.get(PAUSE_ANNOTATION, "false").lower() != "false"


def _is_claim(owner: objects.OwnerReference) -> bool:
    """Whether this is a NodeClaim with a valid name. A kubelet can register its Node with any owners."""
    is_claim = owner.kind == "NodeClaim" and owner.api_version.startswith("karpenter.sh/")
    return is_claim and is_dns_subdomain(owner.name) and owner.uid != ""


def _registered(wire: objects.Node, labels: Mapping[str, str]) -> bool:
    if any(taint.key == _UNREGISTERED_TAINT for taint in wire.spec.taints):
        return False
    karpenters = _POOL_LABELS[0] in labels
    return not karpenters or labels.get(_REGISTERED_LABEL) == "true"
