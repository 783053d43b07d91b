"""Nodes that fail, their NodeClaims, and a controller that removes them and selects no other node."""

import contextlib
import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_global_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.core_v1 import ConfigMap, Event, Node
from lightkube.resources.rbac_authorization_v1 import ClusterRole, ClusterRoleBinding
from lightkube.types import PatchType

import lab
from kube_node_ready.api.contract import RECORD_ANNOTATION
from kube_node_ready.api.record import decode_record
from lab import karpenter, simulated_nodes, waiting
from tests.support.controller_process import Operator, a_config, operating

LEDGER = "kube-node-ready-removals"
PAUSE = "node-ready/pause-removal"
AGENT = "kube-node-ready-controller"
FAILS = lab.fails(seconds=0.2)
PATIENCE = 180
_GATE = lab.Taint("node-ready/unverified", value="true")
_DEFINITION = "nodeclaims.karpenter.sh"


class Fleet:
    """The nodes of one test."""

    def __init__(self, plane: lab.Plane, namespace: str, folder: Path) -> None:
        self.plane = plane
        self.namespace = namespace
        self._folder = folder
        self._account = f"{namespace}-controller"
        self._groups: list[simulated_nodes.SimulatedNodes] = []

    def join(self, count: int = 1, *, pool: str = "", verdict: lab.Verdict = FAILS, group: str = "") -> list[str]:
        """Nodes of one verdict and pool; a second group of them needs a name."""
        labels = {"case": self.namespace}
        if pool:
            labels |= {"karpenter.sh/nodepool": pool, "karpenter.sh/registered": "true"}
        prefix = "-".join(filter(None, [self.namespace, pool or "node", group]))
        nodes = self.plane.simulated_nodes(count, prefix=prefix, verdict=verdict, taints=[_GATE], labels=labels)
        self._groups.append(nodes)
        return list(nodes.names)

    def heal(self) -> None:
        for group in self._groups:
            group.decide(lab.PASSES)

    def operating(
        self,
        removal: Mapping[str, object] | None = None,
        *,
        kubeconfig: Path | None = None,
        reconciliation: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[Operator]:
        """A controller that removes what fails twice, without limits but for those given."""
        no_limits = {"maxCount": 100, "maxPercent": 100, "maxFailingCount": 100}
        management = {"deleteFailedNodes": True, "removal": {**no_limits, **(removal or {})}}
        return self.run(management, kubeconfig=kubeconfig, reconciliation=reconciliation)

    def run(
        self,
        management: Mapping[str, Any],
        *,
        kubeconfig: Path | None = None,
        reconciliation: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[Operator]:
        config = a_config(
            self.namespace,
            nodeManagement={"nodeSelector": {"case": self.namespace}, **management},
            reconciliation={"intervalSeconds": 1, "maxRetries": 1, **(reconciliation or {})},
        )
        return operating(self._folder, kubeconfig or self.plane.kubeconfig(), config)

    def until(self, what: str, condition: Any) -> Any:  # noqa: ANN401  whatever it answers
        return waiting.until(what, condition, PATIENCE, alive=self.plane.check)

    def left(self) -> set[str]:
        return self._named({"case": self.namespace})

    def released(self) -> set[str]:
        return self._named({"case": self.namespace, "node-ready/verified": "true"})

    def attempts(self, node: str) -> int:
        annotations = self.node(node)["metadata"]["annotations"]
        return decode_record(annotations.get(RECORD_ANNOTATION)).attempt

    def node(self, name: str) -> dict[str, Any]:
        return self.plane.client.get(Node, name).to_dict()

    def uid(self, node: str) -> str:
        return str(self.node(node)["metadata"]["uid"])

    def event_messages(self, node: str, reason: str) -> list[str]:
        """What the Events of this reason say of the node."""
        found = self.plane.client.list(
            Event, namespace="default", fields={"involvedObject.name": node, "reason": reason}
        )
        return [str(event.message) for event in found]

    def booked(self) -> list[str]:
        """The nodes whose removals are in the ledger."""
        found = self.plane.client.get(ConfigMap, LEDGER, namespace=self.namespace)
        return [str(removal["node"]) for removal in json.loads((found.data or {}).get("removals", "[]"))]

    def write_ledger(self, removals: str = "[]", *, paused: bool = False) -> None:
        metadata: dict[str, Any] = {"name": LEDGER, "namespace": self.namespace}
        if paused:
            metadata["annotations"] = {PAUSE: "true"}
        ledger = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"removals": removals}}
        self.plane.apply(json.dumps(ledger))

    def account(self, *verbs: str) -> Path:
        """A kubeconfig with the controller's rights, and these on NodeClaims only."""
        name = self._account
        claims = [{"apiGroups": ["karpenter.sh"], "resources": ["nodeclaims"], "verbs": list(verbs)}] if verbs else []
        role = {"apiVersion": _RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [*_RULES, *claims]}
        subject = {"kind": "ServiceAccount", "name": "default", "namespace": self.namespace}
        binding = {
            "apiVersion": _RBAC,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        }
        self.plane.apply(f"{json.dumps(role)}\n---\n{json.dumps(binding)}")
        return self.plane.kubeconfig(f"{self.namespace}/default")

    def forget(self) -> None:
        for node in self.left():
            with contextlib.suppress(ApiError):  # it is gone
                self.plane.client.delete(Node, node)
        for kind in (ClusterRole, ClusterRoleBinding):
            with contextlib.suppress(ApiError):  # it was never there
                self.plane.client.delete(kind, self._account)

    def _named(self, labels: Mapping[str, str]) -> set[str]:
        found = self.plane.client.list(Node, labels=dict(labels))
        return {str(node.metadata.name) for node in found if node.metadata}


