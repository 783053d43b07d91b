"""`pause` and `resume`: set or remove one annotation, on the removal ledger or on Nodes."""

import asyncio
from collections.abc import Sequence

import msgspec
from rich.text import Text

from kube_node_ready.api.contract import PAUSE_ANNOTATION
from kube_node_ready.api.paths import InvalidNameError, object_path
from kube_node_ready.api.report import printable
from kube_node_ready.cli import cluster, output
from kube_node_ready.cli.cluster import ClusterLocation, Notes
from kube_node_ready.cli.errors import UsageError
from kube_node_ready.cli.installation import Installed, Mode
from kube_node_ready.cli.permissions import requires
from kube_node_ready.controller import removal_ledger, resources
from kube_node_ready.exit_codes import ExitCode
from kube_node_ready.kube.client import KubeClient, PatchKind
from kube_node_ready.kube.errors import AlreadyExists, NotFound

_CONFIGMAPS = "configmaps"
_SINGLE = "nodes that were paused by name remain paused until they are resumed by name"


def run(place: ClusterLocation, nodes: Sequence[str], *, paused: bool) -> int:
    return asyncio.run(_run(place, nodes, paused=paused))


async def _run(place: ClusterLocation, nodes: Sequence[str], *, paused: bool) -> int:
    notes = Notes()
    async with cluster.cluster(place) as kube:
        installed = await cluster.find_installation(kube, place.namespace, notes)
        if not nodes:
            await _all(kube, installed, notes, paused=paused)
        codes = [await _one(kube, name, paused=paused) for name in dict.fromkeys(nodes)]
    if not installed.policy.removal and not installed.assumed:
        in_mode = "nodeManagement.deleteFailedNodes is false" if installed.mode is Mode.CONTROLLER else "DaemonSet mode"
        notes.add(f"nothing would be removed in any case: {in_mode}")
    output.note(notes)
    return max(codes, default=ExitCode.OK)


def body(*, paused: bool) -> bytes:
    """A merge patch: null takes it off, and what is not named stays as it is."""
    return msgspec.json.encode({"metadata": {"annotations": {PAUSE_ANNOTATION: "true" if paused else None}}})


async def _all(kube: KubeClient, installed: Installed, notes: Notes, *, paused: bool) -> None:
    path, namespace = installed.scope.ledger_path, installed.namespace
    message = "no node is removed until `resume`" if paused else f"removal is no longer paused; {_SINGLE}"
    try:
        with requires("patch", _CONFIGMAPS, namespace):
            await kube.patch(path, body(paused=paused), PatchKind.MERGE)
    except NotFound:
        if installed.assumed:
            output.note(notes)  # they have the reason why the configuration is not known
            nowhere = f'no removal ledger and no valid configuration were found in the namespace "{namespace}"'
            done = "paused" if paused else "resumed"
            raise UsageError(f"nothing was {done}: {nowhere}; set --namespace to where it is installed") from None
        if paused:
            await _begin(kube, path, namespace)
        else:
            message = "nothing was paused: the removal ledger does not exist yet"
    output.out([Text(message)])


async def _begin(kube: KubeClient, path: str, namespace: str) -> None:
    """The ledger as the controller begins it, paused from the first moment."""
    begun = removal_ledger.empty(resources.LEDGER, namespace)
    begun["metadata"]["annotations"] = {PAUSE_ANNOTATION: "true"}
    try:
        with requires("create", _CONFIGMAPS, namespace):
            await kube.create(path.rpartition("/")[0], msgspec.json.encode(begun))
    except AlreadyExists:  # the controller was quicker
        with requires("patch", _CONFIGMAPS, namespace):
            await kube.patch(path, body(paused=True), PatchKind.MERGE)


async def _one(kube: KubeClient, name: str, *, paused: bool) -> int:
    try:
        with requires("patch", "nodes"):
            await kube.patch(object_path("v1", "nodes", name), body(paused=paused), PatchKind.MERGE)
    except (NotFound, InvalidNameError):
        output.say(f"{printable(name)}: node not found")
        return ExitCode.FAILED
    output.out([Text(f"{name}: " + (f"not removed until `resume {name}`" if paused else "no longer paused"))])
    return ExitCode.OK
