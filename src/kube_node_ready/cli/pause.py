"""`pause` and `resume`: one annotation, on the ledger of removals or on Nodes, and nothing else."""

import argparse
import asyncio

import msgspec

from kube_node_ready import ledger, watched
from kube_node_ready.api_paths import InvalidNameError, object_path
from kube_node_ready.console import output, reading
from kube_node_ready.console.installed import Installed, Mode
from kube_node_ready.console.mistakes import Mistake
from kube_node_ready.console.reading import Notes
from kube_node_ready.console.rights import asking
from kube_node_ready.console.status import ATTENTION, OK, place
from kube_node_ready.kube.client import Kube, PatchKind
from kube_node_ready.kube.errors import AlreadyExists, NotFound
from kube_node_ready.verify.nodes import PAUSE_ANNOTATION
from kube_node_ready.verify.report import printable

_CONFIGMAPS = "configmaps"
_SINGLE = "nodes that were paused by name still are, until they are resumed by name"


def run(options: argparse.Namespace) -> int:
    return asyncio.run(_run(options, paused=options.verb == "pause"))


async def _run(options: argparse.Namespace, *, paused: bool) -> int:
    notes = Notes()
    async with reading.cluster(place(options)) as kube:
        installed = await reading.what_is_installed(kube, options.namespace, notes)
        if not options.node:
            await _all(kube, installed, notes, paused=paused)
        codes = [await _one(kube, name, paused=paused) for name in dict.fromkeys(options.node)]
    if not installed.policy.removal and not installed.assumed:
        in_mode = "nodeManagement.deleteFailedNodes is false" if installed.mode is Mode.CONTROLLER else "DaemonSet mode"
        notes.add(f"nothing would be removed in any case: {in_mode}")
    output.note(notes)
    return max(codes, default=OK)


def body(*, paused: bool) -> bytes:
    """A merge patch: null takes it off, and what is not named stays as it is."""
    return msgspec.json.encode({"metadata": {"annotations": {PAUSE_ANNOTATION: "true" if paused else None}}})


async def _all(kube: Kube, installed: Installed, notes: Notes, *, paused: bool) -> None:
    path, namespace = installed.scope.ledger_path, installed.namespace
    told = "no node is removed until `resume`" if paused else f"removal is not paused; {_SINGLE}"
    try:
        with asking("patch", _CONFIGMAPS, namespace):
            await kube.patch(path, body(paused=paused), PatchKind.MERGE)
    except NotFound:
        if installed.assumed:
            output.note(notes)  # which say why the configuration is not known
            nowhere = f'there is no ledger of removals in the namespace "{namespace}", nor a configuration that we know'
            done = "paused" if paused else "resumed"
            raise Mistake(f"nothing was {done}: {nowhere}; -n says where it is installed") from None
        if paused:
            await _begin(kube, path, namespace)
        else:
            told = "nothing was paused: there is no ledger of removals yet"
    output.out([told])


async def _begin(kube: Kube, path: str, namespace: str) -> None:
    """The ledger as the controller begins it, paused from the first moment."""
    begun = ledger.empty(watched.LEDGER, namespace)
    begun["metadata"]["annotations"] = {PAUSE_ANNOTATION: "true"}
    try:
        with asking("create", _CONFIGMAPS, namespace):
            await kube.create(path.rpartition("/")[0], msgspec.json.encode(begun))
    except AlreadyExists:  # the controller was quicker
        with asking("patch", _CONFIGMAPS, namespace):
            await kube.patch(path, body(paused=True), PatchKind.MERGE)


async def _one(kube: Kube, name: str, *, paused: bool) -> int:
    try:
        with asking("patch", "nodes"):
            await kube.patch(object_path("v1", "nodes", name), body(paused=paused), PatchKind.MERGE)
    except (NotFound, InvalidNameError):
        output.say(f"{printable(name)}: node not found")
        return ATTENTION
    output.out([f"{name}: " + (f"it is not removed until `resume {name}`" if paused else "its pause is over")])
    return OK
