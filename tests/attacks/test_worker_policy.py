"""Forged and tampered worker pods: the chart's admission policy, tested request by request on a real API server.

Every attack runs in two namespaces: one with the policy, where it must be rejected, and one without it, where it must
succeed. So a rejection is known to come from the policy alone.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lightkube.resources.admissionregistration_v1 import ValidatingAdmissionPolicy
from lightkube.resources.core_v1 import Node as NodeObject
from lightkube.resources.core_v1 import Pod

import lab
from kube_node_ready.agent.api import MERGE_PATCH, STRATEGIC_PATCH, Api
from kube_node_ready.kube.errors import AlreadyExists, Rejected
from kube_node_ready.settings import policy as settings
from kube_node_ready.verification.model import Node
from kube_node_ready.verification.worker_pod import worker_pod
from lab import waiting
from tests.support import configs
from tests.support.chart_release import Release, api_of, apply, make_namespace
from tests.support.chart_run import Run, a_run

PATIENCE = 180
GUARDED, UNGUARDED, ELSEWHERE = "worker-policy", "no-worker-policy", "worker-policy-elsewhere"
COLLEAGUE, TENANT = "colleague", "tenant"
OTHER_UID = "11111111-2222-3333-4444-555555555555"
LABELS = {"app": "kube-node-ready", "component": "worker"}
APPLY_PATCH = "application/apply-patch+yaml"
MIRROR = "kubernetes.io/config.mirror"
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_SUBRESOURCES = ("pods/ephemeralcontainers", "pods/resize", "pods/exec", "pods/attach")
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
POD_COLLECTOR = "kube-system/pod-garbage-collector"
Json = dict[str, Any]


class Scene(NamedTuple):
    """A namespace with a worker pod, an ordinary pod, and accounts that want to tamper with them."""

    release: Release
    worker: str
    ordinary: str
    node: Node
    """The worker's."""
    controller: Api
    tenant: Api
    """Has all rights on pods in this namespace, but not on their status."""
    administrator: Api
    kubelet: Api
    kubelet_node: Node

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.release.namespace}/pods"

    def a_worker(self, attempt: int = 7) -> Json:
        """A pod as the controller creates it."""
        return a_worker_of(self.release, self.node, attempt)

    def a_pod(self, **metadata: object) -> Json:
        """A pod of anyone's that the `restricted` standard admits."""
        worker = self.a_worker()
        spec = {**worker["spec"], "serviceAccountName": "default", "priorityClassName": ""}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried", **metadata}, "spec": spec}

    def a_mirror_pod(self, **metadata: object) -> Json:
        """As kubelets create them for their static pods."""
        pod, owner = self.a_pod(**metadata), self.kubelet_node
        pod["metadata"]["annotations"] = {MIRROR: "a"}
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Node", "name": owner.name, "uid": owner.uid, "controller": True}
        ]
        (container,) = pod["spec"]["containers"]
        spec = {"nodeName": owner.name, "securityContext": pod["spec"]["securityContext"]}
        return {**pod, "spec": {**spec, "containers": [container], "restartPolicy": "Never"}}

    def create(self, api: Api, pod: Json) -> None:
        api.create(f"{self.pods}?dryRun=All", json.dumps(pod).encode())

    def patch(self, api: Api, pod: str, change: Json, kind: str = MERGE_PATCH) -> None:
        api.patch(f"{self.pods}/{pod}?dryRun=All&fieldManager=attack", json.dumps(change).encode(), kind)


def a_worker_of(release: Release, node: Node, attempt: int) -> Json:
    return worker_pod(node, attempt, settings.template(configs.load(release.made.file)))


Request = Callable[[Scene], None]


def named(scene: Scene) -> str:
    """The name of a worker that does not exist yet."""
    return str(scene.a_worker()["metadata"]["name"])


def tenant_creates(**metadata: Any) -> Request:  # noqa: ANN401  as in JSON
    return lambda scene: scene.create(scene.tenant, scene.a_pod(**metadata))


def tenant_changes(change: Json, kind: str = MERGE_PATCH) -> Request:
    return lambda scene: scene.patch(scene.tenant, scene.worker, change, kind)


