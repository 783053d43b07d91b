"""What the controller watches, and what is kept of it."""

import msgspec

from kube_node_ready import ledger, objects
from kube_node_ready.api_paths import collection_path, object_path
from kube_node_ready.kube.cache import Kind
from kube_node_ready.verify.model import Ledger, Node, Policy, Worker
from kube_node_ready.verify.nodes import read_node
from kube_node_ready.verify.workerpod import SELECTOR, read_worker

LEDGER = "kube-node-ready-removals"
_NODES = collection_path("v1", "nodes")


class Scope(msgspec.Struct, frozen=True):
    """Where to look, and how much to do at a time."""

    namespace: str
    slots: int
    reconciles: int
    node_selector: str = ""

    @property
    def ledger_path(self) -> str:
        return object_path("v1", "configmaps", LEDGER, namespace=self.namespace)


def nodes(policy: Policy, scope: Scope) -> Kind[objects.Node, Node]:
    # All of them, whole: a gate that comes back on a verified node must be seen, and no selector can ask for taints.
    params = {"labelSelector": scope.node_selector} if scope.node_selector else {}
    return Kind(_NODES, objects.Node, lambda wire: read_node(wire, policy), _name, params)


def newcomers(policy: Policy, scope: Scope) -> Kind[objects.Node, str]:
    """Nodes without our label: which ones there are, and nothing more."""
    selector = ",".join(filter(None, (f"{policy.label}!={policy.label_value}", scope.node_selector)))
    return Kind(_NODES, objects.Node, _uid, _name, {"labelSelector": selector}, metadata_only=True)


def workers(scope: Scope) -> Kind[objects.Pod, Worker | None]:
    path = collection_path("v1", "pods", namespace=scope.namespace)
    return Kind(path, objects.Pod, read_worker, _name, {"labelSelector": SELECTOR})


def removals(scope: Scope) -> Kind[objects.ConfigMap, Ledger]:
    path = collection_path("v1", "configmaps", namespace=scope.namespace)
    return Kind(path, objects.ConfigMap, ledger.read, _name, {"fieldSelector": f"metadata.name={LEDGER}"})


def _uid(wire: objects.Node) -> str:
    return wire.metadata.uid


def _name(wire: objects.Node | objects.Pod | objects.ConfigMap) -> str:
    return wire.metadata.name
