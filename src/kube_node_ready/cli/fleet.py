"""Build the controller's view of all nodes, with its decision about each, from what the caller is allowed to read."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kube_node_ready.api import objects
from kube_node_ready.api.contract import CONDITION
from kube_node_ready.api.paths import collection_path
from kube_node_ready.api.record import Outcome
from kube_node_ready.api.report import printable
from kube_node_ready.cli import words
from kube_node_ready.cli.installation import Installed, Mode
from kube_node_ready.controller.state import ClusterState
from kube_node_ready.kube.informer import Resource
from kube_node_ready.verification import attempts, decide, messages, reverify
from kube_node_ready.verification.effects import Decision, StartAttempt
from kube_node_ready.verification.model import Ledger, Node, Phase, Snapshot, Worker
from kube_node_ready.verification.node_reader import read_node
from kubekit import durations

_ORDER = (
    Phase.REMOVING,
    Phase.HELD,
    Phase.EXHAUSTED,
    Phase.FAILED,
    Phase.BACKING_OFF,
    Phase.VERIFYING,
    Phase.WAITING,
    Phase.REVERIFYING,
    Phase.VERIFIED,
    Phase.IGNORED,
)
_ZONE = "topology.kubernetes.io/zone"
_QUIET = (Phase.VERIFIED, Phase.IGNORED)
_PAUSED = "removal is paused; run `kube-node-ready resume` to resume it"
_LEFT_OUT = Decision(Phase.IGNORED, "excluded by nodeManagement.nodeSelector")


class ObservedNode(Struct, frozen=True):
    """One node, as the command line shows it."""

    node: Node
    version: str
    created: datetime | None = None
    selected: bool = True
    """Whether the controller manages it."""
    labels: Mapping[str, str] = {}
    rejection: str = ""
    """Why the API server rejects what the controller writes to it, by its condition."""


class NodeStatus(Struct, frozen=True):
    """The status of one node at one point in time."""

    known: ObservedNode
    seen: Snapshot
    decision: Decision
    guarded: bool
    """Whether it must be verified: it is gated, or its label was removed."""
    gates: tuple[str, ...] = ()
    mode: Mode = Mode.CONTROLLER

    @property
    def node(self) -> Node:
        return self.known.node

    @property
    def name(self) -> str:
        return self.known.node.name

    @property
    def zone(self) -> str:
        return self.known.labels.get(_ZONE, "")

    @property
    def phase(self) -> Phase:
        return self.decision.phase

    @property
    def worker(self) -> Worker | None:
        """The worker of the current attempt, or of the last one, which is kept for its logs."""
        current = attempts.current(self.seen)
        shown = current or max(self.seen.attempts, key=lambda attempt: attempt.number, default=None)
        return shown if isinstance(shown, Worker) else None

    @property
    def attempt(self) -> int:
        """The attempt that runs, or the last one."""
        current = attempts.current(self.seen)
        return current.number if current else self.node.record.attempt

    @property
    def failing(self) -> bool:
        """Whether its last attempt failed, gated or open."""
        record = self.node.record
        return (self.guarded and record.outcome is Outcome.FAILED) or reverify.is_degraded(self.node)

    @property
    def verified(self) -> bool:
        return self.phase in (Phase.VERIFIED, Phase.REVERIFYING) and not self.guarded

    @property
    def needs_attention(self) -> bool:
        return self.known.selected and (self.guarded or self.failing) and not self.node.deleting

    @property
    def rejection(self) -> str:
        """Why its gate cannot be opened, or its result not be recorded, by the API server."""
        return self.known.rejection if self.guarded else ""

    @property
    def due(self) -> datetime | None:
        """When the next step is due: a retry, a deadline, the next check of a verified node."""
        return self.seen.now + self.decision.recheck if self.decision.recheck is not None else None

    @property
    def begins(self) -> int:
        """The attempt that is about to begin; 0 if none is."""
        return next((effect.number for effect in self.decision.effects if isinstance(effect, StartAttempt)), 0)

    @property
    def initiator(self) -> str:
        return "the controller" if self.mode is Mode.CONTROLLER else "the pod on the node"

    @property
    def waits_for(self) -> str:
        """What it waits for, and whether it is open in the meantime; "" if it waits for nothing."""
        is_open = "open meanwhile: " if self.guarded and not self.gates else ""
        return printable(f"{is_open}{self._waits_for()}", words.LONGEST)

    def _waits_for(self) -> str:
        reason, record = self.decision.reason, self.node.record
        left = self.decision.recheck
        if self.rejection:
            return self.rejection
        match self.phase:
            case Phase.VERIFIED:
                return reason if self.failing else ""
            case Phase.BACKING_OFF:
                return f"retry in {durations.format_duration(left or timedelta())}: {record.reason}"
            case Phase.EXHAUSTED:
                return f"{f'retry in {durations.format_duration(left)}' if left else 'no further retry'}: {reason}"
            case Phase.HELD:
                return f"not removed, since {reason}. It failed: {record.reason}"
            case Phase.REMOVING:
                return f"to be removed: {reason}"
            case Phase.VERIFYING | Phase.REVERIFYING:
                return self._progress()
            case _:
                return reason

    def _progress(self) -> str:
        if self.begins:
            return f"{self.initiator} to begin attempt {self.begins}"
        current = attempts.current(self.seen)
        if not current:
            return self.decision.reason
        since = f" ({durations.format_duration(self.seen.now - current.created)})" if current.created else ""
        reason = f": {current.reason}" if current.reason else ""
        return f"{self.decision.reason}{since}{reason}"


Natural = list[tuple[int, str | int]]


def by_attention(status: NodeStatus) -> tuple[bool, int, Natural]:
    """Sort nodes that need attention first, by how far they are from being verified; then by name."""
    return not status.needs_attention, *by_phase(status)


def by_phase(status: NodeStatus) -> tuple[int, Natural]:
    return _ORDER.index(status.phase), natural(status.name)


def by_name(status: NodeStatus) -> Natural:
    return natural(status.name)


def by_pool(status: NodeStatus) -> tuple[Natural, Natural]:
    return natural(status.node.pool), natural(status.name)


def by_age(status: NodeStatus) -> tuple[datetime, Natural]:
    """The oldest first."""
    return status.known.created or datetime.max.replace(tzinfo=UTC), natural(status.name)


ORDERS: Mapping[str, Callable[[NodeStatus], Any]] = {"name": by_name, "phase": by_phase, "age": by_age, "pool": by_pool}
"""What `status` can sort by."""
GROUPS: Mapping[str, Callable[[NodeStatus], str]] = {
    "pool": lambda status: status.node.pool,
    "zone": lambda status: status.zone,
}
"""What `status` can group by."""


def natural(name: str) -> Natural:
    """node-2 before node-10."""
    parts: list[str] = []
    for letter in name:
        if parts and parts[-1][-1].isdecimal() == letter.isdecimal():
            parts[-1] += letter
        else:
            parts.append(letter)
    # A name has at most 253 characters, and `int` rejects more than 4,300 digits.
    return [(0, int(part[:253])) if part.isdecimal() else (1, part) for part in parts]


class _Status(objects.NodeStatus, frozen=True):
    conditions: tuple[objects.Condition, ...] = ()


class NodeWire(objects.Node, frozen=True):
    """Return the node with fields that only the command line needs."""

    status: _Status = _Status()


def _rejection(wire: NodeWire) -> str:
    shown = (known for known in wire.status.conditions if known.type == CONDITION)
    return next((known.message for known in shown if known.reason in messages.REJECTIONS), "")


def nodes(installed: Installed) -> Resource[NodeWire, ObservedNode]:
    """Return the resource of all nodes, also of those that the controller does not manage."""

    def transform(wire: NodeWire) -> ObservedNode:
        labels = wire.metadata.labels or {}
        return ObservedNode(
            read_node(wire, installed.policy),
            wire.metadata.resource_version,
            wire.metadata.creation_timestamp,
            installed.selector.items() <= labels.items(),
            labels,
            _rejection(wire),
        )

    return Resource(collection_path("v1", "nodes"), NodeWire, transform, lambda wire: wire.metadata.name)


class FleetView:
    """The latest state of the caches. `on_change` is called for each change."""

    def __init__(self, installed: Installed, on_change: Callable[[], None] = lambda: None) -> None:
        self.installed = installed
        self.known: dict[str, ObservedNode] = {}
        self._on_change = on_change
        self._guarded: dict[str, Node] = {}
        self._view = ClusterState(installed.policy, self._guarded, installed.slots)
        self._settled: dict[str, NodeStatus] = {}

    def node_changed(self, name: str, _: ObservedNode | None, after: ObservedNode | None) -> None:
        before = self._guarded.pop(name, None)
        self._settled.pop(name, None)
        if after:
            self.known[name] = after
        else:
            self.known.pop(name, None)
        if after and after.selected:
            self._guarded[name] = after.node
        self._view.node_changed(before, self._guarded.get(name))
        self._on_change()

    def worker_changed(self, _: str, before: Worker | None, after: Worker | None) -> None:
        if name := self._view.worker_changed(before, after):
            self._settled.pop(name, None)
        self._on_change()

    def ledger_changed(self, ledger: Ledger) -> None:
        self._view.ledger = ledger
        self._on_change()

    def add_all(self, known: Iterable[ObservedNode], workers: Iterable[Worker | None], ledger: Ledger) -> "FleetView":
        """Add all objects of a list."""
        for each in known:
            self.node_changed(each.node.name, None, each)
        for worker in workers:
            if worker:
                self.worker_changed(worker.name, None, worker)
        self.ledger_changed(ledger)
        return self

    @property
    def notes(self) -> list[str]:
        """Notes that apply to all nodes."""
        return [_PAUSED] if self._view.ledger.paused else []

    def status(self, name: str, now: datetime) -> NodeStatus | None:
        known = self.known.get(name)
        if known is None:
            return None
        policy = self.installed.policy
        gates = tuple(f"{taint.key}:{taint.effect}" for taint in known.node.taints if policy.is_gate(taint))
        seen = self._view.snapshot(name, now) if known.selected else Snapshot(now, known.node)
        assert seen, "a node that is selected is in the view"
        seen = replace(seen, witnessed=known.node.record.attempt)  # what the controller saw is not known here
        decision = decide.decide(seen, policy) if known.selected else _LEFT_OUT
        guarded = known.selected and policy.guards(known.node)
        return NodeStatus(known, seen, decision, guarded, gates, self.installed.mode)

    def statuses(self, names: Iterable[str], now: datetime, fresh: timedelta = timedelta()) -> list[NodeStatus]:
        """Return the statuses in order. Decisions about idle nodes are reused within `fresh`."""
        return sorted(self._statuses(names, now, fresh), key=by_attention)

    def _statuses(self, names: Iterable[str], now: datetime, fresh: timedelta) -> Iterator[NodeStatus]:
        for name in names:
            settled = self._settled.get(name)
            if settled and now - settled.seen.now < fresh:
                yield settled
            elif status := self.status(name, now):
                if status.phase in _QUIET and not status.seen.attempts:
                    self._settled[name] = status
                yield status
