"""Define which resources the controller watches, and which fields of them it keeps."""

from collections.abc import Callable

import msgspec

from kube_node_ready.api import objects
from kube_node_ready.api.contract import WORKER_SELECTOR
from kube_node_ready.api.paths import collection_path, object_path
from kube_node_ready.controller import removal_ledger
from kube_node_ready.kube.informer import Resource
from kube_node_ready.verification.model import Ledger, Node, Policy, Worker
from kube_node_ready.verification.node_reader import read_node
from kube_node_ready.verification.worker_status import read_worker

LEDGER = "kube-node-ready-removals"
_NODES = collection_path("v1", "nodes")


class Scope(msgspec.Struct, frozen=True):
    """Which objects the controller watches, and its limits."""

    namespace: str
    slots: int
    reconciles: int
    node_selector: str = ""

    @property
    def ledger_path(self) -> str:
        return object_path("v1", "configmaps", LEDGER, namespace=self.namespace)


def _whole(worker: Worker) -> Worker:
    return worker


def nodes(policy: Policy, scope: Scope) -> Resource[objects.Node, Node]:
    # All nodes: a gate that is closed on a verified node must be detected, and selectors cannot match taints.
    params = {"labelSelector": scope.node_selector} if scope.node_selector else {}
    return Resource(_NODES, objects.Node, lambda wire: read_node(wire, policy), _name, params)


def unlabelled_nodes(policy: Policy, scope: Scope) -> Resource[objects.Node, str]:
    """Watch the names of nodes without the label."""
    selector = ",".join(filter(None, (f"{policy.label}!={policy.label_value}", scope.node_selector)))
    return Resource(_NODES, objects.Node, _uid, _name, {"labelSelector": selector}, metadata_only=True)


def workers(scope: Scope, transform: Callable[[Worker], Worker] = _whole) -> Resource[objects.Pod, Worker | None]:
    path = collection_path("v1", "pods", namespace=scope.namespace)

    def read(wire: objects.Pod) -> Worker | None:
        worker = read_worker(wire)
        return worker and transform(worker)

    return Resource(path, objects.Pod, read, _name, {"labelSelector": WORKER_SELECTOR})


def removals(scope: Scope) -> Resource[objects.ConfigMap, Ledger]:
    path = collection_path("v1", "configmaps", namespace=scope.namespace)
    return Resource(path, objects.ConfigMap, removal_ledger.read, _name, {"fieldSelector": f"metadata.name={LEDGER}"})


def _uid(wire: objects.Node) -> str:
    return wire.metadata.uid


def _name(wire: objects.Node | objects.Pod | objects.ConfigMap) -> str:
    return wire.metadata.name
