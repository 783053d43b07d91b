"""List node names for shell completion. Prints nothing when the cluster cannot be read."""

import asyncio
from pathlib import Path

from kube_node_ready.api import objects
from kube_node_ready.api.paths import collection_path, is_dns_subdomain
from kube_node_ready.cli import cluster
from kube_node_ready.cli.cluster import ClusterLocation
from kube_node_ready.cli.fleet import natural
from kube_node_ready.cli.permissions import NoAccess
from kube_node_ready.kube.errors import KubeError
from kube_node_ready.kube.informer import Resource

_PATIENCE_SECONDS = 3


def of_nodes(kubeconfig: Path | None, context: str | None) -> list[str]:
    try:
        return asyncio.run(
            asyncio.wait_for(_names(ClusterLocation("", kubeconfig, context, warns=False)), _PATIENCE_SECONDS)
        )
    except (NoAccess, KubeError, TimeoutError):
        return []


async def _names(place: ClusterLocation) -> list[str]:
    kind = Resource(collection_path("v1", "nodes"), objects.Node, _name, _name)
    async with cluster.cluster(place) as kube:
        # The shell inserts them into the command line unquoted, where `$(…)` would be run.
        return sorted(filter(is_dns_subdomain, await cluster.listed(kube, kind)), key=natural)


def _name(wire: objects.Node) -> str:
    return wire.metadata.name
