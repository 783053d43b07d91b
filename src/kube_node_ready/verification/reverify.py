"""Check verified nodes again at intervals, while workloads run on them.

A failure is recorded. Only a number of failures in a row that count against the node close the gate. Then the node is
verified like any other. If many nodes are failing, the problem is cluster-wide: gates stay open, because closed ones
would keep out the pods that could fix it.

Each node has its own offset in the interval, so that a fleet is not checked simultaneously: neither after it joined
simultaneously nor after re-verification is enabled. A degraded node keeps its offset: in an outage, every node fails
once before any fails twice, so the outage is detected in time.
"""

from datetime import timedelta

from msgspec.structs import replace

from kube_node_ready.api.contract import EventReason
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.verification import attempts, messages, removal_budget, schedule
from kube_node_ready.verification.attempts import ZERO, AttemptVerdict
from kube_node_ready.verification.effects import CloseGate, Decision, DiscardAttempt, Effect, EmitEvent, WriteStatus
from kube_node_ready.verification.model import Attempt, Node, Phase, Policy, Reverification, Snapshot

_AFTER_REBOOT = timedelta(minutes=1)
_SHORTEST_TURN = timedelta(seconds=10)
_SCHEDULING_TIMEOUT = timedelta(seconds=30)
"""A full node would otherwise occupy a slot until the deadline."""


def recheck(snapshot: Snapshot, policy: Policy, rule: Reverification) -> Decision:
    if attempt := attempts.current(snapshot):
        return _judge(snapshot, attempt, policy, rule)
    discarded = attempts.discard_stale(snapshot, logs_of_last=not snapshot.node.record.is_proof)
    if (wait := _wait(snapshot, rule)) > ZERO:
        return Decision(Phase.VERIFIED, _status_reason(snapshot.node), discarded, recheck=wait)
    if snapshot.burst or snapshot.recheck_limit_reached or not snapshot.slot_free:
        return Decision(Phase.VERIFIED, "waiting for other verifications to complete", discarded, recheck=policy.resync)
    number = snapshot.node.record.attempt + 1
    return Decision(Phase.REVERIFYING, f"attempt {number} begins", attempts.start(snapshot, number))


def is_degraded(node: Node) -> bool:
    """Whether the node is verified, its gate is open, and it failed since."""
    return node.labelled and node.record.outcome is Outcome.PASSED and node.record.failures > 0


def worker_rejected(
    snapshot: Snapshot, number: int, verdict: AttemptVerdict, policy: Policy, *also: Effect
) -> Decision:
    """The worker pod was rejected by the server or by the controller. That does not count against the node."""
    note = WriteStatus(snapshot.node, _next_record(snapshot, number, verdict), snapshot.version)
    return Decision(Phase.VERIFIED, verdict.reason, (note, *also), recheck=policy.resync)


def _judge(snapshot: Snapshot, attempt: Attempt, policy: Policy, rule: Reverification) -> Decision:
    verdict = attempts.verdict(snapshot, attempt, policy) or _unscheduled(snapshot, attempt)
    if verdict is None:
        discarded = attempts.discard_stale(snapshot, logs_of_last=False)
        left = attempts.time_left(snapshot, attempt, policy)
        if not attempt.scheduled:
            left = min(left, _SCHEDULING_TIMEOUT)
        return attempts.in_progress(snapshot, attempt, Phase.REVERIFYING, discarded, left)
    if attempts.is_unconfirmed(attempt):
        return attempts.awaiting_confirmation(snapshot, attempt, Phase.REVERIFYING)
    record = _next_record(snapshot, attempt.number, verdict, attempt)
    if verdict.passed:
        done = (WriteStatus(snapshot.node, record, snapshot.version), DiscardAttempt(attempt))
        return Decision(Phase.VERIFIED, f"attempt {attempt.number} passed", done, verdict=attempt)
    stopped = () if attempt.finished else (DiscardAttempt(attempt),)
    effects, reason = _after_failure(snapshot, record, rule)
    closes = any(isinstance(effect, CloseGate) for effect in effects)
    return Decision(Phase.FAILED if closes else Phase.VERIFIED, reason, (*effects, *stopped), verdict=attempt)


