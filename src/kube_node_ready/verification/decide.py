"""The state machine: a node's next step, as a function of what the cluster shows.

A node with a gate taint has to be verified. A worker runs on it for each attempt. The verdict of an attempt is recorded
on the Node before the next one starts, so that the count survives a restart of the controller.

    waiting ──> verifying ──> verified ──(label removed)────> verifying
                  │   ^
                  v   │ backoff
                failed ──> backing-off
                  │
                  v too many in a row
                exhausted ──(slowly)──> verifying
                  │
                  v if removal is enabled, after one more failure, within the budget
                removing (or held)

Verified nodes can be checked again by `reverify`, which closes the gate of those that keep failing.

Effects are idempotent. A passed worker is deleted only after everything that follows from its verdict is written: the
pod shows that something is left to do. The gate is opened first. Condition and Event follow in a separate reconcile,
which is delayed in a burst. A failed worker stays until the next attempt starts, to keep its logs.
"""

from datetime import timedelta

from msgspec.structs import replace

from kube_node_ready.api.contract import EventReason
from kube_node_ready.api.record import CONTEST_THRESHOLD, Cause, Outcome, VerificationRecord
from kube_node_ready.api.report import printable
from kube_node_ready.verification import attempts, messages, removal_budget, reverify, schedule
from kube_node_ready.verification.attempts import ZERO, current, discard_all, seconds, since_last_verdict
from kube_node_ready.verification.effects import (
    AdoptNode,
    CloseGate,
    Decision,
    DiscardAttempt,
    Effect,
    EmitEvent,
    OpenGate,
    RemoveNode,
    WriteStatus,
)
from kube_node_ready.verification.model import Attempt, Node, Phase, Policy, Snapshot

_MAX_REJECTION_LENGTH = 500
_MAX_FAILURE_AGE = timedelta(minutes=1)
"""A node is removed only if its last failure is not older than this."""
_SETTLED = timedelta(minutes=10)
"""A release that lasts this long is not contested."""
_MAX_ANNOUNCEMENT_DELAY = timedelta(minutes=1)
"""How long condition and Event of an opened gate can wait for other nodes' gates."""


def decide(snapshot: Snapshot, policy: Policy) -> Decision:
    """Decide what this node needs next."""
    node = snapshot.node
    if node.deleting:
        return Decision(Phase.IGNORED, "it is being deleted")
    if not policy.guards(node):
        return _ungated(snapshot, policy)
    if not node.registered:
        return Decision(Phase.WAITING, "Karpenter has yet to register it", _discard_stale(snapshot))
    if node.record.outcome is Outcome.PASSED:
        return _require_new_proof(snapshot)
    if attempt := current(snapshot):
        return _judge(snapshot, attempt, policy)
    if node.record.failures >= policy.max_failures:
        return _exhausted(snapshot, policy)
    if (wait := schedule.backoff(node, policy) - since_last_verdict(snapshot)) > ZERO:
        return Decision(Phase.BACKING_OFF, _backoff_reason(node), _discard_stale(snapshot), recheck=wait)
    return _start(snapshot)


def _ungated(snapshot: Snapshot, policy: Policy) -> Decision:
    """Nothing has to be verified now. An attempt that still exists can mean that its verdict was not announced."""
    node = snapshot.node
    if not node.labelled:
        return Decision(Phase.IGNORED, "it is not gated", discard_all(snapshot))
    if not node.record.attempt:
        known = VerificationRecord(
            1, outcome=Outcome.PENDING, at=snapshot.now, since=snapshot.now, reason="labeled by another client"
        )
        return Decision(
            Phase.IGNORED,
            "verified by another client",
            (AdoptNode(node, known, snapshot.version), *discard_all(snapshot)),
        )
    if _release_unannounced(snapshot):
        return _announce_release(snapshot)
    if policy.reverification:
        return reverify.recheck(snapshot, policy, policy.reverification)
    if node.record.outcome is not Outcome.PASSED:
        return Decision(Phase.IGNORED, "it is not gated", discard_all(snapshot))
    return Decision(Phase.VERIFIED, "it is verified", discard_all(snapshot))


