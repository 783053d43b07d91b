"""Rules for the network: port conflicts on the node and in a container, and name resolution."""

import re
from collections.abc import Iterator

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.validation.containers_view import ContainerView, Port, container_views
from kubernetes_daemonset.validation.rules.finding import Finding


def ports_differ(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    """Check that names and numbers of ports are unique within one container."""
    for container in container_views(manifest):
        names: dict[str, Port] = {}
        for port in container.ports:
            if port.name and (other := names.setdefault(port.name, port)) is not port:
                text = f'"{port.name}" is already the name of another port of this container'
                yield Finding(f"{port.path}.name", text, (f"{other.path}.name",))
        for port, other in _twice(container):
            text = f"{port.protocol} {port.number} is already another port of this container"
            yield Finding(f"{port.path}.container_port", text, (port.path, other.path))


def ports_of_the_node_differ(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    """Check that node ports are unique within the pod, except in containers that exit before the others start."""
    host_network = manifest.spec.host_network
    of_all: dict[tuple[int, str], Port] = {}
    for container in container_views(manifest):
        taken = {} if container.ends else of_all
        reported = {port.path for port, _ in _twice(container)}
        for port in container.ports:
            number = port.on_node or (port.number if host_network else 0)
            if not number or port.path in reported:
                continue
            if host_network and number != port.number:
                text = f"host_port must equal container_port with host_network; set it to {port.number} or remove it"
                yield Finding(f"{port.path}.host_port", text, (f"{port.path}.container_port",))
            if (other := taken.setdefault((number, port.protocol), port)) is not port:
                field = "host_port" if port.on_node else "container_port"
                text = f"{port.protocol} {number} of the node is already used by {other.path}"
                yield Finding(f"{port.path}.{field}", text, (port.path, other.path))


def ports_outlive_a_surge(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    if not re.search("[1-9]", manifest.spec.update_strategy.rolling_update.max_surge):
        return
    for container in container_views(manifest):
        for port in container.ports:
            if port.on_node or manifest.spec.host_network:
                what = f"port {port.on_node or port.number} of the node"
                text = f"{what} is held by the old pod until it stops, so with max_surge no new pod can start beside it"
                yield Finding(port.path, text)


def names_resolve(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    if manifest.spec.host_network and manifest.spec.dns_policy == "ClusterFirst":
        text = (
            "ClusterFirst means Default with host_network, so Services do not resolve; expected ClusterFirstWithHostNet"
        )
        yield Finding("spec.dns_policy", text)


def _twice(container: ContainerView) -> Iterator[tuple[Port, Port]]:
    """Yield the duplicate ports of a container, each with the first port of the same number and protocol."""
    seen: dict[tuple[int, str], Port] = {}
    for port in container.ports:
        if (other := seen.setdefault((port.number, port.protocol), port)) is not port:
            yield port, other
