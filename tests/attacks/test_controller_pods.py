"""Which pods the controller's token can create and delete: the chart's policy, tested request by request.

Every attack is tried on a release with the policy, where it must be rejected, and on one without it, where it must
succeed. So a rejection is known to come from the policy alone.
"""

import copy
import json
from collections.abc import Callable, Iterator, Mapping

import pytest

import lab
from kube_node_ready import __version__
from lab import waiting
from tests.attacks.stolen import PATIENCE, Json, Request, Scene, a_stolen_token, denied
from tests.support.chart_release import apply

LIMITED, UNLIMITED = "token-pods-limited", "token-pods-unlimited"
UID = "11111111-2222-3333-4444-555555555555"
EVIL = "example.com/evil:1"
MIRROR = "mirror.example/kube-node-ready"
DATA = {"name": "data", "hostPath": {"path": "/var/lib/data"}}
SCRIPTS = {"name": "scripts", "configMap": {"name": "scripts", "defaultMode": 493, "optional": False}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
SCRATCH = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}
SIZED = {"name": "sized", "emptyDir": {"sizeLimit": "1024Mi"}}
"""The server stores 1Gi."""
LIMIT = {"path": "cpu", "resourceFieldRef": {"containerName": "worker", "resource": "requests.cpu"}}
DRIVER = {"name": "driver", "csi": {"driver": "example.com", "volumeAttributes": {}}}
"""The server omits the empty mapping."""
LIMITS = {"name": "limits", "downwardAPI": {"items": [LIMIT]}}
"""The server adds a divisor."""
CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
PLAIN = {
    "name": "plain",
    "image": "example.com/plain:1",
    "args": ["--fast"],
    "volumeMounts": [{"name": "scripts", "mountPath": "/scripts", "readOnly": False, "subPath": "a"}],
    "securityContext": {**CONFINED, "runAsUser": 997},
}
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
    "volumes": [DATA, SCRIPTS, SCRATCH, SIZED, LIMITS, DRIVER],
    "podLabels": {"team": "platform", "node": "a"},
    "configMapName": "checks",
    "priorityClassName": "system-cluster-critical",
}
VALUES = {
    "controller": {"config": {"worker": WORKER}},
    "admissionPolicy": {"additionalWorkerImages": ["example.com/sidecar:1"]},
}
ADDITIONAL = "example.com/sidecar:1"
ANNOTATION = {
    "name": "text",
    "downwardAPI": {
        "defaultMode": 493,
        "items": [{"path": "program", "fieldRef": {"fieldPath": "metadata.annotations['text']"}}],
    },
}
"""The creator of the pod chooses its annotations, and so what is in this volume."""
SECRET = {"secretKeyRef": {"name": "tokens", "key": "a"}}
OFF_ITS_NODE = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": "kubernetes.io/hostname"}
    ]
}
"""The scheduler applies it to all pods that come later: they cannot run on the same node."""

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


def with_other_volume(volume: Json) -> Request:
    """In the place of the configured one of this name."""

    def change(pod: Json) -> None:
        others = [other for other in pod["spec"]["volumes"] if other["name"] != volume["name"]]
        pod["spec"]["volumes"] = [*others, volume]

    return creates(change)


def with_mount(kind: str, index: int, **mount: object) -> Request:
    def change(pod: Json) -> None:
        pod["spec"]["volumes"].append(ANNOTATION)
        container = pod["spec"][kind][index]
        container["volumeMounts"] = [*container["volumeMounts"], mount]

    return creates(change)


def reverse_init_containers(pod: Json) -> None:
    pod["spec"]["initContainers"].reverse()


def with_label(key: str, value: str) -> Request:
    return creates(lambda pod: pod["metadata"]["labels"].update({key: value}))