def _release_unannounced(snapshot: Snapshot) -> bool:
    """Whether the proof is new and its attempt still exists. A repeated proof was written with its condition."""
    record = snapshot.node.record
    is_new = record.is_proof and record.at == record.since
    return is_new and any(attempt.number == record.attempt for attempt in snapshot.attempts)


def _announce_release(snapshot: Snapshot) -> Decision:
    if snapshot.burst and (wait := _MAX_ANNOUNCEMENT_DELAY - since_last_verdict(snapshot)) > ZERO:
        return Decision(Phase.VERIFIED, "verified; the announcement waits until the burst is over", recheck=wait)
    return Decision(
        Phase.VERIFIED, "it is verified", (*_announcements(snapshot.node, snapshot.node.record), *discard_all(snapshot))
    )


def _require_new_proof(snapshot: Snapshot) -> Decision:
    """Require a new proof, because the gate is closed or the label is missing.

    The record alone never opens the gate: a kubelet can write both the record and the label of its own Node. An attempt
    that began before the gate came back proves nothing, so it gets no verdict, and the next attempt has a new number.
    """
    node, attempt = snapshot.node, current(snapshot)
    contested = node.record.contested + 1 if since_last_verdict(snapshot) < _SETTLED else 0
    reason = messages.proof_required(node)
    if contested >= CONTEST_THRESHOLD:
        reason = messages.contested(contested, reason)
    pending = VerificationRecord(
        attempt.number if attempt else node.record.attempt,
        outcome=Outcome.PENDING,
        at=snapshot.now,
        since=snapshot.now,
        reason=reason,
        contested=contested,
    )
    # At 2, 4, 8, …: a contest that lasts for days must not flood the Events.
    is_news = contested >= CONTEST_THRESHOLD and contested.bit_count() == 1
    events = (
        (EmitEvent(node, EventReason.GATE_CONTESTED, reason, node.record.attempt, warning=True),) if is_news else ()
    )
    effects = (*events, WriteStatus(node, pending, snapshot.version))
    return Decision(Phase.VERIFYING, f"to be verified again: {reason}", effects)


def _start(snapshot: Snapshot) -> Decision:
    node = snapshot.node
    if not snapshot.slot_free:
        return Decision(Phase.WAITING, "maxConcurrentVerifications reached", _discard_stale(snapshot))
    number = node.record.attempt + 1
    # No Event for the first attempt: a burst of nodes would cause one each.
    events = (EmitEvent(node, EventReason.VERIFYING, f"attempt {number} begins", number),) if number > 1 else ()
    return Decision(Phase.VERIFYING, f"attempt {number} begins", attempts.start(snapshot, number, *events))


def _discard_stale(snapshot: Snapshot) -> tuple[DiscardAttempt, ...]:
    return attempts.discard_stale(snapshot, logs_of_last=snapshot.node.record.outcome is Outcome.FAILED)


def _judge(snapshot: Snapshot, attempt: Attempt, policy: Policy) -> Decision:
    verdict = attempts.verdict(snapshot, attempt, policy)
    if verdict is None:
        left = attempts.time_left(snapshot, attempt, policy)
        return attempts.in_progress(snapshot, attempt, Phase.VERIFYING, _discard_stale(snapshot), left)
    if attempts.is_unconfirmed(attempt):
        return attempts.awaiting_confirmation(snapshot, attempt, Phase.VERIFYING)
    if verdict.passed:
        return _pass(snapshot, attempt)
    return _fail(snapshot, attempt, policy, verdict)


def _pass(snapshot: Snapshot, attempt: Attempt) -> Decision:
    checks = attempt.report.by_check if attempt.report else ()
    record = VerificationRecord(
        attempt.number,
        outcome=Outcome.PASSED,
        at=snapshot.now,
        since=snapshot.now,
        boot=snapshot.node.boot,
        seconds=seconds(snapshot, attempt),
        checks=checks,
        contested=snapshot.node.record.contested,
    )
    release = OpenGate(snapshot.node, record, snapshot.version)
    return Decision(Phase.VERIFIED, f"attempt {attempt.number} passed", (release,), verdict=attempt)


