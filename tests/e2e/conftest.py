"""Two real nodes with a prober on each, shared by the tests of this folder. A test that breaks a node repairs it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Pod, ServiceAccount

import lab
from demo import image as release_image
from lab import waiting
from tests.support.builders import a_server, wait_running

PROBERS = "probers"
WORKERS = "workers"
ACCOUNTS = f"""
apiVersion: v1
kind: ServiceAccount
metadata: {{name: worker, namespace: {WORKERS}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: powerless, namespace: {WORKERS}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: worker-e2e}}
rules:
  - {{apiGroups: [""], resources: [services], verbs: [get]}}
  - {{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: worker-e2e}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: worker-e2e}}
subjects: [{{kind: ServiceAccount, name: worker, namespace: {WORKERS}}}]
---
apiVersion: v1
kind: Secret
metadata: {{name: forged-token, namespace: {WORKERS}}}
stringData: {{token: nobody-signed-this}}
"""


@dataclass(frozen=True)
class Probed:
    """A node, a pod on it from which one can look around, and that pod's address."""

    node: lab.Node
    prober: Pod
    address: str


@pytest.fixture(scope="session")
def two_nodes(plane: lab.Plane) -> tuple[Probed, Probed]:
    first, second = plane.start_nodes("first", "second")
    plane.wait_for_dns()
    plane.client.create(Namespace(metadata=ObjectMeta(name=PROBERS)))
    waiting.until("pods can be created", lambda: plane.client.get(ServiceAccount, "default", namespace=PROBERS), 180)
    for node in (first, second):
        plane.client.create(a_server(node.name, PROBERS, node=node.name))
    return _probed(plane, first), _probed(plane, second)


def _probed(plane: lab.Plane, node: lab.Node) -> Probed:
    prober = plane.client.get(Pod, node.name, namespace=PROBERS)
    address = wait_running(plane, prober).podIP
    assert address
    return Probed(node, prober, address)


@pytest.fixture(scope="session")
def workers(plane: lab.Plane, two_nodes: tuple[Probed, Probed]) -> str:
    """A namespace with the ServiceAccounts `worker` and `powerless`, on nodes that have the worker's image."""
    assert two_nodes
    plane.import_image(release_image.archive())
    plane.client.create(Namespace(metadata=ObjectMeta(name=WORKERS)))
    plane.apply(ACCOUNTS)
    waiting.until("pods can be created", lambda: plane.client.get(ServiceAccount, "default", namespace=WORKERS), 180)
    return WORKERS


@pytest.fixture
def first(two_nodes: tuple[Probed, Probed]) -> Iterator[Probed]:
    yield two_nodes[0]
    two_nodes[0].node.heal()


@pytest.fixture
def second(two_nodes: tuple[Probed, Probed]) -> Iterator[Probed]:
    yield two_nodes[1]
    two_nodes[1].node.heal()


@pytest.fixture(autouse=True)
def _needs_root(as_root: None) -> None:
    """Every test here runs on real nodes."""
