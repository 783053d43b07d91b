"""Data types that decisions are made of: nodes, attempts, snapshots and the policy."""

from datetime import datetime, timedelta
from enum import StrEnum, auto

from msgspec import Struct

from kube_node_ready.api.contract import VERIFIED_LABEL, VERIFIED_VALUE
from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import Cause, VerificationRecord
from kube_node_ready.api.report import Report


class Phase(StrEnum):
    IGNORED = auto()
    WAITING = auto()
    VERIFYING = auto()
    VERIFIED = auto()
    REVERIFYING = auto()
    FAILED = auto()
    BACKING_OFF = "backing-off"
    EXHAUSTED = auto()
    HELD = auto()
    REMOVING = auto()


class Pool(Struct, frozen=True):
    name: str
    claimed: bool
    """Whether a NodeClaim names the pool. If not, only the Node's labels do, which its kubelet chooses."""


class Node(Struct, frozen=True):
    """A Node, reduced to what verification needs."""

    name: str
    uid: str
    labelled: bool = False
    taints: tuple[Taint, ...] = ()
    record: VerificationRecord = VerificationRecord()
    deleting: bool = False
    registered: bool = True
    """False until Karpenter has registered the node: it reverts changes that are made earlier."""
    pool: str = ""
    claim: str = ""
    """The UID of the NodeClaim that owns the Node."""
    claim_name: str = ""
    claimed: bool = False
    """Whether the Node names a NodeClaim as its owner. Pools of NodeClaims have separate budgets."""
    provider_id: str = ""
    boot: str = ""
    cordoned: bool = False
    removal_paused: bool = False
    has_labels: bool = True
    has_annotations: bool = True
    record_text: str | None = None
    """The annotation with the record, for the patch that opens the gate. None if there is none, empty if it is long."""
    created: datetime | None = None


class State(StrEnum):
    PENDING = auto()
    RUNNING = auto()
    PASSED = auto()
    FAILED = auto()


class Attempt(Struct, frozen=True, kw_only=True):
    """An attempt to verify a node, reduced to what decisions need.

    What runs the checks is either a pod on the node, a `Worker`, or this process, in DaemonSet mode.
    """

    number: int
    created: datetime | None = None
    state: State = State.PENDING
    cause: Cause = Cause.NONE
    reason: str = ""
    """Why it failed, or what it is waiting for."""
    report: Report | None = None
    finished: bool = False
    """Whether no check of it runs or will run."""
    settled: bool = False
    """Whether the verdict has been on record. It counts once, even if the record is deleted later."""

    @property
    def ended(self) -> bool:
        return self.state in (State.PASSED, State.FAILED)

    @property
    def scheduled(self) -> bool:
        """Whether it has a node to run on."""
        return True

    def belongs_to(self, node: Node) -> bool:  # noqa: ARG002  only a pod can be on another one
        """Whether it runs on that node."""
        return True


class Worker(Attempt, frozen=True):
    """A worker pod, and the attempt that it runs."""

    name: str
    uid: str
    node_uid: str
    node_name: str = ""
    started: datetime | None = None
    """When the worker's container started, by the clock of its node. None unless it is running."""
    awaits_images: bool = False
    """Whether no container runs although the pod's network is ready: the kubelet has yet to pull an image."""
    deleting: bool = False
    fingerprint: str = ""
    """The fingerprint of the pod's spec."""
    generation: int = 0
    """Grows with each change of the spec, on Kubernetes 1.33 and later. A deletion counts as one."""
    genuine: bool = False
    """Whether the pod is known to run what the controller requested. If not, its verdict does not count."""
    edited: bool = False
    """Whether the spec changed while it was watched, even if it was changed back."""

    @property
    def scheduled(self) -> bool:
        return bool(self.node_name)

    def belongs_to(self, node: Node) -> bool:
        """Whether the pod runs on that node. Only the node's kubelet writes the status of pods that are bound to it."""
        return self.node_uid == node.uid and self.node_name in ("", node.name)


