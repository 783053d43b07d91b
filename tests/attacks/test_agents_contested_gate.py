"""DaemonSet mode backs off when another client puts the gate back, or the API server refuses the release (D2, D3)."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Event
from lightkube.resources.core_v1 import Node as NodeObject
from lightkube.types import PatchType

import lab
from kube_node_ready.agent.node_client import COMPONENT
from lab import waiting
from tests.support.agent_live import VALUES, Real, a_world
from tests.support.chart_release import Release, apply
from tests.support.scenarios.agent import CONTINUOUS, FOREIGN, GATE, ONCE, is_gated, is_released

NAMESPACE = "contested-gate"
PATIENCE = 180
CONTEST_SECONDS = 20
MOST_RELEASES = 8
"""In 20 seconds, a backoff of 0, 2, 4, 8 s allows five."""
FULL = 262_144
"""How many bytes of annotations the API server accepts."""


@pytest.fixture(scope="module")
def release(plane: lab.Plane) -> Iterator[Release]:
    release = Release(plane, NAMESPACE, VALUES)
    release.install()
    (node,) = plane.simulated_nodes(1, prefix=f"{NAMESPACE}-bystander").names
    release.wait_for_policy(node)
    yield release
    release.uninstall()
    plane.kubectl("delete", "node", node)


@pytest.fixture
def world(release: Release, prefix: str, tmp_path: Path) -> Iterator[Real]:
    with a_world(release, prefix[-30:].lstrip("-"), tmp_path) as made:
        yield made


class Rival:
    """A client that puts the gate back before the agent can see it open, as an admission webhook can."""

    def __init__(self, world: Real) -> None:
        self._world = world
        self.put_back = 0

    def __enter__(self) -> Self:
        self._world.undo_releases(self._restore)
        return self

    def __exit__(self, *_: object) -> None:
        self._world.undo_releases(None)

    def _restore(self) -> None:
        if is_gated(self._world):
            return
        self._world.add_taint(GATE)
        self.put_back += 1


@pytest.mark.parametrize("flags", [ONCE, CONTINUOUS], ids=["once", "continuous"])
def test_the_release_of_a_gate_that_keeps_returning_backs_off(
    world: Real, plane: lab.Plane, flags: tuple[str, ...]
) -> None:
    world.join(GATE, FOREIGN, labels={})
    with Rival(world) as rival:
        world.start(*flags, "--check-interval=60s")
        world.until("it was put back", lambda: rival.put_back >= 1)
        with plane.audit.window() as calls:
            time.sleep(CONTEST_SECONDS)
        releases = calls.count(agent="kube-node-ready", verb="patch", resource="nodes")
        assert 1 <= releases <= MOST_RELEASES
        assert calls.count(agent="kube-node-ready", verb="create", resource="events") <= 2 * MOST_RELEASES
        assert calls.count(agent="kube-node-ready", verb="get", resource="nodes") <= 10 * MOST_RELEASES
        world.until("it is reported", lambda: "GateContested" in world.events())
        world.until("the condition says so", lambda: world.condition().get("reason") == "GateContested")
        assert world.condition()["status"] == "Unknown"
        assert world.metric("node_check_gate_contested_total") >= 2
        assert 1 <= world.output().count('"Gate contested"') <= 3, "at 2, 4 and 8 releases"
    world.until("released once the other client stopped", lambda: is_released(world))
    world.until("the condition says so", lambda: world.condition().get("status") == "True")


def test_a_contested_gate_is_opened_only_after_checks_that_passed_since(world: Real) -> None:
    world.join(GATE, FOREIGN, labels={})
    with Rival(world) as rival:
        world.start(*ONCE, "--max-retries=9")
        world.until("it is contested", lambda: "GateContested" in world.events())
        world.break_network()
        world.until("checks fail", lambda: world.metric("node_check_consecutive_failures") >= 1)
        seen = rival.put_back
        world.until("checks fail again", lambda: world.metric("node_check_consecutive_failures") >= 3)
        assert rival.put_back == seen
        assert is_gated(world)
        world.heal_network()
    world.until("released", lambda: is_released(world))


def events_with(world: Real, plane: lab.Plane, reason: str) -> list[dict[str, Any]]:
    found = plane.client.list(Event, namespace="default", fields={"involvedObject.name": world.name})
    return [event.to_dict() for event in found if event.reportingComponent == COMPONENT and event.reason == reason]


@contextlib.contextmanager
def denied(plane: lab.Plane, name: str, node: str, message: str) -> Iterator[None]:
    """A foreign admission policy that rejects every release of this node."""
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
    gated = f"(has(object.spec.taints) ? object.spec.taints : []).exists(taint, taint.key == '{GATE['key']}')"
    policy = {
        **kind,
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "node", "expression": f"request.name == '{node}'"}],
            "validations": [{"expression": gated, "message": message}],
        },
    }
    binding = {
        **kind,
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    apply(plane, [policy, binding])
    try:
        waiting.until("the policy holds", lambda: _is_denied(plane, node), PATIENCE)
        yield
    finally:
        plane.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", name)


def _is_denied(plane: lab.Plane, node: str) -> bool:
    try:
        plane.client.patch(NodeObject, node, {"spec": {"taints": None}}, patch_type=PatchType.MERGE, dry_run=True)
    except ApiError as error:
        return "ValidatingAdmissionPolicy" in str(error)
    return False


def test_a_release_that_a_policy_denies_is_visible(world: Real, plane: lab.Plane) -> None:
    """With the server's message on one line, however the policy's author wrote it."""
    world.join(GATE, labels={})
    with denied(plane, f"{NAMESPACE}-freeze", world.name, "change freeze\u001b[31m until Monday"):
        world.start(*ONCE)
        world.until("an Event reports it", lambda: events_with(world, plane, "ReleaseRejected"))
        (event,) = events_with(world, plane, "ReleaseRejected")
        assert event["type"] == "Warning"
        assert "change freeze" in event["message"]
        assert event["message"].isprintable()
        world.until("the condition says so", lambda: world.condition().get("reason") == "ReleaseRejected")
        assert world.condition()["status"] == "Unknown"
        assert "change freeze" in world.condition()["message"]
        assert world.metric("node_check_release_rejected_total") >= 1
        with plane.audit.window() as calls:
            time.sleep(CONTEST_SECONDS)
        assert calls.count(agent="kube-node-ready", verb="patch", resource="nodes") <= MOST_RELEASES
        assert len(events_with(world, plane, "ReleaseRejected")) == 1
        assert world.output().count('"Node write rejected"') == 1
        assert is_gated(world)
    world.until("released when the policy is gone", lambda: is_released(world))
    world.until("the condition says so", lambda: world.condition().get("status") == "True")


def test_a_release_that_exceeds_the_annotation_limit_is_visible(world: Real, plane: lab.Plane) -> None:
    world.join(GATE, labels={})
    fill(world)
    world.start(*ONCE)
    world.until("an Event reports it", lambda: events_with(world, plane, "ReleaseRejected"))
    (event,) = events_with(world, plane, "ReleaseRejected")
    assert "annotations" in event["message"]
    world.until("the condition says so", lambda: world.condition().get("reason") == "ReleaseRejected")
    assert is_gated(world)
    world.write({"metadata": {"annotations": {"example.com/large": None}}})
    world.until("released when there is room", lambda: is_released(world))


def test_a_failure_that_exceeds_the_annotation_limit_is_visible(world: Real, plane: lab.Plane) -> None:
    world.join(GATE, labels={})
    fill(world)
    world.break_network()
    world.start(*ONCE)
    world.until("an Event reports it", lambda: events_with(world, plane, "RecordRejected"))
    (event,) = events_with(world, plane, "VerificationFailed")
    assert "network" in event["message"]
    world.until("the condition says so", lambda: world.condition().get("reason") == "RecordRejected")
    assert world.condition()["status"] == "Unknown"
    assert "annotations" in world.condition()["message"]
    assert is_gated(world)
    world.write({"metadata": {"annotations": {"example.com/large": None}}})
    world.until("it is recorded when there is room", lambda: world.node().record.failures >= 1)
    world.until("the condition says so", lambda: world.condition().get("status") == "False")


def fill(world: Real) -> None:
    """Write annotations up to the last byte that the API server accepts."""
    annotations = world.raw()["metadata"].get("annotations", {})
    used = sum(len(key) + len(value) for key, value in annotations.items())
    key = "example.com/large"
    world.write({"metadata": {"annotations": {key: "x" * (FULL - used - len(key))}}})
    assert json.dumps(world.raw()["metadata"]["annotations"])
