"""Images that a mutating admission policy rewrites, as clusters with a registry mirror do (D5 of the fault campaign).

The API server's answer to the controller is the only trace of what it created. A worker with another image than the
configured one is a forgery in one cluster and the only possible worker in another, so both have to be tested.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab
from lab import images, waiting
from tests.attacks.history import History
from tests.attacks.kubelet import Kubelet
from tests.gated import Site
from tests.operator import operating
from tests.support import a_pod

MIRROR = "mirror.example/"
PATIENCE = 120
MORTAL = (sys.executable, "-m", "tests.mortal", "--die-at=1:after")
_API = "admissionregistration.k8s.io/v1"


@pytest.fixture
def mirror(site: Site) -> Iterator[None]:
    """Every pod of the namespace gets its image from another registry. Kubernetes 1.36 serves this by default."""
    path = "/spec/containers/0/image"
    value = f"'{MIRROR}' + object.spec.containers[0].image"
    patch = f'[JSONPatch{{op: "replace", path: "{path}", value: {value}}}]'
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}}
    policy = {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": site.namespace},
        "spec": {
            "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here},
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        },
    }
    binding = {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": site.namespace},
        "spec": {"policyName": site.namespace},
    }
    site.plane.kubectl("apply", "--filename=-", standard_input=f"{json.dumps(policy)}\n---\n{json.dumps(binding)}")
    waiting.until("images are rewritten", lambda: is_rewritten(site), PATIENCE)
    yield
    for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
        site.kubectl("delete", kind, site.namespace)


def is_rewritten(site: Site) -> bool:
    made = site.plane.client.create(a_pod("any", site.namespace), dry_run=True)
    assert made.spec
    return made.spec.containers[0].image == f"{MIRROR}{images.TOOLBOX}"


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
def test_a_worker_from_a_mirror_outlives_a_controller_that_never_knew_of_it(site: Site, tmp_path: Path) -> None:
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
