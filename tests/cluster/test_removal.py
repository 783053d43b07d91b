"""Nodes that fail are removed if that was asked for: their NodeClaims first, within a budget, and never by guesswork."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import lab
from kube_node_ready.effects import Setup, Writer
from kube_node_ready.kube.access import access
from kube_node_ready.kube.client import Kube, PatchKind
from kube_node_ready.kube.errors import LostRace
from kube_node_ready.verify.model import Gate, Ledger, Node, Policy, RemovalPolicy, RemoveNode
from kube_node_ready.verify.workerpod import PodTemplate
from lab import waiting
from tests.operator import Operator
from tests.removal import AGENT, LEDGER, PAUSE, Fleet, a_removal, has_karpenter, nodeclaims


@pytest.fixture
def fleet(plane: lab.Plane, namespace: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(plane, namespace, tmp_path)
    yield fleet
    fleet.forget()


def stays(condition: Callable[[], bool], seconds: float = 3) -> None:
    with pytest.raises(lab.NotReadyInTimeError):
        waiting.until("it changes", lambda: not condition(), seconds)


def held(operator: Operator, node: str) -> bool:
    return operator.said("Node held", node=node)


def blocked(operator: Operator) -> float:
    lines = operator.ask("/metrics").splitlines()
    (count,) = [line.split()[1] for line in lines if line.startswith("kube_node_ready_removals_blocked_total ")]
    return float(count)


def test_failed_nodes_stay_unless_removal_is_asked_for(fleet: Fleet) -> None:
    (node,) = fleet.join()
    with fleet.run({}) as operator:
        fleet.until("it is exhausted and tried again", lambda: fleet.attempts(node) >= 3)
        assert not operator.said("Node removing")
    assert fleet.left() == {node}
    assert not fleet.told(node, "Removed")


@pytest.mark.parametrize("by", ["owner", "status"])
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_node_goes_by_its_claim(fleet: Fleet, version: str, by: str) -> None:
    with nodeclaims(fleet.plane, version), fleet.plane.audit.window() as calls:
        failing, bystander = fleet.join(pool="a")[0], fleet.join(pool="b", verdict=lab.PASSES)[0]
        claim, other = fleet.claim(failing, by=by, version=version), fleet.claim(bystander, by=by, version=version)
        with fleet.operating():
            fleet.until("the claim is gone", lambda: claim not in fleet.claims())
            (told,) = fleet.until("it is told", lambda: fleet.told(failing, "Removed"))
        assert fleet.claims() == {other}
    assert told.startswith(f"deleted NodeClaim {claim}: ")
    assert not calls.count(agent=AGENT, verb="delete", resource="nodes"), "the Node is Karpenter's to delete"


def test_a_server_with_both_versions_is_asked_for_the_newer(fleet: Fleet) -> None:
    with nodeclaims(fleet.plane, "v1", "v1beta1"):
        (node,) = fleet.join(pool="a")
        claim = fleet.claim(node, by="status", version="v1beta1")
        with fleet.operating():
            fleet.until("the claim is gone", lambda: claim not in fleet.claims())


def test_a_claim_that_takes_its_time_is_deleted_once(fleet: Fleet) -> None:
    with nodeclaims(fleet.plane), fleet.plane.audit.window() as calls:
        (node,) = fleet.join(pool="a")
        claim = fleet.claim(node, by="owner", finalizers=["karpenter.sh/termination"])
        with fleet.operating() as operator:
            fleet.until("the claim is on its way", lambda: fleet.claim_is_leaving(claim))
            stays(lambda: fleet.left() == {node})
        assert operator.output().count("deleting NodeClaim instead") == 1
    assert calls.count(agent=AGENT, verb="delete", resource="nodeclaims") == 1
    assert len(fleet.told(node, "Removed")) == 1


def test_a_node_without_a_claim_goes_itself(fleet: Fleet) -> None:
    with nodeclaims(fleet.plane):
        failing, passing = fleet.join(pool="a")[0], fleet.join(pool="b", verdict=lab.PASSES)[0]
        other = fleet.claim(passing, by="status")
        with fleet.operating():
            fleet.until("it is gone", lambda: failing not in fleet.left())
        assert fleet.claims() == {other}
    assert fleet.told(failing, "Removed")[0].startswith("deleted the Node: ")


def test_without_karpenter_the_node_itself_goes(fleet: Fleet) -> None:
    assert not has_karpenter(fleet.plane)
    (node,) = fleet.join()
    with fleet.operating():
        fleet.until("it is gone", lambda: not fleet.left())
    assert fleet.told(node, "Removed")[0].startswith("deleted the Node: ")


def test_who_may_not_look_for_claims_or_delete_them_removes_nothing_and_says_why(fleet: Fleet) -> None:
    with nodeclaims(fleet.plane), fleet.plane.audit.window() as calls:
        (node,) = fleet.join(pool="a")
        claim = fleet.claim(node, by="status")
        with fleet.operating(kubeconfig=fleet.account()) as operator:
            (told,) = fleet.until("it is told", lambda: fleet.told(node, "RemovalBlocked"))
            assert told.startswith("its NodeClaim cannot be looked up: ")
            assert 'cannot list resource "nodeclaims"' in told
            assert fleet.booked() == []
            fleet.account("get", "list")
            no = f"NodeClaim {claim} cannot be deleted: "
            fleet.until("it is logged", lambda: any(no in line.get("reason", "") for line in operator.lines()))
            assert (fleet.claims(), fleet.left()) == ({claim}, {node})
            fleet.account("get", "list", "delete")
            fleet.until("the claim is gone", lambda: not fleet.claims())
        assert blocked_once(operator)
    assert not calls.count(agent=AGENT, verb="delete", resource="nodes")


def blocked_once(operator: Operator) -> bool:
    return operator.said("Removal blocked", level="warn")


def test_a_claim_of_the_same_name_and_another_uid_is_spared(fleet: Fleet, namespace: str) -> None:
    with nodeclaims(fleet.plane):
        (name,) = fleet.join(pool="a")
        claim = fleet.claim(name, by="status")
        fleet.write_ledger()
        path = f"/api/v1/namespaces/{namespace}/configmaps/{LEDGER}"

        class Meddled(Kube):
            """Someone replaces the claim after it was looked up, while its removal is written down."""

            async def patch(self, path: str, body: bytes, kind: PatchKind, **more: object) -> bytes:
                fleet.plane.kubectl("delete", "nodeclaim", claim)
                fleet.claim(name, by="status")
                return await super().patch(path, body, kind)

        asyncio.run(...)