def annotated(name: str, value: str | None) -> Json:
    return {"metadata": {"annotations": {name: value}}}


def owned(*owners: Json) -> Json:
    return {"metadata": {"ownerReferences": list(owners)}}


def an_owner(uid: str) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": uid}


def tenant_adds_an_owner(scene: Scene) -> None:
    mine = {"apiVersion": "v1", "kind": "Node", "name": scene.node.name, "uid": scene.node.uid}
    scene.patch(scene.tenant, scene.worker, owned(mine, an_owner(OTHER_UID)))


def tenant_forges_a_whole_worker(scene: Scene) -> None:
    """The attack of finding M3: on the node itself, with an image of the tenant's that always passes."""
    pod = scene.a_worker()
    image = "example.com/always-passes:1"
    pod["spec"] |= {"serviceAccountName": "default", "nodeName": scene.node.name}
    pod["spec"]["containers"][0]["image"] = image
    scene.create(scene.tenant, pod)


def tenant_adds_an_ephemeral_container(scene: Scene) -> None:
    container = {"name": "debug", "image": "example.com/debug:1", "securityContext": RESTRICTED}
    change = {"spec": {"ephemeralContainers": [container]}}
    path = f"{scene.pods}/{scene.worker}/ephemeralcontainers?dryRun=All"
    scene.tenant.patch(path, json.dumps(change).encode(), STRATEGIC_PATCH)


def tenant_resizes_the_pod(scene: Scene) -> None:
    """One that is pending: simulated nodes do not support it for others."""
    worker = scene.a_worker(attempt=9)
    worker["spec"]["schedulerName"] = "none"
    with suppress(AlreadyExists):
        scene.controller.create(scene.pods, json.dumps(worker).encode())
    change = {"spec": {"resources": {"requests": {"cpu": "2"}}}}
    path = f"{scene.pods}/{worker['metadata']['name']}/resize?dryRun=All"
    scene.tenant.patch(path, json.dumps(change).encode(), STRATEGIC_PATCH)


