"""Messages and reasons of the condition NodeVerified and of Events: what people read about a node.

Decisions do not read them back. What they are derived from is on record.
"""

from kube_node_ready.api.contract import EventReason
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.verification.model import Node, Policy

_REASONS = {
    Outcome.PASSED: EventReason.VERIFIED,
    Outcome.FAILED: EventReason.VERIFICATION_FAILED,
    Outcome.PENDING: EventReason.VERIFYING,
}
REJECTION_REASONS = {
    Cause.NOT_RELEASED: EventReason.RELEASE_REJECTED,
    Cause.NOT_RECORDED: EventReason.RECORD_REJECTED,
}
REJECTIONS = frozenset(REJECTION_REASONS.values())
"""Reasons of the condition while the API server rejects what is to be written to the Node."""


def condition_reason(record: VerificationRecord, policy: Policy) -> EventReason:
    if record.outcome is Outcome.FAILED and record.failures >= policy.max_failures:
        return EventReason.VERIFICATION_EXHAUSTED
    if record.outcome is Outcome.PENDING and record.is_contested:
        return EventReason.GATE_CONTESTED
    return REJECTION_REASONS.get(record.cause) or _REASONS[record.outcome]


def condition_message(record: VerificationRecord, policy: Policy) -> str:
    """Describe the record for people, in the condition's message."""
    if record.is_proof:
        return f"verified by attempt {record.attempt}"
    if record.outcome is Outcome.PASSED:
        return f"verified before, but attempt {record.attempt} did not pass: {record.reason}"
    if record.cause in REJECTION_REASONS:
        return record.reason
    if record.outcome is Outcome.PENDING:
        return f"to be verified again: {record.reason}"
    if not record.failures:
        return record.reason
    if record.failures > policy.max_failures:
        return f"{record.reason} (failure {record.failures} in a row)"
    return f"{record.reason} (attempt {record.failures} of {policy.max_failures})"


def passed(record: VerificationRecord) -> str:
    """Describe a proof: how many checks passed, and which were not applicable."""
    proofs = [check for check in record.checks if check.proves]
    slowest = max((check.ms for check in proofs), default=0)
    result = f"{len(proofs)} checks passed, the slowest in {slowest} ms" if proofs else "it passed"
    inapplicable = [f"{check.name} ({check.error})" for check in record.checks if not check.applies]
    left_out = f"; not applicable: {', '.join(inapplicable)}" if inapplicable else ""
    return f"attempt {record.attempt}: {result}{left_out}"


def exhausted(record: VerificationRecord, policy: Policy) -> str:
    retry = policy.slow_retry
    then = f"it is retried every {retry.total_seconds():g} s" if retry else "it is not retried"
    return f"failed {record.failures} times in a row; {then}. Last: {record.reason}"


def failures(record: VerificationRecord) -> str:
    return f"failed {_times(record)}: {record.reason}"


def degraded(record: VerificationRecord) -> str:
    """Describe a verified node that failed since."""
    return f"it is verified, but failed {_times(record)} since: {record.reason}"


def proof_required(node: Node) -> str:
    """Return why a node that was verified has to be verified again."""
    if not node.labelled:
        return "its label was removed"
    if not node.record.is_proof:
        return "the gate came back, and the last check had not passed"
    return "the gate came back" if node.record.boot == node.boot else "the gate came back after a reboot"


def contested(times: int, reason: str) -> str:
    return f"another client undid the release {times} times in a row, soon after it: {reason}"


def write_rejected(attempt: int, error: str, *, is_release: bool) -> str:
    """Describe a write that the API server rejected."""
    what = "release" if is_release else "record"
    done = f"attempt {attempt} passed, but " if is_release else ""
    return f"{done}the API server rejected the {what}: {error}"


def _times(record: VerificationRecord) -> str:
    return "once" if record.failures == 1 else f"{record.failures} times in a row"
