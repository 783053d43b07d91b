"""Nodes that fail are removed if asked for: their NodeClaims first, within a budget, and never by guesswork."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from lightkube.resources.core_v1 import Node as NodeObject

import lab
from kube_node_ready.api.objects import ConfigMap
from kube_node_ready.controller import removal_ledger
from kube_node_ready.controller.execution import CacheSink, ExecutorContext
from kube_node_ready.controller.executor import Executor
from kube_node_ready.kube.access import access
from kube_node_ready.kube.client import KubeClient, PatchKind
from kube_node_ready.kube.errors import Conflict
from kube_node_ready.verification.effects import RemoveNode
from kube_node_ready.verification.model import Gate, Node, Policy, RemovalPolicy
from kube_node_ready.verification.worker_pod import WorkerPodTemplate
from lab import waiting
from tests.support.controller_process import Operator
from tests.support.removal import AGENT, LEDGER, PAUSE, Fleet, has_karpenter, nodeclaims


@pytest.fixture
def fleet(plane: lab.Plane, namespace: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(plane, namespace, tmp_path)
    yield fleet
    fleet.forget()


def stays(condition: Callable[[], bool], seconds: float = 3) -> None:
    with pytest.raises(lab.NotReadyInTimeError):
        waiting.until("it changes", lambda: not condition(), seconds)


def held(operator: Operator, node: str) -> bool:
    return operator.logged("Removal blocked", node=node)


def blocked(operator: Operator) -> float:
    lines = operator.ask("/metrics").splitlines()
    (count,) = [line.split()[1] for line in lines if line.startswith("kube_node_ready_removals_blocked_total ")]
    return float(count)


def test_failed_nodes_stay_unless_removal_is_enabled(fleet: Fleet) -> None:
    (node,) = fleet.join()
    with fleet.run({}):
        fleet.until("it is exhausted and tried again", lambda: fleet.attempts(node) >= 3)
    assert fleet.left() == {node}
    assert not fleet.event_messages(node, "Removing")
    assert not fleet.event_messages(node, "RemovalBlocked"), "it was not even considered"


@pytest.mark.parametrize("by", ["owner", "status"])
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_node_is_removed_through_its_claim(fleet: Fleet, version: str, by: str) -> None:
    with nodeclaims(fleet.plane, version) as claims, fleet.plane.audit.window() as calls:
        failing, bystander = fleet.join(pool="a")[0], fleet.join(pool="b", verdict=lab.PASSES)[0]
        # As Karpenter's: it stays until its node is gone.
        claim = claims.make(failing, by=by, finalizers=["karpenter.sh/termination"])
        other = claims.make(bystander, by=by)
        with fleet.operating():
            fleet.until("the claim is on its way", lambda: claims.is_leaving(claim))
            (reported,) = fleet.until("it is reported", lambda: fleet.event_messages(failing, "Removing"))
        assert not claims.is_leaving(other)
    assert reported.startswith(f"deleting NodeClaim {claim}: ")
    assert not calls.count(agent=AGENT, verb="delete", resource="nodes"), "the Node is Karpenter's to delete"


def test_with_both_versions_the_newer_is_requested(fleet: Fleet) -> None:
    with nodeclaims(fleet.plane, "v1", "v1beta1") as claims:
        (node,) = fleet.join(pool="a")
        claim = claims.make(node, by="status")
        with fleet.operating():
            fleet.until("the claim is gone", lambda: claim not in claims.names())
    deleted = [event["requestURI"] for event in fleet.plane.audit._events(0) if event["verb"] == "delete"]
    assert f"/apis/karpenter.sh/v1/nodeclaims/{claim}" in deleted
    assert f"/apis/karpenter.sh/v1beta1/nodeclaims/{claim}" not in deleted


def test_a_later_claim_of_the_owners_name_is_not_the_nodes(fleet: Fleet) -> None:
    with nodeclaims(fleet.plane) as claims:
        (node,) = fleet.join(pool="a")
        claims.delete(claims.make(node, by="owner"))
        other = claims.make(node, by="nothing")
        with fleet.operating():
            fleet.until("the node is gone", lambda: not fleet.left())
        assert claims.names() == {other}


def test_a_slowly_terminating_claim_is_deleted_once(fleet: Fleet) -> None:
    with nodeclaims(fleet.plane) as claims, fleet.plane.audit.window() as calls:
        (node,) = fleet.join(pool="a")
        claim = claims.make(node, by="owner", finalizers=["karpenter.sh/termination"])
        with fleet.operating() as operator:
            fleet.until("the claim is on its way", lambda: claims.is_leaving(claim))
            stays(lambda: fleet.left() == {node})
        assert operator.output().count("deleting NodeClaim instead") == 1
    assert calls.count(agent=AGENT, verb="delete", resource="nodeclaims") == 1
    assert len(fleet.event_messages(node, "Removing")) == 1


def test_a_claim_that_another_client_deletes_uses_no_budget(fleet: Fleet) -> None:
    """Its node fails for as long as the deletion takes. Others of the pool must not wait for that."""
    with nodeclaims(fleet.plane) as claims:
        (leaving,) = fleet.join(pool="a")
        claim = claims.make(leaving, by="owner", finalizers=["karpenter.sh/termination"])
        fleet.plane.kubectl("delete", "nodeclaim", claim, "--wait=false")
        with fleet.operating({"maxCount": 1}):
            fleet.until("it failed often enough", lambda: fleet.attempts(leaving) > 1)
            (other,) = fleet.join(pool="a", group="later")
            second = claims.make(other, by="owner")
            fleet.until("the other is removed", lambda: second not in claims.names())
        assert fleet.booked() == [other]


def test_a_node_without_a_claim_is_deleted_itself(fleet: Fleet) -> None:
    with nodeclaims(fleet.plane) as claims:
        failing, passing = fleet.join(pool="a")[0], fleet.join(pool="b", verdict=lab.PASSES)[0]
        other = claims.make(passing, by="status")
        with fleet.operating():
            fleet.until("it is gone", lambda: failing not in fleet.left())
        assert claims.names() == {other}
    assert fleet.event_messages(failing, "Removing")[0].startswith("deleting the Node: ")


def test_without_karpenter_the_node_is_deleted(fleet: Fleet) -> None:
    assert not has_karpenter(fleet.plane)
    (node,) = fleet.join()
    with fleet.operating():
        fleet.until("it is gone", lambda: not fleet.left())
    assert fleet.event_messages(node, "Removing")[0].startswith("deleting the Node: ")


def test_without_permissions_on_claims_nothing_is_removed_and_the_reason_is_logged(fleet: Fleet) -> None:
    with nodeclaims(fleet.plane) as claims, fleet.plane.audit.window() as calls:
        (node,) = fleet.join(pool="a")
        claim = claims.make(node, by="status")
        with fleet.operating(kubeconfig=fleet.account()) as operator:
            (reported,) = fleet.until("it is reported", lambda: fleet.event_messages(node, "RemovalBlocked"))
            assert reported.startswith("cannot look up its NodeClaim: ")
            assert 'cannot list resource "nodeclaims"' in reported
            assert fleet.booked() == []
            fleet.account("get", "list")
            no = f"cannot delete NodeClaim {claim}: "
            fleet.until("it is logged", lambda: any(no in line.get("reason", "") for line in operator.lines()))
            assert (claims.names(), fleet.left()) == ({claim}, {node})
            fleet.account("get", "list", "delete")
            fleet.until("the claim is gone", lambda: not claims.names())
            assert operator.logged("Removal blocked", level="warn", node=node)
    assert not calls.count(agent=AGENT, verb="delete", resource="nodes")


def test_a_claim_of_the_same_name_and_another_uid_is_kept(fleet: Fleet) -> None:
    with nodeclaims(fleet.plane) as claims:
        (node,) = fleet.join(pool="a")
        claim = claims.make(node, by="status")
        fleet.write_ledger()

        def replace() -> None:
            claims.delete(claim)
            claims.make(node, by="status")

        with pytest.raises(Conflict):
            asyncio.run(remove(fleet, node, replace))
        assert claims.names() == {claim}
        assert not claims.is_leaving(claim)


@pytest.mark.parametrize(
    "change",
    [{"unschedulable": True}, {"taints": [{"key": "dedicated", "value": "payments", "effect": "NoSchedule"}]}],
    ids=["cordon", "taint"],
)
def test_a_node_that_another_client_changed_immediately_before_is_kept(fleet: Fleet, change: dict[str, Any]) -> None:
    """It is decided again: a Node with a cordon or with taints of others is not deleted."""
    (node,) = fleet.join()
    fleet.write_ledger()
    with pytest.raises(Conflict):
        asyncio.run(remove(fleet, node, lambda: fleet.plane.client.patch(NodeObject, node, {"spec": change})))
    assert fleet.left() == {node}


def test_a_node_that_was_deleted_by_others_uses_no_budget(fleet: Fleet) -> None:
    (node,) = fleet.join()
    fleet.write_ledger()
    assert not asyncio.run(remove(fleet, node, lambda: fleet.plane.client.delete(NodeObject, node)))


def test_a_claim_of_another_node_is_kept(fleet: Fleet) -> None:
    with nodeclaims(fleet.plane) as claims:
        (node,) = fleet.join(pool="a")
        claim = claims.make(node, by="owner")
        claims.say(claim, "another")
        with fleet.operating():
            messages = fleet.until("it is reported", lambda: fleet.event_messages(node, "RemovalBlocked"))
            assert messages[0] == f"its owner, NodeClaim {claim}, belongs to node another"
            stays(lambda: fleet.left() == {node} and claims.names() == {claim})


async def remove(fleet: Fleet, name: str, meanwhile: Callable[[], object]) -> bool:
    """As the controller does it, with something else happening between looking and deleting."""

    class Meddled(KubeClient):
        async def patch(self, path: str, body: bytes, kind: PatchKind, **_: Any) -> bytes:  # noqa: ANN401
            answer = await super().patch(path, body, kind)
            meanwhile()
            return answer

    policy = Policy((Gate("node-ready/unverified", "NoSchedule"),), removal=RemovalPolicy())
    path = f"/api/v1/namespaces/{fleet.namespace}/configmaps/{LEDGER}"
    setup = ExecutorContext(lambda: datetime.now(UTC), "the test", path)
    node = Node(name, fleet.uid(name))
    async with Meddled(access(fleet.plane.kubeconfig())) as kube:
        book = removal_ledger.read(msgspec.json.decode(await kube.get(path), type=ConfigMap))
        writer = Executor(
            kube, Mock(spec=CacheSink), policy, WorkerPodTemplate(fleet.namespace, "image", policy.gates), setup
        )
        seen = fleet.plane.client.get(NodeObject, name)
        assert seen.metadata
        return await writer.apply(RemoveNode(node, "it failed", book, seen.metadata.resourceVersion or ""))


LIMITS = [{"maxCount": 2, "maxPercent": 100}, {"maxCount": 100, "maxPercent": 40}]


@pytest.mark.parametrize("limits", LIMITS, ids=["count", "percent"])
def test_a_pool_loses_at_most_its_budget(fleet: Fleet, limits: dict[str, int]) -> None:
    many, other = set(fleet.join(5, pool="a")), set(fleet.join(1, pool="b"))
    with fleet.operating(limits) as operator:
        fleet.until("each pool loses what it may", lambda: len(fleet.left()) == 3)
        left = fleet.left()
        fleet.until("the others are held", lambda: all(held(operator, node) for node in left))
        stays(lambda: fleet.left() == left)
        assert blocked(operator) >= 3
        numbers = f"(pool a: 3 nodes, maxCount {limits['maxCount']}, maxPercent {limits['maxPercent']})"
        words = f"removal budget exhausted: 2 of 2 removals used in 3600 s {numbers}"
        for node in left:
            fleet.until(
                f"{node}: {words}",
                lambda node=node: any(words in text for text in fleet.event_messages(node, "RemovalBlocked")),
            )
    assert left < many
    assert set(fleet.booked()) == (many - left) | other


def test_the_budget_is_restored_after_its_window(fleet: Fleet) -> None:
    nodes = fleet.join(2)
    with fleet.operating({"maxCount": 1, "windowSeconds": 15}) as operator:
        fleet.until("one is gone", lambda: len(fleet.left()) == 1)
        (left,) = fleet.left()
        fleet.until("the other is held", lambda: held(operator, left))
        assert fleet.left() == {left}
        fleet.until("both are gone", lambda: not fleet.left())
    assert fleet.booked() == [left], f"of {nodes}, the first weighs no longer"


def test_the_budget_outlives_the_controller(fleet: Fleet) -> None:
    fleet.join(2)
    with fleet.operating({"maxCount": 1}) as first:
        fleet.until("one is gone", lambda: len(fleet.left()) == 1)
        first.kill()
    (left,) = fleet.left()
    before = fleet.attempts(left)
    with fleet.operating({"maxCount": 1}) as second:
        fleet.until("the other is held", lambda: held(second, left))
        fleet.until("and looked at again", lambda: fleet.attempts(left) >= before + 2)
    assert fleet.left() == {left}


def test_no_node_is_removed_when_many_fail_simultaneously(fleet: Fleet) -> None:
    nodes = set(fleet.join(5))
    with fleet.operating({"maxFailingCount": 2, "maxFailingPercent": 20}) as operator:
        fleet.until("all are held", lambda: all(held(operator, node) for node in nodes))
        fleet.until("and tried again", lambda: all(fleet.attempts(node) >= 3 for node in nodes))
        for node in nodes:
            messages = fleet.until("it is reported", lambda node=node: fleet.event_messages(node, "RemovalBlocked"))
            assert re.match(r"[345] of 5 nodes are failing \(limit 2: ", messages[0])
        fleet.heal()
        fleet.until("the outage ends", lambda: fleet.released() == nodes)
    assert fleet.booked() == []


def test_the_pause_annotation_on_a_node_keeps_it(fleet: Fleet) -> None:
    (node,) = fleet.join()
    fleet.plane.kubectl("annotate", "node", node, f"{PAUSE}=true")
    with fleet.operating() as operator:
        fleet.until("it is held", lambda: held(operator, node))
        messages = fleet.until("it is reported", lambda: fleet.event_messages(node, "RemovalBlocked"))
        assert messages[0] == "removal of this node is paused by its annotation"
        stays(lambda: fleet.left() == {node})
        fleet.plane.kubectl("annotate", "node", node, f"{PAUSE}-")
        fleet.until("it is gone", lambda: not fleet.left())


@pytest.mark.parametrize("begun", [False, True], ids=["not yet begun", "written down already"])
def test_the_pause_annotation_on_the_ledger_keeps_every_node(fleet: Fleet, *, begun: bool) -> None:
    nodes = [*fleet.join(pool="a"), *fleet.join(pool="b")]
    now = datetime.now(UTC).isoformat()
    removals = [{"uid": fleet.uid(node), "node": node, "pool": "a", "at": now} for node in nodes if begun]
    fleet.write_ledger(json.dumps(removals), paused=True)
    with fleet.operating() as operator:
        fleet.until("they are held", lambda: all(held(operator, node) for node in nodes))
        stays(lambda: fleet.left() == set(nodes))
        assert fleet.event_messages(nodes[0], "RemovalBlocked")[0] == "removal of all nodes is paused"
        fleet.plane.kubectl("annotate", "configmap", f"--namespace={fleet.namespace}", LEDGER, f"{PAUSE}-")
        fleet.until("they are gone", lambda: not fleet.left())


def test_a_dry_run_logs_removals_and_removes_nothing(fleet: Fleet) -> None:
    with nodeclaims(fleet.plane) as claims:
        claimed, plain = fleet.join(pool="a")[0], fleet.join(pool="b")[0]
        claim = claims.make(claimed, by="status")
        with fleet.operating({"dryRun": True}):
            for node, what in ((claimed, f"NodeClaim {claim}"), (plain, "the Node")):
                messages = fleet.until("it is reported", lambda node=node: fleet.event_messages(node, "RemovalBlocked"))
                assert messages[0] == f"dry run: would remove {what}"
            stays(lambda: fleet.left() == {claimed, plain} and claims.names() == {claim})
    assert fleet.booked() == []


GARBAGE = ["not JSON", "{}", '[{"uid": 7}]', "[" * 100_000]


@pytest.mark.parametrize("garbage", GARBAGE, ids=["text", "wrong kind", "wrong type", "deep"])
def test_an_unreadable_ledger_blocks_all_removals(fleet: Fleet, garbage: str) -> None:
    (node,) = fleet.join()
    fleet.write_ledger(garbage)
    with fleet.operating() as operator:
        fleet.until("it is held", lambda: held(operator, node))
        messages = fleet.until("it is reported", lambda: fleet.event_messages(node, "RemovalBlocked"))
        assert messages[0].startswith(f"ConfigMap {LEDGER}, removals: ")
        assert messages[0].endswith("Make it a list of removals, or delete the ConfigMap")
        stays(lambda: fleet.left() == {node})
        fleet.plane.kubectl("delete", "configmap", f"--namespace={fleet.namespace}", LEDGER)
        fleet.until("it is gone", lambda: not fleet.left())


def test_a_node_that_recovers_before_its_removal_is_released(fleet: Fleet) -> None:
    (node,) = fleet.join()
    with fleet.operating(reconciliation={"backoffSeconds": 10, "maxBackoffSeconds": 10}):
        fleet.until("it is exhausted", lambda: fleet.event_messages(node, "VerificationExhausted"))
        fleet.heal()
        fleet.until("it is released", lambda: fleet.released() == {node})
        stays(lambda: fleet.left() == {node})
    assert fleet.attempts(node) == 2, "it was healed too late to show anything"
    assert fleet.booked() == []