FORGERIES: Mapping[str, Request] = {
    "a tenant uses the name of a worker": lambda scene: scene.create(scene.tenant, scene.a_pod(name=named(scene))),
    "a tenant uses the prefix of the name": tenant_creates(name="node-ready-worker-mine"),
    "a tenant has the name generated": tenant_creates(name="", generateName="node-ready-worker-"),
    "a tenant has the attempt generated": tenant_creates(name="", generateName=f"node-ready-worker-{OTHER_UID}-"),
    "a tenant uses the labels": tenant_creates(labels=LABELS),
    "a tenant forges a whole worker": tenant_forges_a_whole_worker,
    "a tenant applies it": lambda scene: scene.patch(
        scene.tenant, named(scene), scene.a_pod(name=named(scene)), APPLY_PATCH
    ),
    "an administrator uses the name": lambda scene: scene.create(scene.administrator, scene.a_pod(name=named(scene))),
    "a kubelet uses the name": lambda scene: scene.create(scene.kubelet, scene.a_mirror_pod(name=named(scene))),
    "a kubelet uses the labels": lambda scene: scene.create(scene.kubelet, scene.a_mirror_pod(labels=LABELS)),
    "a kubelet uses both": lambda scene: scene.create(
        scene.kubelet, scene.a_mirror_pod(name=named(scene), labels=scene.a_worker()["metadata"]["labels"])
    ),
}
TAMPERING: Mapping[str, tuple[Request, str]] = {
    "a label is removed": (tenant_changes({"metadata": {"labels": {"component": None}}}), "metadata.labels"),
    "all labels are removed": (tenant_changes({"metadata": {"labels": None}}), "metadata.labels"),
    "a label is changed": (tenant_changes({"metadata": {"labels": {"node": "other"}}}), "metadata.labels"),
    "a label is added": (tenant_changes({"metadata": {"labels": {"mine": "yes"}}}), "metadata.labels"),
    "another pod gets the labels": (
        lambda scene: scene.patch(scene.tenant, scene.ordinary, {"metadata": {"labels": LABELS}}),
        "metadata.labels",
    ),
    "the image is changed": (
        tenant_changes(
            {"spec": {"containers": [{"name": "worker", "image": "example.com/always-passes:1"}]}}, STRATEGIC_PATCH
        ),
        "spec.containers",
    ),
    "an init container's image is changed": (
        tenant_changes(
            {"spec": {"initContainers": [{"name": "first", "image": "example.com/always-passes:1"}]}}, STRATEGIC_PATCH
        ),
        "spec.initContainers",
    ),
    "an ephemeral container is added": (tenant_adds_an_ephemeral_container, "spec.ephemeralContainers"),
    "the deadline is shortened, which the node is blamed for": (
        tenant_changes({"spec": {"activeDeadlineSeconds": 1}}),
        "spec.activeDeadlineSeconds",
    ),
    "its bandwidth is limited by Calico": (
        tenant_changes(annotated("qos.projectcalico.org/egressBandwidth", "1k")),
        "metadata.annotations",
    ),
    "its bandwidth is limited, which the node is blamed for": (
        tenant_changes(annotated("kubernetes.io/egress-bandwidth", "1k")),
        "metadata.annotations",
    ),
    "it is connected to another network": (
        tenant_changes(annotated("v1.multus-cni.io/default-network", "mine/working")),
        "metadata.annotations",
    ),
    "its address is chosen": (
        tenant_changes(annotated("cni.projectcalico.org/ipAddrs", '["192.0.2.7"]')),
        "metadata.annotations",
    ),
    "resources of the pod are changed": (tenant_resizes_the_pod, "spec.resources"),
    "an owner is added": (tenant_adds_an_owner, "metadata.ownerReferences"),
    "the owner is removed": (tenant_changes(owned()), "metadata.ownerReferences"),
    "the owner is replaced": (tenant_changes(owned(an_owner(OTHER_UID))), "metadata.ownerReferences"),
}
TOLERATION = {"key": "example.com/added", "operator": "Exists", "effect": "NoSchedule"}
ALLOWED: Mapping[str, Request] = {
    "the controller creates a worker": lambda scene: scene.create(scene.controller, scene.a_worker()),
    "an administrator creates an ordinary pod": lambda scene: scene.create(scene.administrator, scene.a_pod()),
    "a tenant creates an ordinary pod": tenant_creates(labels={"app": "kube-node-ready", "component": "other"}),
    "a tenant has another name generated": tenant_creates(name="", generateName="node-ready-"),
    "a tenant relabels an ordinary pod": lambda scene: scene.patch(
        scene.tenant, scene.ordinary, {"metadata": {"labels": {"component": "worker"}}}
    ),
    "a kubelet creates an ordinary mirror pod": lambda scene: scene.create(scene.kubelet, scene.a_mirror_pod()),
    "the controller's own pod is created": lambda scene: scene.create(
        scene.administrator,
        {**scene.a_pod(), "metadata": {**scene.release.made.pod["metadata"], "generateName": "controller-"}},
    ),
    "the worker gets another annotation": tenant_changes(annotated("example.com/note", "a")),
    "a network plugin reports an address": tenant_changes(annotated("cni.projectcalico.org/podIP", "192.0.2.7/32")),
    "the worker gets a finalizer": tenant_changes({"metadata": {"finalizers": ["example.com/hold"]}}),
    "the worker is written unchanged": tenant_changes({}),
    "a colleague of another release creates a worker": lambda scene: scene.create(
        scene.release.api(COLLEAGUE), scene.a_worker()
    ),
}


def rejection(scene: Scene, request: Request) -> str:
    """Why the request is rejected; empty if it is not. Requests are dry runs: nothing changes."""
    try:
        request(scene)
    except Rejected as error:
        return f"{error.status} {error.message}"
    return ""


def enter(scene: Scene, api: Api, pod: str, way: str) -> str:
    """Why the request to run a command in this pod is rejected."""
    path = f"{scene.pods}/{pod}/{way}container=worker&stdout=true"

    def request(_: Scene) -> None:
        api.create(path, b"")

    return rejection(scene, request)


