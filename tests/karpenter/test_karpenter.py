"""With the real Karpenter: nodes it makes are verified and released, and those that fail are replaced by it."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace

import lab
from lab import waiting
from tests.support.controller_process import Operator, a_config, operating

GATE = "node-ready/unverified"
UNREGISTERED = "karpenter.sh/unregistered"
NAMESPACE = "node-ready"
PATIENCE = 180
MANIFEST = """
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %(pool)s}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
      startupTaints: [{key: node-ready/unverified, value: "true", effect: NoSchedule}]
---
apiVersion: v1
kind: Pod
metadata: {name: %(pool)s, namespace: default}
spec:
  nodeSelector: {karpenter.sh/nodepool: %(pool)s}
  containers: [{name: app, image: app, resources: {requests: {cpu: "1"}}}]
"""

pytestmark = pytest.mark.timeout(900)


class World:
    """A plane with Karpenter, a controller that removes what fails, and a clock for what happens."""

    def __init__(self, plane: lab.Plane) -> None:
        self.plane = plane
        self.karpenter = plane.karpenter()
        self.operator: Operator
        self._began = time.monotonic()

    def want(self, pool: str, verdict: lab.Verdict) -> None:
        """A NodePool whose nodes get this verdict, and a pod that waits for one of them."""
        self.karpenter.decide(pool, verdict)
        self._began = time.monotonic()
        self.plane.kubectl("apply", "--filename=-", standard_input=MANIFEST % {"pool": pool})

    def until(self, what: str, condition: Callable[[], Any]) -> Any:  # noqa: ANN401  whatever it answers
        """Wait for the condition and return the time, for the record in docs/how-to/karpenter.md."""
        found = waiting.until(what, condition, PATIENCE, alive=self.plane.check)
        print(f"{time.monotonic() - self._began:5.1f} s  {what}")  # noqa: T201
        return found

    def claims(self, pool: str) -> list[dict[str, Any]]:
        return self._all("nodeclaims", f"--selector=karpenter.sh/nodepool={pool}")

    def nodes(self, pool: str) -> list[dict[str, Any]]:
        return self._all("nodes", f"--selector=karpenter.sh/nodepool={pool}")

    def node_of(self, pod: str) -> str:
        (found,) = self._all("pods", f"--field-selector=metadata.name={pod}")
        return str(found["spec"].get("nodeName", ""))

    def event_messages(self, node: str, reason: str) -> list[str]:
        fields = f"--field-selector=involvedObject.name={node},reason={reason}"
        return [event["message"] for event in self._all("events", "--namespace=default", fields)]

    def _all(self, kind: str, *more: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.plane.kubectl("get", kind, *more, "--output=json"))["items"]
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    removing = {"deleteFailedNodes": True}
    patient = {"maxRetries": 2, "intervalSeconds": 5}
    with lab.plane() as plane:
        world = World(plane)
        plane.client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        config = a_config(NAMESPACE, nodeManagement=removing, reconciliation=patient)
        with operating(tmp_path_factory.mktemp("karpenter"), plane.kubeconfig(), config) as world.operator:
            yield world


def is_true(claim: dict[str, Any], condition: str) -> bool:
    found = claim.get("status", {}).get("conditions", [])
    return any(known["type"] == condition and known["status"] == "True" for known in found)


def keys(node: dict[str, Any]) -> set[str]:
    return {taint["key"] for taint in node["spec"].get("taints", [])}


def name(found: dict[str, Any]) -> str:
    return str(found["metadata"]["name"])


def is_verified(node: dict[str, Any]) -> bool:
    return bool(node["metadata"]["labels"].get("node-ready/verified") == "true")


def test_a_provisioned_node_is_verified_and_released_and_initialized(world: World) -> None:
    world.want("good", lab.PASSES)
    (claim,) = world.until("Karpenter makes a NodeClaim", lambda: world.claims("good"))
    assert claim["spec"]["startupTaints"] == [{"key": GATE, "value": "true", "effect": "NoSchedule"}]
    world.until("registers its node", lambda: is_true(world.claims("good")[0], "Registered"))
    world.until("the node is verified", lambda: is_verified(world.nodes("good")[0]))
    world.until("the pod is on it", lambda: world.node_of("good"))
    world.until("the NodeClaim is Initialized", lambda: is_true(world.claims("good")[0], "Initialized"))
    (node,) = world.nodes("good")
    assert world.node_of("good") == name(node)
    assert world.event_messages(name(node), "Verified")
    with pytest.raises(lab.NotReadyInTimeError):
        waiting.until("the taint comes back", lambda: GATE in keys(world.nodes("good")[0]), 10)


def test_nodes_are_ignored_until_karpenter_has_registered_them(world: World) -> None:
    """A kubelet registers with the startup taint; KWOK's provider does not, and so it is put there here."""
    world.want("slow", lab.PASSES)
    (node,) = waiting.until("its node is there", lambda: world.nodes("slow") or None, PATIENCE)
    world.karpenter.process.pause()
    try:
        (node,) = world.nodes("slow")
        assert UNREGISTERED in keys(node), "Karpenter was quicker than this test"
        world.plane.kubectl("taint", "node", name(node), f"{GATE}=true:NoSchedule")
        world.until("the controller waits", lambda: world.operator.logged("Node waiting", node=name(node)))
        with pytest.raises(lab.NotReadyInTimeError):
            waiting.until("it does something", lambda: is_verified(world.nodes("slow")[0]), 5)
        assert not world.operator.logged("Creating worker pod", node=name(node))
    finally:
        world.karpenter.process.resume()
    world.until("the node is verified", lambda: is_verified(world.nodes("slow")[0]))
    world.until("the NodeClaim is Initialized", lambda: is_true(world.claims("slow")[0], "Initialized"))
    assert GATE not in keys(world.nodes("slow")[0])


def test_a_failing_node_is_replaced_by_karpenter(world: World) -> None:
    world.want("bad", lab.fails())
    (first,) = world.until("Karpenter makes a NodeClaim", lambda: world.claims("bad"))
    node = name(world.until("and a node", lambda: world.nodes("bad"))[0])
    output = world.until("the node is given up", lambda: world.event_messages(node, "Removing"))
    assert output[0].startswith(f"deleting NodeClaim {name(first)}: ")
    world.karpenter.decide("bad", lab.PASSES)
    world.until("another NodeClaim takes its place", lambda: replaced(world, name(first)))
    world.until("the first node is gone", lambda: node not in map(name, world.nodes("bad")))
    world.until("the second is verified", lambda: all(map(is_verified, world.nodes("bad"))) and world.nodes("bad"))
    world.until("the pod is on it", lambda: world.node_of("bad"))
    (second,) = world.nodes("bad")
    assert world.node_of("bad") == name(second) != node


def replaced(world: World, first: str) -> bool:
    names = {name(claim) for claim in world.claims("bad")}
    return bool(names) and first not in names
