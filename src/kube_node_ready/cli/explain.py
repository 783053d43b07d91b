"""`explain`: reads what one node's story needs, and prints it."""

import argparse
import asyncio
import sys
import textwrap
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from kube_node_ready import objects
from kube_node_ready.console import mistakes, output, reading, table
from kube_node_ready.console.leader import Leader, leader
from kube_node_ready.console.reading import Notes, decoded
from kube_node_ready.console.rights import NotAllowed, asking
from kube_node_ready.console.status import needs_attention, place
from kube_node_ready.console.story import Event, Facts, Part, headline, story
from kube_node_ready.console.table import Look
from kube_node_ready.kube.client import Kube
from kube_node_ready.verify import events

_WIDEST = 110


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


class _Events(objects.Wire, frozen=True):
    items: tuple[_Event, ...] = ()


def run(options: argparse.Namespace) -> int:
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    notes = Notes()
    async with reading.cluster(place(options)) as kube:
        picture = await reading.look(kube, options.namespace, notes)
        mistakes.check_names([options.node], picture.known)
        installed = picture.installed
        facts = Facts(await _events(kube, options.node, notes), await _leader(kube, installed.lease, notes))
    standing = picture.standing(options.node, datetime.now(UTC))
    assert standing, "its name was checked"
    look = output.look(sys.stdout)
    output.out([table.painted(headline(standing), table.phase_colour(standing.phase), wanted=look.colour)])
    output.out(told(story(standing, installed, facts), look))
    output.note(notes)
    return needs_attention([standing], named=True)


def told(parts: Sequence[Part], look: Look) -> Iterator[str]:
    """Wrapped for a terminal; in a pipe, a sentence is a line."""
    for part in parts:
        yield ""
        yield table.painted(part.title, table.BOLD, wanted=look.colour)
        for line in part.lines:
            yield from _wrapped(line, look.width)


def _wrapped(line: str, width: int | None) -> list[str]:
    if width is None or line.startswith("kubectl "):  # a command is copied whole
        return [f"  {line}"]
    room = max(40, min(width, _WIDEST))
    return textwrap.wrap(line, room, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


async def _events(kube: Kube, name: str, notes: Notes) -> tuple[Event, ...] | None:
    about = f"involvedObject.kind=Node,involvedObject.name={name}"
    try:
        with asking("list", "events", "default"):
            found = decoded(await kube.get(events.PATH, fieldSelector=about), _Events).items
    except NotAllowed as why:
        notes.add(f"{why}. Without it, there are no Events here")
        return None
    return tuple(_event(wire) for wire in found)


def _event(wire: _Event) -> Event:
    at = wire.last_timestamp or wire.event_time or wire.metadata.creation_timestamp
    return Event(at, wire.reason, wire.message, wire.source.component, wire.count or 1)


async def _leader(kube: Kube, path: str, notes: Notes) -> Leader | None:
    if not path:
        return None
    try:
        return await leader(kube, path)
    except NotAllowed as why:
        notes.add(f"{why}. Without it, nobody here knows whether a controller is at work")
        return None