def account(namespace: str, name: str) -> list[Json]:
    """A ServiceAccount with all rights on pods, but not on their status."""
    rule = {"apiGroups": [""], "resources": ["pods", *_SUBRESOURCES], "verbs": ["*"]}
    metadata = {"name": name, "namespace": namespace}
    kind, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": kind, "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": kind,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", **metadata}],
        },
    ]


def a_kubelet(plane: lab.Plane, name: str) -> tuple[Api, Node]:
    """The credentials of a node's kubelet, which has registered its Node."""
    api = api_of(plane.kubelet_kubeconfig(name))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    made = json.loads(api.create("/api/v1/nodes", json.dumps(node).encode()))
    return api, Node(name, made["metadata"]["uid"])


def node_of(plane: lab.Plane, name: str) -> Node:
    found = plane.client.get(NodeObject, name).metadata
    assert found
    return Node(name, str(found.uid))


@contextmanager
def a_scene(plane: lab.Plane, namespace: str, *, policy: bool) -> Iterator[Scene]:
    creators = [f"system:serviceaccount:{namespace}:{COLLEAGUE}"]
    first = {"name": "first", "image": "example.com/first:1", "securityContext": RESTRICTED}
    values = {
        "admissionPolicy": {"enabled": policy, "additionalWorkerCreators": creators},
        "controller": {"config": {"worker": {"initContainers": [first]}}},
    }
    release = Release(plane, namespace, values)
    release.install()
    nodes = plane.simulated_nodes(1, prefix=namespace, verdict=lab.HANGS)
    kubelet, kubelet_node = a_kubelet(plane, f"{namespace}-kubelet")
    try:
        apply(plane, [*account(namespace, TENANT), *account(namespace, COLLEAGUE)])
        tenant, admin = release.api(TENANT), api_of(plane.kubeconfig())
        node = node_of(plane, nodes.names[0])
        scene = Scene(release, "", "ordinary", node, release.api(), tenant, admin, kubelet, kubelet_node)
        if policy:
            wait_for_policy(scene)
        worker = scene.a_worker(attempt=1)
        waiting.until(
            "the controller creates a worker",
            lambda: scene.controller.create(scene.pods, json.dumps(worker).encode()),
            PATIENCE,
            alive=plane.check,
        )
        apply(plane, [with_namespace(scene.a_pod(name="ordinary"), namespace)])
        yield scene._replace(worker=worker["metadata"]["name"])
    finally:
        release.uninstall()
        nodes.delete()
        plane.kubectl("delete", "node", kubelet_node.name)


def with_namespace(pod: Json, namespace: str) -> Json:
    return {**pod, "metadata": {**pod["metadata"], "namespace": namespace}}


def wait_for_policy(scene: Scene) -> None:
    """The API server needs a moment to load new policies, each on its own."""
    forged = FORGERIES["an administrator uses the name"]

    def works() -> bool:
        response = rejection(scene, forged), enter(scene, scene.administrator, "node-ready-worker-a", "attach?")
        return all("ValidatingAdmissionPolicy" in text for text in response)

    waiting.until("the policies work", works, PATIENCE, alive=scene.release.plane.check)


@pytest.fixture(scope="module")
def guarded(plane: lab.Plane) -> Iterator[Scene]:
    with a_scene(plane, GUARDED, policy=True) as scene:
        yield scene


@pytest.fixture(scope="module")
def unguarded(plane: lab.Plane) -> Iterator[Scene]:
    with a_scene(plane, UNGUARDED, policy=False) as scene:
        yield scene


@pytest.mark.parametrize("attack", FORGERIES)
def test_only_the_controller_creates_worker_pods(guarded: Scene, attack: str) -> None:
    users = f"{guarded.release.user()}, {guarded.release.user(COLLEAGUE)}"
    response = rejection(guarded, FORGERIES[attack])
    assert response.startswith("403 "), response
    assert response.endswith(f"denied request: only {users} can create worker pods in namespace {GUARDED}"), response