def _announcements(node: Node, record: VerificationRecord) -> tuple[Effect, ...]:
    return (
        WriteStatus(node, record),
        EmitEvent(node, EventReason.VERIFIED, messages.passed(record), record.attempt),
    )


def _fail(snapshot: Snapshot, attempt: Attempt, policy: Policy, verdict: attempts.AttemptVerdict) -> Decision:
    record = _failure(snapshot, attempt.number, policy, verdict, attempt)
    effects = _record_failure(snapshot, record, policy)
    if not attempt.finished:
        effects += (DiscardAttempt(attempt),)
    return Decision(Phase.FAILED, verdict.reason, effects, verdict=attempt)


def worker_creation_rejected(snapshot: Snapshot, number: int, policy: Policy, reason: str) -> Decision:
    """The API server rejected the worker pod: record a failed attempt."""
    rejection = f"worker pod rejected: {printable(reason, _MAX_REJECTION_LENGTH)}"
    verdict = attempts.AttemptVerdict(passed=False, cause=Cause.REFUSED, reason=rejection)
    if not policy.guards(snapshot.node):
        return reverify.worker_rejected(snapshot, number, verdict, policy)
    record = _failure(snapshot, number, policy, verdict)
    return Decision(Phase.FAILED, record.reason, _record_failure(snapshot, record, policy))


def write_rejected(
    snapshot: Snapshot, effect: OpenGate | CloseGate | WriteStatus | AdoptNode, message: str
) -> Decision:
    """The API server rejected a write to the Node: report that wherever a write still succeeds.

    The condition alone is written, since the record is part of what was rejected.
    """
    is_release = isinstance(effect, OpenGate)
    error = printable(message, _MAX_REJECTION_LENGTH)
    summary = messages.write_rejected(effect.record.attempt, error, is_release=is_release)
    shown = VerificationRecord(
        effect.record.attempt,
        outcome=Outcome.PENDING,
        at=snapshot.now,
        since=snapshot.now,
        cause=Cause.NOT_RELEASED if is_release else Cause.NOT_RECORDED,
        reason=summary,
    )
    reason = messages.REJECTION_REASONS[shown.cause]
    events = EmitEvent(snapshot.node, reason, summary, effect.record.attempt, warning=True)
    return Decision(Phase.BACKING_OFF, summary, (events, WriteStatus(snapshot.node, shown)))


def worker_not_genuine(snapshot: Snapshot, number: int, policy: Policy, reason: str) -> Decision:
    """The pod with the worker's name is not a worker of this controller: record an attempt without a verdict.

    It causes a backoff, but never exhausts the retries: a leftover of an upgrade must not strand a node.
    """
    verdict = attempts.AttemptVerdict(
        passed=False, cause=Cause.STOPPED, reason=printable(reason, _MAX_REJECTION_LENGTH)
    )
    if not policy.guards(snapshot.node):
        return reverify.worker_rejected(snapshot, number, verdict, policy, *discard_all(snapshot))
    failed = _failure(snapshot, number, policy, verdict)
    before = snapshot.node.record.failures
    record = replace(failed, failures=max(before, min(failed.failures, policy.max_failures - 1)))
    return Decision(Phase.FAILED, record.reason, (*_record_failure(snapshot, record, policy), *discard_all(snapshot)))


def _record_failure(snapshot: Snapshot, record: VerificationRecord, policy: Policy) -> tuple[Effect, ...]:
    """Emit the Event before the record is written: afterwards, no reconcile would emit it."""
    return (*_announce_failure(snapshot.node, record, policy), WriteStatus(snapshot.node, record, snapshot.version))


