"""Every scenario of DaemonSet mode on a real API server, by a process with the chart's settings, rights and policy."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import pytest

import lab
from kube_node_ready.agent.model import AgentPolicy, Observation, Rules
from kube_node_ready.agent.node_client import NodeClient
from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import Outcome, VerificationRecord
from kube_node_ready.kube.errors import Conflict
from kube_node_ready.verification.effects import CloseGate
from kube_node_ready.verification.model import Gate
from lab import waiting
from tests.support.agent_live import VALUES, Real, a_world
from tests.support.chart_release import Release, api_of
from tests.support.cli import Console
from tests.support.scenarios import agent
from tests.support.scenarios.agent import CONTINUOUS, FOREIGN, GATE, ONCE, Scenario, is_gated, is_released
from tests.support.site import Site

NAMESPACE = "daemonset-scenarios"
_MOST_TAINTS = 5
_PAUSE_SECONDS = 0.3


@pytest.fixture(scope="module")
def release(plane: lab.Plane) -> Iterator[Release]:
    release = Release(plane, NAMESPACE, VALUES)
    release.install()
    (node,) = plane.simulated_nodes(1, prefix="bystander").names
    release.wait_for_policy(node)
    yield release
    release.uninstall()
    plane.kubectl("delete", "node", node)


@pytest.fixture
def world(release: Release, prefix: str, tmp_path: Path) -> Iterator[Real]:
    with a_world(release, prefix, tmp_path) as made:
        yield made


@pytest.mark.parametrize("scenario", agent.ALL, ids=lambda scenario: scenario.__name__)
def test_on_a_real_api_server(world: Real, scenario: Scenario) -> None:
    scenario(world)


def test_concurrent_writes_of_others_are_kept(world: Real) -> None:
    """While the gate opens, closes and opens again, another client changes the same lists and mappings all the time."""
    world.join(GATE, FOREIGN, labels={})
    with ConcurrentWriter(world) as busybody:
        world.start(*CONTINUOUS)
        world.until("released", lambda: is_released(world))
        world.break_network()
        world.until("the gate is closed", lambda: is_gated(world))
        world.heal_network()
        world.until("released again", lambda: is_released(world))
        world.until("the condition is written", lambda: world.condition()["status"] == "True")
    node = world.raw()
    assert busybody.written > 10
    assert busybody.labels.items() <= node["metadata"]["labels"].items()
    assert busybody.labels.items() <= node["metadata"]["annotations"].items()
    assert busybody.taints == [taint for taint in node["spec"]["taints"] if taint["key"].startswith("busybody/")]
    assert FOREIGN in node["spec"]["taints"]
    assert busybody.condition in [(one["type"], one["reason"]) for one in node["status"]["conditions"]]


class ConcurrentWriter:
    """Another client, which writes labels, annotations, taints and conditions in turn. None of them can be lost."""

    def __init__(self, world: Real) -> None:
        self._world = world
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write_on)
        self.written = 0

    @property
    def labels(self) -> dict[str, str]:
        return {f"busybody/{number}": "here" for number in range(self.written)}

    @property
    def taints(self) -> list[dict[str, str]]:
        """No more than a few: every one makes the Node larger, and what is to be seen is seen with these."""
        return [{"key": key, "effect": "PreferNoSchedule"} for key in list(self.labels)[:_MOST_TAINTS]]

    @property
    def condition(self) -> tuple[str, str]:
        return ("Busy", f"Round{self.written - 1}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _write_on(self) -> None:
        while not self._is_over.wait(_PAUSE_SECONDS):
            self._write(f"busybody/{self.written}")
            self.written += 1

    def _write(self, key: str) -> None:
        self._world.write({"metadata": {"labels": {key: "here"}, "annotations": {key: "here"}}})
        if self.written < _MOST_TAINTS:
            self._world.add_taint({"key": key, "effect": "PreferNoSchedule"})
        now = datetime.now(UTC).isoformat()
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        self._world.write_condition({"type": "Busy", "status": "True", "reason": f"Round{self.written}", **times})


def test_stopped_by_the_label_it_sets_it_writes_its_event_first(world: Real) -> None:
    """The label ends the pod: SIGTERM comes while condition and Event are on their way."""
    world.join(GATE, labels={})
    world.start(*ONCE)
    world.until("released", lambda: is_released(world))
    assert world.stop() == 0
    assert world.condition()["status"] == "True"
    assert world.events() == ["Verified"]


def test_the_command_line_shows_it_and_requests_another_attempt(world: Real, release: Release) -> None:
    console = Console(Site(release.plane, NAMESPACE))
    world.join(GATE, labels={})
    world.break_network()
    assert "the pod on the node to begin attempt 1" in console.ask("status", world.name).stdout
    world.start(*CONTINUOUS)
    world.until("it failed", lambda: world.node().record.outcome is Outcome.FAILED)
    explained = console.ask("explain", world.name)
    assert explained.returncode == 1
    assert "network" in explained.stdout
    assert "DaemonSet" in explained.stdout
    world.heal_network()
    assert console.ask("status", world.name, "--until=verified", "--timeout=60s").returncode == 0
    proved = world.node().record.attempt
    asked = console.ask("verify", world.name, "--wait", "--timeout=60s")
    assert asked.returncode == 0, asked.stderr
    assert "which the pod on the node begins; it stays open in the meantime" in asked.stdout
    assert world.node().record.attempt > proved
    assert is_released(world)


def test_a_gate_is_closed_on_the_version_that_was_seen_or_not_at_all(plane: lab.Plane, prefix: str) -> None:
    """Nodes without any taint are the hard case: without a list, a client that creates one overwrites another's."""
    (name,) = plane.simulated_nodes(1, prefix=prefix).names
    rules = Rules(AgentPolicy((Gate(GATE["key"], GATE["effect"]),)), Taint(**GATE))
    node = NodeClient(api_of(plane.kubeconfig()), name, rules, "pod-1", lambda: datetime.now(UTC))
    record = VerificationRecord(
        1, failures=1, outcome=Outcome.FAILED, at=datetime.now(UTC), since=datetime.now(UTC), node_failures=1
    )
    try:
        seen = _quiet(node)
        plane.kubectl("annotate", "node", name, "example.com/other=writer")
        with pytest.raises(Conflict):
            node.write(CloseGate(seen.node, record, seen.version), rules.policy)
        assert not rules.policy.is_gated(node.read().node)
        _close(node, record, rules)
        closed = node.read()
        assert rules.policy.is_gated(closed.node)
        with pytest.raises(Conflict):
            node.write(CloseGate(closed.node, record, seen.version), rules.policy)
        assert [taint.key for taint in node.read().node.taints].count(GATE["key"]) == 1
    finally:
        plane.kubectl("delete", "node", name)


def _quiet(node: NodeClient) -> Observation:
    """When the cluster's own taints of a new node are gone."""
    return waiting.until("the node has no taints", lambda: seen if not (seen := node.read()).node.taints else None, 180)


def _close(node: NodeClient, record: VerificationRecord, rules: Rules) -> None:
    """The simulated kubelet writes, too, so the first try might be late."""

    def try_it() -> bool:
        seen = node.read()
        node.write(CloseGate(seen.node, record, seen.version), rules.policy)
        return True

    waiting.until("the gate is closed", try_it, 180)
