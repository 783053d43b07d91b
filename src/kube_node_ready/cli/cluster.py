"""Read the cluster once. What the caller has no permission to read, and is optional, becomes a note."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from kube_node_ready import __version__
from kube_node_ready.api import objects
from kube_node_ready.api.nesting import tolerant
from kube_node_ready.api.paths import collection_path, resource_of
from kube_node_ready.api.report import printable
from kube_node_ready.cli import fleet, installation
from kube_node_ready.cli.fleet import FleetView
from kube_node_ready.cli.installation import Installed
from kube_node_ready.cli.output import say
from kube_node_ready.cli.permissions import NoAccess, NotAllowed, no_access, requires, shown
from kube_node_ready.controller import removal_ledger, resources
from kube_node_ready.kube.access import Access, access
from kube_node_ready.kube.client import MAX_PAGE_BYTES, KubeClient
from kube_node_ready.kube.errors import AccessError, NotFound, Unreachable
from kube_node_ready.kube.informer import Resource
from kube_node_ready.kube.pages import EndlessList, Pages
from kube_node_ready.kube.wire import Page, W
from kube_node_ready.verification.model import Ledger, Worker

_AGENT = f"kube-node-ready-cli/{__version__}"
_PAGE = "500"
_LIST_SECONDS = 300.0
"""For all pages together."""
_UNREAD = Ledger(error="the removal ledger cannot be read")
T = TypeVar("T")


class ClusterLocation(Struct, frozen=True):
    """Which cluster, as whom, and where there it is installed."""

    namespace: str
    kubeconfig: Path | None = None
    context: str | None = None
    warns: bool = True


class Notes(list[str]):
    """Notes about what is shown. Each is added once."""

    def add(self, note: str) -> None:
        if note and note not in self:
            self.append(note)


@asynccontextmanager
async def cluster(place: ClusterLocation) -> AsyncIterator[KubeClient]:
    api_access = _access(place)
    try:
        async with KubeClient(api_access, agent=_AGENT) as kube:
            yield kube
    except (NoAccess, Unreachable) as error:
        cause = error if isinstance(error, Unreachable) else error.__cause__
        if not isinstance(cause, Unreachable):
            raise
        raise NoAccess(f"the API server {api_access.server} does not respond: {shown(cause)}") from error


def _access(place: ClusterLocation) -> Access:
    try:
        api_access = access(place.kubeconfig, place.context)
    except AccessError as error:
        raise no_access(error) from error
    if api_access.is_insecure and place.warns:
        say(f"warning: TLS verification disabled for {api_access.server}: insecure-skip-tls-verify is true")
    return api_access


async def find_installation(kube: KubeClient, namespace: str, notes: Notes) -> Installed:
    path = collection_path("v1", "configmaps", namespace=namespace)
    kind = Resource(path, objects.ConfigMap, _same, _name, {"labelSelector": installation.SELECTOR})
    try:
        installed, note = installation.read(await listed(kube, kind, namespace), namespace)
    except NotAllowed as error:
        notes.add(f"{error}. Without it the configuration is not known, and the defaults are assumed")
        return installation.defaults(namespace)
    notes.add(note)
    if installed.dry_run:
        notes.add("dryRun is on: nothing is written, and no node is verified")
    return installed


async def read(kube: KubeClient, namespace: str, notes: Notes) -> FleetView:
    installed = await find_installation(kube, namespace, notes)
    known = await listed(kube, fleet.nodes(installed))
    view = FleetView(installed).add_all(
        known, await _workers(kube, installed, notes), await read_ledger(kube, installed, notes)
    )
    notes.extend(view.notes)
    return view


async def _workers(kube: KubeClient, installed: Installed, notes: Notes) -> list[Worker | None]:
    try:
        return await listed(kube, resources.workers(installed.scope), installed.namespace)
    except NotAllowed as error:
        notes.add(f"{error}. Without it, running workers are not seen")
        return []


async def read_ledger(kube: KubeClient, installed: Installed, notes: Notes) -> Ledger:
    """Return the removal ledger, if removal is enabled."""
    if not installed.policy.removal:
        return removal_ledger.MISSING
    try:
        with requires("get", "configmaps", installed.namespace):
            answer = await kube.get(installed.scope.ledger_path)
    except NotFound:
        return removal_ledger.MISSING
    except NotAllowed as error:
        notes.add(f"{error}. Without it, what can be removed is unknown")
        return _UNREAD
    return removal_ledger.read(decoded(answer, objects.ConfigMap))


async def listed(kube: KubeClient, kind: Resource[W, T], namespace: str = "") -> list[T]:
    """Return all objects, page by page, within one deadline."""
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            return await _listed(kube, kind, namespace)
    except TimeoutError as error:
        raise NoAccess(f"{kind.path}: the list is not complete after {_LIST_SECONDS:g} s") from error
    except EndlessList as error:
        raise NoAccess(error.message) from error


async def _listed(kube: KubeClient, kind: Resource[W, T], namespace: str) -> list[T]:
    items: list[T] = []
    pages, more = Pages(kind.path), dict[str, str]()
    while True:
        with requires("list", resource_of(kind.path), namespace):
            params = {**kind.params, **more, "limit": _PAGE}
            page = decoded(await kube.get(kind.path, max_bytes=MAX_PAGE_BYTES, **params), Page)  # type: ignore[arg-type]
        items += _readable(page.items, kind)
        if not page.metadata.continue_:
            return items
        more = pages.after(page.metadata.continue_)


def _readable(items: Sequence[msgspec.Raw], kind: Resource[W, T]) -> Iterator[T]:
    """Leave out what cannot be decoded: one object, which a kubelet can have written, must not hide the others."""
    for item in items:
        try:
            yield kind.transform(decoded(item, kind.wire))
        except NoAccess as error:
            say(f"note: an object of {kind.path} is left out: {error}")


async def require_watch(kube: KubeClient, kind: Resource[W, T], namespace: str = "") -> None:
    """Raise an error unless watching is allowed. A permission can be limited to one name."""
    params = {"fieldSelector": "metadata.name=nothing", **kind.params, "watch": "1", "timeoutSeconds": "1"}
    with requires("watch", resource_of(kind.path), namespace):
        async with kube.stream(kind.path, **params):  # type: ignore[arg-type]
            pass


def decoded(answer: bytes, kind: type[T]) -> T:
    try:
        return tolerant(msgspec.json.Decoder(kind).decode)(answer)
    except msgspec.MsgspecError as error:
        raise NoAccess(f"cannot decode the response of the API server: {printable(str(error))}") from error


def _same(wire: objects.ConfigMap) -> objects.ConfigMap:
    return wire


def _name(wire: objects.ConfigMap) -> str:
    return wire.metadata.name
