"""Builders and shorthands that do not depend on the code under test."""

from typing import Any

from lightkube.models.core_v1 import Container, PodSpec, PodStatus, Toleration
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Node, Pod

import lab
from lab import images, waiting


def a_pod(name: str, namespace: str, *, node: str | None = None, **spec: Any) -> Pod:  # noqa: ANN401  the API's own fields
    """A pod that runs once to its end. With `node`, on that node, whatever its taints."""
    defaults: dict[str, Any] = {
        "containers": [Container(name="worker", image=images.TOOLBOX, imagePullPolicy="Never")],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "tolerations": [Toleration(operator="Exists")],
    }
    if node:
        defaults["nodeSelector"] = {"kubernetes.io/hostname": node}
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace), spec=PodSpec(**(defaults | spec)))


def a_server(name: str, namespace: str, *, node: str) -> Pod:
    """A pod that answers HTTP on port 8080, and from which one can probe."""
    command = ["/toolbox", "serve", ":8080"]
    serve = Container(name="serve", image=images.TOOLBOX, imagePullPolicy="Never", command=command)
    return a_pod(name, namespace, node=node, containers=[serve], restartPolicy="Always")


def status_of(plane: lab.Plane, pod: Pod) -> PodStatus:
    assert pod.metadata
    assert pod.metadata.name
    found = plane.client.get(Pod, pod.metadata.name, namespace=pod.metadata.namespace)
    assert found.status
    return found.status


def wait_running(plane: lab.Plane, pod: Pod, seconds: float = 90) -> PodStatus:
    """Until the pod runs and is ready to serve."""

    def running() -> PodStatus | None:
        status = status_of(plane, pod)
        ready = status.containerStatuses and all(container.ready for container in status.containerStatuses)
        return status if ready and status.podIP else None

    return waiting.until(f"{_name(pod)} runs", running, seconds, alive=plane.check)


def wait_ended(plane: lab.Plane, pod: Pod, seconds: float = 90) -> PodStatus:
    def ended() -> PodStatus | None:
        status = status_of(plane, pod)
        return status if status.phase in ("Succeeded", "Failed") else None

    return waiting.until(f"{_name(pod)} ends", ended, seconds, alive=plane.check)


def has_node(plane: lab.Plane, name: str) -> bool:
    return any(plane.client.list(Node, fields={"metadata.name": name}))


def has_pods(plane: lab.Plane, namespace: str) -> bool:
    return any(plane.client.list(Pod, namespace=namespace))


def is_ready(plane: lab.Plane, node: str) -> bool:
    status = plane.client.get(Node, node).status
    conditions = status.conditions or [] if status else []
    return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)


def probe(plane: lab.Plane, pod: Pod, *words: str) -> str:
    """What the pod sees: `probe(plane, pod, "dns", "example.com")`. A probe that fails raises a LabError."""
    assert pod.metadata
    assert pod.metadata.namespace
    return plane.kubectl("exec", f"--namespace={pod.metadata.namespace}", _name(pod), "--", "/toolbox", *words).strip()


def can(plane: lab.Plane, pod: Pod, *words: str) -> bool:
    """Whether a probe succeeds. That it could not be made at all is not an answer."""
    try:
        probe(plane, pod, *words)
    except lab.LabError as why:
        if "command terminated with exit code 1" in str(why):
            return False
        raise
    return True


def _name(pod: Pod) -> str:
    assert pod.metadata
    assert pod.metadata.name
    return pod.metadata.name
