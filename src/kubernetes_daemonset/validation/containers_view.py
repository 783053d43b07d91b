"""A uniform view of the containers of a pod, whichever message they are, with the paths of their fields."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kubernetes_daemonset.api.shared.container_pb2 import Container, ContainerEnvVar, ContainerPort, EnvFrom
from kubernetes_daemonset.api.shared.probe_pb2 import Probe
from kubernetes_daemonset.api.shared.volume_pb2 import VolumeMount
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.spec_pb2 import (
    KubernetesDaemonSetContainerApp,
    KubernetesDaemonSetContainerAppPort,
    KubernetesDaemonSetEnvValue,
)
from kubernetes_daemonset.manifest.reader import map_entry

APP: Final = "spec.container.app"
SIDECARS: Final = "spec.container.sidecars"
INIT_CONTAINERS: Final = "spec.init_containers"


@dataclass(frozen=True, slots=True)
class Port:
    path: str
    name: str
    number: int
    on_node: int
    """0 if the port is not exposed on the node."""
    protocol: str


@dataclass(frozen=True, slots=True)
class Variable:
    path: str
    name: str
    source: KubernetesDaemonSetEnvValue | ContainerEnvVar


@dataclass(frozen=True, slots=True)
class ContainerView:
    """One container of the pod, and its path in the manifest."""

    path: str
    name: str
    body: KubernetesDaemonSetContainerApp | Container
    runs_before: bool = False

    @property
    def restarts(self) -> bool:
        return isinstance(self.body, Container) and self.body.restart_policy == "Always"

    @property
    def ends(self) -> bool:
        """Return whether the container exits before the others start."""
        return self.runs_before and not self.restarts

    @property
    def ports(self) -> Iterator[Port]:
        container_ports: Iterable[KubernetesDaemonSetContainerAppPort | ContainerPort] = self.body.ports
        for index, port in enumerate(container_ports):
            protocol = port.protocol if isinstance(port, ContainerPort) else port.network_protocol
            where = f"{self.path}.ports[{index}]"
            yield Port(where, port.name, port.container_port, port.host_port, protocol or "TCP")

    @property
    def mounts(self) -> Iterator[tuple[str, VolumeMount]]:
        for index, mount in enumerate(self.body.volume_mounts):
            yield f"{self.path}.volume_mounts[{index}]", mount

    @property
    def probes(self) -> Iterator[tuple[str, Probe]]:
        for name in ("liveness_probe", "readiness_probe", "startup_probe"):
            if self.body.HasField(name):
                yield f"{self.path}.{name}", getattr(self.body, name)

    @property
    def variables(self) -> Iterator[Variable]:
        """Yield the variables, except the secret ones of the app."""
        if isinstance(self.body, Container):
            for index, variable in enumerate(self.body.env):
                yield Variable(f"{self.path}.env[{index}]", variable.name, variable)
        else:
            for name, value in sorted(self.body.env.variables.items()):
                yield Variable(map_entry(f"{self.path}.env.variables", name), name, value)

    @property
    def env_from(self) -> Iterator[tuple[str, EnvFrom]]:
        """Yield the ConfigMaps and Secrets of which every key becomes a variable."""
        if isinstance(self.body, Container):
            where, sources = self.path, self.body.env_from
        else:
            where, sources = f"{self.path}.env", self.body.env.env_from
        for index, source in enumerate(sources):
            yield f"{where}.env_from[{index}]", source


def container_views(manifest: KubernetesDaemonSet) -> list[ContainerView]:
    """Return all containers, the app first."""
    spec = manifest.spec
    return [
        ContainerView(APP, manifest.metadata.name, spec.container.app),
        *(
            ContainerView(f"{SIDECARS}[{at}]", container.name, container)
            for at, container in enumerate(spec.container.sidecars)
        ),
        *(
            ContainerView(f"{INIT_CONTAINERS}[{at}]", container.name, container, runs_before=True)
            for at, container in enumerate(spec.init_containers)
        ),
    ]