def _unscheduled(snapshot: Snapshot, attempt: Attempt) -> AttemptVerdict | None:
    if attempt.scheduled or not attempt.created or snapshot.now - attempt.created < _SCHEDULING_TIMEOUT:
        return None
    waiting = f": {attempt.reason}" if attempt.reason else ""
    late = f"not scheduled within {_SCHEDULING_TIMEOUT.total_seconds():g} s{waiting}"
    return AttemptVerdict(passed=False, cause=Cause.NOT_STARTED, reason=late)


def _next_record(
    snapshot: Snapshot, number: int, verdict: AttemptVerdict, attempt: Attempt | None = None
) -> VerificationRecord:
    """Return the record after one more verdict. The node stays verified."""
    before = snapshot.node.record
    stands = before.outcome is Outcome.PASSED
    streak = before.failures if stands and not verdict.passed else 0
    return VerificationRecord(
        number,
        failures=streak + verdict.cause.blames_node,
        outcome=Outcome.PASSED,
        at=snapshot.now,
        since=before.since if stands else snapshot.now,
        boot=snapshot.node.boot if verdict.passed else before.boot,
        cause=verdict.cause,
        node_failures=streak + verdict.cause.blames_node,
        reason=verdict.reason,
        seconds=attempts.seconds(snapshot, attempt) if attempt else 0,
        checks=attempt.report.by_check if attempt and attempt.report else (),
    )


def _after_failure(
    snapshot: Snapshot, record: VerificationRecord, rule: Reverification
) -> tuple[tuple[Effect, ...], str]:
    """Return effects and reason. The last of the failures that count against the node closes the gate."""
    note = WriteStatus(snapshot.node, record, snapshot.version)
    if not record.cause.blames_node:
        return (note,), f"{record.reason} (does not count against the node)"
    if record.failures < rule.threshold:
        return (note,), f"{record.reason} (failure {record.failures} of {rule.threshold})"
    often = f"failed {record.failures} times in a row"
    if broken := _cluster_failure(snapshot, rule):
        reason = f"{often}, but the gate stays open: {broken}. Last: {record.reason}"
        # Once per node: a failing fleet would emit thousands of Events.
        kept = EmitEvent(snapshot.node, EventReason.GATE_KEPT_OPEN, reason, record.attempt, warning=True)
        events = (kept,) if record.failures == rule.threshold else ()
        return (*events, note), reason
    reason = f"{often}, so the gate is restored: {record.reason}"
    events = (EmitEvent(snapshot.node, EventReason.GATE_RESTORED, reason, record.attempt, warning=True),)
    # From here on the node counts as failed: it is removed only after as many failures as any other node.
    failed = replace(record, outcome=Outcome.FAILED, failures=1, node_failures=1, since=snapshot.now, boot="")
    return (*events, CloseGate(snapshot.node, failed, snapshot.version), WriteStatus(snapshot.node, failed)), reason


def _cluster_failure(snapshot: Snapshot, rule: Reverification) -> str | None:
    failing = snapshot.fleet.failing + snapshot.fleet.degraded + (not is_degraded(snapshot.node))
    if failing >= snapshot.fleet.managed:
        return "no other node is healthy, so the problem might be cluster-wide"
    return removal_budget.exceeds_failure_limits(failing, snapshot.fleet.managed, rule)


def _status_reason(node: Node) -> str:
    return messages.degraded(node.record) if is_degraded(node) else "it is verified"


def _wait(snapshot: Snapshot, rule: Reverification) -> timedelta:
    """Return the time until the next attempt is due; zero or less if it is."""
    node = snapshot.node
    if node.record.boot not in ("", node.boot) and not is_degraded(node):  # a proof does not outlive a reboot
        return min(_AFTER_REBOOT, rule.interval) - attempts.since_last_verdict(snapshot)
    return _until_turn(snapshot, rule.interval)


def _until_turn(snapshot: Snapshot, interval: timedelta) -> timedelta:
    """A node has one turn per interval, which lasts a tenth of it. A node that missed its turn waits for the next."""
    waited = attempts.since_last_verdict(snapshot) + timedelta(
        seconds=snapshot.node.record.seconds
    )  # since the attempt began
    into_turn = schedule.since_turn(snapshot.node.uid, interval, snapshot.now)
    is_its_turn = into_turn < max(_SHORTEST_TURN, interval / 10)
    had_it = waited < max(into_turn, interval / 2)
    return ZERO if is_its_turn and not had_it else interval - into_turn
