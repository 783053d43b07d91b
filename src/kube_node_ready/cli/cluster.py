"""The cluster, read once. What this caller may not read, and can do without, is noted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from kube_node_ready import __version__, ledger, objects, watched
from kube_node_ready.api_paths import collection_path
from kube_node_ready.console import installed, picture
from kube_node_ready.console.installed import Installed
from kube_node_ready.console.picture import Picture
from kube_node_ready.console.rights import NoAccess, NotAllowed, asking, told
from kube_node_ready.kube.access import Access, access
from kube_node_ready.kube.cache import Kind
from kube_node_ready.kube.client import MAX_PAGE_BYTES, Kube, resource
from kube_node_ready.kube.errors import AccessError, NotFound, Unreachable
from kube_node_ready.kube.wire import Page, W
from kube_node_ready.verify.model import Ledger, Worker
from kube_node_ready.verify.report import printable

_AGENT = f"kube-node-ready-cli/{__version__}"
_PAGE = "500"
_UNREAD = Ledger(trouble="the ledger of removals could not be read from here")
T = TypeVar("T")


class Place(Struct, frozen=True):
    """Which cluster, as whom, and where there it is installed."""

    namespace: str
    kubeconfig: Path | None = None
    context: str | None = None


class Notes(list[str]):
    """What the person should know about what is shown. Each once."""

    def add(self, note: str) -> None:
        if note and note not in self:
            self.append(note)


@asynccontextmanager
async def cluster(place: Place) -> AsyncIterator[Kube]:
    found = _access(place)
    try:
        async with Kube(found, agent=_AGENT) as kube:
            yield kube
    except (NoAccess, Unreachable) as why:
        cause = why if isinstance(why, Unreachable) else why.__cause__
        if not isinstance(cause, Unreachable):
            raise
        raise NoAccess(f"the API server {found.server} does not answer: {cause.message}") from why


def _access(place: Place) -> Access:
    try:
        return access(place.kubeconfig, place.context)
    except AccessError as why:
        raise told(why) from why


async def what_is_installed(kube: Kube, namespace: str, notes: Notes) -> Installed:
    path = collection_path("v1", "configmaps", namespace=namespace)
    kind = Kind(path, objects.ConfigMap, _same, _name, {"labelSelector": installed.SELECTOR})
    try:
        found, note = installed.read(await listed(kube, kind, namespace), namespace)
    except NotAllowed as why:
        notes.add(f"{why}. Without it the configuration is not known, and the defaults are assumed")
        return installed.defaults(namespace)
    notes.add(note)
    if found.dry_run:
        notes.add("dryRun is on: nothing is written, and no node is verified")
    return found


async def look(kube: Kube, namespace: str, notes: Notes) -> Picture:
    found = await what_is_installed(kube, namespace, notes)
    known = await listed(kube, picture.nodes(found))
    seen = Picture(found).put(known, await _workers(kube, found, notes), await book(kube, found, notes))
    notes.extend(seen.notes)
    return seen


async def _workers(kube: Kube, found: Installed, notes: Notes) -> list[Worker | None]:
    try:
        return await listed(kube, watched.workers(found.scope), found.namespace)
    except NotAllowed as why:
        notes.add(f"{why}. Without it, running workers are not seen")
        return []


async def book(kube: Kube, found: Installed, notes: Notes) -> Ledger:
    """The ledger of removals, if nodes may be removed at all."""
    if not found.policy.removal:
        return ledger.MISSING
    try:
        with asking("get", "configmaps", found.namespace):
            answer = await kube.get(found.scope.ledger_path)
    except NotFound:
        return ledger.MISSING
    except NotAllowed as why:
        notes.add(f"{why}. Without it, nobody here knows what may be removed")
        return _UNREAD
    return ledger.read(decoded(answer, objects.ConfigMap))


async def listed(kube: Kube, kind: Kind[W, T], namespace: str = "") -> list[T]:
    """All there are, page by page."""
    found: list[T] = []
    more: dict[str, str] = {}
    while True:
        with asking("list", resource(kind.path), namespace):
            params = {**kind.params, **more, "limit": _PAGE}
            page = decoded(await kube.get(kind.path, max_bytes=MAX_PAGE_BYTES, **params), Page)  # type: ignore[arg-type]
        found += [kind.keep(decoded(item, kind.wire)) for item in page.items]
        if not page.metadata.continue_:
            return found
        more = {"continue": page.metadata.continue_}


async def may_watch(kube: Kube, kind: Kind[W, T], namespace: str = "") -> None:
    """Raises what keeps us from it, before anything is built on it. A right may hold for one name only."""
    params = {"fieldSelector": "metadata.name=nothing", **kind.params, "watch": "1", "timeoutSeconds": "1"}
    with asking("watch", resource(kind.path), namespace):
        async with kube.stream(kind.path, **params):  # type: ignore[arg-type]
            pass


def decoded(answer: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.MsgspecError as why:
        raise NoAccess(f"what answers there is not Kubernetes: {printable(str(why))}") from why


def _same(wire: objects.ConfigMap) -> objects.ConfigMap:
    return wire


def _name(wire: objects.ConfigMap) -> str:
    return wire.metadata.name
