"""Verified nodes prove themselves again now and then, while they go on working.

A failure is noted. Only so many in a row, all of them the node's own, close the gate; from there it has to pass like
any other. When many nodes fail at once it is the cluster that is broken: then gates stay open, since closed ones would
keep out the very pods that could mend it.

Each node has its own place in the interval, so that a fleet does not check all at once: not when it joined at once, and
not when somebody switches this on. A node in doubt keeps its place, too: so in an outage every node has failed once
before any has failed twice, and it is seen in time that they all fail.
"""

from datetime import timedelta

from msgspec.structs import replace

from kube_node_ready.verify import attempt, budget, turns
from kube_node_ready.verify.attempt import NONE, Verdict
from kube_node_ready.verify.model import (
    Announce,
    Cause,
    CloseGate,
    Decision,
    DropWorker,
    Effect,
    Node,
    Outcome,
    Phase,
    Policy,
    Record,
    Reverification,
    Snapshot,
    Worker,
    WriteRecord,
)

_AFTER_REBOOT = timedelta(minutes=1)
_SHORTEST_TURN = timedelta(seconds=10)
_TO_BE_SCHEDULED = timedelta(seconds=30)
"""A node that is full would otherwise keep a place from others for as long as a check may take."""


def watch_over(seen: Snapshot, policy: Policy, rule: Reverification) -> Decision:
    if worker := attempt.undecided(seen):
        return _judge(seen, worker, policy, rule)
    dropped = attempt.superfluous(seen, logs_of_last=not seen.node.record.is_proof)
    if (wait := _wait(seen, rule)) > NONE:
        return Decision(Phase.VERIFIED, _standing(seen.node), dropped, recheck=wait)
    if seen.rush or seen.many_rechecks or not seen.slot_free:
        return Decision(Phase.VERIFIED, "it can wait until others are done", dropped, recheck=policy.resync)
    number = seen.node.record.attempt + 1
    return Decision(Phase.REVERIFYING, f"attempt {number} begins", attempt.begin(seen, number))


def is_doubtful(node: Node) -> bool:
    """It was verified, is open, and failed since."""
    return node.labelled and node.record.outcome is Outcome.PASSED and node.record.failures > 0


def not_judged(seen: Snapshot, number: int, verdict: Verdict, policy: Policy, *also: Effect) -> Decision:
    """The worker pod was rejected by the server or by us, which says nothing about the node."""
    note = WriteRecord(seen.node, _noted(seen, number, verdict), seen.version)
    return Decision(Phase.VERIFIED, verdict.reason, (note, *also), recheck=policy.resync)


def _judge(seen: Snapshot, worker: Worker, policy: Policy, rule: Reverification) -> Decision:
    verdict = attempt.verdict(seen, worker, policy) or _unscheduled(seen, worker)
    if verdict is None:
        dropped = attempt.superfluous(seen, logs_of_last=False)
        left = attempt.time_left(seen, worker, policy)
        if not worker.node_name:
            left = min(left, _TO_BE_SCHEDULED)
        return Decision(Phase.REVERIFYING, attempt.progress(worker), dropped, left)
    if not worker.genuine:
        return attempt.to_confirm(seen, worker, Phase.REVERIFYING)
    record = _noted(seen, worker.attempt, verdict, worker)
    if verdict.passed:
        done = (WriteRecord(seen.node, record, seen.version), DropWorker(worker.name, worker.uid))
        return Decision(Phase.VERIFIED, f"attempt {worker.attempt} passed", done, verdict=worker)
    stopped = () if worker.finished else (DropWorker(worker.name, worker.uid),)
    effects, why = _after_failure(seen, record, rule)
    closes = any(isinstance(effect, CloseGate) for effect in effects)
    return Decision(Phase.FAILED if closes else Phase.VERIFIED, why, (*effects, *stopped), verdict=worker)


