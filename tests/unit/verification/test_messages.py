"""What people read about a node."""

from datetime import timedelta

import pytest

from kube_node_ready.api.contract import EventReason
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.api.report import CheckResult
from kube_node_ready.verification import messages
from kube_node_ready.verification.messages import condition_message, condition_reason
from kube_node_ready.verification.model import Node, Policy

POLICY = Policy((), max_failures=5)


def a_failure(failures: int) -> VerificationRecord:
    return VerificationRecord(9, failures=failures, outcome=Outcome.FAILED, cause=Cause.CHECKS, reason="dns: timeout")


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (VerificationRecord(3, outcome=Outcome.PASSED), "verified by attempt 3"),
        (
            VerificationRecord(4, outcome=Outcome.PASSED, cause=Cause.CHECKS, reason="dns"),
            "verified before, but attempt 4 did not pass: dns",
        ),
        (VerificationRecord(2, reason="no rights", cause=Cause.NOT_RELEASED), "no rights"),
        (VerificationRecord(2, reason="no rights", cause=Cause.NOT_RECORDED), "no rights"),
        (VerificationRecord(2, reason="the gate came back"), "to be verified again: the gate came back"),
        (a_failure(0), "dns: timeout"),
        (a_failure(1), "dns: timeout (attempt 1 of 5)"),
        (a_failure(5), "dns: timeout (attempt 5 of 5)"),
        (a_failure(6), "dns: timeout (failure 6 in a row)"),
    ],
)
def test_a_record_is_shown_to_people_as(record: VerificationRecord, words: str) -> None:
    assert condition_message(record, POLICY) == words


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (VerificationRecord(3, outcome=Outcome.PASSED), EventReason.VERIFIED),
        (VerificationRecord(3, outcome=Outcome.PASSED, cause=Cause.CHECKS, failures=9), EventReason.VERIFIED),
        (VerificationRecord(3), EventReason.VERIFYING),
        (VerificationRecord(3, contested=1), EventReason.VERIFYING),
        (VerificationRecord(3, contested=2), EventReason.GATE_CONTESTED),
        (VerificationRecord(3, cause=Cause.NOT_RELEASED), EventReason.RELEASE_REJECTED),
        (VerificationRecord(3, cause=Cause.NOT_RECORDED), EventReason.RECORD_REJECTED),
        (a_failure(4), EventReason.VERIFICATION_FAILED),
        (a_failure(5), EventReason.VERIFICATION_EXHAUSTED),
    ],
)
def test_the_reason_of_the_condition_follows_from_the_record(record: VerificationRecord, reason: EventReason) -> None:
    assert condition_reason(record, POLICY) is reason


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        ((), "attempt 3: it passed"),
        ((CheckResult("dns", ok=True, ms=7),), "attempt 3: 1 checks passed, the slowest in 7 ms"),
        (
            (CheckResult("dns", ok=True, ms=7), CheckResult("matrix", ok=True, ms=9, error="no peers", applies=False)),
            "attempt 3: 1 checks passed, the slowest in 7 ms; not applicable: matrix (no peers)",
        ),
        ((CheckResult("dns", ok=False, ms=7),), "attempt 3: it passed"),
    ],
)
def test_a_proof_is_described_by_its_checks(checks: tuple[CheckResult, ...], message: str) -> None:
    assert messages.passed(VerificationRecord(3, checks=checks)) == message


@pytest.mark.parametrize(
    ("slow_retry", "then"), [(timedelta(minutes=5), "it is retried every 300 s"), (None, "it is not retried")]
)
def test_the_last_quick_retry_is_announced_with_what_follows(slow_retry: timedelta | None, then: str) -> None:
    policy = Policy((), slow_retry=slow_retry)
    assert messages.exhausted(a_failure(5), policy) == f"failed 5 times in a row; {then}. Last: dns: timeout"


@pytest.mark.parametrize(("failures", "times"), [(1, "once"), (2, "2 times in a row")])
def test_failures_are_counted_in_words(failures: int, times: str) -> None:
    assert messages.failures(a_failure(failures)) == f"failed {times}: dns: timeout"
    assert messages.degraded(a_failure(failures)) == f"it is verified, but failed {times} since: dns: timeout"


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (Node("a", "u"), "its label was removed"),
        (Node("a", "u", labelled=True), "the gate came back, and the last check had not passed"),
        (
            Node("a", "u", labelled=True, record=VerificationRecord(1, outcome=Outcome.PASSED, boot="b"), boot="b"),
            "the gate came back",
        ),
        (
            Node("a", "u", labelled=True, record=VerificationRecord(1, outcome=Outcome.PASSED, boot="b"), boot="c"),
            "the gate came back after a reboot",
        ),
    ],
)
def test_the_reason_of_a_new_proof_is_what_changed(node: Node, reason: str) -> None:
    assert messages.proof_required(node) == reason


def test_a_contest_is_described_by_its_length() -> None:
    expected = "another client undid the release 3 times in a row, soon after it: its label was removed"
    assert messages.contested(3, "its label was removed") == expected


@pytest.mark.parametrize(
    ("is_release", "message"),
    [
        (True, "attempt 3 passed, but the API server rejected the release: no"),
        (False, "the API server rejected the record: no"),
    ],
)
def test_a_rejected_write_is_described_by_what_it_was(is_release: bool, message: str) -> None:  # noqa: FBT001
    assert messages.write_rejected(3, "no", is_release=is_release) == message
