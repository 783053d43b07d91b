"""The worker pod: made for a node and an attempt, and read back as a verdict.

Its name carries both, and a name cannot be edited. But any name can be forged, so a pod is read as a worker only if its
owner is the node that its name means, and it is not a mirror pod; and its verdict counts only on that node
(`Worker.is_of`) and with the fingerprint of a worker of ours (`Worker.genuine`). A node's own name may have 253
characters, so it is in an annotation and not in the pod's name.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kube_node_ready.objects import ContainerStatus, Pod, Terminated
from kube_node_ready.verify.fingerprint import fingerprint
from kube_node_ready.verify.model import Cause, Gate, Node, State, Worker
from kube_node_ready.verify.report import printable, read

CONTAINER = "worker"
SELECTOR = "app=kube-node-ready,component=worker"
SETTINGS_VARIABLE = "KUBE_NODE_READY_WORKER_CONFIG"

_PREFIX = "node-ready-worker-"
_NAME = re.compile(_PREFIX + r"(?P<uid>[0-9a-f-]{36})-(?P<attempt>[1-9][0-9]{0,7})")
_LONGEST_LABEL = 63
_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_FINISHED = ("Succeeded", "Failed")
_CONFIG_FOLDER = "/etc/kube-node-ready"
_HOPELESS = frozenset(
    {
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "CrashLoopBackOff",
    }
)
"""What a container waits for that a new attempt should rather be made for."""

_EXITS = {
    1: Cause.CHECKS,
    2: Cause.MISCONFIGURED,
    4: Cause.MISCONFIGURED,
}


class PodTemplate(Struct, frozen=True):
    """What the configuration says about worker pods."""

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


def name_of(node_uid: str, attempt: int) -> str:
    return f"{_PREFIX}{node_uid}-{attempt}"


def worker_pod(node: Node, attempt: int, template: PodTemplate) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(node.uid, attempt),
            "namespace": template.namespace,
            "labels": {**template.labels, **_labels(node, attempt)},
            "annotations": {
                **template.annotations,
                "kube-node-ready/target-node": node.name,
            },
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}],
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": template.deadline_seconds,
            "terminationGracePeriodSeconds": 5,
            "enableServiceLinks": False,
            "serviceAccountName": template.service_account,
            # On a verified node, workloads run already, and none of them must go for the sake of a check.
            "priorityClassName": "" if node.labelled else template.priority_class,
            "imagePullSecrets": [{"name": name} for name in template.pull_secrets],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _only_on(node)}},
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


def probe_pod(node: Node, template: PodTemplate) -> dict[str, Any]:
    """A worker for a dry run of its creation. The server chooses its name, so no other client can occupy it."""
    pod = worker_pod(node, 1, template)
    del pod["metadata"]["name"]
    pod["metadata"]["generateName"] = f"{_PREFIX}probe-"
    return pod


def read_worker(pod: Pod) -> Worker | None:
    """The worker as decisions see it; None if this pod cannot be one of ours."""
    named = _NAME.fullmatch(pod.metadata.name)
    if not named or not _is_made_for(pod, named["uid"]):
        return None
    state, cause, reason, message = _judge(pod)
    return Worker(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        node_uid=named["uid"],
        attempt=int(named["attempt"]),
        node_name=str(pod.spec.get("nodeName", "")),
        created=pod.metadata.creation_timestamp,
        deleting=pod.metadata.deletion_timestamp is not None,
        state=state,
        cause=cause,
        reason=printable(reason, 500),
        report=read(message) if message and _ran_on_its_node(pod) else None,
        finished=pod.status.phase in _FINISHED,
        fingerprint=fingerprint(pod.spec),
    )


def _is_made_for(pod: Pod, node_uid: str) -> bool:
    """A kubelet can create mirror pods, of any name and in any namespace; their only owner is its own Node."""
    owners = [(owner.kind, owner.uid) for owner in pod.metadata.owner_references]
    return owners == [("Node", node_uid)] and _MIRROR_ANNOTATION not in (pod.metadata.annotations or {})


def _ran_on_its_node(pod: Pod) -> bool:
    """Whether it ran on the node it is for. A verdict from elsewhere never counts, so its report is not kept either."""
    return [owner.name for owner in pod.metadata.owner_references] == [pod.spec.get("nodeName")]


def _labels(node: Node, attempt: int) -> dict[str, str]:
    return {
        "app": "kube-node-ready",
        "component": "worker",
        "node": _label_value(node.name),
        "app.kubernetes.io/name": "kube-node-ready",
        "app.kubernetes.io/component": "worker",
        "app.kubernetes.io/managed-by": "kube-node-ready-controller",
        "node-ready/attempt": str(attempt),
    }


def _label_value(name: str) -> str:
    if len(name) <= _LONGEST_LABEL:
        return name
    return f"{name[:50].rstrip('.-')}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _only_on(node: Node) -> dict[str, Any]:
    # Not by the hostname label, which need not be the node's name. The scheduler still looks at taints and room.
    field = {"key": "metadata.name", "operator": "In", "values": [node.name]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def _tolerations(template: PodTemplate) -> Iterator[Mapping[str, Any]]:
    for gate in template.gates:
        yield {"key": gate.key, "operator": "Exists", "effect": gate.effect}
    yield {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}
    yield {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}
    yield from template.tolerations


def _container(template: PodTemplate) -> dict[str, Any]:
    mounts = [{"name": "worker-config", "mountPath": _CONFIG_FOLDER, "readOnly": True}] if template.config_map else []
    settings = msgspec.json.encode(template.settings, order="sorted").decode()
    return {
        "name": CONTAINER,
        "image": template.image,
        "imagePullPolicy": template.pull_policy,
        "command": list(template.command),
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            # By its name the worker knows its attempt, and a name cannot be edited. The spec is the same for all
            # attempts, so their fingerprints are equal.
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": SETTINGS_VARIABLE, "value": settings},
        ],
        "resources": template.resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }


def _config_volume(template: PodTemplate) -> list[dict[str, Any]]:
    return [{"name": "worker-config", "configMap": {"name": template.config_map}}] if template.config_map else []


def _judge(pod: Pod) -> tuple[State, Cause, str, str]:
    """State, cause, reason, and the termination message."""
    ended = _terminated(pod)
    message = ended.message if ended else ""
    if pod.metadata.deletion_timestamp and pod.status.phase in _FINISHED:
        # Deletion interrupts the checks, which must not count against the node.
        return State.FAILED, Cause.STOPPED, "the worker pod was deleted before its verdict was read", message
    if pod.status.phase == "Succeeded":
        return (*_judge_success(ended), message)
    if pod.status.phase == "Failed":
        return (State.FAILED, *_why_failed(pod, ended), message)
    if stuck := next(_hopeless(pod), None):
        return State.FAILED, Cause.NOT_STARTED, stuck, ""
    if pod.status.phase == "Running":
        return State.RUNNING, Cause.NONE, "", ""
    return State.PENDING, Cause.NONE, _waiting_for(pod), ""


def _judge_success(ended: Terminated | None) -> tuple[State, Cause, str]:
    if ended is None or ended.exit_code != 0:
        return State.FAILED, Cause.STOPPED, "the pod succeeded, but its worker container did not"
    return State.PASSED, Cause.NONE, ""


def _why_failed(pod: Pod, ended: Terminated | None) -> tuple[Cause, str]:
    status = pod.status
    if status.reason:  # Evicted, DeadlineExceeded, UnexpectedAdmissionError, …: the pod's end was not the worker's own
        cause = Cause.LATE if status.reason == "DeadlineExceeded" else Cause.STOPPED
        return cause, f"{status.reason}: {status.message}" if status.message else status.reason
    if failed := next(_failed_init_containers(status.init_container_statuses), None):
        return Cause.CHECKS, failed
    if ended is None:
        return Cause.STOPPED, "the pod failed without a word of its worker"
    report = read(ended.message)
    words = report.reason if report else ""
    exit_code = f"the worker exited with code {ended.exit_code}" + (f" ({ended.reason})" if ended.reason else "")
    return _EXITS.get(ended.exit_code, Cause.STOPPED), words or exit_code


def _failed_init_containers(statuses: Sequence[ContainerStatus]) -> Iterator[str]:
    for status in statuses:
        if (ended := status.state.terminated) and ended.exit_code:
            said = f": {ended.message}" if ended.message else ""
            yield f"{status.name}: exited with code {ended.exit_code}{said}"


def _terminated(pod: Pod) -> Terminated | None:
    return next((c.state.terminated for c in pod.status.container_statuses if c.name == CONTAINER), None)


def _hopeless(pod: Pod) -> Iterator[str]:
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = status.state.waiting
        if waiting and waiting.reason in _HOPELESS:
            yield f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason


def _waiting_for(pod: Pod) -> str:
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"{condition.reason}: {condition.message}"
    reasons = (status.state.waiting.reason for status in pod.status.container_statuses if status.state.waiting)
    return next(reasons, "")
