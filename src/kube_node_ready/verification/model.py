"""The words in which decisions are made: what is seen, what may be done, and what was decided."""

from datetime import datetime, timedelta
from enum import StrEnum, auto

from msgspec import Struct

from kube_node_ready.objects import Taint
from kube_node_ready.verify.report import CheckResult, Report


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


class Outcome(StrEnum):
    PENDING = auto()
    PASSED = auto()
    FAILED = auto()


class Cause(StrEnum):
    """Why an attempt failed. Only some of these say something about the node."""

    NONE = ""
    CHECKS = auto()
    LATE = auto()
    NOT_STARTED = "not-started"
    STOPPED = auto()
    REFUSED = auto()
    MISCONFIGURED = auto()
    NOT_RELEASED = "not-released"
    NOT_RECORDED = "not-recorded"

    @property
    def blames_node(self) -> bool:
        """An image that cannot be pulled, a refused pod or a bad setting would follow the node's replacement."""
        return self in (Cause.CHECKS, Cause.LATE)


class Record(Struct, frozen=True, omit_defaults=True):
    """What is known of a node's attempts, kept on the Node itself: this is the memory that survives us."""

    attempt: int = 0
    """The number of the last attempt whose verdict is known. It only grows."""
    failures: int = 0
    """In a row, up to and with the last attempt. A node that passed has some if it failed since, and is open still."""
    outcome: Outcome = Outcome.PENDING
    at: datetime | None = None
    since: datetime | None = None
    """When the outcome became what it is, which the condition shows as its last transition."""
    boot: str = ""
    """The boot in which the node passed: a proof does not outlive a reboot."""
    cause: Cause = Cause.NONE
    blamed: int = 0
    """Failures in a row that speak against the node itself."""
    in_crowd: bool = False
    """Whether so many nodes failed by then that it may have been the cluster's fault."""
    reason: str = ""
    seconds: float = 0
    checks: tuple[CheckResult, ...] = ()
    contested: int = 0
    """How often in a row another client undid a release soon after it."""

    @property
    def is_proof(self) -> bool:
        """Whether the last attempt passed, and not only one before it."""
        return self.outcome is Outcome.PASSED and not self.reason


class Pool(Struct, frozen=True):
    name: str
    claimed: bool
    """Whether a NodeClaim names it. Otherwise only the Node's labels do, and a kubelet chooses these."""


class Node(Struct, frozen=True):
    """One node, as far as verification is concerned."""

    name: str
    uid: str
    labelled: bool = False
    taints: tuple[Taint, ...] = ()
    record: Record = Record()
    deleting: bool = False
    registered: bool = True
    """False while Karpenter has yet to finish with it; what is changed before that, Karpenter changes back."""
    pool: str = ""
    claim: str = ""
    """The uid of the NodeClaim that owns it, and below its name."""
    claim_name: str = ""
    claimed: bool = False
    """Whether it has a NodeClaim, according to the Node. Pools of NodeClaims have budgets of their own."""
    provider_id: str = ""
    boot: str = ""
    cordoned: bool = False
    removal_paused: bool = False
    has_labels: bool = True
    has_annotations: bool = True


class State(StrEnum):
    PENDING = auto()
    RUNNING = auto()
    PASSED = auto()
    FAILED = auto()


class Worker(Struct, frozen=True):
    """One worker pod, read."""

    name: str
    uid: str
    node_uid: str
    attempt: int
    node_name: str = ""
    created: datetime | None = None
    deleting: bool = False
    state: State = State.PENDING
    cause: Cause = Cause.NONE
    reason: str = ""
    """Why it failed, or what it is waiting for."""
    report: Report | None = None
    finished: bool = False
    """No container of it runs, or will."""
    fingerprint: str = ""
    """What it runs."""
    genuine: bool = False
    """Whether it is known to run what the controller asks for. If not, its verdict does not count."""
    edited: bool = False
    """Whether what it runs was seen to change, even if it was changed back since."""
    settled: bool = False
    """Whether its verdict has been on record: it counts once, even if the record is deleted later."""

    @property
    def ended(self) -> bool:
        return self.state in (State.PASSED, State.FAILED)

    def is_of(self, node: Node) -> bool:
        """Whether this is about that node: its kubelet alone writes the status of pods that are bound to it."""
        return self.node_uid == node.uid and self.node_name in ("", node.name)


class Removal(Struct, frozen=True):
    """A node that was removed, or is about to be: written down before the deed."""

    uid: str
    node: str
    pool: str
    at: datetime
    claimed: bool | None = None
    """Whether the pool is the NodeClaim's, or only what the Node's labels say. Unknown in older entries."""


class Ledger(Struct, frozen=True):
    """The removals of the recent past, and whether someone called a halt."""

    removals: tuple[Removal, ...] = ()
    paused: bool = False
    trouble: str = ""
    """Why it cannot be relied on."""
    version: str = ""


