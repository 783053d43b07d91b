"""Releases that another client undoes, writes that the API server rejects, and records that prove nothing."""

from datetime import timedelta
from itertools import pairwise

import pytest

from kube_node_ready.api.contract import RECORD_ANNOTATION
from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import Outcome, VerificationRecord, encode_record
from kube_node_ready.verification import patches, removal_budget
from kube_node_ready.verification.decide import decide, write_rejected
from kube_node_ready.verification.effects import (
    DiscardAttempt,
    EmitEvent,
    OpenGate,
    RemoveNode,
    StartAttempt,
    WriteStatus,
)
from kube_node_ready.verification.model import (
    Fleet,
    Ledger,
    Node,
    Phase,
    Policy,
    Removal,
    RemovalPolicy,
    Snapshot,
    State,
    Worker,
)
from tests.support.model_cluster import GATE, POLICY, START, Cluster

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


def put_back(cluster: Cluster, name: str) -> None:
    cluster.nodes[name]["spec"]["taints"].append(dict(GATE))


def contest(cluster: Cluster, name: str, seconds: float) -> list[float]:
    """Put the gate back as soon as it is gone, for so long. When, in seconds from now."""
    begun, when = cluster.now, []
    while (cluster.now - begun).total_seconds() < seconds:
        cluster.settle(600, stop=lambda: not cluster.policy.is_gated(cluster.node(name)))
        when.append((cluster.now - begun).total_seconds())
        put_back(cluster, name)
    return when


def test_a_contested_gate_is_opened_less_and_less_often() -> None:
    cluster = Cluster()
    cluster.join("a")
    when = contest(cluster, "a", 3600)
    gaps = [after - before for before, after in pairwise(when)]
    assert gaps[0] < 5
    assert all(shorter <= 1.2 * longer + 3 for shorter, longer in pairwise(gaps))
    assert 300 <= gaps[-1] < 340
    assert len(when) < 25


def test_a_contest_is_shown_by_the_condition_and_by_few_events() -> None:
    cluster = Cluster()
    cluster.join("a")
    contest(cluster, "a", 3600)
    cluster.step("a")
    assert cluster.condition("a")["reason"] == "GateContested"
    assert cluster.condition("a")["status"] == "Unknown"
    assert "another client undid the release" in cluster.condition("a")["message"]
    reported = [news for news in cluster.news.values() if news.reason == "GateContested"]
    assert [news.warning for news in reported] == [True] * len(reported)
    assert 3 <= len(reported) <= 5, "at 2, 4, 8 and 16"


def test_each_release_of_a_contested_gate_has_a_proof_of_its_own() -> None:
    cluster = Cluster()
    cluster.join("a")
    when = contest(cluster, "a", 600)
    assert cluster.node("a").record.attempt == len(when)


def test_a_release_that_stands_for_ten_minutes_ends_the_contest() -> None:
    cluster = Cluster()
    cluster.join("a")
    contest(cluster, "a", 60)
    cluster.settle(600, stop=lambda: not cluster.policy.is_gated(cluster.node("a")))
    assert cluster.node("a").record.is_contested
    cluster.settle(700)
    put_back(cluster, "a")
    cluster.step("a")
    assert cluster.node("a").record.contested == 0


def test_one_undone_release_is_a_request_and_not_a_contest() -> None:
    cluster = Cluster()
    cluster.join("a")
    cluster.settle(10)
    cluster.unlabel("a")
    cluster.step("a")
    assert not cluster.node("a").record.is_contested
    assert StartAttempt in {type(effect) for effect in cluster.decide("a").effects}


def test_the_count_survives_failures_of_the_node() -> None:
    cluster = Cluster()
    cluster.join("a")
    contest(cluster, "a", 20)
    before = cluster.node("a").record.contested
    cluster.verdicts["a"] = "fails"
    cluster.settle(900, stop=lambda: cluster.node("a").record.failures > 0)
    assert cluster.node("a").record.contested >= before > 1


@pytest.mark.parametrize("boot", ["boot-1", "boot-2"])
def test_a_forged_record_and_label_open_nothing(boot: str) -> None:
    cluster = Cluster()
    cluster.join("a", verdict="fails")
    metadata = cluster.nodes["a"]["metadata"]
    metadata["labels"]["node-ready/verified"] = "true"
    forged = VerificationRecord(1, outcome=Outcome.PASSED, at=cluster.now, since=cluster.now, boot=boot)
    metadata["annotations"][RECORD_ANNOTATION] = encode_record(forged)
    cluster.settle(60)
    assert cluster.policy.is_gated(cluster.node("a"))
    assert cluster.node("a").record.outcome is Outcome.FAILED


