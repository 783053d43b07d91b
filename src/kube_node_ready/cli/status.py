"""`status`: what each node is waiting for."""

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from kube_node_ready.console import live as following
from kube_node_ready.console import mistakes, output, reading, screen, table, told, words
from kube_node_ready.console.installed import Installed
from kube_node_ready.console.leader import leader
from kube_node_ready.console.live import Live
from kube_node_ready.console.mistakes import Mistake
from kube_node_ready.console.picture import Picture, Standing
from kube_node_ready.console.reading import Notes, Place
from kube_node_ready.console.rights import NoAccess
from kube_node_ready.console.screen import Shown
from kube_node_ready.kube.client import Kube
from kube_node_ready.kube.errors import Unreachable

OK, ATTENTION = 0, 1


class Ending(Struct, frozen=True):
    """How a live view ended: the exit code, what was shown last, and what is to be said of it."""

    code: int
    last: list[Standing]
    sentence: str = ""


def run(options: argparse.Namespace) -> int:
    if not (options.watch or options.until):
        if options.timeout is not None:
            raise Mistake("--timeout is for --watch and --until")
        return asyncio.run(_once(options))
    if options.output in ("json", "yaml"):
        raise Mistake(f"-o {options.output} is for a single look, without --watch or --until")
    return shown_to_the_end(lambda shown: _watch(options, shown), wide=options.output == "wide")


def shown_to_the_end(watch: Callable[[Shown], Coroutine[Any, Any, Ending]], *, wide: bool = False) -> int:
    """A live view, and what was seen last, which stays in the terminal."""
    with screen.live(wide=wide) as shown:
        ending = asyncio.run(watch(shown))
    if sys.stdout.isatty():
        print_table(ending.last, output.look(sys.stdout, wide=wide))
    if ending.sentence:
        output.say(ending.sentence)
    return ending.code


def place(options: argparse.Namespace) -> Place:
    return Place(options.namespace, options.kubeconfig, options.context)


def needs_attention(standings: Sequence[Standing], *, named: bool = False) -> int:
    """By its exit code. Who names a node wants to know that it is gated, whoever's business that is."""
    wanted = any(standing.needs_attention or (named and standing.gates) for standing in standings)
    return ATTENTION if wanted else OK


async def _once(options: argparse.Namespace) -> int:
    notes = Notes()
    async with reading.cluster(place(options)) as kube:
        picture = await reading.look(kube, options.namespace, notes)
        mistakes.check_names(options.node, picture.known)
        standings = _chosen(picture.standings(dict.fromkeys(options.node) or picture.known, _now()), options)
        if needs_attention(standings):
            await check_controller(kube, picture.installed, notes)
    _print(standings, picture, options.output)
    output.note(notes)
    return needs_attention(standings, named=bool(options.node))


async def check_controller(kube: Kube, installed: Installed, notes: Notes) -> None:
    """Said where nodes wait in vain. Who cannot know it has seen the nodes all the same."""
    with suppress(NoAccess, Unreachable):
        if installed.lease and not (found := await leader(kube, installed.lease)).at_work(_now()):
            notes.add(found.told(_now()))


def _chosen(standings: list[Standing], options: argparse.Namespace) -> list[Standing]:
    return [standing for standing in standings if standing.guarded or not options.gated]


def _print(standings: Sequence[Standing], picture: Picture, form: str) -> None:
    if form in ("table", "wide"):
        print_table(standings, output.look(sys.stdout, wide=form == "wide"))
        return
    data = [told.told(standing, picture.installed.namespace) for standing in standings]
    if form == "json":
        sys.stdout.write(output.escaped(msgspec.json.format(msgspec.json.encode(data), indent=2).decode()) + "\n")
    else:
        sys.stdout.write(as_yaml(msgspec.to_builtins(data)))


def as_yaml(data: object) -> str:
    """With letters of all languages as they are, unless there is one that is not printable, which YAML would keep."""
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1000)
    is_safe = text.replace("\n", "").isprintable()
    return text if is_safe else str(yaml.safe_dump(data, sort_keys=False, width=1000))


def print_table(standings: Sequence[Standing], look: table.Look) -> None:
    if standings:
        output.out(table.lines(standings, look, _now()))
    output.out([table.summary(standings)])


async def _watch(options: argparse.Namespace, shown: Shown) -> Ending:
    notes = Notes()

    def choose(live: Live, now: datetime) -> list[Standing]:
        return _chosen(live.standings(dict.fromkeys(options.node), now), options)

    def over(live: Live, standings: Sequence[Standing]) -> int | None:
        if options.until and set(options.node) - live.picture.known.keys():
            return ATTENTION
        return _verdict(standings, options) if is_over(standings, options.until) else None

    async with reading.cluster(place(options)) as kube:
        installed = await reading.what_is_installed(kube, options.namespace, notes)
        async with following.following(kube, installed, notes) as live:
            mistakes.check_names(options.node, live.picture.known)
            followed = await following.follow(live, shown, choose, over, options.timeout)
            gone = sorted(set(options.node) - live.picture.known.keys())
        last = followed.last
        if followed.code is not None:
            went = f"{words.listed(gone)} went away meanwhile" if gone else ""
            return Ending(followed.code, last, went or _unproved(last, options))
        late = Notes()
        if options.until:
            late.add(_late(last, options))
            await check_controller(kube, installed, late)
        return Ending(_verdict(last, options), last, "\n".join(late))


def _verdict(standings: Sequence[Standing], options: argparse.Namespace) -> int:
    return ATTENTION if _unproved(standings, options) else needs_attention(standings, named=bool(options.node))


def _unproved(standings: Sequence[Standing], options: argparse.Namespace) -> str:
    """Named nodes that are to be verified, and that nobody is going to verify."""
    if options.until != "verified" or not options.node:
        return ""
    idle = [standing for standing in standings if not standing.verified and not standing.needs_attention]
    return "\n".join(f"{standing.name} is not verified: {standing.waits_for or standing.phase}" for standing in idle)


def is_over(standings: Sequence[Standing], until: str | None) -> bool:
    match until:
        case "verified":
            return not needs_attention(standings)
        case "settled":
            return all(standing.failing or not standing.needs_attention for standing in standings)
        case _:
            return False


def _late(last: Sequence[Standing], options: argparse.Namespace) -> str:
    waiting = [standing for standing in last if not is_over([standing], options.until)]
    within = words.span(timedelta(seconds=options.timeout))
    return f"{words.count(len(waiting), 'node')} not {options.until} within {within}"


def _now() -> datetime:
    return datetime.now(UTC)
