"""`explain`: read everything about one node, and print it."""

import asyncio
import io
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec
from rich.console import Console
from rich.text import Text

from kube_node_ready.api import objects
from kube_node_ready.api.report import printable
from kube_node_ready.cli import cluster, errors, output, table, words
from kube_node_ready.cli.cluster import ClusterLocation, Notes, decoded
from kube_node_ready.cli.explain_text import Event, Facts, Section, headline, sections
from kube_node_ready.cli.leader import Leader, leader
from kube_node_ready.cli.permissions import NoAccess, NotAllowed, requires
from kube_node_ready.cli.status import needs_attention
from kube_node_ready.cli.table import Style
from kube_node_ready.kube.client import KubeClient
from kube_node_ready.kube.wire import Page
from kube_node_ready.verification import events

_NARROWEST, _WIDEST = 40, 110
_INDENT = "    "
# Every kubelet can write Events about every node, any number of them and up to 1.5 MB each.
_PAGE = "100"
_MOST_PAGES = 10
_MOST_BYTES = 32 << 20


class _Source(objects.Wire, frozen=True):
    component: str = ""


class _Event(objects.Wire, frozen=True):
    metadata: objects.Metadata
    reason: str = ""
    message: str = ""
    count: int | None = None
    source: _Source = _Source()
    last_timestamp: datetime | None = None
    event_time: datetime | None = None


def run(place: ClusterLocation, node: str) -> int:
    return asyncio.run(_run(place, node))


async def _run(place: ClusterLocation, node: str) -> int:
    notes = Notes()
    async with cluster.cluster(place) as kube:
        fleet_view = await cluster.read(kube, place.namespace, notes)
        errors.check_names([node], fleet_view.known)
        installed = fleet_view.installed
        facts = Facts(await _events(kube, node, notes), await _leader(kube, installed.lease, notes))
    status = fleet_view.status(node, datetime.now(UTC))
    assert status, "its name was checked"
    output.out([Text(headline(status), table.phase_style(status.phase))])
    output.out(lines(sections(status, installed, facts), output.style(sys.stdout)))
    output.note(notes)
    return needs_attention([status], named=True)


def lines(shown: Sequence[Section], style: Style) -> Iterator[Text]:
    """Return the sections, wrapped for a terminal; in a pipe, a sentence is a line."""
    for section in shown:
        yield Text()
        yield Text(section.title, table.BOLD)
        for line in section.lines:
            yield from _wrapped(line, style.width)


def _wrapped(line: str, width: int | None) -> Iterator[Text]:
    if width is None or line.startswith("kubectl "):  # a command must be copied as one line
        yield Text(f"  {line}")
        return
    room = max(_NARROWEST, min(width, _WIDEST)) - len(_INDENT)
    for number, part in enumerate(Text(line).wrap(Console(file=io.StringIO()), room)):
        part.rstrip()
        yield Text.assemble(_INDENT if number else "  ", part)


async def _events(kube: KubeClient, name: str, notes: Notes) -> tuple[Event, ...] | None:
    """Return the Events that can be read, or None without permission. No Event hides what else is known."""
    params = {"fieldSelector": f"involvedObject.kind=Node,involvedObject.name={name}", "limit": _PAGE}
    items: list[Event | None] = []
    pages = received = 0
    try:
        while pages < _MOST_PAGES and received < _MOST_BYTES:
            with requires("list", "events", "default"):
                answer = await kube.get(events.PATH, **params)  # type: ignore[arg-type]
            page = decoded(answer, Page)
            pages, received = pages + 1, received + len(answer)
            items += map(_readable, page.items)
            if not page.metadata.continue_:
                break
            params["continue"] = page.metadata.continue_
        else:
            notes.add(f"this node has more than {len(items)} Events; the others were not read")
    except NotAllowed as error:
        notes.add(f"{error}. Without it, Events are not shown")
        return None
    except NoAccess as error:
        notes.add(f"cannot list Events: {error}")
    if unread := items.count(None):
        notes.add(f"Events that could not be read: {unread}")
    return tuple(event for event in items if event)


def _readable(item: msgspec.Raw) -> Event | None:
    """Or None. The API server stores times that Python does not have, such as those of the year 10000."""
    try:
        return _event(decoded(item, _Event))
    except NoAccess:
        return None


def _event(wire: _Event) -> Event:
    at = wire.last_timestamp or wire.event_time or wire.metadata.creation_timestamp
    reason, message = printable(wire.reason), printable(wire.message, words.LONGEST)
    return Event(at, reason, message, printable(wire.source.component), wire.count or 1)


async def _leader(kube: KubeClient, path: str, notes: Notes) -> Leader | None:
    if not path:
        return None
    try:
        return await leader(kube, path)
    except NotAllowed as error:
        notes.add(f"{error}. Without it, whether a controller is running is unknown")
        return None
    except NoAccess as error:
        notes.add(f"cannot read the Lease: {error}")
        return None