REMOVING = Policy(POLICY.gates, removal=RemovalPolicy(max_count=5, max_percent=100))
FAILED = VerificationRecord(9, failures=9, node_failures=9, outcome=Outcome.FAILED, at=START, since=START, reason="dns")


def failed(witnessed: int, ledger: Ledger | None = None, **facts: object) -> Snapshot:
    node = Node("a", "uid-a", record=FAILED, taints=(Taint(**GATE),), **facts)  # type: ignore[arg-type]
    return Snapshot(
        START + SECOND, node, fleet=Fleet(100, 1, in_pool=50, ledger=ledger or Ledger()), witnessed=witnessed
    )


@pytest.mark.parametrize(("witnessed", "removed"), [(0, False), (8, False), (9, True)])
def test_the_record_alone_removes_nothing(witnessed: int, removed: bool) -> None:  # noqa: FBT001
    decision = decide(failed(witnessed), REMOVING)
    assert (decision.phase is Phase.REMOVING) is removed
    assert any(isinstance(effect, RemoveNode) for effect in decision.effects) is removed


def test_a_second_node_of_the_same_name_is_held_for_a_window() -> None:
    gone = Ledger((Removal("uid-before", "a", "other", START - 10 * MINUTE),))
    decision = decide(failed(9, gone), REMOVING)
    assert decision.phase is Phase.HELD
    assert "removal budget exhausted: a node named a was removed 601 s ago (limit: one per 3600 s)" in decision.reason
    long_ago = Ledger((Removal("uid-before", "a", "other", START - 61 * MINUTE),))
    assert decide(failed(9, long_ago), REMOVING).phase is Phase.REMOVING
    itself = Ledger((Removal("uid-a", "a", "", START - 10 * MINUTE),))
    assert decide(failed(9, itself), REMOVING).phase is Phase.REMOVING


@pytest.mark.parametrize(
    ("entry", "node", "counts"),
    [(True, True, 1), (False, False, 1), (True, False, 0), (False, True, 0), (None, True, 1), (None, False, 1)],
)
def test_a_pool_of_labels_is_not_a_pool_of_claims(entry: bool | None, node: bool, counts: int) -> None:  # noqa: FBT001
    ledger = Ledger((Removal("uid-b", "b", "pool", START, claimed=entry),))
    seen = failed(9, ledger, pool="pool", claimed=node)
    assert REMOVING.removal
    assert len(removal_budget.recent(seen, REMOVING.removal)) == counts


def test_a_rejected_release_is_shown_without_the_record() -> None:
    cluster = Cluster()
    cluster.join("a")
    node = cluster.node("a")
    seen = Snapshot(START, node, version="7")
    decision = write_rejected(seen, OpenGate(node, VerificationRecord(3, outcome=Outcome.PASSED)), "taints are\nfrozen")
    event, condition = decision.effects
    assert isinstance(event, EmitEvent)
    assert isinstance(condition, WriteStatus)
    assert (event.reason, event.warning, event.attempt) == ("ReleaseRejected", True, 3)
    assert event.message == "attempt 3 passed, but the API server rejected the release: taints are frozen"
    assert not condition.version
    shown = patches.write_status(node, condition.record, POLICY)["status"]["conditions"][0]
    assert (shown["status"], shown["reason"], shown["message"]) == ("Unknown", "ReleaseRejected", event.message)


def test_a_rejected_record_is_shown_as_such() -> None:
    cluster = Cluster()
    cluster.join("a")
    node = cluster.node("a")
    failure = WriteStatus(node, VerificationRecord(2, failures=2, outcome=Outcome.FAILED), "7")
    event, condition = write_rejected(Snapshot(START, node), failure, "Too long").effects
    assert isinstance(event, EmitEvent)
    assert isinstance(condition, WriteStatus)
    assert event.reason == "RecordRejected"
    assert event.message == "the API server rejected the record: Too long"
    shown = patches.write_status(node, condition.record, POLICY)["status"]["conditions"][0]
    assert shown["reason"] == "RecordRejected"


def test_a_worker_whose_verdict_was_used_is_dropped_before_the_next_begins() -> None:
    node = Node("a", "uid-a", taints=(Taint(**GATE),))
    used = Worker("w", "pod-uid", "uid-a", "a", number=1, state=State.PASSED, finished=True, genuine=True, settled=True)
    decision = decide(Snapshot(START, node, (used,)), POLICY)
    assert decision.effects == (DiscardAttempt(used), StartAttempt(node, 1))
