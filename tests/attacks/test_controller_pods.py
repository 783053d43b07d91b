"""Which pods the controller's token can create and delete: the chart's policy, tested request by request.

Every attack is tried on a release with the policy, where it must be rejected, and on one without it, where it must
succeed. So a rejection is known to come from the policy alone.
"""

import copy
import json
from collections.abc import Callable, Iterator, Mapping

import pytest

import lab
from lab import waiting
from tests.attacks.stolen import PATIENCE, Json, Request, Scene, a_stolen_token, denied
from tests.installed import apply

LIMITED, UNLIMITED = "token-pods-limited", "token-pods-unlimited"
UID = "11111111-2222-3333-4444-555555555555"
EVIL = "example.com/evil:1"
MIRROR = "mirror.example/kube-node-ready"
DATA = {"name": "data", "hostPath": {"path": "/var/lib/data"}}
CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
PLAIN = {"name": "plain", "image": "example.com/plain:1", "args": ["--fast"], "securityContext": CONFINED}
ROOT = {"privileged": True, "runAsUser": 0, "runAsNonRoot": False}
MIGHTY = {
    "name": "mighty",
    "image": "example.com/mighty:1",
    "command": ["/mighty"],
    "env": [{"name": "LEVEL", "value": "1"}],
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    "securityContext": ROOT,
}
WORKER = {
    "initContainers": [PLAIN, MIGHTY],
    "volumes": [DATA],
    "configMapName": "checks",
    "priorityClassName": "system-cluster-critical",
}
VALUES = {"controller": {"config": {"worker": WORKER}}}
SECRET = {"secretKeyRef": {"name": "tokens", "key": "a"}}

Change = Callable[[Json], None]


def creates(change: Change) -> Request:
    """A worker pod that differs in one thing."""

    def request(scene: Scene) -> None:
        pod = scene.a_worker()
        change(pod)
        scene.create("pods", pod)

    return request


def of_spec(**fields: object) -> Request:
    return creates(lambda pod: pod["spec"].update(copy.deepcopy(fields)))


def of_pod_security(**fields: object) -> Request:
    return creates(lambda pod: pod["spec"]["securityContext"].update(fields))


def of_worker(**fields: object) -> Request:
    return creates(lambda pod: pod["spec"]["containers"][0].update(copy.deepcopy(fields)))


def of_worker_security(**fields: object) -> Request:
    return creates(lambda pod: pod["spec"]["containers"][0]["securityContext"].update(fields))


def of_init_container(index: int, **fields: object) -> Request:
    return creates(lambda pod: pod["spec"]["initContainers"][index].update(copy.deepcopy(fields)))


def with_volume(volume: Json) -> Request:
    return creates(lambda pod: pod["spec"]["volumes"].append(volume))


def with_container(**fields: object) -> Request:
    added = {"name": "added", "image": EVIL, "securityContext": CONFINED, **fields}
    return creates(lambda pod: pod["spec"]["containers"].append(added))


def with_variable(variable: Json) -> Request:
    return creates(lambda pod: pod["spec"]["containers"][0]["env"].append(variable))


def with_metadata(**fields: object) -> Request:
    return creates(lambda pod: pod["metadata"].update(fields))


def other_data(pod: Json) -> None:
    pod["spec"]["volumes"] = [
        {"name": "data", "hostPath": {"path": "/"}} if volume["name"] == "data" else volume
        for volume in pod["spec"]["volumes"]
    ]


def elsewhere(scene: Scene) -> None:
    pod = scene.a_worker()
    pod["metadata"]["namespace"] = "default"
    pod["spec"]["serviceAccountName"] = "default"
    scene.create("pods", pod, "default")


def a_stranger(scene: Scene) -> None:
    """A pod as in finding H2: privileged, with the host's file system and another ServiceAccount."""
    container = {"name": "shell", "image": EVIL, "securityContext": {"privileged": True}}
    spec = {"containers": [container], "volumes": [{"name": "host", "hostPath": {"path": "/"}}]}
    scene.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger"}, "spec": spec})


