"""The baseline: what the control plane itself needs to verify a node with an ideal controller.

It observes nothing and decides nothing: there is no watch before the pod's creation, and no read of the pod's report
before the release. It sends only the requests that every controller needs: create a pod, patch a node, delete a pod.
"""

import http
from typing import Any

import msgspec

from bench import timeline
from bench.api import JSON_PATCH, Api
from bench.timeline import Moment, Timeline
from lab import images


async def verify(api: Api, seen: Timeline, node: timeline.Node, namespace: str) -> int:
    """Release one node that was just created. Returns how many conflicts the release had with other writers."""
    pods, pod = f"/api/v1/namespaces/{namespace}/pods", worker_pod(node, namespace)
    await api.must("POST", pods, pod)
    await seen.reached(Moment.POD_SUCCEEDED, node.metadata.name)
    lost = await _release(api, seen.nodes.get(node.metadata.name, node))
    await api.must("DELETE", f"{pods}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
    return lost


async def _release(api: Api, node: timeline.Node) -> int:
    path, lost = f"/api/v1/nodes/{node.metadata.name}", 0
    while True:
        answer = await api.ask("PATCH", path, msgspec.json.encode(release(node)), JSON_PATCH)
        if answer.ok:
            return lost
        if answer.status not in (http.HTTPStatus.CONFLICT, http.HTTPStatus.UNPROCESSABLE_ENTITY):
            raise RuntimeError(f"PATCH {path} was answered {answer.status}: {answer.body.decode(errors='replace')}")
        lost += 1
        node = msgspec.json.decode((await api.ask("GET", path)).body, type=timeline.Node)


def release(node: timeline.Node) -> list[dict[str, Any]]:
    """Return a patch that sets the label and removes the gate atomically."""
    escaped = timeline.VERIFIED.replace("/", "~1")
    patch: list[dict[str, Any]] = [{"op": "add", "path": f"/metadata/labels/{escaped}", "value": "true"}]
    if node.gate is not None:
        at = f"/spec/taints/{node.gate}"
        patch += [{"op": "test", "path": f"{at}/key", "value": timeline.GATE_KEY}, {"op": "remove", "path": at}]
    return patch


def worker_pod(node: timeline.Node, namespace: str) -> dict[str, Any]:
    """Return a pod of the same shape and size as the operator's worker."""
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


_TOLERATED = (timeline.GATE_KEY, "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


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
