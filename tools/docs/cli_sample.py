"""The sample in docs/cli.md: what `explain` prints about a node whose DNS is broken."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from kube_node_ready.api import objects
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.api.report import Report, TargetResult
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.cli import explain, installation
from kube_node_ready.cli.explain_text import Event, Facts, headline, sections
from kube_node_ready.cli.fleet import FleetView, ObservedNode
from kube_node_ready.cli.leader import Leader
from kube_node_ready.cli.table import Style
from kube_node_ready.controller import removal_ledger
from kube_node_ready.verification import worker_pod
from kube_node_ready.verification.model import Node, RemovalPolicy, State, Worker

_NAME, _UID, _WIDTH = "node-2", "b3fc3fd5-ba04-49ff-a636-aa8d4de8b5ba", 108
_NOW = datetime(2026, 11, 16, 12, 47, 22, tzinfo=UTC)
_FAILURES = 3
_TIMED_OUT = "timed out after 10 s"
_REASON = f"dns: example.com: {_TIMED_OUT}"
_TOOK = {"api": 31, "network": 3, "services": 9, "payload": 40, "clock": 2}
_REPORT = Report(
    (
        TargetResult("dns", Verdict.FAILED, ms=10_003, target="example.com", error=_TIMED_OUT),
        *(TargetResult(name, Verdict.PASSED, ms=ms) for name, ms in _TOOK.items()),
    )
)


def explained() -> Iterator[str]:
    """The lines, as a terminal shows them."""
    found = installation.defaults("kube-system")
    found = replace(found, policy=replace(found.policy, removal=RemovalPolicy()), assumed=False)
    fleet_view = FleetView(found).add_all([_broken(), *_others()], [_worker()], removal_ledger.EMPTY)
    status = fleet_view.status(_NAME, _NOW)
    assert status, "it was put there"
    failed = Event(_ago(2), "VerificationFailed", f"{_REASON} (attempt {_FAILURES} of {found.policy.max_failures})")
    leader = Leader("kube-node-ready-controller-7d9c5-x2mtj", _ago(1))
    yield headline(status)
    for line in explain.lines(sections(status, found, Facts((failed,), leader)), Style(width=_WIDTH)):
        yield line.plain


def _broken() -> ObservedNode:
    record = VerificationRecord(
        _FAILURES,
        _FAILURES,
        Outcome.FAILED,
        _ago(2),
        _ago(27),
        cause=Cause.CHECKS,
        node_failures=_FAILURES,
        reason=_REASON,
        checks=_REPORT.by_check,
    )
    gate = objects.Taint("node-ready/unverified", "NoSchedule", "true")
    return ObservedNode(Node(_NAME, _UID, taints=(gate,), record=record), "1", _ago(39))


def _worker() -> Worker:
    name = worker_pod.worker_name(_UID, _FAILURES)
    return Worker(
        name,
        "1",
        _UID,
        _NAME,
        number=_FAILURES,
        created=_ago(12),
        state=State.FAILED,
        cause=Cause.CHECKS,
        report=_REPORT,
        finished=True,
    )


def _others() -> Iterator[ObservedNode]:
    proof = VerificationRecord(1, outcome=Outcome.PASSED, at=_ago(60), since=_ago(60))
    for name in ("node-1", "node-3", "node-4", "node-5"):
        yield ObservedNode(Node(name, name, labelled=True, record=proof), "1", _ago(90))


def _ago(seconds: float) -> datetime:
    return _NOW - timedelta(seconds=seconds)