def _failure(
    snapshot: Snapshot, number: int, policy: Policy, verdict: attempts.AttemptVerdict, attempt: Attempt | None = None
) -> VerificationRecord:
    """Return the record after one more failure."""
    before, during_outage = snapshot.node.record, _is_outage(snapshot, policy)
    node_failures = before.node_failures + 1 if verdict.cause.blames_node else 0
    if during_outage or before.during_outage:
        # This attempt, and the next one, which might have started during the outage, do not count as the last
        # check before a removal: nodes that are not checked again before the outage ends would be removed.
        node_failures = min(node_failures, policy.max_failures)
    return VerificationRecord(
        number,
        failures=before.failures + 1,
        outcome=Outcome.FAILED,
        at=snapshot.now,
        since=before.since if before.outcome is Outcome.FAILED else snapshot.now,
        cause=verdict.cause,
        node_failures=node_failures,
        during_outage=during_outage,
        reason=verdict.reason,
        seconds=seconds(snapshot, attempt) if attempt else 0,
        checks=attempt.report.by_check if attempt and attempt.report else (),
        contested=before.contested,
    )


def _is_outage(snapshot: Snapshot, policy: Policy) -> bool:
    return policy.removal is not None and removal_budget.fleet_failure(snapshot, policy.removal) is not None


def _announce_failure(node: Node, record: VerificationRecord, policy: Policy) -> tuple[EmitEvent, ...]:
    message = messages.condition_message(record, policy)
    failed = EmitEvent(node, EventReason.VERIFICATION_FAILED, message, record.attempt, warning=True)
    if record.failures != policy.max_failures:
        return (failed,)
    exhausted = messages.exhausted(record, policy)
    return (failed, EmitEvent(node, EventReason.VERIFICATION_EXHAUSTED, exhausted, record.attempt, warning=True))


def _backoff_reason(node: Node) -> str:
    return messages.failures(node.record) if node.record.failures else node.record.reason


def _exhausted(snapshot: Snapshot, policy: Policy) -> Decision:
    """Remove the node if that is configured and allowed; otherwise retry slowly, since outages end."""
    node = snapshot.node
    if policy.removal and policy.is_gated(node) and node.record.node_failures >= policy.max_failures:
        return _remove(snapshot, policy)
    return _retry_slowly(snapshot, policy, Phase.EXHAUSTED, messages.failures(node.record))


def _retry_slowly(
    snapshot: Snapshot, policy: Policy, phase: Phase, reason: str, events: tuple[Effect, ...] = ()
) -> Decision:
    effects = (*events, *_discard_stale(snapshot))
    if policy.slow_retry is None:
        return Decision(phase, reason, effects, policy.resync if phase is Phase.HELD else None)
    if (wait := policy.slow_retry - since_last_verdict(snapshot)) > ZERO:
        return Decision(phase, reason, effects, min(wait, policy.resync) if phase is Phase.HELD else wait)
    return _start(snapshot)


def _remove(snapshot: Snapshot, policy: Policy) -> Decision:
    node, record, removal = snapshot.node, snapshot.node.record, policy.removal
    assert removal
    if held := removal_budget.blocked_reason(snapshot, removal):
        blocked = EmitEvent(node, EventReason.REMOVAL_BLOCKED, held, record.attempt, warning=True)
        return _retry_slowly(snapshot, policy, Phase.HELD, held, (blocked,))
    checked_again = record.node_failures > policy.max_failures
    # The record alone removes nothing: the node's kubelet can write it. It cannot write the ledger.
    is_evident = snapshot.witnessed == record.attempt or removal_budget.is_recorded(
        node, snapshot.fleet.ledger, snapshot.now, removal
    )
    if checked_again and is_evident and since_last_verdict(snapshot) < _MAX_FAILURE_AGE:
        remove = RemoveNode(node, record.reason, snapshot.fleet.ledger, snapshot.version)
        return Decision(Phase.REMOVING, record.reason, (remove,), policy.resync)
    # Check once more right before the removal: the node might have recovered. After that, retry slowly.
    spacing = (policy.slow_retry or removal.window) if checked_again else schedule.backoff(node, policy)
    if (wait := spacing - since_last_verdict(snapshot)) > ZERO:
        reason = f"to be checked once more before removal: {record.reason}"
        return Decision(Phase.EXHAUSTED, reason, _discard_stale(snapshot), wait)
    return _start(snapshot)
