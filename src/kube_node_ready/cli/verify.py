"""`verify`: has nodes verified again. The one patch it writes takes our label off and puts our record on."""

import argparse
import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct

from kube_node_ready.api_paths import object_path
from kube_node_ready.console import live as following
from kube_node_ready.console import mistakes, output, picture, reading, words
from kube_node_ready.console.installed import Installed, Mode
from kube_node_ready.console.live import Live
from kube_node_ready.console.mistakes import Mistake
from kube_node_ready.console.picture import Known, Standing
from kube_node_ready.console.reading import Notes, decoded
from kube_node_ready.console.rights import asking
from kube_node_ready.console.screen import Shown
from kube_node_ready.console.status import ATTENTION, OK, Ending, check_controller, place, shown_to_the_end
from kube_node_ready.kube.client import Kube, PatchKind
from kube_node_ready.kube.errors import LostRace, NotFound
from kube_node_ready.verify import attempt, patches
from kube_node_ready.verify.model import Node, Outcome, Policy, Record
from kube_node_ready.verify.report import printable

ASKED = "asked for by hand"
_MOST_RACES = 10
_PATIENCE_SECONDS = 600.0


class Asked(Struct, frozen=True):
    """A node of which a verdict is awaited: that of an attempt above `attempt`."""

    name: str
    uid: str
    attempt: int


class Asking(Struct, frozen=True):
    """What came of asking for all of them."""

    asked: tuple[Asked, ...]
    code: int


def run(options: argparse.Namespace) -> int:
    if bool(options.node) == options.all_failed:
        raise Mistake("name the nodes to verify, or say --all-failed")
    if options.timeout is not None and not options.wait:
        raise Mistake("--timeout is for --wait")
    done = asyncio.run(_ask_all(options))
    if not options.wait or not done.asked:
        return done.code
    return max(done.code, shown_to_the_end(lambda shown: _wait(options, done.asked, shown)))


def record_of(node: Node, now: datetime) -> Record:
    """With a past, so that a node without gate and label counts as one that has something to prove."""
    return Record(max(1, node.record.attempt), outcome=Outcome.PENDING, at=now, since=now, reason=ASKED)


def patch_of(known: Known, policy: Policy, now: datetime) -> patches.JsonPatch:
    """Of exactly this node as it was seen: label off, record on. Without a gate to close, no taint is touched."""
    return patches.engage(known.node, record_of(known.node, now), policy, None, known.version)


def refusal(standing: Standing) -> str:
    """Why nobody would verify it if it were asked for; empty if somebody would."""
    if not standing.known.selected:
        return "it is not looked at, since nodeManagement.nodeSelector leaves it out"
    return "it is being deleted" if standing.node.deleting else ""


def at_work(standing: Standing) -> int:
    """The number of the attempt that a worker makes right now; 0 if none does."""
    worker = attempt.undecided(standing.seen)
    return worker.attempt if worker and not worker.ended and not worker.deleting else 0


def verdict(asked: Asked, node: Node | None) -> bool | None:
    """Whether it passed; None while nobody knows. One that is gone did not."""
    if node is None or node.uid != asked.uid:
        return False
    if node.record.attempt <= asked.attempt or node.record.outcome is Outcome.PENDING:
        return None
    return node.record.is_proof


async def _ask_all(options: argparse.Namespace) -> Asking:
    notes = Notes()
    asked: list[Asked] = []
    code = OK
    async with reading.cluster(place(options)) as kube:
        seen = await reading.look(kube, options.namespace, notes)
        mistakes.check_names(options.node, seen.known)
        if seen.installed.dry_run:
            raise Mistake("dryRun is on, so nobody would verify a node, and none was asked to be")
        await check_controller(kube, seen.installed, notes)
        standings = seen.standings(dict.fromkeys(options.node) or seen.known, datetime.now(UTC))
        chosen = [each for each in standings if each.failing] if options.all_failed else standings
        output.note(notes)
        if not chosen:
            output.out(["no node's last attempt failed"])
        for standing in chosen:
            result = await _ask(kube, standing, seen.installed)
            if result is None:
                code = ATTENTION
            else:
                asked.append(result)
    return Asking(tuple(asked), code)


