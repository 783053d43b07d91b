"""One attempt: its worker, and what can be said of it by now."""

from datetime import timedelta

from msgspec import Struct

from kube_node_ready.verify.model import (
    Cause,
    ConfirmWorker,
    Decision,
    DropWorker,
    Effect,
    Phase,
    Policy,
    Snapshot,
    StartWorker,
    State,
    Worker,
)

NONE = timedelta()
_AGES = timedelta(days=36500)


class Verdict(Struct, frozen=True):
    passed: bool
    cause: Cause = Cause.NONE
    reason: str = ""


def undecided(seen: Snapshot) -> Worker | None:
    """The worker of the current attempt: the one after the last on record. One on another node is none.

    Nor is one whose verdict was on record before someone deleted the record.
    """
    current = seen.node.record.attempt + 1
    candidates = (worker for worker in seen.workers if worker.attempt == current and worker.is_of(seen.node))
    return next((worker for worker in candidates if not worker.settled), None)


def begin(seen: Snapshot, number: int, *news: Effect) -> tuple[Effect, ...]:
    """Start an attempt. Earlier workers are dropped after that, for their logs, unless one of them has the name."""
    earlier = drop_all(seen)
    in_the_way = {worker.uid for worker in seen.workers if worker.attempt == number}
    first = tuple(drop for drop in earlier if drop.uid in in_the_way)
    last = tuple(drop for drop in earlier if drop.uid not in in_the_way)
    return (*first, StartWorker(seen.node, number), *news, *last)


def verdict(seen: Snapshot, worker: Worker, policy: Policy) -> Verdict | None:
    """None while it can still end well."""
    if worker.state is State.PASSED and worker.node_name:
        return Verdict(passed=True)
    if worker.state is State.PASSED:
        return Verdict(passed=False, cause=Cause.STOPPED, reason="the worker ran on no node")
    if worker.state is State.FAILED:
        return Verdict(passed=False, cause=worker.cause, reason=worker.reason)
    if time_left(seen, worker, policy) > NONE:
        return None
    waiting = f": {worker.reason}" if worker.reason else ""
    late = f"no verdict within {policy.deadline.total_seconds():g} s{waiting}"
    # A worker that is being deleted has no time to end, and a finalizer can keep it for any length of time.
    was_running = worker.node_name and not worker.deleting
    return Verdict(passed=False, cause=Cause.LATE if was_running else Cause.NOT_STARTED, reason=late)


def to_confirm(seen: Snapshot, worker: Worker, phase: Phase) -> Decision:
    """A verdict of a pod that this controller process did not create: a previous one did, or another client."""
    reason = f"attempt {worker.attempt} has a result; its worker pod is not confirmed yet"
    return Decision(phase, reason, (ConfirmWorker(seen.node, worker),))


def time_left(seen: Snapshot, worker: Worker, policy: Policy) -> timedelta:
    return policy.deadline - (seen.now - worker.created) if worker.created else policy.deadline


def progress(worker: Worker) -> str:
    doing = "is being deleted" if worker.deleting else f"is {worker.state}"
    return f"the worker of attempt {worker.attempt} {doing}"


def seconds(seen: Snapshot, worker: Worker) -> float:
    """Since the worker was made; none, if the clock was set back since."""
    return max(0.0, round((seen.now - worker.created).total_seconds(), 3)) if worker.created else 0


def since_verdict(seen: Snapshot) -> timedelta:
    """For ever ago, if the record does not say, or says nonsense: waiting for a date in the future could take years."""
    at = seen.node.record.at
    return seen.now - at if at and at <= seen.now else _AGES


def superfluous(seen: Snapshot, *, logs_of_last: bool) -> tuple[DropWorker, ...]:
    """Workers that are not of the current attempt; but the last one's logs may be of use."""
    last = seen.node.record.attempt

    def is_needed(worker: Worker) -> bool:
        if worker.attempt == last + 1:
            return not worker.settled
        return logs_of_last and worker.attempt == last and worker.finished

    return tuple(DropWorker(worker.name, worker.uid) for worker in seen.workers if not is_needed(worker))


def drop_all(seen: Snapshot) -> tuple[DropWorker, ...]:
    return tuple(DropWorker(worker.name, worker.uid) for worker in seen.workers)
