"""Two real nodes with a prober on each, shared by the tests of this folder. Whoever breaks a node heals it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Pod, ServiceAccount

import lab
from lab import waiting
from tests.support import a_server, wait_running

PROBERS = "probers"


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
    waiting.until("pods can be created", lambda: plane.client.get(ServiceAccount, "default", namespace=PROBERS), 10)
    for node in (first, second):
        plane.client.create(a_server(node.name, PROBERS, node=node.name))
    return _probed(plane, first), _probed(plane, second)


def _probed(plane: lab.Plane, node: lab.Node) -> Probed:
    prober = plane.client.get(Pod, node.name, namespace=PROBERS)
    address = wait_running(plane, prober).podIP
    assert address
    return Probed(node, prober, address)


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
