"""What the controller logs about a node."""

from datetime import UTC, datetime

import pytest

from kube_node_ready.controller import transition_log
from kube_node_ready.verification.effects import Decision, StartAttempt
from kube_node_ready.verification.model import Node, Phase, Snapshot

NODE = Node("a", "uid-a")


def test_a_decision_alone_logs_no_creation_of_a_worker(capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run decides the same, and creates nothing."""
    snapshot = Snapshot(datetime(2026, 1, 1, tzinfo=UTC), NODE)
    transition_log.phase_changed(
        None, snapshot, Decision(Phase.VERIFYING, "attempt 1 begins", (StartAttempt(NODE, 1),))
    )
    assert "Creating worker pod" not in capsys.readouterr().out


def test_a_worker_that_is_started_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    transition_log.worker_starting(NODE, 2)
    line = capsys.readouterr().out
    assert '"msg":"Creating worker pod","node":"a","pod":"node-ready-worker-uid-a-2","attempt":2' in line
