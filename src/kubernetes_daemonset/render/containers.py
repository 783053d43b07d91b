"""Containers: the app, sidecars and init containers."""

from collections.abc import Iterable

from kubernetes_daemonset.api.shared.container_pb2 import (
    Container,
    ContainerImage,
    ContainerPort,
    ContainerResources,
    CpuMemory,
    default_container_resources,
)
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetContainerApp, KubernetesDaemonSetContainerAppPort
from kubernetes_daemonset.render import environment, probes, security, volumes
from kubernetes_daemonset.render.fields import drop_none
from kubernetes_daemonset.types import Json


def app(manifest: KubernetesDaemonSet) -> Json:
    """Return the app container, which has the component's name."""
    this = manifest.spec.container.app
    return drop_none(
        {
            "name": manifest.metadata.name,
            "image": image(this.image),
            "imagePullPolicy": this.image.pull_policy or None,
            "env": environment.of_app(manifest),
            "envFrom": environment.env_from(this.env.env_from),
            "resources": _resources(this.resources if this.HasField("resources") else _default_resources()),
            **_common(this),
        }
    )


def sidecar(this: Container) -> Json:
    """Return a sidecar or an init container."""
    return drop_none(
        {
            "name": this.name,
            "image": this.image,
            "imagePullPolicy": this.pull_policy or None,
            "restartPolicy": this.restart_policy or None,
            "env": [environment.variable(variable.name, variable) for variable in this.env] or None,
            "envFrom": environment.env_from(this.env_from),
            "resources": _resources(this.resources),
            **_common(this),
        }
    )


def image(this: ContainerImage) -> str:
    return f"{this.repo}{f':{this.tag}' if this.tag else ''}{f'@{this.digest}' if this.digest else ''}"


def _common(this: KubernetesDaemonSetContainerApp | Container) -> Json:
    return {
        "command": list(this.command) or None,
        "args": list(this.args) or None,
        "workingDir": this.working_dir or None,
        "ports": _ports(this.ports) or None,
        "volumeMounts": [volumes.mount(mount) for mount in this.volume_mounts] or None,
        "startupProbe": probes.probe(this.startup_probe) if this.HasField("startup_probe") else None,
        "livenessProbe": probes.probe(this.liveness_probe) if this.HasField("liveness_probe") else None,
        "readinessProbe": probes.probe(this.readiness_probe) if this.HasField("readiness_probe") else None,
        "lifecycle": probes.lifecycle(this.lifecycle) if this.HasField("lifecycle") else None,
        "securityContext": security.of_container(this.security_context) if this.HasField("security_context") else None,
    }


def _ports(ports: Iterable[KubernetesDaemonSetContainerAppPort | ContainerPort]) -> list[Json]:
    return [
        drop_none(
            {
                "name": port.name or None,
                "containerPort": port.container_port,
                "hostPort": port.host_port or None,
                # Set although it is the default: an API server identifies the ports of a list by number and protocol.
                "protocol": (port.protocol if isinstance(port, ContainerPort) else port.network_protocol) or "TCP",
            }
        )
        for port in ports
    ]


def _default_resources() -> ContainerResources:
    """Return the default from the .proto file, where it is an option of the field."""
    field = KubernetesDaemonSetContainerApp.DESCRIPTOR.fields_by_name["resources"]
    default: ContainerResources = field.GetOptions().Extensions[default_container_resources]
    return default


def _resources(this: ContainerResources) -> Json | None:
    return drop_none({"limits": _amounts(this.limits), "requests": _amounts(this.requests)}) or None


def _amounts(this: CpuMemory) -> Json | None:
    named = {"cpu": this.cpu, "memory": this.memory, "ephemeral-storage": this.ephemeral_storage}
    return {key: value for key, value in (named | dict(sorted(this.other.items()))).items() if value} or None
