"""A kubelet's credentials in the hands of an attacker, and what the API server lets their holder do.

What Kubernetes 1.36 permits was tried on a real API server; tests/attacks/test_node_restriction.py keeps it true:

- A kubelet can register its Node with any annotations, taints and owner references, and with any labels outside of
  `kubernetes.io` and `k8s.io`. Later it can change neither taints nor owner references, but still its annotations.
- A kubelet can create mirror pods in any namespace, under any name and with any labels. Each must run on the kubelet's
  own node and have exactly one owner, that Node with its right UID, as controller.
- A kubelet can write the status of every pod bound to its node.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import httpx2
from lightkube import Client, KubeConfig
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Node, Pod
from lightkube.types import PatchType

import lab

Json = dict[str, Any]
MIRROR = "kubernetes.io/config.mirror"
IMAGE = "attacker.example/worker:1"
WORKER_LABELS = {"app": "kube-node-ready", "component": "worker"}
_PATIENCE_SECONDS = 30
_CAPACITY = {"cpu": "16", "memory": "64Gi", "pods": "500", "ephemeral-storage": "100Gi"}


class Kubelet:
    """One node's kubelet. KWOK does not manage its node: it selects nodes by an annotation that this one lacks."""

    def __init__(self, plane: lab.Plane, node: str) -> None:
        self.node = node
        self.uid = ""
        config = KubeConfig.from_file(plane.kubelet_kubeconfig(node))
        self.client = Client(config, timeout=httpx2.Timeout(30), trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def register(
        self,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        taints: Sequence[lab.Taint] = (),
        owners: Sequence[Json] = (),
    ) -> None:
        """Create the Node, ready to take pods."""
        metadata = {
            "name": self.node,
            "labels": {"kubernetes.io/hostname": self.node[:63].rstrip(".-"), **(labels or {})},
            "annotations": dict(annotations or {}),
            "ownerReferences": list(owners),
        }
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
        status = {
            "allocatable": _CAPACITY,
            "capacity": _CAPACITY,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": "192.0.2.9"}],
        }
        spec = {"taints": [taint.as_dict() for taint in taints]}
        made = self.client.create(_node({"metadata": metadata, "spec": spec, "status": status}))
        assert made.metadata
        self.uid = str(made.metadata.uid)

    def annotate(self, **annotations: str | None) -> None:
        """Change annotations of its own Node."""
        self.client.patch(Node, self.node, {"metadata": {"annotations": annotations}}, patch_type=PatchType.MERGE)

    def mirror(
        self,
        name: str,
        namespace: str,
        *,
        labels: Mapping[str, str] = WORKER_LABELS,
        owner: Json | None = None,
        finalizers: Sequence[str] = (),
    ) -> str:
        """Create a mirror pod on its own node, by default one that carries a worker's labels. Return its name."""
        itself = {"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": self.uid, "controller": True}
        metadata = {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels),
            "annotations": {MIRROR: "forged", "node-ready/worker-image": IMAGE},
            "ownerReferences": [owner or itself],
            "finalizers": list(finalizers),
        }
        container = {"name": "worker", "image": IMAGE}
        spec = {
            "nodeName": self.node,
            "containers": [container],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
        }
        pod = pod_of({"metadata": metadata, "spec": spec})
        end = time.monotonic() + _PATIENCE_SECONDS
        while not self._is_created(pod, is_last=time.monotonic() > end):
            time.sleep(0.1)
        return name

    def _is_created(self, pod: Pod, *, is_last: bool) -> bool:
        """Create the pod, or return False if NodeRestriction does not know the node yet: its cache lags behind."""
        try:
            self.client.create(pod)
        except ApiError as error:
            if is_last or f'node "{self.node}" not found' not in str(error):
                raise
            return False
        return True

    def end(self, pod: str, namespace: str, exit_code: int) -> None:
        """Report that the pod's container named `worker` ended with this code."""
        ended = {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed"}
        containers = [{"name": "worker", "image": IMAGE, "imageID": "", "ready": False, "restartCount": 0}]
        containers[0]["state"] = {"terminated": ended}
        phase = "Failed" if exit_code else "Succeeded"
        self.report(pod, namespace, {"phase": phase, "containerStatuses": containers})

    def serve(self, pod: str, namespace: str, address: str, *more: Json) -> None:
        """Report that the pod is ready at this address. `more` are further conditions."""
        conditions = [{"type": "Ready", "status": "True"}, *more]
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}
        self.report(pod, namespace, status)

    def report(self, pod: str, namespace: str, status: Json) -> None:
        """Write these fields of the pod's status."""
        self.client.patch(Pod.Status, pod, {"status": status}, namespace=namespace, patch_type=PatchType.MERGE)

    def run_pods(self, exit_code: Callable[[Pod], int | None]) -> None:
        """Bring every pod on its node to the end that is chosen for it. With None, a pod stays pending."""
        for pod in list(self.client.list(Pod, namespace="*", fields={"spec.nodeName": self.node})):
            assert pod.metadata
            assert pod.status
            if pod.status.phase != "Pending" or (code := exit_code(pod)) is None:
                continue
            with contextlib.suppress(ApiError):  # the pod was deleted meanwhile
                self.end(str(pod.metadata.name), str(pod.metadata.namespace), code)


@contextlib.contextmanager
def kubelets(plane: lab.Plane, *nodes: str) -> Iterator[list[Kubelet]]:
    """Kubelets for as long as the block runs. Their Nodes and mirror pods are deleted when it ends."""
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(Kubelet(plane, node)) for node in nodes]
        try:
            yield made
        finally:
            for kubelet in made:
                with contextlib.suppress(ApiError):  # the controller has removed it
                    plane.client.delete(Node, kubelet.node)


def short_name(role: str, namespace: str) -> str:
    """A node's name that fits into a kubelet's certificate. A test's namespace ends in a hash, which is kept."""
    return f"{role}-{namespace[-6:]}"


def pod_of(body: Json) -> Pod:
    """The client's model of a pod that is given as JSON."""
    made = Pod.from_dict(body)
    assert isinstance(made, Pod)
    return made


def worker_name(node_uid: str, attempt: int) -> str:
    """The name of a worker pod, which anyone can compute who knows the node's UID."""
    return f"node-ready-worker-{node_uid}-{attempt}"


def failed_record(at: str, failures: int = 9) -> str:
    """A verification record that blames the node for more failures than any test's `maxRetries`."""
    counts = {"attempt": failures, "failures": failures, "blamed": failures}
    return json.dumps({**counts, "outcome": "failed", "at": at, "since": at, "cause": "checks", "reason": "forged"})


def passed_record(at: str, attempt: int = 1) -> str:
    """A verification record of a node that has passed."""
    return json.dumps({"attempt": attempt, "outcome": "passed", "at": at, "since": at})


def _node(body: Json) -> Node:
    made = Node.from_dict(body)
    assert isinstance(made, Node)
    return made
