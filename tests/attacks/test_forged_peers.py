"""Peers of the connectivity matrix as a hostile kubelet publishes them, against a real API server."""

from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.core_v1 import Pod

from kube_node_ready.checks import connectivity, kubeconfig
from kube_node_ready.checks.check import Deadline, NotApplicableError, PodIdentity
from kube_node_ready.checks.connectivity import Wanted
from lab import images
from tests.attacks.kubelet import Kubelet, kubelets, pod_of, short_name
from tests.support.site import Site

LABELS = {"app": "kube-node-ready", "part": "peer"}
SELECTOR = "app=kube-node-ready,part=peer"
FLOOD = 30
"""More than are listed for a sample of 5."""
MORE_THAN_LISTED = 9
"""For a sample of 2."""


def test_mirror_pods_of_one_node_do_not_displace_other_peers(site: Site) -> None:
    """The list is cut short and sorted by name, so names that come first would fill it."""
    names = [short_name(role, site.namespace) for role in ("hostile", "honest", "other")]
    with kubelets(site.plane, *names) as (hostile, *honest):
        for kubelet in (hostile, *honest):
            kubelet.register()
        for number in range(FLOOD):
            pod = hostile.mirror(f"aaa-{number}", site.namespace, labels=LABELS)
            hostile.serve(pod, site.namespace, "192.0.2.1")
        for number, kubelet in enumerate(honest):
            kubelet.serve(create_responder(site, kubelet), site.namespace, f"192.0.2.{number + 2}")
        assert listed_peers(site) == {kubelet.node for kubelet in honest}


@pytest.mark.parametrize("conditions", [0, 8_000], ids=["small", "huge"])
def test_pods_that_one_node_collects_do_not_displace_other_peers(site: Site, conditions: int) -> None:
    """A DaemonSet gets another pod while an earlier one, which its kubelet has deleted, is reported as failed.

    Huge ones together are more than a worker can hold, or reads.
    """
    names = [short_name(role, site.namespace) for role in ("hostile", "honest", "other")]
    with kubelets(site.plane, *names) as (hostile, *honest):
        hostile.register(labels={"hostile": site.namespace})
        _collect(site, hostile, MORE_THAN_LISTED, conditions)
        for number, kubelet in enumerate(honest):
            kubelet.register()
            kubelet.serve(create_responder(site, kubelet), site.namespace, f"192.0.2.{number + 2}")
        listed = connectivity._ready(_access(site), _wanted(site)._replace(sample=2), Deadline(30))
        assert {kubelet.node for kubelet in honest} <= set(listed)


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "fe80::1"])
def test_an_address_that_the_api_server_accepts_is_not_connected_to(site: Site, address: str) -> None:
    names = [short_name(role, site.namespace) for role in ("one", "two")]
    with kubelets(site.plane, *names) as made:
        for kubelet in made:
            kubelet.register()
            kubelet.serve(create_responder(site, kubelet), site.namespace, address)
        assert len(listed_peers(site)) == 2, "the API server accepted it"
        with pytest.raises(NotApplicableError, match="not enough peers: 0 of 2 "):
            connectivity.reaches_other_nodes(_access(site), _wanted(site), Deadline(30))


def _wanted(site: Site) -> Wanted:
    return Wanted(PodIdentity("verified-here", site.namespace), SELECTOR, 8081, 5)


def _access(site: Site) -> Any:  # noqa: ANN401  an Access
    return kubeconfig.load(Path(site.plane.kubeconfig()))


def listed_peers(site: Site) -> set[str]:
    return set(connectivity._ready(_access(site), _wanted(site), Deadline(30)))


def create_responder(site: Site, kubelet: Kubelet) -> str:
    """A pod on this node as a DaemonSet's controller creates it."""
    name = f"responder-{kubelet.node}"
    spec = {"nodeName": kubelet.node, "containers": [{"name": "main", "image": images.TOOLBOX}]}
    metadata = {"name": name, "namespace": site.namespace, "labels": LABELS}
    site.plane.client.create(pod_of({"metadata": metadata, "spec": spec}))
    return name


def _collect(site: Site, kubelet: Kubelet, expected: int, conditions: int) -> None:
    """Make one DaemonSet run this many pods on one node."""
    own = {**LABELS, "of": "daemonset"}  # otherwise it would adopt the pods on other nodes, and delete them
    template = {
        "metadata": {"labels": own},
        "spec": {
            "nodeSelector": {"hostile": site.namespace},
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": images.TOOLBOX}],
        },
    }
    spec = {"selector": {"matchLabels": own}, "template": template}
    made = DaemonSet.from_dict({"metadata": {"name": "a", "namespace": site.namespace}, "spec": spec})
    assert isinstance(made, DaemonSet)
    site.plane.client.create(made)
    collected: set[str] = set()

    def collect() -> bool:
        for pod in list(site.plane.client.list(Pod, namespace=site.namespace, labels={"of": "daemonset"})):
            assert pod.metadata
            assert pod.spec
            name = str(pod.metadata.name)
            if name not in collected and pod.spec.nodeName:
                collected.add(name)
                kubelet.client.delete(Pod, name, namespace=site.namespace, grace_period=3600)
                kubelet.report(name, site.namespace, {"phase": "Failed"})
        return len(collected) >= expected

    site.until("the node has enough pods", collect)
    filler = [{"type": f"t{number}", "status": ""} for number in range(conditions)]
    for name in collected:
        kubelet.serve(name, site.namespace, "192.0.2.1", *filler)
