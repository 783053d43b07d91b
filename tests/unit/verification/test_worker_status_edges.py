"""Every field of a worker pod that is read."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kube_node_ready.api import objects
from kube_node_ready.api.record import Cause
from kube_node_ready.api.report import Report, TargetResult
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.verification.model import Gate, Node, State, Worker
from kube_node_ready.verification.worker_pod import WorkerPodTemplate, worker_pod
from kube_node_ready.verification.worker_status import read_worker

UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
NAME = f"node-ready-worker-{UID}-2"
TEMPLATE = WorkerPodTemplate(
    "workers",
    "registry.example/worker:1",
    (Gate("node-ready/unverified", "NoSchedule"),),
    priority_class="high",
    pull_secrets=("login",),
    resources={"limits": {"memory": "64Mi"}},
    config_map="config",
    tolerations=({"key": "extra"},),
    init_containers=({"name": "first"},),
    volumes=({"name": "scratch"},),
    labels={"team": "x"},
    annotations={"note": "y"},
    deadline_seconds=60,
    settings={"b": 1, "a": 2},
)


def read(metadata: dict[str, Any] | None = None, **status: Any) -> Worker:  # noqa: ANN401  as in JSON
    pod = worker_pod(Node("a", UID), 2, TEMPLATE)
    pod["spec"]["nodeName"] = "a"
    pod["metadata"] |= {"uid": "pod-uid", "creationTimestamp": "2026-01-01T00:00:00Z", **(metadata or {})}
    worker = read_worker(msgspec.convert({**pod, "status": status}, objects.Pod))
    assert worker
    return worker


def ended(code: int, message: str = "", reason: str = "") -> dict[str, Any]:
    return {"name": "worker", "state": {"terminated": {"exitCode": code, "message": message, "reason": reason}}}


def test_every_field_is_read() -> None:
    message = '{"v":1,"checks":[{"name":"dns","ok":false,"error":"timeout"}]}'
    worker = read(phase="Failed", containerStatuses=[ended(1, message)])
    assert worker == Worker(
        NAME,
        "pod-uid",
        UID,
        "a",
        number=2,
        created=datetime(2026, 1, 1, tzinfo=UTC),
        state=State.FAILED,
        cause=Cause.CHECKS,
        reason="dns: timeout",
        report=Report((TargetResult("dns", Verdict.FAILED, error="timeout"),)),
        finished=True,
        fingerprint=worker.fingerprint,
    )


def test_a_pod_that_runs_is_not_finished_and_has_no_report() -> None:
    worker = read(phase="Running")
    assert (worker.finished, worker.deleting, worker.report, worker.state) == (False, False, None, State.RUNNING)


@pytest.mark.parametrize(
    ("phase", "state"),
    [("Running", State.RUNNING), ("Pending", State.PENDING), ("Succeeded", State.FAILED), ("Failed", State.FAILED)],
)
def test_a_deleted_pod_has_failed_once_it_has_ended(phase: str, state: State) -> None:
    worker = read({"deletionTimestamp": "2026-01-01T00:00:09Z"}, phase=phase, containerStatuses=[ended(0)])
    assert (worker.deleting, worker.state) == (True, state)


def test_a_pod_without_annotations_can_be_a_worker() -> None:
    pod = worker_pod(Node("a", UID), 2, TEMPLATE)
    del pod["metadata"]["annotations"]
    assert read_worker(msgspec.convert(pod, objects.Pod))


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"containerStatuses": [ended(7)]}, "the worker exited with code 7"),
        ({"containerStatuses": [ended(137, reason="OOMKilled")]}, "the worker exited with code 137 (OOMKilled)"),
        ({"initContainerStatuses": [{**ended(3), "name": "first"}]}, "first: exited with code 3"),
        ({"initContainerStatuses": [{**ended(3, "no"), "name": "first"}]}, "first: exited with code 3: no"),
        ({"reason": "Evicted"}, "Evicted"),
        ({"reason": "Evicted", "message": "disk"}, "Evicted: disk"),
    ],
)
def test_a_failure_without_a_report_is_described(status: dict[str, Any], reason: str) -> None:
    assert read(phase="Failed", **status).reason == reason


@pytest.mark.parametrize(
    ("message", "reason"), [("", "ImagePullBackOff"), ("no such image", "ImagePullBackOff: no such image")]
)
def test_a_container_that_cannot_start_is_described(message: str, reason: str) -> None:
    waiting = {"name": "worker", "state": {"waiting": {"reason": "ImagePullBackOff", "message": message}}}
    assert read(phase="Pending", containerStatuses=[waiting]).reason == reason


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("ImagePullBackOff", State.FAILED),
        ("ErrImageNeverPull", State.FAILED),
        ("InvalidImageName", State.FAILED),
        ("CreateContainerConfigError", State.FAILED),
        ("CreateContainerError", State.FAILED),
        ("RunContainerError", State.FAILED),
        ("CrashLoopBackOff", State.FAILED),
        ("ErrImagePull", State.PENDING),  # the first pull failed, and the kubelet tries again
        ("ContainerCreating", State.PENDING),
        ("PodInitializing", State.PENDING),
    ],
)
def test_a_container_that_cannot_start_has_failed(reason: str, state: State) -> None:
    waiting = {"name": "worker", "state": {"waiting": {"reason": reason}}}
    assert read(phase="Pending", containerStatuses=[waiting]).state is state


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        ([("PodScheduled", "False")], "Unschedulable: no room"),
        ([("PodScheduled", "True")], "ContainerCreating"),
        ([("Ready", "False")], "ContainerCreating"),
        ([("Ready", "False"), ("PodScheduled", "False")], "Unschedulable: no room"),
    ],
)
def test_a_pod_waits_to_be_scheduled_or_for_its_container(conditions: list[tuple[str, str]], reason: str) -> None:
    seen = [
        {"type": kind, "status": status, "reason": "Unschedulable", "message": "no room"} for kind, status in conditions
    ]
    containers = [
        {"name": "sidecar", "state": {}},
        {"name": "worker", "state": {"waiting": {"reason": "ContainerCreating"}}},
    ]
    assert read(phase="Pending", conditions=seen, containerStatuses=containers).reason == reason
