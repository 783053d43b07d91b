"""What holds for decisions unless something else is known or configured."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import VerificationRecord, decode_record
from kube_node_ready.verification.effects import ConfirmAttempt
from kube_node_ready.verification.model import Fleet, Gate, Node, Phase, Policy, RemovalPolicy, Snapshot, State, Worker

NODE = Node("a", "u")
WORKER = Worker("w1", "pod1", "u", number=1)


def test_phases_have_the_names_that_logs_and_metrics_show() -> None:
    assert list(Phase) == [
        "ignored",
        "waiting",
        "verifying",
        "verified",
        "reverifying",
        "failed",
        "backing-off",
        "exhausted",
        "held",
        "removing",
    ]


def test_an_empty_record_counts_nothing_and_proves_nothing() -> None:
    record = decode_record("{}")
    assert record == VerificationRecord()
    assert (record.attempt, record.failures, record.node_failures, record.contested, record.seconds) == (0, 0, 0, 0, 0)
    assert not record.is_proof


def test_a_worker_is_not_genuine_until_it_is_confirmed() -> None:
    assert not WORKER.genuine
    assert not WORKER.edited
    assert not WORKER.settled


def test_a_confirmation_is_needed_now_unless_it_is_early() -> None:
    assert not ConfirmAttempt(NODE, WORKER).early


def test_a_node_alone_is_a_fleet_of_one_in_which_none_fails() -> None:
    fleet = Fleet()
    assert (fleet.managed, fleet.in_pool, fleet.failing, fleet.degraded) == (1, 1, 0, 0)


def test_no_failure_is_witnessed_before_one_is_seen() -> None:
    assert Snapshot(datetime(2026, 1, 1, tzinfo=UTC), NODE).witnessed == 0


def test_one_node_and_a_tenth_of_a_pool_are_removed_per_hour_by_default() -> None:
    policy = RemovalPolicy()
    assert (policy.max_count, policy.max_percent, policy.window) == (1, 10, timedelta(hours=1))
    assert (policy.max_failing_count, policy.max_failing_percent) == (2, 20)


def test_retries_and_resyncs_are_at_most_half_a_minute_apart_by_default() -> None:
    policy = Policy(())
    assert (policy.first_backoff, policy.max_backoff) == (timedelta(seconds=1), timedelta(seconds=30))
    assert policy.resync == timedelta(seconds=30)


@pytest.mark.parametrize(
    ("state", "over"),
    [(State.PENDING, False), (State.RUNNING, False), (State.PASSED, True), (State.FAILED, True)],
)
def test_a_worker_has_ended_when_it_passed_or_failed(state: State, over: bool) -> None:  # noqa: FBT001  a table
    assert Worker("w", "p", "uid", number=1, state=state).ended is over


@pytest.mark.parametrize(
    ("gates", "facts", "guarded"),
    [
        ((Gate("g", "NoSchedule"),), {"taints": (Taint("g", "NoSchedule"),), "labelled": True}, True),
        ((Gate("g", "NoSchedule"),), {"taints": (Taint("g", "NoExecute"),), "labelled": True}, False),
        ((Gate("g", "NoSchedule"),), {"record": VerificationRecord(1)}, True),
        ((Gate("g", "NoSchedule"),), {"record": VerificationRecord(0)}, False),
        ((Gate("g", "NoSchedule"),), {"record": VerificationRecord(1), "labelled": True}, False),
        ((), {}, True),
        ((), {"labelled": True}, False),
    ],
)
def test_which_nodes_are_guarded(gates: tuple[Gate, ...], facts: dict[str, Any], guarded: bool) -> None:  # noqa: FBT001
    assert Policy(gates).guards(Node("a", "u", **facts)) is guarded
