"""The worker pod: what is asked of the cluster, and how the answer is read."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kube_node_ready import objects
from kube_node_ready.gather import View
from kube_node_ready.verify.model import Cause, Gate, Node, Policy, State, Worker
from kube_node_ready.verify.patches import MOST_ATTEMPTS
from kube_node_ready.verify.workerpod import PodTemplate, name_of, read_worker, worker_pod
from kube_node_ready.worker import attempt

UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
TEMPLATE = PodTemplate(
    "kube-system", "registry.example/worker:1", (Gate("node-ready/unverified", "NoSchedule"),), deadline_seconds=60
)
AWS = "ip-192-168-100-100.us-west-2.compute.internal"
LONG = ".".join(["a" * 62] * 4)[:253]


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


@pytest.mark.parametrize("name", ["a", AWS, LONG], ids=["short", "as AWS names them", "as long as may be"])
def test_names_and_labels_are_valid_for_every_node(name: str) -> None:
    pod = made(name, attempt=MOST_ATTEMPTS)
    assert len(pod["metadata"]["name"]) <= 63
    assert all(0 < len(value) <= 63 for value in pod["metadata"]["labels"].values())
    assert all(value[0].isalnum() and value[-1].isalnum() for value in pod["metadata"]["labels"].values())
    assert pod["metadata"]["annotations"]["kube-node-ready/target-node"] == name


def test_long_names_that_begin_alike_get_labels_of_their_own() -> None:
    one, other = made(LONG + "a"), made(LONG + "b")
    assert one["metadata"]["labels"]["node"] != other["metadata"]["labels"]["node"]


def test_it_runs_on_that_node_and_no_other_whatever_its_hostname_label_says() -> None:
    affinity = made(AWS)["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    field = {"key": "metadata.name", "operator": "In", "values": [AWS]}
    assert affinity == {"nodeSelectorTerms": [{"matchFields": [field]}]}


def test_it_tolerates_the_gate_and_a_node_that_is_not_ready_yet_and_what_was_configured() -> None:
    extra = {"key": "dedicated", "operator": "Exists"}
    tolerated = made(tolerations=(extra,))["spec"]["tolerations"]
    assert {"key": "node-ready/unverified", "operator": "Exists", "effect": "NoSchedule"} in tolerated
    assert {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} <= {each["key"] for each in tolerated}
    assert extra in tolerated


def test_it_has_no_privileges_and_an_end() -> None:
    spec = made()["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert (spec["restartPolicy"], spec["activeDeadlineSeconds"]) == ("Never", 60)


def test_every_attempt_has_the_same_spec_and_knows_its_number_by_the_name_of_its_pod() -> None:
    """So that one fingerprint covers all attempts."""
    first, later = made(attempt=1), made(attempt=7)
    assert first["spec"] == later["spec"]
    (variable,) = [entry for entry in first["spec"]["containers"][0]["env"] if entry["name"] == "POD_NAME"]
    assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert (attempt(first["metadata"]["name"]), attempt(later["metadata"]["name"])) == (1, 7)


def test_it_goes_with_its_node() -> None:
    (owner,) = made(AWS)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Node", AWS, UID)


def test_labels_of_the_configuration_cannot_replace_those_we_select_by() -> None:
    labels = made(labels={"app": "mine", "team": "net"})["metadata"]["labels"]
    assert (labels["app"], labels["component"], labels["team"]) == ("kube-node-ready", "worker", "net")


def test_a_pod_that_is_read_back_belongs_to_its_node_and_attempt() -> None:
    worker = read(made(attempt=7))
    assert (worker.node_uid, worker.attempt, worker.state) == (UID, 7, State.PENDING)


@pytest.mark.parametrize(
    "name",
    ["", "nginx", "node-ready-worker-", f"node-ready-worker-{UID}", name_of(UID, 0), name_of(UID, -1), name_of("x", 1)],
)
def test_a_pod_of_another_name_is_not_one_of_ours(name: str) -> None:
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
def test_a_pod_with_the_name_of_a_worker_is_none_if_it_is(metadata: dict[str, Any]) -> None:
    pod = made()
    pod["metadata"] |= metadata
    assert read_worker(msgspec.convert(pod, objects.Pod)) is None


@pytest.mark.parametrize(("ran_on", "counts"), [("a", True), ("", True), ("b", False)])
def test_a_worker_is_about_the_node_that_it_runs_on(ran_on: str, counts: bool) -> None:  # noqa: FBT001  a table
    pod = made()
    pod["spec"]["nodeName"] = ran_on
    assert read(pod).is_of(Node("a", UID)) is counts
    assert not read(pod).is_of(Node("a", OTHER_UID))


@pytest.mark.parametrize(
    ("code", "cause"),
    [(1, Cause.CHECKS), (2, Cause.MISCONFIGURED), (3, Cause.STOPPED), (137, Cause.STOPPED), (143, Cause.STOPPED)],
)
def test_an_exit_code_tells_who_is_to_blame(code: int, cause: Cause) -> None:
    worker = seen(phase="Failed", containerStatuses=ended(code, reason="Error"))
    assert (worker.state, worker.cause) == (State.FAILED, cause)
    assert worker.reason == f"the worker exited with code {code} (Error)"


@pytest.mark.parametrize(("phase", "code"), [("Failed", 1), ("Failed", 143), ("Succeeded", 0)])
def test_a_worker_that_was_deleted_while_it_ran_says_nothing_about_the_node(phase: str, code: int) -> None:
    pod = made() | {"status": {"phase": phase, "containerStatuses": ended(code)}}
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    worker = read(pod)
    assert (worker.state, worker.cause) == (State.FAILED, Cause.STOPPED)


def test_an_init_container_that_was_interrupted_says_nothing_about_the_node() -> None:
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
        ({"reason": "DeadlineExceeded"}, Cause.LATE, "DeadlineExceeded"),
        ({"reason": "UnexpectedAdmissionError"}, Cause.STOPPED, "UnexpectedAdmissionError"),
        ({}, Cause.STOPPED, "the pod failed without a word of its worker"),
    ],
    ids=["evicted", "late", "not admitted", "wordless"],
)
def test_a_pod_that_was_ended_from_outside_says_by_what(status: dict[str, str], cause: Cause, reason: str) -> None:
    worker = seen(phase="Failed", **status)
    assert (worker.state, worker.cause, worker.reason) == (State.FAILED, cause, reason)


@pytest.mark.parametrize("where", ["containerStatuses", "initContainerStatuses"])
def test_a_worker_that_cannot_start_has_failed_and_says_why(where: str) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    worker = seen(phase="Pending", **{where: [{"name": "x", "state": {"waiting": waiting}}]})
    assert (worker.state, worker.cause) == (State.FAILED, Cause.NOT_STARTED)
    assert worker.reason == "ImagePullBackOff: no such image"


def test_a_worker_that_is_still_to_start_says_what_it_waits_for() -> None:
    nowhere = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    assert seen(phase="Pending", conditions=[nowhere]).reason == "Unschedulable: 0/3 nodes"
    pulling = [{"name": "worker", "state": {"waiting": {"reason": "ErrImagePull"}}}]
    worker = seen(phase="Pending", containerStatuses=pulling)
    assert (worker.state, worker.reason) == (State.PENDING, "ErrImagePull")


def test_a_deleted_worker_is_remembered_only_until_the_watch_tells_of_it() -> None:
    """In whichever order the answer to the deletion and its event come."""
    nodes = {"a": Node("a", UID)}
    view = View(Policy(()), nodes, slots=1)
    first, second = (read(made(attempt=attempt) | {"status": {}}) for attempt in (1, 2))
    for worker in (first, second):
        view.worker_changed(None, msgspec.structs.replace(worker, uid=worker.name))
    view.dropped(first.name)
    assert workers_of(view) == [2]
    view.worker_changed(msgspec.structs.replace(first, uid=first.name), None)
    view.worker_changed(msgspec.structs.replace(second, uid=second.name), None)
    view.dropped(second.name)
    assert workers_of(view) == []
    assert not view._dropped


def workers_of(view: View) -> list[int]:
    snapshot = view.snapshot("a", datetime.now(UTC))
    assert snapshot
    return [worker.attempt for worker in snapshot.workers]


def test_what_the_cluster_says_of_a_pod_is_shown_on_one_short_line() -> None:
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
