"""The worker pod, whole, and every field that is read back."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kube_node_ready import objects
from kube_node_ready.objects import Taint
from kube_node_ready.verify.model import Cause, Gate, Node, Outcome, Policy, Record, State, Worker
from kube_node_ready.verify.report import CheckResult, Report
from kube_node_ready.verify.workerpod import PodTemplate, probe_pod, read_worker, worker_pod

UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
NAME = f"node-ready-worker-{UID}-2"
TEMPLATE = PodTemplate(
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


def test_the_pod_is_complete() -> None:
    exists = {"operator": "Exists"}
    only_there = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
    assert worker_pod(Node("node-1", UID), 2, TEMPLATE) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": NAME,
            "namespace": "workers",
            "labels": {
                "team": "x",
                "app": "kube-node-ready",
                "component": "worker",
                "node": "node-1",
                "app.kubernetes.io/name": "kube-node-ready",
                "app.kubernetes.io/component": "worker",
                "app.kubernetes.io/managed-by": "kube-node-ready-controller",
                "node-ready/attempt": "2",
            },
            "annotations": {"note": "y", "kube-node-ready/target-node": "node-1"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": UID}],
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": 60,
            "terminationGracePeriodSeconds": 5,
            "enableServiceLinks": False,
            "serviceAccountName": "kube-node-ready-worker",
            "priorityClassName": "high",
            "imagePullSecrets": [{"name": "login"}],
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [only_there]}}
            },
            "tolerations": [
                {"key": "node-ready/unverified", "effect": "NoSchedule", **exists},
                {"key": "node.kubernetes.io/not-ready", **exists},
                {"key": "node.kubernetes.io/unreachable", **exists},
                {"key": "extra"},
            ],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "runAsGroup": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "initContainers": [{"name": "first"}],
            "containers": [
                {
                    "name": "worker",
                    "image": "registry.example/worker:1",
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["/kube-node-ready-worker"],
                    "env": [
                        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                        {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                        {"name": "KUBE_NODE_READY_WORKER_CONFIG", "value": '{"a":2,"b":1}'},
                    ],
                    "resources": {"limits": {"memory": "64Mi"}},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "volumeMounts": [{"name": "worker-config", "mountPath": "/etc/kube-node-ready", "readOnly": True}],
                }
            ],
            "volumes": [{"name": "scratch"}, {"name": "worker-config", "configMap": {"name": "config"}}],
        },
    }


def test_a_worker_on_a_verified_node_displaces_no_workload() -> None:
    assert worker_pod(Node("a", UID, labelled=True), 2, TEMPLATE)["spec"]["priorityClassName"] == ""


def test_without_a_config_map_nothing_is_mounted() -> None:
    spec = worker_pod(Node("a", UID), 2, msgspec.structs.replace(TEMPLATE, config_map="", volumes=()))["spec"]
    assert (spec["volumes"], spec["containers"][0]["volumeMounts"]) == ([], [])


def test_a_probe_is_a_first_attempt_without_a_name() -> None:
    pod = worker_pod(Node("a", UID), 1, TEMPLATE)
    del pod["metadata"]["name"]
    pod["metadata"]["generateName"] = "node-ready-worker-probe-"
    assert probe_pod(Node("a", UID), TEMPLATE) == pod


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("n" * 63, "n" * 63),
        ("n" * 64, "n" * 50 + "-"),
        ("n" * 49 + "." + "n" * 20, "n" * 49 + "-"),
        ("n" * 49 + "X" + "n" * 20, "n" * 49 + "X-"),
    ],
)
def test_the_label_of_a_long_name_is_its_beginning_and_a_digest(name: str, label: str) -> None:
    made = worker_pod(Node(name, UID), 1, TEMPLATE)["metadata"]["labels"]["node"]
    assert made.startswith(label)
    assert len(made) == (63 if len(name) <= 63 else len(label) + 12)


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
        2,
        node_name="a",
        created=datetime(2026, 1, 1, tzinfo=UTC),
        state=State.FAILED,
        cause=Cause.CHECKS,
        reason="dns: timeout",
        report=Report((CheckResult("dns", ok=False, error="timeout"),)),
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


def test_only_a_passed_outcome_without_a_reason_is_a_proof() -> None:
    assert Record(1, outcome=Outcome.PASSED).is_proof
    assert not Record(1, outcome=Outcome.PASSED, reason="dns").is_proof
    assert not Record(1, outcome=Outcome.PENDING).is_proof
    assert not Record(1, outcome=Outcome.FAILED).is_proof


@pytest.mark.parametrize(
    ("state", "over"),
    [(State.PENDING, False), (State.RUNNING, False), (State.PASSED, True), (State.FAILED, True)],
)
def test_a_worker_has_ended_when_it_passed_or_failed(state: State, over: bool) -> None:  # noqa: FBT001  a table
    assert Worker("w", "p", UID, 1, state=state).ended is over


@pytest.mark.parametrize(
    ("gates", "facts", "guarded"),
    [
        ((Gate("g", "NoSchedule"),), {"taints": (Taint("g", "NoSchedule"),), "labelled": True}, True),
        ((Gate("g", "NoSchedule"),), {"taints": (Taint("g", "NoExecute"),), "labelled": True}, False),
        ((Gate("g", "NoSchedule"),), {"record": Record(1)}, True),
        ((Gate("g", "NoSchedule"),), {"record": Record(0)}, False),
        ((Gate("g", "NoSchedule"),), {"record": Record(1), "labelled": True}, False),
        ((), {}, True),
        ((), {"labelled": True}, False),
    ],
)
def test_which_nodes_are_guarded(gates: tuple[Gate, ...], facts: dict[str, Any], guarded: bool) -> None:  # noqa: FBT001
    assert Policy(gates).guards(Node("a", "u", **facts)) is guarded
