"""The current attempt, its verdict, and which attempts to discard."""

from datetime import datetime, timedelta
from typing import TypeGuard

from msgspec import Struct

from kube_node_ready.api.record import Cause
from kube_node_ready.verification.effects import ConfirmAttempt, Decision, DiscardAttempt, Effect, StartAttempt
from kube_node_ready.verification.model import Attempt, Phase, Policy, Snapshot, State, Worker

ZERO = timedelta()
FOREVER = timedelta(days=36500)


class AttemptVerdict(Struct, frozen=True):
    passed: bool
    cause: Cause = Cause.NONE
    reason: str = ""


def current(snapshot: Snapshot) -> Attempt | None:
    """Return the current attempt, which is the one after the last on record.

    A worker on another node does not count. Neither does an attempt whose verdict was on record before another client
    deleted the record.
    """
    number = snapshot.node.record.attempt + 1
    candidates = (
        attempt for attempt in snapshot.attempts if attempt.number == number and attempt.belongs_to(snapshot.node)
    )
    return next((attempt for attempt in candidates if not attempt.settled), None)


def start(snapshot: Snapshot, number: int, *events: Effect) -> tuple[Effect, ...]:
    """Start an attempt. Others are discarded afterwards, to keep their logs, unless one has the same number."""
    first = tuple(DiscardAttempt(attempt) for attempt in snapshot.attempts if attempt.number == number)
    last = tuple(DiscardAttempt(attempt) for attempt in snapshot.attempts if attempt.number != number)
    return (*first, StartAttempt(snapshot.node, number), *events, *last)


def verdict(snapshot: Snapshot, attempt: Attempt, policy: Policy) -> AttemptVerdict | None:
    """Return the verdict, or None while the attempt can still pass."""
    if attempt.state is State.PASSED and attempt.scheduled:
        return AttemptVerdict(passed=True)
    if attempt.state is State.PASSED:
        return AttemptVerdict(passed=False, cause=Cause.STOPPED, reason="the worker ran on no node")
    if attempt.state is State.FAILED:
        return AttemptVerdict(passed=False, cause=attempt.cause, reason=attempt.reason)
    if time_left(snapshot, attempt, policy) > ZERO:
        return None
    waiting = f": {attempt.reason}" if attempt.reason else ""
    late = f"no verdict within {policy.deadline.total_seconds():g} s{waiting}"
    is_held_back = isinstance(attempt, Worker) and not _had_time_to_run(attempt, policy)
    return AttemptVerdict(passed=False, cause=Cause.NOT_STARTED if is_held_back else Cause.LATE, reason=late)


def _had_time_to_run(worker: Worker, policy: Policy) -> bool:
    """Whether the node is to blame for a late worker.

    By default a kubelet pulls one image at a time, so a pod of any tenant can hold back the worker's image. A worker
    that is being deleted has no time to end, and a finalizer can keep it for any length of time.
    """
    if not worker.scheduled or worker.deleting or worker.awaits_images:
        return False
    has_waited = worker.started - worker.created if worker.started and worker.created else ZERO
    return has_waited <= policy.deadline / 2


def is_unconfirmed(attempt: Attempt) -> TypeGuard[Worker]:
    """Whether it is a pod that is not known to be genuine: a previous process created it, or another client."""
    return isinstance(attempt, Worker) and not attempt.genuine


def awaiting_confirmation(snapshot: Snapshot, worker: Worker, phase: Phase) -> Decision:
    """The pod has a result, which does not count until the pod is confirmed."""
    reason = f"attempt {worker.number} has a result; its worker pod is not confirmed yet"
    return Decision(phase, reason, (ConfirmAttempt(snapshot.node, worker),))


def in_progress(
    snapshot: Snapshot, attempt: Attempt, phase: Phase, discarded: tuple[DiscardAttempt, ...], left: timedelta
) -> Decision:
    """Wait for the verdict. A pod of another client is not waited for: it could stay pending until the deadline."""
    early = (ConfirmAttempt(snapshot.node, attempt, early=True),) if is_unconfirmed(attempt) else ()
    return Decision(phase, progress(attempt), (*discarded, *early), left)


def time_left(snapshot: Snapshot, attempt: Attempt, policy: Policy) -> timedelta:
    return policy.deadline - (snapshot.now - attempt.created) if attempt.created else policy.deadline


def progress(attempt: Attempt) -> str:
    is_deleting = isinstance(attempt, Worker) and attempt.deleting
    doing = "is being deleted" if is_deleting else f"is {attempt.state}"
    return f"the worker of attempt {attempt.number} {doing}"


def seconds(snapshot: Snapshot, attempt: Attempt) -> float:
    """Return how long the attempt has existed; 0 if the clock was set back since."""
    return max(0.0, round((snapshot.now - attempt.created).total_seconds(), 3)) if attempt.created else 0


def since_last_verdict(snapshot: Snapshot) -> timedelta:
    """Return the time since the last verdict. If the record has no time, or one in the future, that is forever."""
    return since(snapshot.node.record.at, snapshot.now)


def since(moment: datetime | None, now: datetime) -> timedelta:
    """Return the time since the moment; forever if it is unknown, or in the future because the clock was set back."""
    return now - moment if moment and moment <= now else FOREVER


def discard_stale(snapshot: Snapshot, *, logs_of_last: bool) -> tuple[DiscardAttempt, ...]:
    """Discard all attempts but the current one and, with `logs_of_last`, the last one."""
    last = snapshot.node.record.attempt

    def is_needed(attempt: Attempt) -> bool:
        if attempt.number == last + 1:
            return not attempt.settled
        return logs_of_last and attempt.number == last and attempt.finished

    return tuple(DiscardAttempt(attempt) for attempt in snapshot.attempts if not is_needed(attempt))


def discard_all(snapshot: Snapshot) -> tuple[DiscardAttempt, ...]:
    return tuple(DiscardAttempt(attempt) for attempt in snapshot.attempts)
