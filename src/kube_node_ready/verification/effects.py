"""Effects of decisions, and the decision itself."""

from datetime import timedelta

from msgspec import Struct

from kube_node_ready.api.contract import EventReason
from kube_node_ready.api.record import VerificationRecord
from kube_node_ready.verification.model import Attempt, Ledger, Node, Phase, Worker


class StartAttempt(Struct, frozen=True):
    node: Node
    number: int


class ConfirmAttempt(Struct, frozen=True):
    """Compare a worker that is not known to be genuine with what the controller would create now."""

    node: Node
    worker: Worker
    early: bool = False
    """Whether the worker is still running. Then a comparison that fails has no consequence."""


class OpenGate(Struct, frozen=True):
    """Remove the gate taints and set the label and the record, in one patch with preconditions."""

    node: Node
    record: VerificationRecord
    version: str = ""


class CloseGate(Struct, frozen=True):
    """Add the gate taint, remove the label and set the record, in one patch with preconditions."""

    node: Node
    record: VerificationRecord
    version: str


class WriteStatus(Struct, frozen=True):
    """Write the record and the condition, if the Node still has that version.

    Without a version, write only the condition, because the record is written already.
    """

    node: Node
    record: VerificationRecord
    version: str = ""


class AdoptNode(Struct, frozen=True):
    """Write a first record on a node that has the label. If the label is removed later, that requests a proof."""

    node: Node
    record: VerificationRecord
    version: str


class EmitEvent(Struct, frozen=True):
    """Emit an Event about the Node. The same node, reason and attempt result in the same Event."""

    node: Node
    reason: EventReason
    message: str
    attempt: int
    warning: bool = False


class DiscardAttempt(Struct, frozen=True):
    """Delete what is left of an attempt: its worker pod, or the result that is kept in memory."""

    attempt: Attempt


class RemoveNode(Struct, frozen=True):
    """Delete the node's NodeClaim, if the ledger has not changed since the decision.

    A Node without a NodeClaim is cordoned or deleted. It is deleted only in this `version`: another client might have
    cordoned it since.
    """

    node: Node
    reason: str
    ledger: Ledger
    version: str


Effect = (
    StartAttempt
    | ConfirmAttempt
    | OpenGate
    | CloseGate
    | WriteStatus
    | AdoptNode
    | EmitEvent
    | DiscardAttempt
    | RemoveNode
)


class Decision(Struct, frozen=True):
    phase: Phase
    reason: str
    effects: tuple[Effect, ...] = ()
    recheck: timedelta | None = None
    verdict: Attempt | None = None
    """The attempt whose verdict led to this decision, for metrics."""