SHAPE = "spec.securityContext of a worker pod"
POWERFUL = "more powerful than configured: worker$"
CREATIONS: Mapping[str, tuple[Request, str]] = {
    "a stranger": (a_stranger, "worker pods only"),
    "another name": (with_metadata(name="coredns-1"), "worker pods only"),
    "a name with the prefix of a worker's": (with_metadata(name="node-ready-worker-mine"), "worker pods only"),
    "a generated name": (with_metadata(name="", generateName="node-ready-worker-"), "worker pods only"),
    "another namespace": (elsewhere, f"in namespace {LIMITED} only"),
    "no owner": (with_metadata(ownerReferences=[]), "owned by the Node"),
    "another owner": (
        with_metadata(ownerReferences=[{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": UID}]),
        "owned by the Node",
    ),
    "another ServiceAccount": (of_spec(serviceAccountName="default"), "spec.serviceAccountName"),
    "the host's network": (of_spec(hostNetwork=True), "hostNetwork"),
    "the host's processes": (of_spec(hostPID=True), "hostPID"),
    "the host's IPC": (of_spec(hostIPC=True), "hostIPC"),
    "past the scheduler": (of_spec(nodeName="a"), "nodeName"),
    "a higher priority": (of_spec(priorityClassName="system-node-critical"), "priorityClassName"),
    "a pod that runs as root": (of_pod_security(runAsUser=0, runAsNonRoot=False), SHAPE),
    "a pod that can run as root": (of_pod_security(runAsNonRoot=False), SHAPE),
    "a pod without seccomp": (of_pod_security(seccompProfile={"type": "Unconfined"}), SHAPE),
    "a pod without AppArmor": (of_pod_security(appArmorProfile={"type": "Unconfined"}), SHAPE),
    "a pod with a sysctl": (of_pod_security(sysctls=[{"name": "net.ipv4.ip_forward", "value": "1"}]), SHAPE),
    "a pod with an SELinux type": (of_pod_security(seLinuxOptions={"type": "spc_t"}), SHAPE),
    "privileged": (of_worker_security(privileged=True, allowPrivilegeEscalation=True), POWERFUL),
    "privilege escalation": (of_worker_security(allowPrivilegeEscalation=True), POWERFUL),
    "no security context": (of_worker(securityContext={}), POWERFUL),
    "root": (of_worker_security(runAsUser=0), POWERFUL),
    "perhaps root": (of_worker_security(runAsNonRoot=False), POWERFUL),
    "a capability": (of_worker_security(capabilities={"add": ["NET_RAW"], "drop": ["ALL"]}), POWERFUL),
    "no seccomp": (of_worker_security(seccompProfile={"type": "Unconfined"}), POWERFUL),
    "an SELinux role": (of_worker_security(seLinuxOptions={"role": "a"}), POWERFUL),
    "a port of the host": (of_worker(ports=[{"containerPort": 80, "hostPort": 80}]), POWERFUL),
    "another image": (of_worker(image=EVIL), rf"images .*: worker \({EVIL}\)$"),
    "an image from a mirror": (of_worker(image=f"{MIRROR}:0.1.0"), "admissionPolicy.additionalWorkerImages"),
    "another command": (of_worker(command=["/bin/sh"]), "commands.*: worker$"),
    "arguments": (of_worker(args=["-c", "evil"]), "commands.*: worker$"),
    "a lifecycle hook": (
        of_worker(lifecycle={"postStart": {"exec": {"command": ["/bin/sh"]}}}),
        "lifecycle hooks.*: worker$",
    ),
    "a probe": (of_worker(livenessProbe={"exec": {"command": ["/bin/sh"]}}), "probes.*: worker$"),
    "another container": (with_container(), rf"images .*: added \({EVIL}\)$"),
    "another container with the worker's image": (with_container(image="kube-node-ready:0.1.0"), "images .*: added"),
    "a variable from a Secret": (with_variable({"name": "A", "valueFrom": SECRET}), "variables.*: worker$"),
    "all variables from a Secret": (of_worker(envFrom=[{"secretRef": {"name": "tokens"}}]), "variables.*: worker$"),
    "a path of the host": (with_volume({"name": "host", "hostPath": {"path": "/"}}), "volumes.*: host$"),
    "a Secret": (with_volume({"name": "s", "secret": {"secretName": "tokens"}}), "volumes.*: s$"),
    "a projected Secret": (
        with_volume({"name": "s", "projected": {"sources": [{"secret": {"name": "tokens"}}]}}),
        "volumes.*: s$",
    ),
    "another ConfigMap": (with_volume({"name": "c", "configMap": {"name": "coredns"}}), "volumes.*: c$"),
    "a claim": (with_volume({"name": "c", "persistentVolumeClaim": {"claimName": "db"}}), "volumes.*: c$"),
    "a CSI volume": (with_volume({"name": "c", "csi": {"driver": "secrets-store.csi.k8s.io"}}), "volumes.*: c$"),
    "another path under a configured name": (creates(other_data), "volumes.*: data$"),
    "another image of an init container": (of_init_container(0, image=EVIL), "images .*: plain"),
    "other arguments of an init container": (of_init_container(0, args=["--evil"]), "commands.*: plain$"),
    "a privileged init container": (
        of_init_container(0, securityContext={"privileged": True}),
        "more powerful than configured: plain$",
    ),
    "another command of a privileged init container": (
        of_init_container(1, command=["/bin/sh"]),
        "commands.*: mighty$",
    ),
    "another variable of a privileged init container": (
        of_init_container(1, env=[{"name": "LD_PRELOAD", "value": "/data/evil.so"}]),
        "variables.*: mighty$",
    ),
    "another value of a privileged init container's variable": (
        of_init_container(1, env=[{"name": "LEVEL", "value": "2"}]),
        "variables.*: mighty$",
    ),
    "a capability of a privileged init container": (
        of_init_container(1, securityContext={**ROOT, "capabilities": {"add": ["SYS_ADMIN"]}}),
        "more powerful than configured: mighty$",
    ),
}


def of_the_server(scene: Scene) -> None:
    """With what webhooks and the server usually add."""
    pod = scene.a_worker()
    token = {"serviceAccountToken": {"path": "token", "audience": "sts.example"}}
    pod["spec"]["volumes"] += [{"name": "tmp", "emptyDir": {}}, {"name": "cloud", "projected": {"sources": [token]}}]
    variables = [
        {"name": "REGION", "value": "a"},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ]
    pod["spec"]["containers"][0]["env"] += variables
    pod["metadata"]["annotations"]["example.com/note"] = "a"
    pod["metadata"]["labels"]["example.com/note"] = "a"
    scene.create("pods", pod)


def a_probe(scene: Scene) -> None:
    pod = scene.a_worker()
    del pod["metadata"]["name"]
    pod["metadata"]["generateName"] = "node-ready-worker-probe-"
    scene.create("pods", pod)


ALLOWED: Mapping[str, Request] = {
    "a worker": creates(lambda _: None),
    "a worker with additions": of_the_server,
    "a worker for a verified node": of_spec(priorityClassName=""),
    "a worker without its init containers": of_spec(initContainers=[]),
    "a probe": a_probe,
}


@pytest.fixture(scope="module")
def limited(plane: lab.Plane) -> Iterator[Scene]:
    with a_stolen_token(plane, LIMITED, VALUES, policy=True) as scene:
        yield scene


@pytest.fixture(scope="module")
def unlimited(plane: lab.Plane) -> Iterator[Scene]:
    with a_stolen_token(plane, UNLIMITED, VALUES, policy=False) as scene:
        yield scene


@pytest.mark.parametrize("attack", CREATIONS)
def test_no_other_pod_can_be_created(limited: Scene, attack: str) -> None:
    request, message = CREATIONS[attack]
    denied(limited.rejection(request), message)


@pytest.mark.parametrize("attack", CREATIONS)
def test_without_the_policy_the_same_pod_is_created(unlimited: Scene, attack: str) -> None:
    assert unlimited.rejection(CREATIONS[attack][0]) == ""


@pytest.mark.parametrize("pod", ALLOWED)
def test_worker_pods_can_be_created(limited: Scene, pod: str) -> None:
    assert limited.rejection(ALLOWED[pod]) == ""


def test_a_probe_is_a_dry_run(limited: Scene) -> None:
    pod = limited.a_worker()
    del pod["metadata"]["name"]
    pod["metadata"]["generateName"] = "node-ready-worker-probe-"
    path = f"/api/v1/namespaces/{LIMITED}/pods"
    body = json.dumps(pod).encode()
    denied(limited.rejection(lambda scene: _ignore(scene.token.create(path, body))), "worker pods only")


def _ignore(_: bytes) -> None:
    return None


# Deletion


def a_pod(name: str, namespace: str) -> Json:
    container = {"name": "a", "image": "a", "securityContext": CONFINED}
    metadata = {"name": name, "namespace": namespace, "labels": {"k8s-app": "kube-dns"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


@pytest.mark.parametrize("is_limited", [True, False])
def test_only_worker_pods_of_the_workers_namespace_can_be_deleted(
    plane: lab.Plane, limited: Scene, unlimited: Scene, *, is_limited: bool
) -> None:
    scene = limited if is_limited else unlimited
    apply(plane, [a_pod("coredns-1", scene.namespace), a_pod(f"node-ready-worker-{UID}-1", "default")])
    worker = scene.a_worker()
    waiting.until(
        "there is a worker",
        lambda: scene.token.create(f"/api/v1/namespaces/{scene.namespace}/pods", json.dumps(worker).encode()),
        PATIENCE,
    )
    own = f"/api/v1/namespaces/{scene.namespace}/pods"
    try:
        said = [
            scene.rejection(lambda scene: scene.delete(f"{own}/coredns-1")),
            scene.rejection(lambda scene: scene.delete(f"{own}?labelSelector=k8s-app%3Dkube-dns")),
            scene.rejection(lambda scene: scene.delete(f"/api/v1/namespaces/default/pods/node-ready-worker-{UID}-1")),
        ]
        if is_limited:
            denied(said[0], "worker pods only")
            denied(said[1], "worker pods only")
            denied(said[2], f"in namespace {LIMITED} only")
        else:
            assert said == ["", "", ""]
        assert scene.rejection(lambda scene: scene.delete(f"{own}/{worker['metadata']['name']}")) == ""
    finally:
        plane.kubectl("delete", "pod", "--namespace=default", "--force", f"node-ready-worker-{UID}-1")
