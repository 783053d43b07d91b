"""The names of all nodes, for the shell to complete. It says nothing when there is no way to know them."""

import asyncio
from pathlib import Path

from kube_node_ready import objects
from kube_node_ready.api_paths import collection_path
from kube_node_ready.console import reading
from kube_node_ready.console.picture import natural
from kube_node_ready.console.reading import Place
from kube_node_ready.console.rights import NoAccess
from kube_node_ready.kube.cache import Kind
from kube_node_ready.kube.errors import KubeError

_PATIENCE_SECONDS = 3


def of_nodes(kubeconfig: Path | None, context: str | None) -> list[str]:
    try:
        return asyncio.run(asyncio.wait_for(_names(Place("", kubeconfig, context)), _PATIENCE_SECONDS))
    except (NoAccess, KubeError, TimeoutError):
        return []


async def _names(place: Place) -> list[str]:
    kind = Kind(collection_path("v1", "nodes"), objects.Node, _name, _name)
    async with reading.cluster(place) as kube:
        return sorted(await reading.listed(kube, kind), key=natural)


def _name(wire: objects.Node) -> str:
    return wire.metadata.name
