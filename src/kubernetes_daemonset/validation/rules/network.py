"""Ports that must not meet, on the node or in a container, and names that must resolve."""

import re
from collections.abc import Iterator

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.rules.finding import Finding
from kubernetes_daemonset.rules.parts import Part, Port, parts


def ports_differ(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    """Within one container."""
    for part in parts(manifest):
        names: dict[str, Port] = {}
        for port in part.ports:
            if port.name and (other := names.setdefault(port.name, port)) is not port:
                text = f'"{port.name}" names another port of this container already'
                yield Finding(f"{port.path}.name", text, (f"{other.path}.name",))
        for port, other in _twice(part):
            text = f"{port.protocol} {port.number} is another port of this container already"
            yield Finding(f"{port.path}.container_port", text, (port.path, other.path))


def ports_of_the_node_differ(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    """Within the pod, but for containers that end before the others start."""
    host_network = manifest.spec.host_network
    of_all: dict[tuple[int, str], Port] = {}
    for part in parts(manifest):
        taken = {} if part.ends else of_all
        said = {port.path for port, _ in _twice(part)}
        for port in part.ports:
            number = port.on_node or (port.number if host_network else 0)
            if not number or port.path in said:
                continue
            if host_network and number != port.number:
                text = f"with host_network the two are one: write {port.number}, or leave host_port out"
                yield Finding(f"{port.path}.host_port", text, (f"{port.path}.container_port",))
            if (other := taken.setdefault((number, port.protocol), port)) is not port:
                field = "host_port" if port.on_node else "container_port"
                text = f"{port.protocol} {number} of the node is {other.path}'s already"
                yield Finding(f"{port.path}.{field}", text, (port.path, other.path))


def ports_outlive_a_surge(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    if not re.search("[1-9]", manifest.spec.update_strategy.rolling_update.max_surge):
        return
    for part in parts(manifest):
        for port in part.ports:
            if port.on_node or manifest.spec.host_network:
                what = f"port {port.on_node or port.number} of the node"
                text = f"{what} is the old pod's until it ends, so with max_surge no new pod can start beside it"
                yield Finding(port.path, text)


def names_resolve(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    if manifest.spec.host_network and manifest.spec.dns_policy == "ClusterFirst":
        text = "with host_network ClusterFirst means Default: Services will not resolve; write ClusterFirstWithHostNet"
        yield Finding("spec.dns_policy", text)


def _twice(part: Part) -> Iterator[tuple[Port, Port]]:
    """Ports whose number and protocol another port of the container has, and that one."""
    seen: dict[tuple[int, str], Port] = {}
    for port in part.ports:
        if (other := seen.setdefault((port.number, port.protocol), port)) is not port:
            yield port, other
