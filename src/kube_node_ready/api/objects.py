"""The fields of Kubernetes objects that are read. Other fields are not decoded."""

from datetime import datetime
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field


class Wire(Struct, frozen=True, rename="camel"):
    """As the API server sends it."""


class OwnerReference(Wire, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class Metadata(Wire, frozen=True):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] | UnsetType = UNSET
    annotations: dict[str, str] | UnsetType = UNSET
    owner_references: tuple[OwnerReference, ...] = ()


class Taint(Wire, frozen=True, omit_defaults=True):
    key: str
    effect: str = ""
    value: str = ""


class NodeSpec(Wire, frozen=True):
    provider_id: str = field(default="", name="providerID")
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeInfo(Wire, frozen=True):
    boot_id: str = field(default="", name="bootID")


class NodeStatus(Wire, frozen=True):
    node_info: NodeInfo = NodeInfo()


class Node(Wire, frozen=True):
    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Waiting(Wire, frozen=True):
    reason: str = ""
    message: str = ""


class Running(Wire, frozen=True):
    started_at: str | None = None
    """As text: a kubelet writes it, and Python lacks some times that an API server stores."""


class Terminated(Wire, frozen=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class ContainerState(Wire, frozen=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Wire, frozen=True):
    name: str = ""
    state: ContainerState = ContainerState()


class Condition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class PodStatus(Wire, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(Wire, frozen=True):
    metadata: Metadata
    spec: dict[str, Any] = {}
    """The whole spec: all of it decides what the pod runs."""
    status: PodStatus = PodStatus()


class ConfigMap(Wire, frozen=True):
    metadata: Metadata
    data: dict[str, str] | UnsetType = UNSET


class NodeClaimStatus(Wire, frozen=True):
    node_name: str = ""
    provider_id: str = field(default="", name="providerID")


class NodeClaim(Wire, frozen=True):
    metadata: Metadata
    status: NodeClaimStatus = NodeClaimStatus()


class NodeClaims(Wire, frozen=True):
    items: tuple[NodeClaim, ...] = ()


class GroupVersion(Wire, frozen=True):
    version: str = ""


class ApiGroup(Wire, frozen=True):
    """The versions of an API group that the server serves, the preferred one first."""

    name: str = ""
    versions: tuple[GroupVersion, ...] = ()


class ApiGroups(Wire, frozen=True):
    """All API groups that the server serves."""

    kind: str
    groups: tuple[ApiGroup, ...]