@pytest.mark.parametrize("attack", TAMPERING)
def test_worker_pods_cannot_be_tampered_with(guarded: Scene, attack: str) -> None:
    request, part = TAMPERING[attack]
    response = rejection(guarded, request)
    assert response.startswith("403 "), response
    assert f"denied request: {part}" in response, response
    assert f" of worker pods in namespace {GUARDED} can" in response, response


@pytest.mark.parametrize("attack", [*FORGERIES, *TAMPERING])
def test_without_the_policy_the_same_attack_succeeds(unguarded: Scene, attack: str) -> None:
    request = FORGERIES[attack] if attack in FORGERIES else TAMPERING[attack][0]
    assert rejection(unguarded, request) == ""


@pytest.mark.parametrize("request_", ALLOWED)
def test_everything_else_is_allowed(guarded: Scene, request_: str) -> None:
    assert rejection(guarded, ALLOWED[request_]) == ""


@pytest.mark.parametrize("way", ["exec?command=sh&", "attach?"])
@pytest.mark.parametrize("account", ["tenant", "administrator"])
def test_no_command_runs_in_a_worker_pod(guarded: Scene, unguarded: Scene, way: str, account: str) -> None:
    """Without the policy, the API server continues and requires a connection that can be upgraded."""
    response = enter(guarded, getattr(guarded, account), guarded.worker, way)
    assert response.startswith("403 "), response
    assert response.endswith(f"denied request: commands cannot be run in worker pods in namespace {GUARDED}"), response
    for scene, pod in ((unguarded, unguarded.worker), (guarded, guarded.ordinary)):
        assert enter(scene, getattr(scene, account), pod, way).startswith("400 ")


def test_tolerations_can_be_added(guarded: Scene) -> None:
    """A merge patch replaces the list, so that the ones that are there must be part of it."""
    path = f"{guarded.pods}/{guarded.worker}"
    there = json.loads(guarded.tenant.get(path))["spec"]["tolerations"]
    change = {"spec": {"tolerations": [*there, TOLERATION]}}
    assert rejection(guarded, lambda scene: scene.patch(scene.tenant, scene.worker, change)) == ""


def test_pods_of_the_same_name_in_other_namespaces_are_allowed(guarded: Scene) -> None:
    make_namespace(guarded.release.plane, ELSEWHERE)
    pod = guarded.a_pod(name=named(guarded), labels=LABELS)
    path = f"/api/v1/namespaces/{ELSEWHERE}/pods?dryRun=All"
    plane = guarded.release.plane
    waiting.until("the namespace is ready", lambda: guarded.administrator.create(path, json.dumps(pod).encode()), 60)
    plane.kubectl("delete", "namespace", "--wait=false", ELSEWHERE)


def test_the_status_can_be_written(guarded: Scene) -> None:
    """As kubelets do, here a simulated one."""

    def running() -> bool:
        status = guarded.release.plane.client.get(Pod, guarded.worker, namespace=GUARDED).status
        return bool(status and status.phase == "Running")

    waiting.until("the worker runs", running, PATIENCE, alive=guarded.release.plane.check)


@pytest.mark.parametrize("policy", ["workers", "workers-exec"])
def test_the_policy_has_no_type_check_warnings(guarded: Scene, policy: str) -> None:
    client = guarded.release.plane.client
    name = f"{GUARDED}-kube-node-ready-{policy}"

    def checked() -> ValidatingAdmissionPolicy | None:
        found = client.get(ValidatingAdmissionPolicy, name)
        return found if found.status and found.status.observedGeneration else None

    status = waiting.until("the controller manager has checked the types", checked, PATIENCE).status
    assert status
    assert status.typeChecking
    assert not status.typeChecking.expressionWarnings


# The controller with the policy


