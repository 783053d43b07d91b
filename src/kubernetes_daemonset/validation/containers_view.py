"""The containers of a pod side by side, whichever message they are, with the paths of what they hold."""

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
from kubernetes_daemonset.manifest import entry

APP: Final = "spec.container.app"
SIDECARS: Final = "spec.container.sidecars"
INIT_CONTAINERS: Final = "spec.init_containers"


@dataclass(frozen=True, slots=True)
class Port:
    path: str
    name: str
    number: int
    on_node: int
    """0 if it is none of the node's."""
    protocol: str


@dataclass(frozen=True, slots=True)
class Variable:
    path: str
    name: str
    source: KubernetesDaemonSetEnvValue | ContainerEnvVar


@dataclass(frozen=True, slots=True)
class Part:
    """One container of the pod, and where it stands in the manifest."""

    path: str
    name: str
    body: KubernetesDaemonSetContainerApp | Container
    runs_before: bool = False

    @property
    def restarts(self) -> bool:
        return isinstance(self.body, Container) and self.body.restart_policy == "Always"

    @property
    def ends(self) -> bool:
        """Whether it is over before the others start."""
        return self.runs_before and not self.restarts

    @property
    def ports(self) -> Iterator[Port]:
        found: Iterable[KubernetesDaemonSetContainerAppPort | ContainerPort] = self.body.ports
        for index, one in enumerate(found):
            protocol = one.protocol if isinstance(one, ContainerPort) else one.network_protocol
            where = f"{self.path}.ports[{index}]"
            yield Port(where, one.name, one.container_port, one.host_port, protocol or "TCP")

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
        """Without the app's secret ones."""
        if isinstance(self.body, Container):
            for index, one in enumerate(self.body.env):
                yield Variable(f"{self.path}.env[{index}]", one.name, one)
        else:
            for name, value in sorted(self.body.env.variables.items()):
                yield Variable(entry(f"{self.path}.env.variables", name), name, value)

    @property
    def whole_sources(self) -> Iterator[tuple[str, EnvFrom]]:
        """ConfigMaps and Secrets of which every key becomes a variable."""
        if isinstance(self.body, Container):
            where, found = self.path, self.body.env_from
        else:
            where, found = f"{self.path}.env", self.body.env.env_from
        for index, one in enumerate(found):
            yield f"{where}.env_from[{index}]", one


def parts(manifest: KubernetesDaemonSet) -> list[Part]:
    """The app first."""
    spec = manifest.spec
    return [
        Part(APP, manifest.metadata.name, spec.container.app),
        *(Part(f"{SIDECARS}[{at}]", one.name, one) for at, one in enumerate(spec.container.sidecars)),
        *(
            Part(f"{INIT_CONTAINERS}[{at}]", one.name, one, runs_before=True)
            for at, one in enumerate(spec.init_containers)
        ),
    ]
