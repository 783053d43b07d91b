"""The worker of an attempt, its verdict, and which workers to delete."""

from datetime import timedelta

from msgspec import Struct

from kube_node_ready.api.record import Cause
from kube_node_ready.verification.model import (
    ConfirmWorker,
    Decision,
    DeleteWorker,
    Effect,
    Phase,
    Policy,
    Snapshot,
    StartWorker,
    State,
    Worker,
)

ZERO = timedelta()
_FOREVER = timedelta(days=36500)


class Verdict(Struct, frozen=True):
    passed: bool
    cause: Cause = Cause.NONE
    reason: str = ""


def current(snapshot: Snapshot) -> Worker | None:
    """Return the worker of the current attempt, which is the one after the last on record.

    A worker on another node does not count. Neither does one whose verdict was on record before another client deleted
    the record.
    """
    current = snapshot.node.record.attempt + 1
    candidates = (
        worker for worker in snapshot.workers if worker.attempt == current and worker.belongs_to(snapshot.node)
    )
    return next((worker for worker in candidates if not worker.settled), None)


def start(snapshot: Snapshot, number: int, *events: Effect) -> tuple[Effect, ...]:
    """Start an attempt. Earlier workers are deleted afterwards, to keep their logs, unless one has the same name."""
    earlier = delete_all(snapshot)
    in_the_way = {worker.uid for worker in snapshot.workers if worker.attempt == number}
    first = tuple(drop for drop in earlier if drop.uid in in_the_way)
    last = tuple(drop for drop in earlier if drop.uid not in in_the_way)
    return (*first, StartWorker(snapshot.node, number), *events, *last)


def verdict(snapshot: Snapshot, worker: Worker, policy: Policy) -> Verdict | None:
    """Return the verdict, or None while the worker can still pass."""
    if worker.state is State.PASSED and worker.node_name:
        return Verdict(passed=True)
    if worker.state is State.PASSED:
        return Verdict(passed=False, cause=Cause.STOPPED, reason="the worker ran on no node")
    if worker.state is State.FAILED:
        return Verdict(passed=False, cause=worker.cause, reason=worker.reason)
    if time_left(snapshot, worker, policy) > ZERO:
        return None
    waiting = f": {worker.reason}" if worker.reason else ""
    late = f"no verdict within {policy.deadline.total_seconds():g} s{waiting}"
    return Verdict(passed=False, cause=_cause_of_late(worker, policy), reason=late)


def _cause_of_late(worker: Worker, policy: Policy) -> Cause:
    """Blame the node only if the worker had time to run.

    By default a kubelet pulls one image at a time, so a pod of any tenant can hold back the worker's image. A worker
    that is being deleted has no time to end, and a finalizer can keep it for any length of time.
    """
    if not worker.node_name or worker.deleting or worker.awaits_images:
        return Cause.NOT_STARTED
    has_waited = worker.started - worker.created if worker.started and worker.created else ZERO
    return Cause.LATE if has_waited <= policy.deadline / 2 else Cause.NOT_STARTED


def awaiting_confirmation(snapshot: Snapshot, worker: Worker, phase: Phase) -> Decision:
    """The pod has a result, but this process did not create it: a previous one did, or another client."""
    reason = f"attempt {worker.attempt} has a result; its worker pod is not confirmed yet"
    return Decision(phase, reason, (ConfirmWorker(snapshot.node, worker),))


def in_progress(
    snapshot: Snapshot, worker: Worker, phase: Phase, deleted: tuple[DeleteWorker, ...], left: timedelta
) -> Decision:
    """Wait for the verdict. A pod of another client is not waited for: it could stay pending until the deadline."""
    early = () if worker.genuine else (ConfirmWorker(snapshot.node, worker, early=True),)
    return Decision(phase, progress(worker), (*deleted, *early), left)


def time_left(snapshot: Snapshot, worker: Worker, policy: Policy) -> timedelta:
    return policy.deadline - (snapshot.now - worker.created) if worker.created else policy.deadline


def progress(worker: Worker) -> str:
    doing = "is being deleted" if worker.deleting else f"is {worker.state}"
    return f"the worker of attempt {worker.attempt} {doing}"


def seconds(snapshot: Snapshot, worker: Worker) -> float:
    """Return how long the worker has existed; 0 if the clock was set back since."""
    return max(0.0, round((snapshot.now - worker.created).total_seconds(), 3)) if worker.created else 0


def since_last_verdict(snapshot: Snapshot) -> timedelta:
    """Return the time since the last verdict. If the record has no time, or one in the future, that is forever."""
    at = snapshot.node.record.at
    return snapshot.now - at if at and at <= snapshot.now else _FOREVER


def stale_workers(snapshot: Snapshot, *, logs_of_last: bool) -> tuple[DeleteWorker, ...]:
    """Return deletions of all workers but the current one and, with `logs_of_last`, the last one."""
    last = snapshot.node.record.attempt

    def is_needed(worker: Worker) -> bool:
        if worker.attempt == last + 1:
            return not worker.settled
        return logs_of_last and worker.attempt == last and worker.finished

    return tuple(DeleteWorker(worker.name, worker.uid) for worker in snapshot.workers if not is_needed(worker))


def delete_all(snapshot: Snapshot) -> tuple[DeleteWorker, ...]:
    return tuple(DeleteWorker(worker.name, worker.uid) for worker in snapshot.workers)