def _unscheduled(seen: Snapshot, worker: Worker) -> Verdict | None:
    if worker.node_name or not worker.created or seen.now - worker.created < _TO_BE_SCHEDULED:
        return None
    waiting = f": {worker.reason}" if worker.reason else ""
    late = f"not scheduled within {_TO_BE_SCHEDULED.total_seconds():g} s{waiting}"
    return Verdict(passed=False, cause=Cause.NOT_STARTED, reason=late)


def _noted(seen: Snapshot, number: int, verdict: Verdict, worker: Worker | None = None) -> Record:
    """The record after one more verdict. The node stays verified by it, if with doubts."""
    before = seen.node.record
    stands = before.outcome is Outcome.PASSED
    streak = before.failures if stands and not verdict.passed else 0
    return Record(
        number,
        failures=streak + verdict.cause.blames_node,
        outcome=Outcome.PASSED,
        at=seen.now,
        since=before.since if stands else seen.now,
        boot=seen.node.boot if verdict.passed else before.boot,
        cause=verdict.cause,
        blamed=streak + verdict.cause.blames_node,
        reason=verdict.reason,
        seconds=attempt.seconds(seen, worker) if worker else 0,
        checks=worker.report.by_check if worker and worker.report else (),
    )


def _after_failure(seen: Snapshot, record: Record, rule: Reverification) -> tuple[tuple[Effect, ...], str]:
    """The node's own failures count, and the last of them closes the gate."""
    note = WriteRecord(seen.node, record, seen.version)
    if not record.cause.blames_node:
        return (note,), f"{record.reason} (not the node's fault)"
    if record.failures < rule.threshold:
        return (note,), f"{record.reason} (failure {record.failures} of {rule.threshold})"
    often = f"failed {record.failures} times in a row"
    if broken := _cluster_is_broken(seen, rule):
        why = f"{often}, but the gate stays open: {broken}. Last: {record.reason}"
        # Said once: a fleet that fails together would say it a thousand times a minute.
        kept = Announce(seen.node, "GateKeptOpen", why, record.attempt, warning=True)
        news = (kept,) if record.failures == rule.threshold else ()
        return (*news, note), why
    why = f"{often}, so the gate is closed again: {record.reason}"
    news = (Announce(seen.node, "GateRestored", why, record.attempt, warning=True),)
    # From here on it is like any other node that failed: to be removed, say, it has to fail as often as they.
    failed = replace(record, outcome=Outcome.FAILED, failures=1, blamed=1, since=seen.now, boot="")
    return (*news, CloseGate(seen.node, failed, seen.version), WriteRecord(seen.node, failed)), why


def _cluster_is_broken(seen: Snapshot, rule: Reverification) -> str | None:
    failing = seen.fleet.failing + seen.fleet.doubtful + (not is_doubtful(seen.node))
    if failing >= seen.fleet.managed:
        return "no other node is well, so it may be the cluster that is broken"
    return budget.too_many_fail(failing, seen.fleet.managed, rule)


def _standing(node: Node) -> str:
    if not is_doubtful(node):
        return "it is verified"
    times = "once" if node.record.failures == 1 else f"{node.record.failures} times in a row"
    return f"it is verified, but failed {times} since: {node.record.reason}"


def _wait(seen: Snapshot, rule: Reverification) -> timedelta:
    """How long until the next attempt is due; nothing or less if it is."""
    node = seen.node
    if node.record.boot not in ("", node.boot) and not is_doubtful(node):  # a proof does not outlive a reboot
        return min(_AFTER_REBOOT, rule.interval) - attempt.since_verdict(seen)
    return _until_its_turn(seen, rule.interval)


def _until_its_turn(seen: Snapshot, interval: timedelta) -> timedelta:
    """Turns come once an interval, and last for a tenth of it: who missed one waits for the next, as all others do."""
    waited = attempt.since_verdict(seen) + timedelta(seconds=seen.node.record.seconds)  # since the attempt began
    into_turn = turns.since_turn(seen.node.uid, interval, seen.now)
    is_its_turn = into_turn < max(_SHORTEST_TURN, interval / 10)
    had_it = waited < max(into_turn, interval / 2)
    return NONE if is_its_turn and not had_it else interval - into_turn
