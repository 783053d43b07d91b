"""Images that a mutating admission policy rewrites, as clusters with a registry mirror do (D5 of the fault campaign).

The API server's answer to the controller is the only trace of what it created. A worker with another image than the
configured one is a forgery in one cluster and the only possible worker in another, so both have to be tested.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab
from tests.attacks.history import History
from tests.attacks.kubelet import Kubelet
from tests.attacks.mirror import a_mirror
from tests.support.controller_process import operating
from tests.support.site import Site

PATIENCE = 120
MORTAL = (sys.executable, "-m", "tests.support.killable_controller", "--die-at=1:after")


@pytest.fixture
def mirror(site: Site) -> Iterator[None]:
    """Every pod of the namespace gets its image from another registry. Kubernetes 1.36 serves this by default."""
    with a_mirror(site.plane, site.namespace):
        yield


@pytest.mark.usefixtures("mirror")
def test_nodes_are_verified_by_workers_from_a_mirror(site: Site, tmp_path: Path) -> None:
    names = site.join(2).names
    histories = [History(site.plane, name) for name in names]
    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        site.until("they are verified", lambda: site.released(*names), PATIENCE)
    assert {record["outcome"] for history in histories for record in history.records()} == {"passed"}


@pytest.mark.usefixtures("mirror")
def test_a_worker_from_a_mirror_outlives_its_controller(site: Site, tmp_path: Path) -> None:
    """The controller is killed while the worker runs. Its successor accepts the worker's verdict."""
    (name,) = site.join(verdict=lab.HANGS).names
    with operating(tmp_path, site.plane.kubeconfig(), site.config()) as first:
        site.until("its worker runs", lambda: runs(site))
        first.kill()
    (worker,) = pods(site)
    with Kubelet(site.plane, name) as kubelet:
        kubelet.end(worker, site.namespace, 0)
    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        site.until("it is verified", lambda: site.released(name), PATIENCE)
    assert len(site.pods_ever()) == 1, "no other worker was needed"


@pytest.mark.usefixtures("mirror")
def test_a_worker_from_a_mirror_outlives_a_controller_that_did_not_create_it(site: Site, tmp_path: Path) -> None:
    """The controller is killed before it has read the answer to its request for a worker."""
    (name,) = site.join().names
    with operating(tmp_path, site.plane.kubeconfig(), site.config(), MORTAL) as first:
        first.process.wait(PATIENCE)
    assert len(pods(site)) == 1
    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        site.until("it is verified", lambda: site.released(name), PATIENCE)
    assert len(site.pods_ever()) == 1, "no other worker was needed"


def pods(site: Site) -> list[str]:
    return site.kubectl("get", "pods", "--output=jsonpath={.items[*].metadata.name}").split()


def runs(site: Site) -> bool:
    return "Running" in site.kubectl("get", "pods", "--output=jsonpath={.items[*].status.phase}")
