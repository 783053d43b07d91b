"""Objects that are nested so deeply that a recursive decoder gives up: one Node or pod must not stop the others.

The fields of Nodes and pods have a fixed depth, except for one: `metadata.managedFields`. The API server accepts field
sets that name no field of the object, and stores thousands of levels of them. A kubelet can write them to its Node and
its mirror pods, and an account that can patch pods can write them to these: no admission policy looks at them.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kube_node_ready.agent.api import MERGE_PATCH, Api
from kube_node_ready.checks import kubeconfig
from kubernetes_daemonset.cli import exit_codes
from kubernetes_daemonset.manifest import reader
from kubernetes_daemonset.render import naming as names
from tests.attacks.kubelet import IMAGE, MIRROR, Kubelet, kubelets, short_name, worker_name
from tests.attacks.test_forged_peers import create_responder, listed_peers
from tests.support.cli import Console, install
from tests.support.component_tool import Tool
from tests.support.controller_process import operating
from tests.support.manifests.builders import a_manifest
from tests.support.site import Site

LEVELS = 2000
"""Twice Python's recursion limit."""


@pytest.fixture
def hostile(site: Site) -> Iterator[Kubelet]:
    with kubelets(site.plane, short_name("hostile", site.namespace)) as (kubelet,):
        yield kubelet


NESTED = '{"f:a":' * LEVELS + "{}" + "}" * LEVELS
MANAGED = (
    '[{"manager": "hostile", "operation": "Update", "subresource": "status", "apiVersion": "v1", '
    f'"time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {{"f:status": {NESTED}}}}}]'
)
"""The claim to a field at this depth. A text: Python could not encode it either."""


def nest(credentials: Path, path: str) -> None:
    patch = f'{{"metadata": {{"annotations": {{"example.com/edited": "a"}}, "managedFields": {MANAGED}}}}}'
    answer = Api(lambda: kubeconfig.load(credentials)).patch(path, patch.encode(), MERGE_PATCH)
    assert answer.count(b'{"f:a"') == LEVELS, "the API server did not store it"


def create_nested_mirror(site: Site, kubelet: Kubelet, labels: Mapping[str, str]) -> None:
    """With the kubelet's credentials."""
    node = {"apiVersion": "v1", "kind": "Node", "name": kubelet.node, "uid": kubelet.uid, "controller": True}
    metadata = {
        "name": "nested",
        "labels": dict(labels),
        "annotations": {MIRROR: "a"},
        "ownerReferences": [node],
        "managedFields": "MANAGED",
    }
    spec = {"nodeName": kubelet.node, "containers": [{"name": "a", "image": IMAGE}]}
    body = json.dumps({"metadata": metadata, "spec": spec}).replace('"MANAGED"', MANAGED)
    api = Api(lambda: kubeconfig.load(site.plane.kubelet_kubeconfig(kubelet.node)))
    answer = api.create(f"/api/v1/namespaces/{site.namespace}/pods", body.encode())
    assert answer.count(b'{"f:a"') == LEVELS, "the API server did not store it"


def nest_its_node(site: Site, kubelet: Kubelet) -> None:
    nest(site.plane.kubelet_kubeconfig(kubelet.node), f"/api/v1/nodes/{kubelet.node}")


def nest_pod(site: Site, pod: str) -> None:
    """As an account that can patch pods in the workers' namespace."""
    nest(site.plane.kubeconfig(), f"/api/v1/namespaces/{site.namespace}/pods/{pod}")


def verifies(site: Site, group: str) -> None:
    """A node that joins now is released."""
    (name,) = site.join(group=group).names
    site.until(f"{name} is released", lambda: site.node(name).labelled, 60)


def test_a_deeply_nested_node_does_not_stop_the_controller(site: Site, hostile: Kubelet, tmp_path: Path) -> None:
    """Neither one that watches it nor one that starts and lists it."""
    hostile.register(labels={"site": site.namespace}, taints=[site.gate])
    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        verifies(site, "before")
        nest_its_node(site, hostile)
        verifies(site, "after")
    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        verifies(site, "restart")


def test_a_nested_node_is_verified_like_any_other(site: Site, hostile: Kubelet, tmp_path: Path) -> None:
    """The answers to the controller's own writes are nested, too."""
    hostile.register(labels={"site": site.namespace}, taints=[site.gate])
    nest_its_node(site, hostile)
    path = f"/api/v1/nodes/{hostile.node}"
    admin = Api(lambda: kubeconfig.load(site.plane.kubeconfig()))

    def is_released() -> bool:
        hostile.run_pods(lambda _: 0)
        return b'"node-ready/verified":"true"' in admin.get(path)

    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        site.until("it is released", is_released, 60)


def test_a_deeply_nested_worker_does_not_stop_the_controller(site: Site, hostile: Kubelet, tmp_path: Path) -> None:
    hostile.register(labels={"site": site.namespace}, taints=[site.gate])
    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        site.until("its worker is bound", lambda: any(worker.node_name == hostile.node for worker in site.workers()))
        nest_pod(site, worker_name(hostile.uid, 1))
        verifies(site, "after")


@pytest.mark.parametrize("words", [("status",), ("status", "--output=json")], ids=" ".join)
def test_a_nested_node_does_not_stop_the_command_line(site: Site, hostile: Kubelet, words: tuple[str, ...]) -> None:
    install(site, site.config())
    hostile.register(labels={"site": site.namespace}, taints=[site.gate])
    nest_its_node(site, hostile)
    (other,) = site.join().names
    done = Console(site).ask(*words)
    assert done.returncode in (0, 1), done.stderr
    assert hostile.node in done.stdout
    assert other in done.stdout


def test_a_nested_peer_does_not_fail_the_checks_of_other_nodes(site: Site) -> None:
    names = [short_name(role, site.namespace) for role in ("hostile", "honest", "other")]
    with kubelets(site.plane, *names) as made:
        for number, kubelet in enumerate(made):
            kubelet.register()
            kubelet.serve(create_responder(site, kubelet), site.namespace, f"192.0.2.{number + 1}")
        nest_pod(site, f"responder-{names[0]}")
        assert listed_peers(site) == set(names)


def test_a_nested_mirror_pod_does_not_end_a_rollout(site: Site, hostile: Kubelet, tmp_path: Path) -> None:
    """It has the labels of an agent's pods. These do not start on this node, so `apply` looks for the reason."""
    hostile.register(labels={"site": site.namespace})
    changes = {"spec.namespace": site.namespace, "spec.node_selector": {"site": site.namespace}}
    tool = Tool(site.plane, tmp_path, site.plane.kubeconfig())
    file = tool.write("agent.yaml", a_manifest(changes))
    (agent,) = reader.load(file.read_bytes(), "agent.yaml")
    create_nested_mirror(site, hostile, names.selector(agent.manifest))
    ran = tool.run("apply", "-f", file, "--timeout=3s")
    assert ran.code == exit_codes.LATE, ran.err
