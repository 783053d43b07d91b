"""Metrics: known series from the start, correct counts, and no growth by nodes or reports."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pytest
from prometheus_client.exposition import generate_latest

from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import CONTEST_THRESHOLD, Outcome, VerificationRecord
from kube_node_ready.api.report import Report
from kube_node_ready.controller.metrics import Metrics
from kube_node_ready.kube.client import Call
from kube_node_ready.kube.workqueue import WorkQueue
from kube_node_ready.verification.effects import Decision, OpenGate, StartAttempt, WriteStatus
from kube_node_ready.verification.model import Gate, Node, Phase, Policy, Removal, RemovalPolicy, State, Worker
from tests.support.model_cluster import Cluster

GATE = Taint("node-ready/unverified", "NoSchedule")
POLICY = Policy((Gate(GATE.key, GATE.effect),), max_failures=3)


@dataclass
class Fleet:
    nodes: Iterable[Node] = ()
    workers: Iterable[Worker] = ()
    phases: Mapping[str, Phase] = field(default_factory=dict)
    queue_depth: int = 0
    removals: Iterable[Removal] = ()


def page(metrics: Metrics) -> dict[str, float]:
    """Every series and its value, as scraped."""
    lines = generate_latest(metrics.registry).decode().splitlines()
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def described(fleet: Fleet, *, per_node: bool = True, policy: Policy = POLICY) -> dict[str, float]:
    metrics = Metrics(policy)
    metrics.export_state(fleet, per_node=per_node)
    return page(metrics)


def a_node(name: str, record: VerificationRecord | None = None, *, labelled: bool = False) -> Node:
    return Node(
        name,
        f"uid-{name}",
        labelled=labelled,
        taints=() if labelled else (GATE,),
        record=record or VerificationRecord(),
    )


@pytest.mark.parametrize(
    "series",
    [
        'verifications_total{status="success"}',
        'verifications_total{status="failed"}',
        'verification_attempts_total{status="failed"}',
        "verification_retries_total",
        'check_failures_total{check="dns"}',
        'check_duration_seconds_count{check="payload"}',
        'dns_check_total{domain="google.com",status="failed"}',
        'kubernetes_check_total{check_type="service_discovery",status="failed"}',
        'node_taint_removal_total{status="success"}',
        'node_deletion_total{status="failed"}',
        "removals_blocked_total",
        'controller_reconciliation_total{result="backing-off"}',
        "controller_reconcile_errors_total",
        'controller_worker_pods_failed_total{reason="checks"}',
        "controller_worker_pods_created_total",
        "controller_leader_election_status",
        "controller_reconcile_queue_latency_seconds_count",
    ],
)
def test_known_series_are_0_from_the_start(series: str) -> None:
    metrics = Metrics(POLICY, frozenset({"google.com"}))
    assert page(metrics)[f"kube_node_ready_{series}"] == 0


def test_nodes_are_counted_by_what_they_are_now() -> None:
    nodes = [
        a_node("new"),
        a_node("busy"),
        a_node("bad", VerificationRecord(1, failures=1, outcome=Outcome.FAILED)),
        a_node("good", labelled=True),
        Node("not-ours", "uid"),
    ]
    shown = described(Fleet(nodes, phases={"busy": Phase.VERIFYING}, queue_depth=3))
    counts = {name: shown[f"kube_node_ready_controller_nodes_{name}"] for name in ("unverified", "verifying", "failed")}
    assert counts == {"unverified": 1, "verifying": 1, "failed": 1}
    assert shown["kube_node_ready_controller_nodes_verified"] == 1
    assert shown["kube_node_ready_controller_reconcile_queue_depth"] == 3


def test_a_nodes_series_end_with_the_node() -> None:
    metrics, fleet = (
        Metrics(POLICY),
        Fleet([a_node("a", VerificationRecord(2, failures=2, outcome=Outcome.FAILED)), a_node("b")]),
    )
    metrics.export_state(fleet, per_node=True)
    assert page(metrics)['kube_node_ready_verification_status{node="a",status="failed"}'] == 1
    assert page(metrics)['kube_node_ready_retry_attempts_total{node="a"}'] == 2
    fleet.nodes = [a_node("b")]
    assert not [series for series in page(metrics) if 'node="a"' in series]
    assert [series for series in page(metrics) if 'node="b"' in series]


def test_series_per_node_can_be_disabled() -> None:
    assert not [series for series in described(Fleet([a_node("a")]), per_node=False) if "node=" in series]


def test_worker_pods_are_counted_by_status() -> None:
    states = [State.PENDING, State.RUNNING, State.RUNNING, State.FAILED]
    workers = [Worker(f"w{n}", f"u{n}", "x", number=1, state=state) for n, state in enumerate(states)]
    shown = described(Fleet(workers=workers))
    words = ("pending", "running", "succeeded", "failed")
    by_status = {word: shown[f'kube_node_ready_worker_pods{{status="{word}"}}'] for word in words}
    assert by_status == {"pending": 1, "running": 2, "succeeded": 0, "failed": 1}
    assert shown["kube_node_ready_controller_worker_pods_active"] == 3


def test_worker_pods_that_succeeded_are_counted_from_the_start() -> None:
    """They are deleted immediately, so the number of those that exist would be near zero."""
    metrics = Metrics(POLICY)
    passed = Worker("w", "u", "x", number=1, state=State.PASSED)
    metrics.export_state(Fleet(workers=[passed]), per_node=False)
    gated, proof = Node("a", "x", taints=(GATE,)), VerificationRecord(1, outcome=Outcome.PASSED)
    decision = Decision(Phase.VERIFIED, "", (OpenGate(gated, proof),), verdict=passed)
    metrics.on_decision(Phase.VERIFYING, decision)
    metrics.on_decision(Phase.VERIFIED, decision)  # again, after a conflict
    assert page(metrics)['kube_node_ready_worker_pods{status="succeeded"}'] == 1


def test_the_budget_is_shown_for_each_pool() -> None:
    policy = Policy(POLICY.gates, removal=RemovalPolicy(max_count=2, max_percent=50))
    shown = described(Fleet([a_node(str(number)) for number in range(4)]), policy=policy)
    assert shown['kube_node_ready_removal_budget_limit{pool=""}'] == 2
    assert shown['kube_node_ready_removal_budget_used{pool=""}'] == 0


def test_a_labeled_node_whose_gate_came_back_is_not_verified() -> None:
    gated = Node(
        "a", "uid-a", labelled=True, taints=(GATE,), record=VerificationRecord(3, failures=2, outcome=Outcome.FAILED)
    )
    shown = described(Fleet([gated]))
    assert shown['kube_node_ready_verification_status{node="a",status="failed"}'] == 1
    assert shown["kube_node_ready_controller_nodes_verified"] == 0


@pytest.mark.parametrize(
    ("verdict", "phase", "status"), [("fails", Phase.FAILED, "failed"), ("passes", Phase.VERIFIED, "success")]
)
def test_a_verdict_counts_once_however_often_its_effects_lose_a_race(verdict: str, phase: Phase, status: str) -> None:
    cluster, metrics = Cluster(), Metrics(POLICY)
    cluster.join("a", verdict=verdict)
    before = None
    cluster.step("a")
    cluster.pass_time(cluster.policy.first_backoff)
    for _ in range(3):
        decision = cluster.decide("a")
        metrics.on_decision(before, decision)
        before = decision.phase
    assert before is phase
    assert page(metrics)[f'kube_node_ready_verifications_total{{status="{status}"}}'] == 1
    assert page(metrics)[f'kube_node_ready_controller_reconciliation_total{{result="{phase}"}}'] == 3


def test_effects_count_when_they_were_carried_out() -> None:
    metrics, node = Metrics(POLICY), a_node("a")
    metrics.on_effect(StartAttempt(node, 1))
    metrics.on_effect(OpenGate(node, VerificationRecord(1, outcome=Outcome.PASSED)))
    shown = page(metrics)
    assert shown["kube_node_ready_controller_worker_pods_created_total"] == 1
    assert shown['kube_node_ready_node_taint_removal_total{status="success"}'] == 1
    assert shown['kube_node_ready_controller_taints_removed_total{taint_key="node-ready/unverified"}'] == 1


def test_a_gate_that_another_client_keeps_closing_is_counted() -> None:
    metrics = Metrics(POLICY)
    for contested in (CONTEST_THRESHOLD - 1, CONTEST_THRESHOLD):
        metrics.on_effect(WriteStatus(a_node("a"), VerificationRecord(3, contested=contested)))
    assert page(metrics)["kube_node_ready_gates_contested_total"] == 1


def test_a_node_is_exhausted_once() -> None:
    metrics = Metrics(POLICY)
    for failures in range(1, 6):
        metrics.on_effect(
            WriteStatus(a_node("a"), VerificationRecord(failures, failures=failures, outcome=Outcome.FAILED))
        )
    assert page(metrics)["kube_node_ready_verification_exhausted_total"] == 1
    assert page(metrics)["kube_node_ready_verification_retries_total"] == 5


def test_a_report_cannot_create_series() -> None:
    metrics = Metrics(POLICY, frozenset({"google.com"}))
    before = len(page(metrics))
    cluster = Cluster()
    for number in range(20):
        made_up = f"made-up-{number}"
        cluster.join(made_up, verdict="fails")
        cluster.step(made_up)
    cluster.pass_time(cluster.policy.first_backoff)
    for name, pod in zip(list(cluster.nodes), cluster.pods.values(), strict=True):
        checks = f'[{{"name":"{name}","ok":false}},{{"name":"dns","ok":false,"target":"{name}"}}]'
        pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = f'{{"v":1,"checks":{checks}}}'
        assert isinstance(cluster.decide(name).verdict and cluster.decide(name).verdict.report, Report)  # type: ignore[union-attr]
        metrics.on_decision(None, cluster.decide(name))
    shown = page(metrics)
    assert shown['kube_node_ready_check_failures_total{check="other"}'] == 20
    assert shown['kube_node_ready_dns_check_total{domain="other",status="failed"}'] == 20
    assert not [series for series in shown if "made-up" in series]
    assert len(shown) < before + 40, "one series more for each family, at most, and a histogram's buckets"


def test_calls_are_counted_and_a_watch_has_no_duration() -> None:
    metrics = Metrics(POLICY)
    metrics.on_api_call(Call("patch", "nodes/status", 200, 0.01))
    metrics.on_api_call(Call("patch", "nodes/status", 0, 30))
    metrics.on_api_call(Call("watch", "pods", 200, 0.01))
    shown = page(metrics)
    name = "kube_node_ready_controller_api_requests_total"
    assert shown[f'{name}{{code="none",resource="nodes/status",verb="patch"}}'] == 1
    assert shown[f'{name}{{code="200",resource="pods",verb="watch"}}'] == 1
    assert 'kube_node_ready_controller_api_request_duration_seconds_count{verb="watch"}' not in shown


def test_the_backlog_can_be_read_by_the_servers_thread() -> None:
    async def main() -> int:
        queue = WorkQueue()
        queue.add("due")
        queue.add("later", after=60)
        return await asyncio.to_thread(lambda: queue.depth)

    assert asyncio.run(main()) == 1


def test_a_reason_of_a_webhook_creates_no_series() -> None:
    metrics = Metrics(POLICY)
    before = page(metrics).keys()
    for number in range(100):
        metrics.creation_errors.labels(f"reason {number}").inc()
    metrics.creation_errors.labels("Forbidden").inc()
    counted = {name: value for name, value in page(metrics).items() if "creation_errors" in name and value}
    series = "kube_node_ready_controller_worker_pod_creation_errors_total"
    assert counted == {f'{series}{{error_type="other"}}': 100, f'{series}{{error_type="Forbidden"}}': 1}
    assert page(metrics).keys() == before
