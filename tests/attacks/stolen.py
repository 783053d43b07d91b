"""The controller's token in the wrong hands, with more rights than the chart grants.

RBAC alone would reject some of the requests, such as pods in other namespaces. So the account gets every right that the
tests try, and what is rejected is rejected by an admission policy.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from lightkube.core.exceptions import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace
from lightkube.resources.core_v1 import Node as NodeObject

import lab
from kube_node_ready.agent.api import MERGE_PATCH, STRATEGIC_PATCH, Api
from kube_node_ready.kube.errors import Conflict, Rejected
from kube_node_ready.settings import policy as settings
from kube_node_ready.verification.model import Node
from kube_node_ready.verification.worker_pod import worker_pod
from lab import waiting
from tests.support import configs
from tests.support.chart_release import Release, apply

PATIENCE = 180
GATE = {"key": "node-ready/unverified", "value": "true", "effect": "NoSchedule"}
FOREIGN = {"key": "example.com/foreign", "value": "a", "effect": "PreferNoSchedule"}
LABEL = "node-ready/verified"
Json = dict[str, Any]
_DELETE = b'{"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}'
_RIGHTS = {
    "": ["pods", "nodes", "nodes/status", "configmaps", "events"],
    "coordination.k8s.io": ["leases"],
}


class Scene(NamedTuple):
    """A release, the token of its controller, and two nodes: a gated one and a verified one."""

    release: Release
    token: Api
    gated: str
    verified: str
    unselected: str
    """Not selected by `nodeManagement.nodeSelector`, if there is one."""

    @property
    def namespace(self) -> str:
        return self.release.namespace

    def node(self, name: str = "") -> Json:
        found: Json = self.release.plane.client.get(NodeObject, name or self.gated).to_dict()
        return found

    def a_worker(self, attempt: int = 7) -> Json:
        """A pod as the controller creates it."""
        node = Node(self.gated, self.node()["metadata"]["uid"])
        return worker_pod(node, attempt, settings.template(configs.load(self.release.made.file)))

    def create(self, resource: str, body: Json, namespace: str = "", api: str = "/api/v1") -> None:
        path = f"{api}/namespaces/{namespace or self.namespace}/{resource}?dryRun=All"
        self.token.create(path, json.dumps(body).encode())

    def patch(self, node: str, change: Json, kind: str = MERGE_PATCH) -> None:
        part = "/status" if "status" in change else ""
        self.token.patch(f"/api/v1/nodes/{node}{part}?dryRun=All", json.dumps(change).encode(), kind)

    def delete(self, path: str) -> None:
        self.token._send("DELETE", path, _DELETE)

    def rejection(self, request: "Request") -> str:
        """Why the request is rejected; empty if it is not. Requests are dry runs: nothing changes."""

        def answer() -> list[str] | None:
            try:
                request(self)
            except Rejected as error:
                return [f"{error.status} {error.message}"]
            except Conflict:  # the simulated kubelet has written meanwhile
                return None
            return [""]

        (response,) = waiting.until("there is an answer", answer, PATIENCE, alive=self.release.plane.check)
        return response


Request = Callable[[Scene], None]


def denied(response: str, message: str) -> None:
    """The API server has rejected the request with this message, which an admission policy has."""
    assert response.startswith("403 "), response
    assert "ValidatingAdmissionPolicy" in response, response
    assert re.search(message, response.partition(" denied request: ")[2]), response


# Requests about Nodes


def sets(change: Json, kind: str = MERGE_PATCH) -> Request:
    return lambda scene: scene.patch(scene.gated, change, kind)


def sets_label(key: str, value: str | None) -> Request:
    return sets({"metadata": {"labels": {key: value}}})


def sets_taints(choose: Callable[[list[Json]], list[Json]], *, verified: bool = False) -> Request:
    """Taints are one value to a patch, so all of them are part of it. It conflicts if the cluster has added one."""

    def request(scene: Scene) -> None:
        name = scene.verified if verified else scene.gated
        node = scene.node(name)
        there = [{key: value for key, value in taint.items() if value} for taint in node["spec"]["taints"]]
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        scene.patch(name, {"metadata": version, "spec": {"taints": choose(there)}})

    return request


def sets_condition(condition: Json) -> Request:
    return sets({"status": {"conditions": [condition]}}, STRATEGIC_PATCH)


def without(taints: list[Json], key: str) -> list[Json]:
    return [taint for taint in taints if taint["key"] != key]


@contextmanager
def a_stolen_token(plane: lab.Plane, namespace: str, values: Mapping[str, Any], *, policy: bool) -> Iterator[Scene]:
    """`policy`: whether the chart limits the controller's writes. Its policy about worker pods is there in any case."""
    limits = {**values.get("admissionPolicy", {}), "enabled": True, "restrictController": policy}
    release = Release(plane, namespace, {**values, "admissionPolicy": limits})
    with suppress(ApiError):  # without labels, as kube-system is: Pod Security would reject much of what is tried
        plane.client.create(Namespace(metadata=ObjectMeta(name=namespace)))
    release.install()
    labels = {"case": namespace}
    gated = plane.simulated_nodes(1, prefix=f"{namespace}-gated", taints=[_taint(GATE), _taint(FOREIGN)], labels=labels)
    verified = plane.simulated_nodes(
        1, prefix=f"{namespace}-verified", taints=[_taint(FOREIGN)], labels=labels | {LABEL: "true"}
    )
    unselected = plane.simulated_nodes(1, prefix=f"{namespace}-unselected", taints=[_taint(GATE)])
    try:
        apply(plane, _every_right(release))
        scene = Scene(release, release.api(), gated.names[0], verified.names[0], unselected.names[0])
        _wait(scene, policy=policy)
        yield scene
    finally:
        plane.kubectl("delete", "--ignore-not-found", "clusterrole,clusterrolebinding", f"{namespace}-every-right")
        release.uninstall()
        for nodes in (gated, verified, unselected):
            nodes.delete()


def _taint(taint: Json) -> lab.Taint:
    return lab.Taint(taint["key"], taint["effect"], taint["value"])


def _every_right(release: Release) -> list[Json]:
    group = "rbac.authorization.k8s.io"
    name = {"name": f"{release.namespace}-every-right"}
    rules = [{"apiGroups": [api], "resources": what, "verbs": ["*"]} for api, what in _RIGHTS.items()]
    subject = {"kind": "ServiceAccount", "name": release.account, "namespace": release.namespace}
    role = {"apiGroup": group, "kind": "ClusterRole", **name}
    return [
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": name, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": name,
            "roleRef": role,
            "subjects": [subject],
        },
    ]


def _wait(scene: Scene, *, policy: bool) -> None:
    """The API server needs a moment to load new policies, each on its own."""
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "other"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}, "spec": scene.a_worker()["spec"]}
    requests: tuple[Request, ...] = (
        lambda scene: scene.create("pods", pod),
        lambda scene: scene.create("leases", lease, api="/apis/coordination.k8s.io/v1"),
        sets({"metadata": {"finalizers": ["example.com/hold"]}}),
    )

    def are_loaded() -> bool:
        response = [scene.rejection(request) for request in requests]
        return all("ValidatingAdmissionPolicy" in text for text in response) if policy else not any(response)

    waiting.until("rights and policies are loaded", are_loaded, PATIENCE, alive=scene.release.plane.check)