@pytest.fixture
def run(plane: lab.Plane, prefix: str, tmp_path: Path) -> Iterator[Run]:
    """A release with the policy in effect, for a controller and nodes."""
    with a_run(plane, prefix, tmp_path) as one:
        forged = a_worker_of(one.release, Node("a", OTHER_UID), 1)
        forged["spec"]["serviceAccountName"] = "default"
        listed = json.dumps(forged)

        def works() -> bool:
            try:
                plane.kubectl("create", "--dry-run=server", "--filename=-", standard_input=listed)
            except lab.LabError as error:
                return f"only {one.release.user()} can create worker pods in namespace {prefix}" in str(error)
            return False

        waiting.until("the policy works", works, PATIENCE, alive=plane.check)
        yield one


def a_hanging_worker(run: Run, node: str) -> str:
    """The worker that the controller has created for this node. The controller has ended, and the worker runs."""
    with run.controller() as operator:
        run.until("a worker runs", lambda: [name for name in run.workers(node) if phase(run, name) == "Running"])
        operator.stop()
    (worker,) = run.workers(node)
    return worker


def phase(run: Run, pod: str) -> str:
    status = run.plane.client.get(Pod, pod, namespace=run.release.namespace).status
    return str(status.phase) if status else ""


def is_gone(run: Run, pod: str) -> bool:
    return not list(run.plane.client.list(Pod, namespace=run.release.namespace, fields={"metadata.name": pod}))


def writes(run: Run, pod: str) -> set[tuple[str, str, int]]:
    """Verb, user and status code of the writes to this pod, by the audit log."""
    return {
        (event["verb"], event["user"]["username"], event.get("responseStatus", {}).get("code", 0))
        for event in run.plane.audit._events(0)
        if event.get("objectRef", {}).get("name") == pod and "subresource" not in event["objectRef"]
    }


def test_nodes_are_verified_with_the_policy(run: Run) -> None:
    passing, failing = run.join("passes", lab.PASSES), run.join("fails", lab.fails(seconds=0.2))
    with run.controller() as operator:
        run.until("a node passed", lambda: operator.logged("Node verified", node=passing))
        run.until("a node failed", lambda: operator.logged("Verification failed", node=failing))
        run.until("its worker was deleted", lambda: not run.workers(passing))
        operator.stop()


def test_a_worker_pod_can_be_deleted(run: Run) -> None:
    worker = a_hanging_worker(run, run.join("hangs", lab.HANGS))
    run.plane.kubectl("delete", "pod", f"--namespace={run.release.namespace}", "--timeout=120s", worker)
    assert is_gone(run, worker)


def test_the_garbage_collector_removes_the_worker_pods_of_a_deleted_node(run: Run) -> None:
    node = run.join("hangs", lab.HANGS)
    worker = a_hanging_worker(run, node)
    run.plane.kubectl("delete", "node", "--timeout=60s", node)
    run.until("the garbage collector deleted it", lambda: ("delete", COLLECTOR, 200) in writes(run, worker))


def test_the_pod_garbage_collector_can_remove_worker_pods_without_a_node(run: Run) -> None:
    """The kubelet has gone with its node, so it does not remove the pod. The collector does, about a minute later."""
    worker = a_hanging_worker(run, run.join("hangs", lab.HANGS))
    collector = run.plane.kubeconfig(POD_COLLECTOR)
    path = f"/api/v1/namespaces/{run.release.namespace}/pods/{worker}"
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
    status = {"status": {"phase": "Failed", "conditions": [condition]}}
    api_of(collector).patch(f"{path}/status", json.dumps(status).encode(), STRATEGIC_PATCH)
    run.plane.kubectl("delete", f"--kubeconfig={collector}", f"--raw={path}?gracePeriodSeconds=0")
    assert is_gone(run, worker)
    user = f"system:serviceaccount:{POD_COLLECTOR.replace('/', ':')}"
    run.until("the audit log shows it", lambda: ("delete", user, 200) in writes(run, worker))


def test_a_node_can_be_deleted_without_its_worker_pods(run: Run) -> None:
    """The Node is kept until the garbage collector has removed it from the owners of its worker pods."""
    node = run.join("hangs", lab.HANGS)
    worker = a_hanging_worker(run, node)
    run.plane.kubectl("delete", "node", "--cascade=orphan", "--timeout=60s", node)
    assert ("patch", COLLECTOR, 200) in writes(run, worker)
