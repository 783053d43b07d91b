"""What the controller logs about a node."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.controller import transition_log
from kube_node_ready.verification.effects import Decision, StartAttempt, WriteStatus
from kube_node_ready.verification.model import Node, Phase, Reverification, Snapshot, State, Worker
from tests.support.model_cluster import POLICY

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODE = Node("a", "uid-a")


def test_a_decision_alone_logs_no_creation_of_a_worker(capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run decides the same, and creates nothing."""
    snapshot = Snapshot(NOW, NODE)
    transition_log.phase_changed(
        None, snapshot, Decision(Phase.VERIFYING, "attempt 1 begins", (StartAttempt(NODE, 1),)), POLICY
    )
    assert "Creating worker pod" not in capsys.readouterr().out


def test_a_worker_that_is_started_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    transition_log.worker_starting(NODE, 2)
    line = capsys.readouterr().out
    assert '"msg":"Creating worker pod","node":"a","pod":"node-ready-worker-uid-a-2","attempt":2' in line


def test_a_failed_re_verification_is_logged_with_failures_and_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    record = VerificationRecord(2, failures=2, outcome=Outcome.PASSED, cause=Cause.CHECKS, reason="dns: timeout")
    worker = Worker("worker", "uid", NODE.uid, number=2, state=State.FAILED)
    decision = Decision(Phase.VERIFIED, record.reason, (WriteStatus(NODE, record),), verdict=worker)
    policy = replace(POLICY, reverification=Reverification(interval=timedelta(hours=1), threshold=3))
    transition_log.phase_changed(None, Snapshot(NOW, NODE), decision, policy)
    line = json.loads(capsys.readouterr().out)
    expected = {"msg": "Re-verification failed", "node": "a", "failures": 2, "threshold": 3, "error": "dns: timeout"}
    assert line.items() >= expected.items()


@pytest.mark.parametrize(
    ("phase", "text"),
    [
        (Phase.EXHAUSTED, "Node exhausted"),
        (Phase.HELD, "Removal blocked"),
        (Phase.REMOVING, "Node removal started"),
        (Phase.WAITING, "Node waiting"),
    ],
)
def test_transitions_have_constant_texts(phase: Phase, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    transition_log.phase_changed(None, Snapshot(NOW, NODE), Decision(phase, "why"), POLICY)
    line = json.loads(capsys.readouterr().out)
    assert line.items() >= {"msg": text, "node": "a", "reason": "why"}.items()