class Removal(Struct, frozen=True):
    """A node that was removed or is about to be. It is recorded before the removal."""

    uid: str
    node: str
    pool: str
    at: datetime
    claimed: bool | None = None
    """Whether the pool comes from a NodeClaim and not from the Node's labels. Unknown in older entries."""


class Ledger(Struct, frozen=True):
    """Recent removals, and whether removal is paused."""

    removals: tuple[Removal, ...] = ()
    paused: bool = False
    error: str = ""
    """Why the ledger cannot be used; empty if it can."""
    version: str = ""


class Fleet(Struct, frozen=True):
    """Counts of managed nodes."""

    managed: int = 1
    failing: int = 0
    degraded: int = 0
    """Verified nodes with an open gate that have failed since."""
    in_pool: int = 1
    ledger: Ledger = Ledger()


class Snapshot(Struct, frozen=True):
    """The input of `decide`: one node, at one point in time."""

    now: datetime
    node: Node
    attempts: tuple[Attempt, ...] = ()
    slot_free: bool = True
    fleet: Fleet = Fleet()
    version: str = ""
    """The Node's resourceVersion. A record is written only if the Node has not changed since."""
    burst: bool = False
    """Whether so many nodes are being verified that everything else is delayed."""
    recheck_limit_reached: bool = False
    """Whether the limit of simultaneous re-verifications is reached."""
    witnessed: int = 0
    """The last attempt that failed because of the node while this process watched. A record can be forged."""


class Gate(Struct, frozen=True):
    """The key and effect of a taint that keeps workloads off a node until it is verified."""

    key: str
    effect: str

    def matches(self, taint: Taint) -> bool:
        return (taint.key, taint.effect) == (self.key, self.effect)


class FailureLimits(Struct, frozen=True, kw_only=True):
    """If more nodes than this are failing, the problem is considered cluster-wide."""

    max_failing_count: int = 2
    max_failing_percent: float = 20


class WithoutClaim(StrEnum):
    """What to do with a failed node that has no NodeClaim. The machine keeps running in both cases."""

    DELETE = auto()
    CORDON = auto()


class RemovalPolicy(FailureLimits, frozen=True, kw_only=True):
    max_count: int = 1
    max_percent: float = 10
    window: timedelta = timedelta(hours=1)
    without_claim: WithoutClaim = WithoutClaim.DELETE


class Reverification(FailureLimits, frozen=True, kw_only=True):
    """How verified nodes are checked again."""

    interval: timedelta
    threshold: int = 3
    """The number of failures in a row that closes the gate."""
    gate: Taint | None = None
    """The taint to add. With None, only the label is removed."""


class Policy(Struct, frozen=True):
    """The part of the configuration that decisions depend on."""

    gates: tuple[Gate, ...]
    label: str = VERIFIED_LABEL
    label_value: str = VERIFIED_VALUE
    max_failures: int = 5
    exponential: bool = True
    first_backoff: timedelta = timedelta(seconds=1)
    max_backoff: timedelta = timedelta(seconds=30)
    slow_retry: timedelta | None = timedelta(minutes=5)
    deadline: timedelta = timedelta(minutes=5)
    resync: timedelta = timedelta(seconds=30)
    removal: RemovalPolicy | None = None
    """None: failed nodes are never removed."""
    reverification: Reverification | None = None
    """None: verified nodes are not checked again."""

    def is_gate(self, taint: Taint) -> bool:
        return any(gate.matches(taint) for gate in self.gates)

    def is_gated(self, node: Node) -> bool:
        return any(self.is_gate(taint) for taint in node.taints)

    def guards(self, node: Node) -> bool:
        """Whether this node has to be verified."""
        if self.is_gated(node):
            return True
        # Removing the label from a node that was verified before requests a new proof, with or without a taint.
        return not node.labelled and (not self.gates or node.record.attempt > 0)
