"""`verify`: request a new verification of nodes. Its one patch removes the label and writes the record."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct
from rich.text import Text

from kube_node_ready.api.paths import object_path
from kube_node_ready.api.record import Outcome, VerificationRecord
from kube_node_ready.api.report import printable
from kube_node_ready.cli import cluster, errors, fleet, output, words
from kube_node_ready.cli import watch as following
from kube_node_ready.cli.cluster import ClusterLocation, Notes, decoded
from kube_node_ready.cli.errors import UsageError
from kube_node_ready.cli.fleet import NodeStatus, ObservedNode
from kube_node_ready.cli.installation import Installed, Mode
from kube_node_ready.cli.permissions import requires
from kube_node_ready.cli.screen import View
from kube_node_ready.cli.status import Ending, check_controller, shown_to_the_end
from kube_node_ready.cli.watch import FleetWatcher
from kube_node_ready.exit_codes import ExitCode
from kube_node_ready.kube.client import KubeClient, PatchKind
from kube_node_ready.kube.errors import Conflict, NotFound
from kube_node_ready.verification import attempts, patches
from kube_node_ready.verification.model import Node, Policy, Worker
from kubekit import durations

ASKED = "requested by a user"
_MOST_RACES = 10
_PATIENCE_SECONDS = 600.0


class Options(Struct, frozen=True):
    place: ClusterLocation
    node: tuple[str, ...] = ()
    all_failed: bool = False
    wait: bool = False
    timeout: float | None = None


class VerificationRequest(Struct, frozen=True):
    """A request to verify a node, which the verdict of any attempt above `attempt` completes."""

    name: str
    uid: str
    attempt: int


class _Requested(Struct, frozen=True):
    """The requests that were sent, and the exit code for all of them."""

    requests: tuple[VerificationRequest, ...]
    code: int


def run(options: Options) -> int:
    if bool(options.node) == options.all_failed:
        raise UsageError("name the nodes to verify, or use --all-failed")
    if options.timeout is not None and not options.wait:
        raise UsageError("--timeout: needs --wait")
    done = asyncio.run(_request_all(options))
    if not options.wait or not done.requests:
        return done.code
    return max(done.code, shown_to_the_end(lambda shown: _wait(options, done.requests, shown)))


def record_of(node: Node, now: datetime) -> VerificationRecord:
    """With a past, so that a node without gate and label counts as one that has something to prove."""
    return VerificationRecord(max(1, node.record.attempt), outcome=Outcome.PENDING, at=now, since=now, reason=ASKED)


def patch_of(known: ObservedNode, policy: Policy, now: datetime) -> patches.JsonPatch:
    """Of exactly this node as it was seen: label off, record on. Without a gate to close, no taint is touched."""
    return patches.close_gate(known.node, record_of(known.node, now), policy, None, known.version)


def rejection(status: NodeStatus) -> str:
    """Return why a requested verification would not run; empty if it would."""
    if not status.known.selected:
        return "nodeManagement.nodeSelector does not select it"
    return "it is being deleted" if status.node.deleting else ""


def running_attempt(status: NodeStatus) -> int:
    """Return the number of the attempt that is running; 0 if none is."""
    current = attempts.current(status.seen)
    if current is None or current.ended or (isinstance(current, Worker) and current.deleting):
        return 0
    return current.number


def verdict(request: VerificationRequest, node: Node | None) -> bool | None:
    """Return whether it passed; None if that is not known yet. A node that no longer exists did not."""
    if node is None or node.uid != request.uid:
        return False
    if node.record.attempt <= request.attempt or node.record.outcome is Outcome.PENDING:
        return None
    return node.record.is_proof


async def _request_all(options: Options) -> _Requested:
    notes = Notes()
    requests: list[VerificationRequest] = []
    code = ExitCode.OK
    async with cluster.cluster(options.place) as kube:
        seen = await cluster.read(kube, options.place.namespace, notes)
        errors.check_names(options.node, seen.known)
        if seen.installed.dry_run:
            raise UsageError("dryRun is on: no node would be verified, so no verification was requested")
        await check_controller(kube, seen.installed, notes)
        statuses = seen.statuses(dict.fromkeys(options.node) or seen.known, datetime.now(UTC))
        chosen = [each for each in statuses if each.failing] if options.all_failed else statuses
        output.note(notes)
        if not chosen:
            output.out([Text("no node's last attempt failed")])
        for status in chosen:
            result = await _request(kube, status, seen.installed)
            if result is None:
                code = ExitCode.FAILED
            else:
                requests.append(result)
    return _Requested(tuple(requests), code)


async def _request(kube: KubeClient, status: NodeStatus, installed: Installed) -> VerificationRequest | None:
    """Return the request, or None if it failed, which is reported."""
    name, uid = status.name, status.node.uid
    if reason := rejection(status):
        output.say(f"{name}: {reason}")
        return None
    if number := running_attempt(status):
        output.out([Text(f"{name}: the worker of attempt {number} is already running")])
        return VerificationRequest(name, uid, number - 1)
    try:
        known = await _write(kube, status.known, installed)
    except NotFound:
        output.say(f"{name}: the node no longer exists")
        return None
    if known is None:
        output.say(f"{name}: the node changes too often to be patched; try again")
        return None
    output.out([Text(f"{name}: {_consequence(status, known.node.record.attempt + 1)}")])
    return VerificationRequest(name, uid, known.node.record.attempt)


async def _write(kube: KubeClient, known: ObservedNode, installed: Installed) -> ObservedNode | None:
    """Return the patched node, or None after too many conflicts."""
    path = object_path("v1", "nodes", known.node.name)
    kind = fleet.nodes(installed)
    for _ in range(_MOST_RACES):
        body = msgspec.json.encode(patch_of(known, installed.policy, datetime.now(UTC)))
        try:
            with requires("patch", "nodes"):
                return kind.transform(decoded(await kube.patch(path, body, PatchKind.JSON), kind.wire))
        except Conflict:  # someone else, the kubelet mostly, wrote to it
            with requires("get", "nodes"):
                fresh = kind.transform(decoded(await kube.get(path), kind.wire))
        if fresh.node.uid != known.node.uid:
            raise NotFound(404, "NotFound", "a new Node has this name")
        known = fresh
    return None


def _consequence(status: NodeStatus, number: int) -> str:
    how_long = "even if it fails" if status.mode is Mode.CONTROLLER else "in the meantime"
    meanwhile = "it stays gated until it passes" if status.gates else f"it stays open {how_long}"
    karpenter = "" if status.node.registered else "; it begins after Karpenter has registered the node"
    return f"requested attempt {number}, which {status.initiator} begins; {meanwhile}{karpenter}"


async def _wait(options: Options, requests: Sequence[VerificationRequest], shown: View) -> Ending:
    notes = Notes()
    seconds = options.timeout if options.timeout is not None else _PATIENCE_SECONDS

    def choose(watcher: FleetWatcher, now: datetime) -> list[NodeStatus]:
        return watcher.statuses([request.name for request in requests], now)

    def over(watcher: FleetWatcher, _: Sequence[NodeStatus]) -> int | None:
        verdicts = [verdict(request, _current_node(request, watcher)) for request in requests]
        if None in verdicts:
            return None
        return ExitCode.OK if all(verdicts) else ExitCode.FAILED

    async with cluster.cluster(options.place) as kube:
        installed = await cluster.find_installation(kube, options.place.namespace, notes)
        async with following.following(kube, installed, notes) as watcher:
            followed = await following.follow(watcher, shown, choose, over, seconds)
            messages = sorted(_result(request, _current_node(request, watcher), seconds) for request in requests)
    return Ending(ExitCode.FAILED if followed.code is None else followed.code, followed.last, "\n".join(messages))


def _current_node(request: VerificationRequest, watcher: FleetWatcher) -> Node | None:
    """Return the Node of that name, which can be another one by now."""
    known = watcher.fleet_view.known.get(request.name)
    return known.node if known else None


def _result(request: VerificationRequest, node: Node | None, seconds: float) -> str:
    match verdict(request, node):
        case True:
            return f"{request.name}: passed"
        case None:
            return f"{request.name}: no verdict within {durations.format_duration(timedelta(seconds=seconds))}"
    if node is None or node.uid != request.uid:
        return f"{request.name}: the node no longer exists"
    return f"{request.name}: failed: {printable(node.record.reason, words.LONGEST)}"
