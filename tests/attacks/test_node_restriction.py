"""What the API server permits a kubelet. The attacks prove nothing if these limits are not in force."""

from collections.abc import Iterator

import pytest
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Node, Pod
from lightkube.types import PatchType

import lab
from tests.attacks.kubelet import Json, Kubelet, kubelets, pod_of, worker_name

TAINT = lab.Taint("example.com/gate", value="true")
ANY_UID = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def pair(plane: lab.Plane, prefix: str) -> Iterator[tuple[Kubelet, Kubelet]]:
    """Two registered nodes, each with its own kubelet."""
    with kubelets(plane, f"{prefix}-a", f"{prefix}-b") as (first, second):
        for kubelet in (first, second):
            kubelet.register(taints=[TAINT])
        yield first, second


def forbidden(kubelet: Kubelet, node: str, patch: Json) -> str:
    with pytest.raises(ApiError) as refused:
        kubelet.client.patch(Node, node, patch, patch_type=PatchType.MERGE)
    assert refused.value.status.code == 403
    return str(refused.value.status.message)


def test_a_kubelet_cannot_change_its_own_taints(pair: tuple[Kubelet, Kubelet]) -> None:
    kubelet, _ = pair
    assert "is not allowed to modify taints" in forbidden(kubelet, kubelet.node, {"spec": {"taints": []}})


def test_a_kubelet_cannot_change_its_owner_references_after_registration(pair: tuple[Kubelet, Kubelet]) -> None:
    kubelet, _ = pair
    owner = {"apiVersion": "karpenter.sh/v0", "kind": "NodeClaim", "name": "a", "uid": ANY_UID}
    message = forbidden(kubelet, kubelet.node, {"metadata": {"ownerReferences": [owner]}})
    assert "is not allowed to modify ownerReferences" in message


def test_a_kubelet_cannot_change_another_node(pair: tuple[Kubelet, Kubelet]) -> None:
    kubelet, other = pair
    message = forbidden(kubelet, other.node, {"metadata": {"labels": {"example.com/mine": "true"}}})
    assert f'node "{kubelet.node}"' in message


def test_a_kubelet_cannot_delete_its_own_node(pair: tuple[Kubelet, Kubelet]) -> None:
    kubelet, _ = pair
    with pytest.raises(ApiError, match="forbidden"):
        kubelet.client.delete(Node, kubelet.node)


def test_a_kubelet_can_annotate_its_own_node(pair: tuple[Kubelet, Kubelet], plane: lab.Plane) -> None:
    kubelet, _ = pair
    kubelet.annotate(**{"node-ready/verification": "{}"})
    metadata = plane.client.get(Node, kubelet.node).metadata
    assert metadata
    assert (metadata.annotations or {})["node-ready/verification"] == "{}"


def test_a_kubelet_can_register_with_any_owner_name(plane: lab.Plane, prefix: str) -> None:
    """The server validates only that the name is not empty: line breaks, blanks and slashes pass."""
    name = "x HTTP/1.1\r\n\r\nDELETE /api/v1/nodes/y?z=../.."
    owner = {"apiVersion": "karpenter.sh/v0", "kind": "NodeClaim", "name": name, "uid": ANY_UID}
    with kubelets(plane, prefix) as (kubelet,):
        kubelet.register(owners=[owner])
        metadata = plane.client.get(Node, prefix).metadata
        assert metadata
        assert [found.name for found in metadata.ownerReferences or []] == [name]


def test_a_kubelet_can_create_mirror_pods_with_a_workers_name_and_terminate_them(
    pair: tuple[Kubelet, Kubelet], plane: lab.Plane, namespace: str
) -> None:
    kubelet, _ = pair
    pod = kubelet.mirror(worker_name(ANY_UID, 1), namespace)
    kubelet.end(pod, namespace, 1)
    status = plane.client.get(Pod, pod, namespace=namespace).status
    assert status
    assert status.phase == "Failed"


def test_a_mirror_pod_can_be_owned_by_the_kubelets_own_node_only(pair: tuple[Kubelet, Kubelet], namespace: str) -> None:
    kubelet, other = pair
    owner = {"apiVersion": "v1", "kind": "Node", "controller": True}
    for wrong in (
        {**owner, "name": other.node, "uid": other.uid},
        {**owner, "name": kubelet.node, "uid": other.uid},
        {**owner, "name": kubelet.node, "uid": kubelet.uid, "controller": False},
    ):
        with pytest.raises(ApiError, match="forbidden"):
            kubelet.mirror(worker_name(other.uid, 1), namespace, owner=wrong)


def test_a_kubelet_cannot_end_a_pod_of_another_node(pair: tuple[Kubelet, Kubelet], namespace: str) -> None:
    kubelet, other = pair
    pod = other.mirror(worker_name(other.uid, 1), namespace)
    with pytest.raises(ApiError, match="forbidden"):
        kubelet.end(pod, namespace, 1)


def test_a_kubelet_can_create_mirror_pods_only(pair: tuple[Kubelet, Kubelet], namespace: str) -> None:
    kubelet, _ = pair
    spec = {"nodeName": kubelet.node, "containers": [{"name": "worker", "image": "any"}]}
    with pytest.raises(ApiError, match="can only create mirror pods"):
        kubelet.client.create(pod_of({"metadata": {"name": "a", "namespace": namespace}, "spec": spec}))
