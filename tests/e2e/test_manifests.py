"""The plain manifests of examples/manifests on real nodes: applied as they stand, without Helm."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.core_v1 import Pod

import lab
from demo import image as release_image
from tests.support.chart_cluster import Guarded, guarded, is_proved
from tests.support.shell import ROOT

NAMESPACE = "kube-system"
IMAGE = "docker.io/library/kube-node-ready:latest"
"""What the manifests' `kube-node-ready:latest` means to a container runtime."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(tmp_path_factory.mktemp("helm"), "daemonset/kube-node-ready") as made:
        for node in made.plane.nodes.values():
            name_image(node)
        yield made


def name_image(node: lab.Node) -> None:
    node.run("ctr", "--namespace=k8s.io", "images", "tag", release_image.NAME, IMAGE)


def pods(site: Guarded) -> list[Pod]:
    return list(site.plane.client.list(Pod, namespace=NAMESPACE, labels={"app": "kube-node-ready"}))


def test_the_unmodified_manifests_verify_nodes_and_leave_them(site: Guarded) -> None:
    assert site.is_gated("a")
    site.plane.kubectl("apply", f"--filename={Path(ROOT) / 'examples' / 'manifests'}")
    site.until("the gates are open", lambda: site.is_released("a", "b"))
    site.until("the pods are gone", lambda: not pods(site))
    assert all(is_proved(site.node(name)) for name in ("a", "b"))
    status = site.plane.client.get(DaemonSet, "kube-node-ready", namespace=NAMESPACE).status
    assert status
    assert status.desiredNumberScheduled == 0


def test_a_node_that_joins_later_is_verified(site: Guarded) -> None:
    site.join("c")
    name_image(site.plane.nodes["c"])
    site.until("the gate is open", lambda: site.is_released("c"))
    site.until("its pod is gone", lambda: not pods(site))
