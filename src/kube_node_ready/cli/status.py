"""`status`: print what each node is waiting for."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import yaml
from msgspec import Struct
from rich.text import Text

from kube_node_ready.cli import cluster, errors, fleet, output, screen, status_json, table, words
from kube_node_ready.cli import watch as following
from kube_node_ready.cli.cluster import ClusterLocation, Notes
from kube_node_ready.cli.errors import UsageError
from kube_node_ready.cli.fleet import FleetView, NodeStatus
from kube_node_ready.cli.installation import Installed
from kube_node_ready.cli.leader import leader
from kube_node_ready.cli.permissions import NoAccess
from kube_node_ready.cli.screen import View
from kube_node_ready.cli.selector import Selector
from kube_node_ready.cli.table import Style
from kube_node_ready.cli.watch import FleetWatcher
from kube_node_ready.exit_codes import ExitCode
from kube_node_ready.kube.client import KubeClient
from kube_node_ready.kube.errors import Unreachable
from kubekit import durations

_ANY = Selector()
_PLAIN = Style()
_FOR_PROGRAMS = ("json", "yaml")


class Options(Struct, frozen=True):
    place: ClusterLocation
    node: tuple[str, ...] = ()
    gated: bool = False
    selector: Selector = _ANY
    pool: str | None = None
    sort_by: str | None = None
    group_by: str | None = None
    output: str = "table"
    watch: bool = False
    until: str | None = None
    timeout: float | None = None

    @property
    def style(self) -> Style:
        return Style(wide=self.output == "wide", group=self.group_by)


class Ending(Struct, frozen=True):
    """How a live view ended: the exit code, what was shown last, and a message about it."""

    code: int
    last: list[NodeStatus]
    sentence: str = ""


def run(options: Options) -> int:
    if options.group_by and options.output in _FOR_PROGRAMS:
        raise UsageError(f"--output: {options.output} cannot be combined with --group-by")
    if not (options.watch or options.until):
        if options.timeout is not None:
            raise UsageError("--timeout: needs --watch or --until")
        return asyncio.run(_once(options))
    if options.output in _FOR_PROGRAMS:
        raise UsageError(f"--output: {options.output} cannot be combined with --watch or --until")
    return shown_to_the_end(lambda shown: _watch(options, shown), options.style)


def shown_to_the_end(watch: Callable[[View], Coroutine[Any, Any, Ending]], style: Style = _PLAIN) -> int:
    """Show a live view, then print what it showed last, which stays in the terminal."""
    with screen.live(style) as shown:
        ending = asyncio.run(watch(shown))
    if sys.stdout.isatty():
        print_table(ending.last, output.style(sys.stdout, style))
    if ending.sentence:
        output.say(ending.sentence)
    return ending.code


def needs_attention(statuses: Sequence[NodeStatus], *, named: bool = False) -> int:
    """Return the exit code. A node that is named counts if it is gated, even if the controller does not select it."""
    wanted = any(status.needs_attention or (named and status.gates) for status in statuses)
    return ExitCode.FAILED if wanted else ExitCode.OK


async def _once(options: Options) -> int:
    notes = Notes()
    async with cluster.cluster(options.place) as kube:
        fleet_view = await cluster.read(kube, options.place.namespace, notes)
        errors.check_names(options.node, fleet_view.known)
        statuses = _chosen(fleet_view.statuses(dict.fromkeys(options.node) or fleet_view.known, _now()), options)
        if needs_attention(statuses):
            await check_controller(kube, fleet_view.installed, notes)
    _print(statuses, fleet_view, options)
    output.note(notes)
    return needs_attention(statuses, named=bool(options.node))


async def check_controller(kube: KubeClient, installed: Installed, notes: Notes) -> None:
    """Add a note if no controller is running. Without permission to read the Lease, there is none."""
    with suppress(NoAccess, Unreachable):
        if installed.lease and not (current_leader := await leader(kube, installed.lease)).is_running(_now()):
            notes.add(current_leader.describe(_now()))


def _chosen(statuses: list[NodeStatus], options: Options) -> list[NodeStatus]:
    chosen = [status for status in statuses if _is_chosen(status, options)]
    return sorted(chosen, key=fleet.ORDERS[options.sort_by]) if options.sort_by else chosen


def _is_chosen(status: NodeStatus, options: Options) -> bool:
    in_pool = options.pool is None or status.node.pool == options.pool
    return in_pool and options.selector.matches(status.known.labels) and (status.guarded or not options.gated)


def _print(statuses: Sequence[NodeStatus], fleet_view: FleetView, options: Options) -> None:
    if options.output not in _FOR_PROGRAMS:
        print_table(statuses, output.style(sys.stdout, options.style))
        return
    data = [status_json.to_json(status, fleet_view.installed.namespace) for status in statuses]
    if options.output == "json":
        sys.stdout.write(words.escaped(msgspec.json.format(msgspec.json.encode(data), indent=2).decode()) + "\n")
    else:
        sys.stdout.write(as_yaml(msgspec.to_builtins(data)))


def as_yaml(data: object) -> str:
    """With letters of all languages as they are, unless there is one that is not printable, which YAML would keep."""
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1000)
    is_safe = text.replace("\n", "").isprintable()
    return text if is_safe else str(yaml.safe_dump(data, sort_keys=False, width=1000))


def print_table(statuses: Sequence[NodeStatus], style: Style) -> None:
    if statuses:
        output.out(table.lines(statuses, style, _now()))
    output.out([Text(table.summary(statuses))])


async def _watch(options: Options, shown: View) -> Ending:
    notes = Notes()

    def choose(watcher: FleetWatcher, now: datetime) -> list[NodeStatus]:
        return _chosen(watcher.statuses(dict.fromkeys(options.node), now), options)

    def over(watcher: FleetWatcher, statuses: Sequence[NodeStatus]) -> int | None:
        if options.until and set(options.node) - watcher.fleet_view.known.keys():
            return ExitCode.FAILED
        return _verdict(statuses, options) if is_over(statuses, options.until) else None

    async with cluster.cluster(options.place) as kube:
        installed = await cluster.find_installation(kube, options.place.namespace, notes)
        async with following.following(kube, installed, notes) as watcher:
            errors.check_names(options.node, watcher.fleet_view.known)
            followed = await following.follow(watcher, shown, choose, over, options.timeout)
            gone = sorted(set(options.node) - watcher.fleet_view.known.keys())
        last = followed.last
        if followed.code is not None:
            went = f"{durations.listed(gone)} no longer exists" if gone else ""
            return Ending(followed.code, last, went or _unproved(last, options))
        late = Notes()
        if options.until:
            late.add(_late(last, options))
            await check_controller(kube, installed, late)
        return Ending(_verdict(last, options), last, "\n".join(late))


def _verdict(statuses: Sequence[NodeStatus], options: Options) -> int:
    return ExitCode.FAILED if _unproved(statuses, options) else needs_attention(statuses, named=bool(options.node))


def _unproved(statuses: Sequence[NodeStatus], options: Options) -> str:
    """Return a line for each named node that should be verified, and that will not be."""
    if options.until != "verified" or not options.node:
        return ""
    idle = [status for status in statuses if not status.verified and not status.needs_attention]
    return "\n".join(f"{status.name} is not verified: {status.waits_for or status.phase}" for status in idle)


def is_over(statuses: Sequence[NodeStatus], until: str | None) -> bool:
    match until:
        case "verified":
            return not needs_attention(statuses)
        case "settled":
            return all(status.failing or not status.needs_attention for status in statuses)
        case _:
            return False


def _late(last: Sequence[NodeStatus], options: Options) -> str:
    assert options.timeout is not None, "or there is no end"
    waiting = [status for status in last if not is_over([status], options.until)]
    within = durations.format_duration(timedelta(seconds=options.timeout))
    return f"{durations.plural(len(waiting), 'node', thousands=',')} not {options.until} within {within}"


def _now() -> datetime:
    return datetime.now(UTC)
