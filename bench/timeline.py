"""When each node reached each moment, as observed by watches. Pure."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

GATE_KEY, GATE_VALUE, GATE_EFFECT = "node-ready/unverified", "true", "NoSchedule"
VERIFIED = "node-ready/verified"


class Moment(StrEnum):
    POSTED = "posted"
    """The API server has responded to the node's creation."""
    GATED = "gated"
    POD_CREATED = "pod created"
    POD_BOUND = "pod bound"
    POD_SUCCEEDED = "pod succeeded"
    POD_FAILED = "pod failed"
    RELEASED = "released"
    """The gate's taint is removed and the label is set."""


Moments = Mapping[Moment, Mapping[str, float]]


class Meta(Struct, frozen=True, rename="camel"):
    name: str = ""
    uid: str = ""
    labels: dict[str, str] = field(default_factory=dict)


class Taint(Struct, frozen=True):
    key: str
    effect: str = ""


class NodeSpec(Struct, frozen=True):
    taints: list[Taint] = field(default_factory=list)


class Node(Struct, frozen=True):
    metadata: Meta
    spec: NodeSpec = NodeSpec()

    @property
    def gate(self) -> int | None:
        """Return the index of the gate among the taints."""
        return next((at for at, taint in enumerate(self.spec.taints) if taint.key == GATE_KEY), None)

    @property
    def released(self) -> bool:
        return self.gate is None and self.metadata.labels.get(VERIFIED) == "true"


class Requirement(Struct, frozen=True):
    key: str
    values: list[str] = field(default_factory=list)


class Term(Struct, frozen=True, rename="camel"):
    match_fields: list[Requirement] = field(default_factory=list)


class Terms(Struct, frozen=True, rename="camel"):
    node_selector_terms: list[Term] = field(default_factory=list)


class NodeAffinity(Struct, frozen=True, rename="camel"):
    required_during_scheduling_ignored_during_execution: Terms = Terms()


class Affinity(Struct, frozen=True, rename="camel"):
    node_affinity: NodeAffinity = NodeAffinity()


class PodSpec(Struct, frozen=True, rename="camel"):
    node_name: str = ""
    affinity: Affinity = Affinity()


class PodStatus(Struct, frozen=True):
    phase: str = ""


class Pod(Struct, frozen=True):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def node(self) -> str | None:
        """Return the node that the pod is bound or pinned to."""
        if self.spec.node_name:
            return self.spec.node_name
        terms = self.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        pins = (pin for term in terms.node_selector_terms for pin in term.match_fields)
        return next((value for pin in pins if pin.key == "metadata.name" for value in pin.values), None)


class Timeline:
    """Records when each node reached each moment first, the last state of each node, and the node of each pod."""

    def __init__(self) -> None:
        self.moments: dict[Moment, dict[str, float]] = {moment: {} for moment in Moment}
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, str] = {}
        self._waiting: defaultdict[tuple[Moment, str], asyncio.Event] = defaultdict(asyncio.Event)
        self._first: defaultdict[Moment, asyncio.Event] = defaultdict(asyncio.Event)

    def note(self, moment: Moment, name: str, now: float) -> None:
        if name not in self.moments[moment]:
            self.moments[moment][name] = now
            self._waiting[moment, name].set()
            self._first[moment].set()

    async def reached(self, moment: Moment, name: str) -> None:
        await self._waiting[moment, name].wait()

    async def reached_by_any(self, moment: Moment) -> None:
        await self._first[moment].wait()

    def see_node(self, node: Node, now: float) -> None:
        name = node.metadata.name
        self.nodes[name] = node
        if node.gate is not None:
            self.note(Moment.GATED, name, now)
        elif node.released:
            self.note(Moment.RELEASED, name, now)

    def see_pod(self, pod: Pod, now: float) -> None:
        if (name := pod.node) is None:
            return
        self.pods[pod.metadata.name] = name
        self.note(Moment.POD_CREATED, name, now)
        if pod.spec.node_name:
            self.note(Moment.POD_BOUND, name, now)
        if pod.status.phase == "Succeeded":
            self.note(Moment.POD_SUCCEEDED, name, now)
        if pod.status.phase == "Failed":
            self.note(Moment.POD_FAILED, name, now)


def between(moments: Moments, first: Moment, then: Moment) -> dict[str, float]:
    """Return the seconds between two moments for every node that has reached both.

    Two watches can deliver two events in reverse order; that counts as 0.
    """
    begun, ended = moments[first], moments[then]
    return {name: max(ended[name] - begun[name], 0.0) for name in begun if name in ended}
