"""The floor: what the control plane itself takes to verify a node, were the controller ideal.

It sees nothing and decides nothing: no watch precedes the pod's creation, no look at the pod's report precedes the
release. Only what every controller has to ask of the API server is asked: pod created, node patched, pod deleted.
"""

import http
from typing import Any

import msgspec

from bench import journal
from bench.api import JSON_PATCH, Api
from bench.journal import Journal, Moment
from lab import images


async def verify(api: Api, seen: Journal, node: journal.Node, namespace: str) -> int:
    """Take one node, just created, to its release. Returns how often the release lost against another writer."""
    pods, pod = f"/api/v1/namespaces/{namespace}/pods", worker_pod(node, namespace)
    await api.must("POST", pods, pod)
    await seen.reached(Moment.POD_SUCCEEDED, node.metadata.name)
    lost = await _release(api, seen.nodes.get(node.metadata.name, node))
    await api.must("DELETE", f"{pods}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
    return lost


async def _release(api: Api, node: journal.Node) -> int:
    path, lost = f"/api/v1/nodes/{node.metadata.name}", 0
    while True:
        answer = await api.ask("PATCH", path, msgspec.json.encode(release(node)), JSON_PATCH)
        if answer.ok:
            return lost
        if answer.status not in (http.HTTPStatus.CONFLICT, http.HTTPStatus.UNPROCESSABLE_ENTITY):
            raise RuntimeError(f"PATCH {path} was answered {answer.status}: {answer.body.decode(errors='replace')}")
        lost += 1
        node = msgspec.json.decode((await api.ask("GET", path)).body, type=journal.Node)


def release(node: journal.Node) -> list[dict[str, Any]]:
    """The label, and the gate gone: whole or not at all."""
    escaped = journal.VERIFIED.replace("/", "~1")
    patch: list[dict[str, Any]] = [{"op": "add", "path": f"/metadata/labels/{escaped}", "value": "true"}]
    if node.gate is not None:
        at = f"/spec/taints/{node.gate}"
        patch += [{"op": "test", "path": f"{at}/key", "value": journal.GATE_KEY}, {"op": "remove", "path": at}]
    return patch


def worker_pod(node: journal.Node, namespace: str) -> dict[str, Any]:
    """A pod such as the operator's worker, in shape and size."""
    name = node.metadata.name
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid}
    labels = {"app": "kube-node-ready", "component": "worker", "node": name, "node-ready/attempt": "1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"floor-{name}",
            "namespace": namespace,
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": 300,
            "terminationGracePeriodSeconds": 0,
            "enableServiceLinks": False,
            "affinity": {"nodeAffinity": _pinned_to(name)},
            "tolerations": [_tolerated(key) for key in _TOLERATED],
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [_container()],
        },
    }


_TOLERATED = (journal.GATE_KEY, "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def _pinned_to(name: str) -> dict[str, Any]:
    itself = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [itself]}]},
    }


def _tolerated(key: str) -> dict[str, str]:
    return {"key": key, "operator": "Exists"}


def _container() -> dict[str, Any]:
    node_name = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    return {
        "name": "worker",
        "image": images.TOOLBOX,
        "imagePullPolicy": "IfNotPresent",
        "env": [node_name],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
