"""A node whose DNS is broken, as `explain` tells of it: what docs/cli.md shows is what the code says."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from kube_node_ready import ledger, objects
from kube_node_ready.console import explain, installed
from kube_node_ready.console.leader import Leader
from kube_node_ready.console.picture import Known, Picture
from kube_node_ready.console.story import Event, Facts, headline, story
from kube_node_ready.console.table import Look
from kube_node_ready.verify import workerpod
from kube_node_ready.verify.model import Cause, Node, Outcome, Record, RemovalPolicy, State, Worker
from kube_node_ready.verify.report import CheckResult, Report

_NAME, _UID, _WIDTH = "node-2", "b3fc3fd5-ba04-49ff-a636-aa8d4de8b5ba", 108
_NOW = datetime(2026, 11, 16, 12, 47, 22, tzinfo=UTC)
_FAILURES = 3
_TIMED_OUT = "timed out after 10 s"
_REASON = f"dns: example.com: {_TIMED_OUT}"
_TOOK = {"api": 31, "network": 3, "services": 9, "payload": 40, "clock": 2}
_CHECKS = (
    CheckResult("dns", ok=False, ms=10_003, target="example.com", error=_TIMED_OUT),
    *(CheckResult(name, ok=True, ms=ms) for name, ms in _TOOK.items()),
)


def explained() -> Iterator[str]:
    """The lines, as a terminal shows them."""
    found = installed.defaults("kube-system")
    found = replace(found, policy=replace(found.policy, removal=RemovalPolicy()), assumed=False)
    picture = Picture(found).put([_broken(), *_others()], [_worker()], ledger.EMPTY)
    standing = picture.standing(_NAME, _NOW)
    assert standing, "it was put there"
    failed = Event(_ago(2), "VerificationFailed", f"{_REASON} (attempt {_FAILURES} of {found.policy.max_failures})")
    leader = Leader("kube-node-ready-controller-7d9c5-x2mtj", _ago(1))
    yield headline(standing)
    yield from explain.told(story(standing, found, Facts((failed,), leader)), Look(width=_WIDTH))


def _broken() -> Known:
    record = Record(
        _FAILURES,
        _FAILURES,
        Outcome.FAILED,
        _ago(2),
        _ago(27),
        cause=Cause.CHECKS,
        blamed=_FAILURES,
        reason=_REASON,
        checks=_CHECKS,
    )
    gate = objects.Taint("node-ready/unverified", "NoSchedule", "true")
    return Known(Node(_NAME, _UID, taints=(gate,), record=record), "1", _ago(39))


def _worker() -> Worker:
    name = workerpod.name_of(_UID, _FAILURES)
    return Worker(
        name,
        "1",
        _UID,
        _FAILURES,
        _NAME,
        _ago(12),
        state=State.FAILED,
        cause=Cause.CHECKS,
        report=Report(_CHECKS),
        finished=True,
    )


def _others() -> Iterator[Known]:
    proof = Record(1, outcome=Outcome.PASSED, at=_ago(60), since=_ago(60))
    for name in ("node-1", "node-3", "node-4", "node-5"):
        yield Known(Node(name, name, labelled=True, record=proof), "1", _ago(90))


def _ago(seconds: float) -> datetime:
    return _NOW - timedelta(seconds=seconds)
