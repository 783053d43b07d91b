"""How a worker pod is read: whose worker it is, and its verdict."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kube_node_ready.api import objects
from kube_node_ready.api.record import Cause
from kube_node_ready.api.report import Report, TargetResult
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.controller.state import ClusterState
from kube_node_ready.verification.model import Gate, Node, Policy, State, Worker
from kube_node_ready.verification.worker_pod import WorkerPodTemplate, worker_name, worker_pod
from kube_node_ready.verification.worker_status import read_worker

Json = dict[str, Any]
UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
TEMPLATE = WorkerPodTemplate(
    "kube-system", "registry.example/worker:1", (Gate("node-ready/unverified", "NoSchedule"),), deadline_seconds=60
)


def made(name: str = "a", attempt: int = 1, **template: Any) -> dict[str, Any]:  # noqa: ANN401  its own fields
    return worker_pod(Node(name, UID), attempt, msgspec.structs.replace(TEMPLATE, **template))


def seen(**status: Any) -> Worker:  # noqa: ANN401  as in JSON
    """A worker of ours, on node a, with such a status."""
    pod = made()
    pod["spec"]["nodeName"] = "a"
    return read(pod | {"status": status})


def read(pod: dict[str, Any]) -> Worker:
    worker = read_worker(msgspec.convert(pod, objects.Pod))
    assert worker
    return worker


def ended(code: int, message: str = "", reason: str = "") -> list[dict[str, Any]]:
    state = {"terminated": {"exitCode": code, "message": message, "reason": reason}}
    return [{"name": "worker", "state": state}]


def test_a_pod_that_is_read_back_belongs_to_its_node_and_attempt() -> None:
    worker = read(made(attempt=7))
    assert (worker.node_uid, worker.number, worker.state) == (UID, 7, State.PENDING)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "nginx",
        "node-ready-worker-",
        f"node-ready-worker-{UID}",
        worker_name(UID, 0),
        worker_name(UID, -1),
        worker_name("x", 1),
    ],
)
def test_a_pod_of_another_name_is_not_a_worker(name: str) -> None:
    assert read_worker(msgspec.convert({"metadata": {"name": name}}, objects.Pod)) is None


def test_only_exit_code_0_of_the_worker_itself_is_a_pass() -> None:
    assert seen(phase="Succeeded", containerStatuses=ended(0)).state is State.PASSED
    assert seen(phase="Succeeded", containerStatuses=ended(1)).state is State.FAILED
    assert seen(phase="Succeeded").state is State.FAILED
    sidecar = [{"name": "sidecar", "state": {"terminated": {"exitCode": 0}}}]
    assert seen(phase="Succeeded", containerStatuses=sidecar).state is State.FAILED
    assert seen(phase="Running", containerStatuses=ended(0)).state is State.RUNNING


OTHER_UID = UID.replace("0", "9")
FORGERIES: dict[str, dict[str, Any]] = {
    "owned by another node": {"ownerReferences": [{"kind": "Node", "name": "b", "uid": OTHER_UID}]},
    "owned by two nodes": {
        "ownerReferences": [{"kind": "Node", "uid": UID}, {"kind": "Node", "name": "b", "uid": OTHER_UID}]
    },
    "owned by something else": {"ownerReferences": [{"kind": "ReplicaSet", "name": "a", "uid": UID}]},
    "owned by nothing": {"ownerReferences": []},
    "a mirror pod": {"annotations": {"kubernetes.io/config.mirror": "0123"}},
}


@pytest.mark.parametrize("metadata", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_pod_with_the_name_of_a_worker_is_not_a_worker(metadata: dict[str, Any]) -> None:
    pod = made()
    pod["metadata"] |= metadata
    assert read_worker(msgspec.convert(pod, objects.Pod)) is None


@pytest.mark.parametrize(("ran_on", "counts"), [("a", True), ("", True), ("b", False)])
def test_a_worker_is_about_the_node_that_it_runs_on(ran_on: str, counts: bool) -> None:  # noqa: FBT001  a table
    pod = made()
    pod["spec"]["nodeName"] = ran_on
    assert read(pod).belongs_to(Node("a", UID)) is counts
    assert not read(pod).belongs_to(Node("a", OTHER_UID))


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (1, Cause.CHECKS),
        (2, Cause.MISCONFIGURED),
        (4, Cause.MISCONFIGURED),
        (5, Cause.STOPPED),
        (137, Cause.STOPPED),
        (143, Cause.STOPPED),
    ],
)
def test_an_exit_code_names_the_cause(code: int, cause: Cause) -> None:
    worker = seen(phase="Failed", containerStatuses=ended(code, reason="Error"))
    assert (worker.state, worker.cause) == (State.FAILED, cause)
    assert worker.reason == f"the worker exited with code {code} (Error)"


@pytest.mark.parametrize(
    ("code", "judged", "cause"),
    [
        (1, True, Cause.CHECKS),
        (1, False, Cause.NOT_JUDGED),
        (2, False, Cause.MISCONFIGURED),
        (143, False, Cause.STOPPED),
    ],
)
def test_failures_that_are_not_judged_do_not_blame_the_node(code: int, judged: bool, cause: Cause) -> None:  # noqa: FBT001
    message = json.dumps({"v": 1, "checks": [{"name": "network", "ok": False, "notJudged": not judged}]})
    worker = seen(phase="Failed", containerStatuses=ended(code, message))
    assert (worker.state, worker.cause) == (State.FAILED, cause)
    assert Cause.NOT_JUDGED.blames_node is False


def test_a_worker_of_the_go_version_is_reported_as_that() -> None:
    worker = seen(phase="Failed", containerStatuses=ended(3, "no settings", "Error"))
    assert (worker.state, worker.cause) == (State.FAILED, Cause.MISCONFIGURED)
    assert worker.reason == "worker image is not kube-node-ready's: exit code 3, no report"


def test_a_worker_without_access_reports_that() -> None:
    worker = seen(phase="Failed", containerStatuses=ended(3, '{"v": 1, "error": "no token"}'))
    assert worker.cause is Cause.STOPPED
    assert worker.reason == "no token"


@pytest.mark.parametrize(("phase", "code"), [("Failed", 1), ("Failed", 143), ("Succeeded", 0)])
def test_a_worker_that_was_deleted_while_it_ran_proves_nothing_about_the_node(phase: str, code: int) -> None:
    pod = made() | {"status": {"phase": phase, "containerStatuses": ended(code)}}
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    worker = read(pod)
    assert (worker.state, worker.cause) == (State.FAILED, Cause.STOPPED)


def test_an_init_container_that_was_interrupted_proves_nothing_about_the_node() -> None:
    statuses = [{"name": "disk", "state": {"terminated": {"exitCode": 143}}}]
    pod = made() | {"status": {"phase": "Failed", "initContainerStatuses": statuses}}
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert read(pod).cause is Cause.STOPPED


def test_the_report_gives_the_reason() -> None:
    message = '{"v":1,"checks":[{"name":"dns","ok":false,"target":"a.example","error":"timed out"}]}'
    assert seen(phase="Failed", containerStatuses=ended(1, message)).reason == "dns: a.example: timed out"


def test_an_init_container_that_fails_is_a_check_that_failed() -> None:
    statuses = [
        {"name": "fine", "state": {"terminated": {"exitCode": 0}}},
        {"name": "disk", "state": {"terminated": {"exitCode": 4, "message": "too\nslow"}}},
    ]
    worker = seen(phase="Failed", initContainerStatuses=statuses)
    assert (worker.cause, worker.reason) == (Cause.CHECKS, "disk: exited with code 4: too slow")


@pytest.mark.parametrize(
    ("status", "cause", "reason"),
    [
        ({"reason": "Evicted", "message": "low on memory"}, Cause.STOPPED, "Evicted: low on memory"),
        ({"reason": "DeadlineExceeded"}, Cause.STOPPED, "DeadlineExceeded"),
        ({"reason": "UnexpectedAdmissionError"}, Cause.STOPPED, "UnexpectedAdmissionError"),
        ({}, Cause.STOPPED, "worker pod failed without a termination message"),
    ],
    ids=["evicted", "late", "not admitted", "wordless"],
)
def test_a_pod_that_was_ended_from_outside_reports_the_cause(status: dict[str, str], cause: Cause, reason: str) -> None:
    worker = seen(phase="Failed", **status)
    assert (worker.state, worker.cause, worker.reason) == (State.FAILED, cause, reason)


@pytest.mark.parametrize("where", ["containerStatuses", "initContainerStatuses"])
def test_a_worker_that_cannot_start_has_failed_with_a_reason(where: str) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    worker = seen(phase="Pending", **{where: [{"name": "x", "state": {"waiting": waiting}}]})
    assert (worker.state, worker.cause) == (State.FAILED, Cause.NOT_STARTED)
    assert worker.reason == "ImagePullBackOff: no such image"


def test_a_worker_that_has_not_started_reports_what_it_waits_for() -> None:
    nowhere = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    assert seen(phase="Pending", conditions=[nowhere]).reason == "Unschedulable: 0/3 nodes"
    pulling = [{"name": "worker", "state": {"waiting": {"reason": "ErrImagePull"}}}]
    worker = seen(phase="Pending", containerStatuses=pulling)
    assert (worker.state, worker.reason) == (State.PENDING, "ErrImagePull")


NETWORK_READY = {"type": "PodReadyToStartContainers", "status": "True"}
CREATING = [{"name": "worker", "state": {"waiting": {"reason": "PodInitializing"}}}]


@pytest.mark.parametrize(
    ("status", "awaits"),
    [
        ({"phase": "Pending", "conditions": [NETWORK_READY]}, True),
        ({"phase": "Pending", "conditions": [NETWORK_READY], "containerStatuses": CREATING}, True),
        ({"phase": "Running", "conditions": [NETWORK_READY]}, False),
        ({"phase": "Pending", "conditions": [{**NETWORK_READY, "status": "False"}]}, False),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}, False),
        ({"phase": "Pending"}, False),
    ],
    ids=["network ready", "creating", "running", "network not ready", "older kubelet", "not seen by its kubelet"],
)
def test_a_worker_awaits_its_images_once_its_network_is_ready(status: Json, *, awaits: bool) -> None:
    assert seen(**status).awaits_images is awaits


@pytest.mark.parametrize(
    ("state", "awaits"),
    [({"running": {}}, False), ({"terminated": {"exitCode": 0}}, True), ({"waiting": {"reason": "X"}}, True)],
)
def test_a_worker_whose_init_container_runs_awaits_no_image(state: Json, *, awaits: bool) -> None:
    init = [{"name": "disk", "state": state}]
    status = {"conditions": [NETWORK_READY], "initContainerStatuses": init, "containerStatuses": CREATING}
    assert seen(phase="Pending", **status).awaits_images is awaits


@pytest.mark.parametrize(
    ("name", "state", "started"),
    [
        ("worker", {"running": {"startedAt": "2026-01-01T00:00:07Z"}}, datetime(2026, 1, 1, 0, 0, 7, tzinfo=UTC)),
        ("worker", {"running": {"startedAt": None}}, None),
        ("worker", {"running": {"startedAt": "10000-01-01T13:59:59Z"}}, None),  # an API server stores both of these
        ("worker", {"running": {"startedAt": "0000-12-31T00:00:00Z"}}, None),
        ("worker", {"running": {}}, None),
        ("worker", {"waiting": {"reason": "X"}}, None),
        ("other", {"running": {"startedAt": "2026-01-01T00:00:07Z"}}, None),
    ],
)
def test_the_start_of_the_workers_own_container_is_read(name: str, state: Json, started: datetime | None) -> None:
    assert seen(phase="Running", containerStatuses=[{"name": name, "state": state}]).started == started


def test_a_deleted_worker_is_remembered_only_until_the_watch_reports_it() -> None:
    """In whichever order the answer to the deletion and its event come."""
    nodes = {"a": Node("a", UID)}
    view = ClusterState(Policy(()), nodes, slots=1)
    first, second = (read(made(attempt=attempt) | {"status": {}}) for attempt in (1, 2))
    for worker in (first, second):
        view.worker_changed(None, msgspec.structs.replace(worker, uid=worker.name))
    view.worker_deleted(first.name)
    assert workers_of(view) == [2]
    view.worker_changed(msgspec.structs.replace(first, uid=first.name), None)
    view.worker_changed(msgspec.structs.replace(second, uid=second.name), None)
    view.worker_deleted(second.name)
    assert workers_of(view) == []
    assert not view._deleted


def workers_of(view: ClusterState) -> list[int]:
    snapshot = view.snapshot("a", datetime.now(UTC))
    assert snapshot
    return [attempt.number for attempt in snapshot.attempts]


def test_messages_about_a_pod_are_shown_on_one_short_line() -> None:
    worker = seen(phase="Failed", reason="Evicted", message="\x1b[31m" + "x\n" * 5000)
    assert worker.reason.isprintable()
    assert len(worker.reason) <= 500


@pytest.mark.parametrize(("ran_on", "is_kept"), [("a", True), ("b", False), ("", False)])
def test_a_report_is_kept_only_if_the_worker_ran_on_its_own_node(ran_on: str, *, is_kept: bool) -> None:
    """Other verdicts never count, and a flood of forged workers with long reports must not fill the memory."""
    pod = made()
    pod["spec"]["nodeName"] = ran_on
    message = '{"v":1,"checks":[{"name":"dns","ok":false,"ms":3,"error":"timed out"}]}'
    worker = read(pod | {"status": {"phase": "Failed", "containerStatuses": ended(1, message)}})
    assert (worker.report is not None) == is_kept
    assert worker.reason == "dns: timed out"


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ({}, {"phase": "Succeeded", "code": 0}),
        ({}, {"phase": "Succeeded", "code": 1}),
        ({}, {"phase": "Failed", "code": 1}),
        ({}, {"phase": "Failed", "code": 137, "reason": "Evicted"}),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, {"phase": "Failed", "code": 143}),
    ],
    ids=["passed", "contradictory", "failed", "evicted", "deleted"],
)
def test_the_report_of_an_ended_worker_is_kept_however_it_ended(metadata: Json, status: Json) -> None:
    pod = made()
    pod["spec"]["nodeName"] = "a"
    pod["metadata"] |= metadata
    message = '{"v":2,"checks":[{"name":"dns","verdict":"passed","ms":3}]}'
    worker = read(pod | {"status": {**status, "containerStatuses": ended(status["code"], message)}})
    assert worker.report == Report((TargetResult("dns", Verdict.PASSED, ms=3),))


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_an_ended_pod_without_a_status_of_its_container_has_failed(phase: str) -> None:
    pod = made() | {"status": {"phase": phase}}
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert (read(pod).state, read(pod).cause, read(pod).report) == (State.FAILED, Cause.STOPPED, None)


def test_the_generation_of_the_spec_is_read() -> None:
    """It shows that a pod was edited while no controller was watching."""
    pod = made()
    pod["metadata"]["generation"] = 3
    assert read(pod).generation == 3


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("", Cause.CHECKS),
        ("dns: no answer", Cause.CHECKS),
        ('{"v":2,"node":"a","checks":[{"name":"dns","ver', Cause.NOT_JUDGED),
    ],
)
def test_a_report_that_the_kubelet_has_cut_blames_no_node(message: str, cause: Cause) -> None:
    """It divides 12 KiB by the number of the pod's containers."""
    assert seen(phase="Failed", containerStatuses=ended(1, message)).cause is cause
