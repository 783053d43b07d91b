"""A kubelet that attracts the controller's pod, and with it the controller's token.

The kubelet of the node that runs a pod can request a token for the pod's ServiceAccount. A kubelet cannot choose which
pods run on its node, but it writes what the scheduler looks at: its Node's labels, capacity and images.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from lightkube import Client, KubeConfig
from lightkube.core.exceptions import ApiError
from lightkube.models.authentication_v1 import BoundObjectReference, TokenRequestSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Node, Pod, ServiceAccountToken
from lightkube.types import PatchType

import lab
from lab import pki, waiting
from tests.attacks.kubelet import Kubelet, kubelets, short_name
from tests.support.chart_release import Release

GATE = lab.Taint("node-ready/unverified", value="true")
VERIFIED = {"node-ready/verified": "true"}
PROTECTED = {"node-restriction.kubernetes.io/node-ready-controller": "true"}
LARGE = {"cpu": "1000", "memory": "9000Gi", "pods": "500", "ephemeral-storage": "9000Gi"}
PATIENCE = 60


@contextmanager
def a_release(plane: lab.Plane, prefix: str, **selector: str) -> Iterator[Release]:
    """With the controller's Deployment, whose pods can only run on nodes of this test."""
    chosen = {"case": prefix, **selector}
    release = Release(plane, prefix, {"controller": {"nodeSelector": chosen}}, workload=True)
    release.install()
    try:
        yield release
    finally:
        release.uninstall()


def attract(kubelet: Kubelet, release: Release) -> None:
    """Claim to be verified, large, empty, and to have the controller's image."""
    kubelet.register(labels={"case": release.namespace, "kubernetes.io/os": "linux", **VERIFIED})
    (container,) = release.made.pod["spec"]["containers"]
    image = {"names": [container["image"]], "sizeBytes": 1_000_000_000}
    status = {"capacity": LARGE, "allocatable": LARGE, "images": [image]}
    kubelet.client.patch(Node.Status, kubelet.node, {"status": status}, patch_type=PatchType.MERGE)


def controllers(release: Release) -> list[Pod]:
    """The controller's pods that are bound to a node."""
    found = release.plane.client.list(
        Pod, namespace=release.namespace, fields={"spec.serviceAccountName": release.account}
    )
    return [pod for pod in found if pod.spec and pod.spec.nodeName]


def place_of_the_controller(release: Release) -> str:
    waiting.until("a controller is bound", lambda: controllers(release), PATIENCE, alive=release.plane.check)
    (pod,) = controllers(release)
    assert pod.spec
    return str(pod.spec.nodeName)


def request_token(kubelet: Kubelet, release: Release) -> str:
    """A token that is bound to the controller's pod, which the server gives only to the kubelet that runs it."""
    (pod,) = controllers(release)
    assert pod.metadata
    bound = BoundObjectReference(apiVersion="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid)
    asked = ServiceAccountToken(metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=[], boundObjectRef=bound))
    answer = kubelet.client.create(asked, release.account, namespace=release.namespace)
    assert answer.status
    return str(answer.status.token)


def holder_of(token: str, plane: lab.Plane, name: str) -> Client:
    file = pki.kubeconfig(plane.run.folder / f"{name}.kubeconfig", plane.url, plane.authority.certificate, token)
    return Client(KubeConfig.from_file(file), trust_env=False)


def test_a_kubelet_that_attracts_the_controller_can_open_the_gates_of_other_nodes(
    plane: lab.Plane, prefix: str
) -> None:
    """Without the protection below, as documented in docs/explanation/security.md."""
    with a_release(plane, prefix) as release, kubelets(plane, short_name("attacker", prefix)) as (attacker,):
        attract(attacker, release)
        victims = plane.simulated_nodes(1, prefix=f"{prefix}-victim", taints=[GATE])
        assert place_of_the_controller(release) == attacker.node
        with holder_of(request_token(attacker, release), plane, f"stolen-by-{attacker.node}") as thief:
            opened = thief.patch(Node, victims.names[0], {"spec": {"taints": None}}, patch_type=PatchType.MERGE)
        victims.delete()
        assert opened.spec
        assert GATE.key not in {taint.key for taint in opened.spec.taints or ()}


def test_a_kubelet_does_not_attract_a_controller_that_a_protected_label_places(plane: lab.Plane, prefix: str) -> None:
    """The label that docs/explanation/security.md names: NodeRestriction lets no kubelet set it."""
    labels = {"case": prefix, **VERIFIED, **PROTECTED}
    with (
        a_release(plane, prefix, **PROTECTED) as release,
        kubelets(plane, short_name("attacker", prefix)) as (attacker,),
    ):
        attract(attacker, release)
        with pytest.raises(ApiError, match="is not allowed to modify labels"):
            attacker.client.patch(Node, attacker.node, {"metadata": {"labels": PROTECTED}})
        trusted = plane.simulated_nodes(1, prefix=f"{prefix}-trusted", labels=labels)
        assert place_of_the_controller(release) == trusted.names[0]
        with pytest.raises(ApiError, match="forbidden"):
            request_token(attacker, release)
        trusted.delete()