async def _ask(kube: Kube, standing: Standing, installed: Installed) -> Asked | None:
    """None if it could not be, which is said."""
    name, uid = standing.name, standing.node.uid
    if why := refusal(standing):
        output.say(f"{name}: {why}")
        return None
    if number := at_work(standing):
        output.out([f"{name}: the worker of attempt {number} is at work already, and is left to it"])
        return Asked(name, uid, number - 1)
    try:
        known = await _write(kube, standing.known, installed)
    except NotFound:
        output.say(f"{name}: it is gone")
        return None
    if known is None:
        output.say(f"{name}: it changes faster than it could be written to; try again")
        return None
    output.out([f"{name}: {_consequence(standing, known.node.record.attempt + 1)}"])
    return Asked(name, uid, known.node.record.attempt)


async def _write(kube: Kube, known: Known, installed: Installed) -> Known | None:
    """As it was written; None if others were quicker every time."""
    path = object_path("v1", "nodes", known.node.name)
    kind = picture.nodes(installed)
    for _ in range(_MOST_RACES):
        body = msgspec.json.encode(patch_of(known, installed.policy, datetime.now(UTC)))
        try:
            with asking("patch", "nodes"):
                return kind.keep(decoded(await kube.patch(path, body, PatchKind.JSON), kind.wire))
        except LostRace:  # someone else, the kubelet mostly, wrote to it
            with asking("get", "nodes"):
                fresh = kind.keep(decoded(await kube.get(path), kind.wire))
        if fresh.node.uid != known.node.uid:
            raise NotFound(404, "NotFound", "another node has its name by now")
        known = fresh
    return None


def _consequence(standing: Standing, number: int) -> str:
    how_long = "even if it fails" if standing.mode is Mode.CONTROLLER else "meanwhile"
    meanwhile = "it stays gated until it passes" if standing.gates else f"it stays open, {how_long}"
    karpenter = "" if standing.node.registered else "; Karpenter has yet to register it, which comes first"
    return f"asked for a new proof, attempt {number}, which {standing.beginner} begins; {meanwhile}{karpenter}"


async def _wait(options: argparse.Namespace, asked: Sequence[Asked], shown: Shown) -> Ending:
    notes = Notes()
    seconds = options.timeout if options.timeout is not None else _PATIENCE_SECONDS

    def choose(live: Live, now: datetime) -> list[Standing]:
        return live.standings([one.name for one in asked], now)

    def over(live: Live, _: Sequence[Standing]) -> int | None:
        verdicts = [verdict(one, _now_called(one, live)) for one in asked]
        if None in verdicts:
            return None
        return OK if all(verdicts) else ATTENTION

    async with reading.cluster(place(options)) as kube:
        installed = await reading.what_is_installed(kube, options.namespace, notes)
        async with following.following(kube, installed, notes) as live:
            followed = await following.follow(live, shown, choose, over, seconds)
            told = sorted(_told(one, _now_called(one, live), seconds) for one in asked)
    return Ending(ATTENTION if followed.code is None else followed.code, followed.last, "\n".join(told))


def _now_called(asked: Asked, live: Live) -> Node | None:
    """The node of that name, which may be another one by now."""
    known = live.picture.known.get(asked.name)
    return known.node if known else None


def _told(asked: Asked, node: Node | None, seconds: float) -> str:
    match verdict(asked, node):
        case True:
            return f"{asked.name}: passed"
        case None:
            return f"{asked.name}: no verdict within {words.span(timedelta(seconds=seconds))}"
    if node is None or node.uid != asked.uid:
        return f"{asked.name}: it is gone"
    return f"{asked.name}: failed: {printable(node.record.reason, words.LONGEST)}"