class Fleet(Struct, frozen=True):
    """The other nodes, counted. Only nodes we could act on count."""

    managed: int = 1
    failing: int = 0
    doubtful: int = 0
    """Verified ones that have failed since, and are open still."""
    in_pool: int = 1
    ledger: Ledger = Ledger()


class Snapshot(Struct, frozen=True):
    """Everything `decide` may know about one node, read at one moment."""

    now: datetime
    node: Node
    workers: tuple[Worker, ...] = ()
    slot_free: bool = True
    fleet: Fleet = Fleet()
    version: str = ""
    """The node's resourceVersion: a record is written only over what was seen."""
    rush: bool = False
    """Whether so many new nodes are being verified that whatever can wait should not be in their way."""
    many_rechecks: bool = False
    """Whether as many verified nodes are being checked again as may be at a time."""
    witnessed: int = 0
    """The last attempt whose worker this process saw fail by the node's own fault. A record can be forged."""


class Gate(Struct, frozen=True):
    """A taint that holds workloads back until the node is verified, whatever its value."""

    key: str
    effect: str

    def closes(self, taint: Taint) -> bool:
        return (taint.key, taint.effect) == (self.key, self.effect)


class Crowd(Struct, frozen=True, kw_only=True):
    """When more nodes than this fail at once, it is the cluster that is broken, and not they."""

    max_failing_count: int = 2
    max_failing_percent: float = 20


class WithoutClaim(StrEnum):
    """What to do with a failed node that has no NodeClaim. Its machine keeps running either way."""

    DELETE = auto()
    CORDON = auto()


class RemovalPolicy(Crowd, frozen=True, kw_only=True):
    max_count: int = 1
    max_percent: float = 10
    window: timedelta = timedelta(hours=1)
    without_claim: WithoutClaim = WithoutClaim.DELETE


class Reverification(Crowd, frozen=True, kw_only=True):
    """How verified nodes are watched over."""

    interval: timedelta
    threshold: int = 3
    """So many failures in a row close the gate."""
    gate: Taint | None = None
    """With None, the gate is the missing label alone."""


class Policy(Struct, frozen=True):
    """What the configuration says, as far as decisions go."""

    gates: tuple[Gate, ...]
    label: str = "node-ready/verified"
    label_value: str = "true"
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
    """None: once verified is verified."""

    def is_gate(self, taint: Taint) -> bool:
        return any(gate.closes(taint) for gate in self.gates)

    def gated(self, node: Node) -> bool:
        return any(self.is_gate(taint) for taint in node.taints)

    def guards(self, node: Node) -> bool:
        """Whether this node has something to prove to us."""
        if self.gated(node):
            return True
        # Who takes the label off a node that was verified once asks for a new proof, taint or no taint.
        return not node.labelled and (not self.gates or node.record.attempt > 0)


class StartWorker(Struct, frozen=True):
    node: Node
    attempt: int


class ConfirmWorker(Struct, frozen=True):
    """Find out whether a worker that is not known to be genuine runs what the controller would ask for now."""

    node: Node
    worker: Worker


class Release(Struct, frozen=True):
    """Open the gate: taints off, label and proof on, in one guarded patch."""

    node: Node
    record: Record


class CloseGate(Struct, frozen=True):
    """Taint on, label off, record on, in one guarded patch."""

    node: Node
    record: Record
    version: str


class WriteRecord(Struct, frozen=True):
    """With a version, the record and the condition that shows it to others, if the node is still at that version.

    Without, the condition alone: the record is there already.
    """

    node: Node
    record: Record
    version: str = ""


class Adopt(Struct, frozen=True):
    """Note on a node that bears our label, and none of our records, that it does: if the label goes, that is a wish."""

    node: Node
    record: Record
    version: str


class Announce(Struct, frozen=True):
    """An Event on the Node. The same node, reason and attempt make the same Event, however often it is written."""

    node: Node
    reason: str
    message: str
    attempt: int
    warning: bool = False


class DropWorker(Struct, frozen=True):
    name: str
    uid: str


class RemoveNode(Struct, frozen=True):
    """Through its NodeClaim where there is one. Allowed by a ledger, and only while that ledger is the latest.

    A Node without NodeClaim is deleted or cordoned.
    """

    node: Node
    reason: str
    ledger: Ledger


Effect = StartWorker | ConfirmWorker | Release | CloseGate | WriteRecord | Adopt | Announce | DropWorker | RemoveNode


class Decision(Struct, frozen=True):
    phase: Phase
    reason: str
    effects: tuple[Effect, ...] = ()
    recheck: timedelta | None = None
    verdict: Worker | None = None
    """The worker whose verdict this decision is about, for those who count."""
