"""Which NodeClaim is a node's. The same runs against a real API server in tests/attacks and tests/cluster."""

import asyncio
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from kube_node_ready.api import objects
from kube_node_ready.controller.karpenter import Claim, ClaimLookupFailed, find_claim
from kube_node_ready.kube.errors import NotFound
from kube_node_ready.verification.model import Node
from kube_node_ready.verification.node_reader import read_node
from tests.support.model_cluster import POLICY
from tests.unit.api.test_paths import HOSTILE

if TYPE_CHECKING:
    from kube_node_ready.kube.client import KubeClient

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


class Server:
    """Answers GET requests, and notes them."""

    def __init__(self, *claims: dict[str, Any]) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, object] = {"/apis/karpenter.sh": {"versions": [{"version": "v1"}]}}
        self.answers[CLAIMS] = {"items": claims}
        self.answers |= {f"{CLAIMS}/{claim['metadata']['name']}": claim for claim in claims}

    async def get(self, path: str, **_: object) -> bytes:
        self.asked.append(path)
        if path not in self.answers:
            raise NotFound(404, "NotFound", path)
        return msgspec.json.encode(self.answers[path])


def a_claim(name: str, node: str, **status: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-of-{name}"}, "status": {"nodeName": node, **status}}


def a_node(*owners: tuple[str, str], provider_id: str = "") -> Node:
    """Node `a`, registered with these names and UIDs of NodeClaims as its owners."""
    references = [
        {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": name, "uid": uid} for name, uid in owners
    ]
    metadata = {"name": "a", "uid": "node-uid", "ownerReferences": references}
    wire = msgspec.convert({"metadata": metadata, "spec": {"providerID": provider_id}}, objects.Node)
    return read_node(wire, POLICY)


def found(server: Server, node: Node) -> Claim | None:
    return asyncio.run(find_claim(cast("KubeClient", server), node))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_owner_never_becomes_part_of_a_request(name: str) -> None:
    server = Server(a_claim("other", "b"))
    assert found(server, a_node((name, "uid-of-other"))) is None
    assert server.asked == ["/apis/karpenter.sh", CLAIMS]


def test_the_claim_that_names_the_node_is_its_own() -> None:
    server = Server(a_claim("mine", "a"))
    expected = Claim(f"{CLAIMS}/mine", "mine", "uid-of-mine", pool="", deleting=False)
    assert found(server, a_node(("mine", "uid-of-mine"))) == expected
    assert server.asked == ["/apis/karpenter.sh", f"{CLAIMS}/mine"], "one small request"
    assert found(server, a_node()) == expected
    assert found(server, a_node(("x/../mine", "uid-of-mine"))) == expected


@pytest.mark.parametrize("claims_node", ["b", ""], ids=["of another node", "without a node yet"])
def test_a_claim_that_does_not_name_the_node_is_kept(claims_node: str) -> None:
    with pytest.raises(ClaimLookupFailed, match="its owner, NodeClaim other, belongs to "):
        found(Server(a_claim("other", claims_node)), a_node(("other", "uid-of-other")))


def test_a_claim_of_another_uid_is_not_the_owner() -> None:
    assert found(Server(a_claim("other", "b")), a_node(("other", "uid-of-another"))) is None


def test_a_claim_of_another_machine_is_kept() -> None:
    server = Server(a_claim("mine", "a", providerID="aws:///i-1"))
    assert found(server, a_node(provider_id="aws:///i-1"))
    with pytest.raises(ClaimLookupFailed, match="has providerID aws:///i-1, the Node has aws:///i-2"):
        found(server, a_node(provider_id="aws:///i-2"))


def test_a_name_that_the_server_itself_gets_wrong_is_not_used() -> None:
    with pytest.raises(ClaimLookupFailed, match="cannot look up its NodeClaim"):
        found(Server(a_claim("x/../../../api/v1/nodes/b", "a")), a_node())


@pytest.mark.parametrize("groups", [[], ["apps"], ["apps", "karpenter.k8s.aws"]])
def test_a_server_that_does_not_list_the_group_has_no_karpenter(groups: list[str]) -> None:
    assert found(without_karpenter(kind="APIGroupList", groups=groups), a_node()) is None


def test_a_404_for_a_listed_group_is_inconclusive() -> None:
    """A proxy can answer so. Without the claim, the node would be deleted past Karpenter."""
    server = without_karpenter(kind="APIGroupList", groups=["apps", "karpenter.sh"])
    with pytest.raises(ClaimLookupFailed, match=r"lists karpenter\.sh, but returns 404 for it"):
        found(server, a_node())


@pytest.mark.parametrize("answer", [None, {}, {"kind": "Status", "groups": []}, {"kind": "APIGroupList"}])
def test_a_404_without_the_list_of_groups_is_inconclusive(answer: object) -> None:
    server = Server()
    del server.answers["/apis/karpenter.sh"]
    if answer is not None:
        server.answers["/apis"] = answer
    with pytest.raises(ClaimLookupFailed):
        found(server, a_node())


def without_karpenter(kind: str, groups: list[str]) -> Server:
    server = Server()
    del server.answers["/apis/karpenter.sh"]
    server.answers["/apis"] = {"kind": kind, "groups": [{"name": name, "versions": []} for name in groups]}
    return server
