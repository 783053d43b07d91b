"""For every termination message there could be: the verdict is the exit code's, and what is shown is harmless."""

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kube_node_ready.api import objects
from kube_node_ready.api.record import Outcome, VerificationRecord, decode_record, encode_record
from kube_node_ready.api.report import read
from kube_node_ready.verification.messages import condition_message
from kube_node_ready.verification.model import Policy, State, Worker
from kube_node_ready.verification.worker_pod import worker_name
from kube_node_ready.verification.worker_status import read_worker

UID = "00000000-0000-0000-0000-000000000001"

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
texts = st.text(max_size=400)
results = st.fixed_dictionaries(
    {"name": texts, "ok": st.booleans()},
    optional={"ms": st.integers() | st.floats(allow_nan=False), "target": texts, "error": texts | anything},
)
reports = st.fixed_dictionaries(
    {"v": st.integers(0, 3)}, optional={"checks": st.lists(results, max_size=8), "error": texts, "more": anything}
)
messages = st.text() | anything.map(json.dumps) | reports.map(json.dumps)


def a_pod(exit_code: int, message: str) -> Worker:
    phase = "Failed" if exit_code else "Succeeded"
    ended = {"exitCode": exit_code, "message": message}
    pod: dict[str, Any] = {
        "metadata": {"name": worker_name(UID, 1), "uid": "pod", "ownerReferences": [{"kind": "Node", "uid": UID}]},
        "spec": {"nodeName": "a", "containers": [{"name": "worker", "image": "image:1"}]},
        "status": {"phase": phase, "containerStatuses": [{"name": "worker", "state": {"terminated": ended}}]},
    }
    worker = read_worker(msgspec.convert(pod, objects.Pod))
    assert worker
    return worker


@given(messages)
def test_no_message_breaks_the_reader_or_exceeds_the_limit(message: str) -> None:
    report = read(message)
    if report:
        assert all(len(check.name) <= 40 and len(check.target) <= 100 for check in report.checks)
        assert all(check.name.isprintable() and check.error.isprintable() for check in report.checks)
        assert all(0 <= check.ms <= 86_400_000 for check in report.checks)


@given(messages, st.sampled_from([0, 1, 2, 3, 10, 137]))
def test_the_verdict_follows_the_exit_code_for_any_message(message: str, exit_code: int) -> None:
    worker = a_pod(exit_code, message)
    assert worker.state is (State.FAILED if exit_code else State.PASSED)
    assert bool(worker.reason) == bool(exit_code)


@given(messages)
def test_a_record_of_any_message_round_trips_and_is_printable(message: str) -> None:
    worker = a_pod(1, message)
    checks = worker.report.by_check if worker.report else ()
    record = VerificationRecord(1, 1, Outcome.FAILED, cause=worker.cause, reason=worker.reason, checks=checks)
    assert decode_record(encode_record(record)) == record
    assert len(encode_record(record).encode()) < 32_000
    shown = condition_message(record, Policy(()))
    assert shown.isprintable()
    assert len(shown) < 600
