"""The worker pod, whole."""

import msgspec
import pytest

from kube_node_ready.api.contract import WORKER_SELECTOR
from kube_node_ready.verification.model import Gate, Node, Policy
from kube_node_ready.verification.worker_pod import WorkerPodTemplate, probe_pod, worker_pod

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


def test_every_worker_has_the_labels_that_workers_are_watched_by() -> None:
    selected = dict(pair.split("=") for pair in WORKER_SELECTOR.split(","))
    labels = worker_pod(Node("a", UID), 1, TEMPLATE)["metadata"]["labels"]
    assert selected
    assert selected.items() <= labels.items()


def test_a_worker_has_five_minutes_by_default() -> None:
    pod = worker_pod(Node("a", UID), 1, WorkerPodTemplate("workers", "registry.example/worker:1", ()))
    assert pod["spec"]["activeDeadlineSeconds"] == 300
    assert Policy(()).deadline.total_seconds() == 300


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