class Claims:
    """NodeClaims in one version of Karpenter's API."""

    def __init__(self, plane: lab.Plane, version: str) -> None:
        self._client = plane.client
        self._api = f"karpenter.sh/{version}"
        self._kind = create_global_resource("karpenter.sh", version, "NodeClaim", "nodeclaims")

    def make(self, node: str, *, by: str, finalizers: Sequence[str] = ()) -> str:
        """A claim for the node, found by its `owner`, by the claim's `status` alone, or by nothing.

        It is of the node's pool: Karpenter gives both the same label.
        """
        name, pool = f"claim-of-{node}", "karpenter.sh/nodepool"
        found = self._client.list(Node, fields={"metadata.name": node})
        known = [(one.metadata.labels or {}).get(pool) for one in found if one.metadata]
        labels = {pool: known[0]} if known and known[0] else {}
        metadata = ObjectMeta(name=name, finalizers=list(finalizers), labels=labels)
        made = self._client.create(self._kind(metadata=metadata, spec=_SPEC))
        if by == "owner":
            assert made.metadata
            assert made.metadata.uid
            owner = {"apiVersion": self._api, "kind": "NodeClaim", "name": name, "uid": made.metadata.uid}
            self._client.patch(Node, node, {"metadata": {"ownerReferences": [owner]}})
        if by in ("owner", "status"):
            self.say(name, node)
        return name

    def say(self, name: str, node: str) -> None:
        """Let the claim's status name this node."""
        status = {"status": {"nodeName": node}}
        self._client.patch(self._kind.Status, name, status, patch_type=PatchType.MERGE)

    def names(self) -> set[str]:
        return {str(claim.metadata.name) for claim in self._client.list(self._kind) if claim.metadata}

    def uid(self, name: str) -> str:
        metadata = self._client.get(self._kind, name).metadata
        assert metadata
        return str(metadata.uid)

    def is_leaving(self, name: str) -> bool:
        metadata = self._client.get(self._kind, name).metadata
        return bool(metadata and metadata.deletionTimestamp)

    def delete(self, name: str) -> None:
        """Whatever holds it back."""
        unheld = {"metadata": {"finalizers": None}}
        self._client.patch(self._kind, name, unheld, patch_type=PatchType.MERGE)
        with contextlib.suppress(ApiError):
            self._client.delete(self._kind, name)


@contextmanager
def nodeclaims(plane: lab.Plane, *versions: str) -> Iterator[Claims]:
    """Karpenter's API, served in these versions for as long as the block runs. What was made of it goes with it."""
    known, versions = karpenter.definitions(), versions or ("v1",)
    claims = Claims(plane, versions[-1])
    # One that is not listed can take the API server minutes to delete, once it was made and deleted some twenty times.
    expected = _served_as(known[_DEFINITION], versions)
    karpenter.install(plane.client, expected)
    try:
        waiting.until("NodeClaims are served", lambda: claims.names() == set(), 180)
        yield claims
    finally:
        for name in claims.names():
            claims.delete(name)
        plane.client.delete(CustomResourceDefinition, _DEFINITION)
        waiting.until("Karpenter's API is gone", lambda: not has_karpenter(plane), 180)


def has_karpenter(plane: lab.Plane) -> bool:
    groups = json.loads(plane.kubectl("get", "--raw=/apis"))["groups"]
    return any(group["name"] == "karpenter.sh" for group in groups)


def _served_as(definition: Mapping[str, Any], versions: tuple[str, ...]) -> dict[str, Any]:
    changed = copy.deepcopy(dict(definition))
    (only,) = changed["spec"]["versions"]
    changed["spec"]["versions"] = [{**only, "name": name, "storage": name == versions[0]} for name in versions]
    return changed


_SPEC = {
    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
    "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
}
_RBAC = "rbac.authorization.k8s.io/v1"
_RULES: list[dict[str, list[str]]] = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch", "delete"]},
    {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "create", "delete"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "patch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
]
