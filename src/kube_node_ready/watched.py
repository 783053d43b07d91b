"""What the controller watches, and what is kept of it."""

import msgspec

from kube_node_ready import ledger, objects
from kube_node_ready.kube.cache import Kind
from kube_node_ready.verify.model import Ledger, Node, Policy, Worker
from kube_node_ready.verify.nodes import read_node
from kube_node_ready.verify.workerpod import SELECTOR, read_worker

LEDGER = "kube-node-ready-removals"


class Scope(msgspec.Struct, frozen=True):
    """Where to look, and how much to do at a time."""

    namespace: str
    slots: int
    reconciles: int
    node_selector: str = ""

    @property
    def ledger_path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps/{LEDGER}"


def nodes(policy: Policy, scope: Scope) -> Kind[objects.Node, Node]:
    # All of them, whole: a gate that comes back on a verified node must be seen, and no selector can ask for taints.
    params = {"labelSelector": scope.node_selector} if scope.node_selector else {}
    return Kind("/api/v1/nodes", objects.Node, lambda wire: read_node(wire, policy), _name, params)


def newcomers(policy: Policy, scope: Scope) -> Kind[objects.Node, str]:
    """Nodes without our label: which ones there are, and nothing more."""
    selector = ",".join(filter(None, (f"{policy.label}!={policy.label_value}", scope.node_selector)))
    return Kind("/api/v1/nodes", objects.Node, _uid, _name, {"labelSelector": selector}, metadata_only=True)


def workers(scope: Scope) -> Kind[objects.Pod, Worker | None]:
    path = f"/api/v1/namespaces/{scope.namespace}/pods"
    return Kind(path, objects.Pod, read_worker, _name, {"labelSelector": SELECTOR})


def removals(scope: Scope) -> Kind[objects.ConfigMap, Ledger]:
    path = scope.ledger_path.rpartition("/")[0]
    return Kind(path, objects.ConfigMap, ledger.read, _name, {"fieldSelector": f"metadata.name={LEDGER}"})


def _uid(wire: objects.Node) -> str:
    return wire.metadata.uid


def _name(wire: objects.Node | objects.Pod | objects.ConfigMap) -> str:
    return wire.metadata.name
