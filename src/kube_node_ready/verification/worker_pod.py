"""Build the worker pod of an attempt.

Its name consists of the Node's UID and the attempt, and a name cannot be edited. A node's own name can have 253
characters, so it is in an annotation and not in the pod's name.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from kube_node_ready.api.contract import (
    APP,
    ATTEMPT_LABEL,
    TARGET_NODE_ANNOTATION,
    WORKER_COMPONENT,
    WORKER_SETTINGS_VARIABLE,
)
from kube_node_ready.api.record import Cause
from kube_node_ready.verification.model import Gate, Node

CONTAINER = "worker"

_PREFIX = "node-ready-worker-"
NAME = re.compile(_PREFIX + r"(?P<uid>[0-9a-f-]{36})-(?P<attempt>[1-9][0-9]{0,7})")
"""What names of worker pods match. The groups are the Node's UID and the attempt."""
_MAX_LABEL_LENGTH = 63
_CLAIMS = frozenset({"persistentVolumeClaim", "ephemeral"})
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_CONFIG_DIRECTORY = "/etc/kube-node-ready"


class WorkerPodTemplate(Struct, frozen=True):
    """The part of the configuration that describes worker pods."""

    namespace: str
    image: str
    gates: tuple[Gate, ...]
    command: tuple[str, ...] = ("/kube-node-ready-worker",)
    pull_policy: str = "IfNotPresent"
    service_account: str = "kube-node-ready-worker"
    priority_class: str = ""
    pull_secrets: tuple[str, ...] = ()
    resources: Mapping[str, Any] = {}
    config_map: str = ""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    init_containers: tuple[Mapping[str, Any], ...] = ()
    volumes: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    deadline_seconds: int = 300
    settings: Mapping[str, Any] = {}


def worker_name(node_uid: str, attempt: int) -> str:
    return f"{_PREFIX}{node_uid}-{attempt}"


def worker_pod(node: Node, attempt: int, template: WorkerPodTemplate) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": worker_name(node.uid, attempt),
            "namespace": template.namespace,
            "labels": {**template.labels, **_labels(node, attempt)},
            "annotations": {
                **template.annotations,
                TARGET_NODE_ANNOTATION: node.name,
            },
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}],
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": template.deadline_seconds,
            "terminationGracePeriodSeconds": 5,
            "enableServiceLinks": False,
            "serviceAccountName": template.service_account,
            # On a verified node, workloads are running, and a check must not preempt them.
            "priorityClassName": "" if node.labelled else template.priority_class,
            "imagePullSecrets": [{"name": name} for name in template.pull_secrets],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _only_on(node)}},
            **({"nodeName": node.name} if _bypasses_scheduler(node, template) else {}),
            "tolerations": list(_tolerations(template)),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "runAsGroup": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "initContainers": list(template.init_containers),
            "containers": [_container(template)],
            "volumes": [*template.volumes, *_config_volume(template)],
        },
    }


def probe_pod(node: Node, template: WorkerPodTemplate) -> dict[str, Any]:
    """A worker for a dry run of its creation. The server chooses its name, so no other client can occupy it."""
    pod = worker_pod(node, 1, template)
    del pod["metadata"]["name"]
    pod["metadata"]["generateName"] = f"{_PREFIX}probe-"
    return pod


def _labels(node: Node, attempt: int) -> dict[str, str]:
    return {
        "app": APP,
        "component": WORKER_COMPONENT,
        "node": _label_value(node.name),
        "app.kubernetes.io/name": APP,
        "app.kubernetes.io/component": WORKER_COMPONENT,
        "app.kubernetes.io/managed-by": "kube-node-ready-controller",
        ATTEMPT_LABEL: str(attempt),
    }


def _label_value(name: str) -> str:
    if len(name) <= _MAX_LABEL_LENGTH:
        return name
    return f"{name[:50].rstrip('.-')}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _only_on(node: Node) -> dict[str, Any]:
    # Not by the hostname label, which can differ from the node's name. The scheduler checks taints and resources.
    field = {"key": "metadata.name", "operator": "In", "values": [node.name]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def _bypasses_scheduler(node: Node, template: WorkerPodTemplate) -> bool:
    """Whether to bind the pod here, because the last one did not start.

    Any pod of the cluster can keep all workers from being scheduled, by a required anti-affinity to them. The kubelet
    checks resources itself. On a node with further taints, something has yet to be set up. A claim can need the
    scheduler to be provisioned, and a pod that waits for it would count as late.
    """
    has_claims = any(volume.keys() & _CLAIMS for volume in template.volumes)
    if node.labelled or has_claims or node.record.cause is not Cause.NOT_STARTED:
        return False
    tolerated = {*_TOLERATED, *(gate.key for gate in template.gates)}
    return all(taint.key in tolerated or taint.effect == "PreferNoSchedule" for taint in node.taints)


def _tolerations(template: WorkerPodTemplate) -> Iterator[Mapping[str, Any]]:
    for gate in template.gates:
        yield {"key": gate.key, "operator": "Exists", "effect": gate.effect}
    for key in _TOLERATED:
        yield {"key": key, "operator": "Exists"}
    yield from template.tolerations


def _container(template: WorkerPodTemplate) -> dict[str, Any]:
    mounts = (
        [{"name": "worker-config", "mountPath": _CONFIG_DIRECTORY, "readOnly": True}] if template.config_map else []
    )
    settings = msgspec.json.encode(template.settings, order="sorted").decode()
    return {
        "name": CONTAINER,
        "image": template.image,
        "imagePullPolicy": template.pull_policy,
        "command": list(template.command),
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            # The worker derives its attempt from the name, which cannot be edited. The spec is the same for all
            # attempts, so their fingerprints are equal.
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": WORKER_SETTINGS_VARIABLE, "value": settings},
        ],
        "resources": template.resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }


def _config_volume(template: WorkerPodTemplate) -> list[dict[str, Any]]:
    return [{"name": "worker-config", "configMap": {"name": template.config_map}}] if template.config_map else []