def take_token_from_annotation(pod: Json) -> None:
    pod["spec"]["volumes"].append(ANNOTATION)
    mount = {"name": "text", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    pod["spec"]["initContainers"][1]["volumeMounts"].append(mount)


def move_to_containers(pod: Json) -> None:
    pod["spec"]["containers"].append(pod["spec"]["initContainers"].pop())


def move_to_init_containers(pod: Json) -> None:
    """A pod needs a container that is not an init container."""
    pod["spec"]["initContainers"].append(pod["spec"]["containers"].pop())
    pod["spec"]["containers"].append({"name": "added", "image": ADDITIONAL, "securityContext": CONFINED})


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
    "a pod as a system user": (of_pod_security(runAsUser=999), SHAPE),
    "a system user": (of_worker_security(runAsUser=999), POWERFUL),
    "another system user of an init container": (
        of_init_container(0, securityContext={**CONFINED, "runAsUser": 998}),
        "more powerful than configured: plain$",
    ),
    "pods of others are kept off its node": (of_spec(affinity={"podAntiAffinity": OFF_ITS_NODE}), "podAntiAffinity"),
    "a pod in the root group": (of_pod_security(runAsGroup=0), SHAPE),
    "a pod whose files belong to the root group": (of_pod_security(fsGroup=0), SHAPE),
    "a pod in a system group": (of_pod_security(supplementalGroups=[999]), SHAPE),
    "the root group": (of_worker_security(runAsGroup=0), POWERFUL),
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
    "an image from a mirror": (of_worker(image=f"{MIRROR}:{__version__}"), "admissionPolicy.additionalWorkerImages"),
    "another command": (of_worker(command=["/bin/sh"]), "commands.*: worker$"),
    "arguments": (of_worker(args=["-c", "evil"]), "commands.*: worker$"),
    "a lifecycle hook": (
        of_worker(lifecycle={"postStart": {"exec": {"command": ["/bin/sh"]}}}),
        "lifecycle hooks.*: worker$",
    ),
    "a probe": (of_worker(livenessProbe={"exec": {"command": ["/bin/sh"]}}), "probes.*: worker$"),
    "another container": (with_container(), rf"images .*: added \({EVIL}\)$"),
    "another container with the worker's image": (
        with_container(image=f"kube-node-ready:{__version__}"),
        "images .*: added",
    ),
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
    "another path under a configured name": (
        with_other_volume({"name": "data", "hostPath": {"path": "/"}}),
        "volumes.*: data$",
    ),
    "a volume of another kind under a configured name": (
        with_other_volume({**ANNOTATION, "name": "data"}),
        "volumes.*: data$",
    ),
    "other keys of a configured ConfigMap": (
        with_other_volume({"name": "scripts", "configMap": {"name": "scripts", "items": [{"key": "a", "path": "b"}]}}),
        "volumes.*: scripts$",
    ),
    "a copy of a claim in a configured volume": (
        with_other_volume(
            {
                "name": "scratch",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {**CLAIM, "dataSource": {"kind": "PersistentVolumeClaim", "name": "database"}}
                    }
                },
            }
        ),
        "volumes.*: scratch$",
    ),
    "another program in the place of a privileged init container's": (
        with_mount("initContainers", 1, name="text", mountPath="/mighty", subPath="program"),
        "mounts.*: mighty$",
    ),
    "a configured volume in another place of a privileged init container": (
        of_init_container(1, volumeMounts=[{"name": "data", "mountPath": "/usr"}]),
        "mounts.*: mighty$",
    ),
    "a part of a configured volume": (
        of_init_container(1, volumeMounts=[{"name": "data", "mountPath": "/data", "subPath": "a"}]),
        "mounts.*: mighty$",
    ),
    "a part of a configured volume, by a variable": (
        of_init_container(1, volumeMounts=[{"name": "data", "mountPath": "/data", "subPathExpr": "$(LEVEL)"}]),
        "mounts.*: mighty$",
    ),
    "no mounts of a privileged init container": (of_init_container(1, volumeMounts=[]), "mounts.*: mighty$"),
    "mounts that reach the node": (
        of_init_container(
            1, volumeMounts=[{"name": "data", "mountPath": "/data", "mountPropagation": "Bidirectional"}]
        ),
        "mounts.*: mighty$",
    ),
    "a configured volume as a token of a privileged init container": (
        with_mount("initContainers", 1, name="data", mountPath="/var/run/secrets/kubernetes.io/serviceaccount"),
        "mounts.*: mighty$",
    ),
    "an init container's volume in the worker": (
        with_mount("containers", 0, name="data", mountPath="/data"),
        "mounts.*: worker$",
    ),
    "an init container's volume in another one": (
        with_mount("initContainers", 0, name="data", mountPath="/data"),
        "mounts.*: plain$",
    ),
    "an init container's volume in an added container": (
        with_container(image=ADDITIONAL, volumeMounts=[{"name": "data", "mountPath": "/data"}]),
        "mounts.*: added$",
    ),
    "another folder of a privileged init container": (of_init_container(1, workingDir="/data"), "folders.*: mighty$"),
    "another folder of the worker": (of_worker(workingDir="/tmp"), "folders.*: worker$"),
    "a file in the place of a program": (
        of_init_container(1, terminationMessagePath="/mighty"),
        "commands.*: mighty$",
    ),
    "an open input": (of_init_container(1, stdin=True), "commands.*: mighty$"),
    "a privileged init container that is restarted": (
        of_init_container(1, restartPolicy="Always"),
        "commands.*: mighty$",
    ),
    "a privileged init container beside the worker": (creates(move_to_containers), "in their order"),
    "a worker that runs before others": (creates(move_to_init_containers), "in their order"),
    "init containers in another order": (creates(reverse_init_containers), "in their order"),
    "no init containers": (of_spec(initContainers=[]), "in their order"),
    "a pod of cluster DNS": (with_label("k8s-app", "kube-dns"), "labels .*: k8s-app$"),
    "a pod of another application": (
        with_label("app.kubernetes.io/name", "coredns"),
        r"labels .*: app\.kubernetes\.io/name$",
    ),
    "another label of Kubernetes": (with_label("app.kubernetes.io/part-of", "a"), r"labels .*: app\.kubernetes\.io/"),
    "another value of a configured label": (with_label("team", "other"), "labels .*: team$"),
    "a token from an annotation": (creates(take_token_from_annotation), "mounts.*: mighty$"),
    "a program for an init container that prepares files": (
        with_mount("initContainers", 0, name="text", mountPath="/plain", subPath="program"),
        "mounts.*: plain$",
    ),
    "a variable of an init container that prepares files": (
        of_init_container(0, env=[{"name": "LD_PRELOAD", "value": "/scripts/evil.so"}]),
        "variables.*: plain$",
    ),
    "a worker that is restarted": (of_spec(restartPolicy="OnFailure"), "restartPolicy"),
    "a name that leads to the pod itself": (of_spec(hostname="example", subdomain="com"), "names must resolve"),
    "variables for Services": (of_spec(enableServiceLinks=True), "names must resolve"),
    "a folder that is created on the host": (
        with_other_volume({"name": "data", "hostPath": {"path": "/var/lib/data", "type": "DirectoryOrCreate"}}),
        "volumes.*: data$",
    ),
    "annotations of a claim": (
        with_other_volume(
            {
                "name": "scratch",
                "ephemeral": {"volumeClaimTemplate": {"metadata": {"annotations": {"a": "b"}}, "spec": CLAIM}},
            }
        ),
        "volumes.*: scratch$",
    ),
    "shared processes": (of_spec(shareProcessNamespace=True), "shareProcessNamespace"),
    "another address of a name": (
        of_spec(hostAliases=[{"ip": "127.0.0.1", "hostnames": ["example.com"]}]),
        "names must resolve",
    ),
    "another DNS server": (of_spec(dnsPolicy="None", dnsConfig={"nameservers": ["127.0.0.1"]}), "names must resolve"),
    "a DNS server in an option": (
        of_spec(dnsConfig={"options": [{"name": "rotate\nnameserver 192.0.2.1", "value": "1"}]}),
        "names must resolve",
    ),
    "a DNS server in the value of an option": (
        of_spec(dnsConfig={"options": [{"name": "ndots", "value": "1\nnameserver 192.0.2.1"}]}),
        "names must resolve",
    ),
    "another search path": (of_spec(dnsConfig={"searches": ["example.com"]}), "names must resolve"),
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
    "no variables of a privileged init container": (of_init_container(1, env=[]), "variables.*: mighty$"),
    "a privileged init container's variable from the pod": (
        of_init_container(1, env=[{"name": "LEVEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
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
    pod["spec"]["containers"][0]["volumeMounts"].append({"name": "tmp", "mountPath": "/tmp"})
    rights = {**CONFINED, "runAsUser": 100}
    pod["spec"]["containers"].append({"name": "sidecar", "image": ADDITIONAL, "securityContext": rights})
    pod["spec"]["dnsConfig"] = {"options": [{"name": "ndots", "value": "2"}]}
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
        response = [
            scene.rejection(lambda scene: scene.delete(f"{own}/coredns-1")),
            scene.rejection(lambda scene: scene.delete(f"{own}?labelSelector=k8s-app%3Dkube-dns")),
            scene.rejection(lambda scene: scene.delete(f"/api/v1/namespaces/default/pods/node-ready-worker-{UID}-1")),
        ]
        if is_limited:
            denied(response[0], "worker pods only")
            denied(response[1], "worker pods only")
            denied(response[2], f"in namespace {LIMITED} only")
        else:
            assert response == ["", "", ""]
        assert scene.rejection(lambda scene: scene.delete(f"{own}/{worker['metadata']['name']}")) == ""
    finally:
        plane.kubectl("delete", "pod", "--namespace=default", "--force", f"node-ready-worker-{UID}-1")


READER = {
    "name": "reader",
    "image": "example.com/reader:1",
    "command": ["/reader"],
    "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
    "securityContext": {**CONFINED, "runAsUser": 997},
}
"""It has no rights, and reads a folder of the node."""
OF_THE_READER: Mapping[str, tuple[Request, str]] = {
    "another command": (of_init_container(0, command=["/bin/sh"]), "commands.*: reader$"),
    "a variable": (
        of_init_container(0, env=[{"name": "LD_PRELOAD", "value": "/text/evil.so"}]),
        "variables.*: reader$",
    ),
    "a program from an annotation": (
        with_mount("initContainers", 0, name="text", mountPath="/reader", subPath="program"),
        "mounts.*: reader$",
    ),
}


@pytest.fixture(scope="module")
def reading(plane: lab.Plane) -> Iterator[Scene]:
    worker = {"initContainers": [READER], "volumes": [DATA]}
    with a_stolen_token(
        plane, "token-pods-reading", {"controller": {"config": {"worker": worker}}}, policy=True
    ) as scene:
        yield scene


@pytest.mark.parametrize("attack", OF_THE_READER)
def test_an_init_container_with_a_folder_of_the_node_runs_as_configured(reading: Scene, attack: str) -> None:
    request, message = OF_THE_READER[attack]
    denied(reading.rejection(request), message)


def test_workers_with_a_folder_of_the_node_can_be_created(reading: Scene) -> None:
    assert reading.rejection(creates(lambda _: None)) == ""
