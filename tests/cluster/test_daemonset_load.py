"""How often continuous DaemonSet mode asks a real API server, by its audit log, and that it still notices faults."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab
from lab.audit import Calls
from tests import specification
from tests.support.agent_live import VALUES, Real, a_world
from tests.support.chart_release import Release
from tests.support.scenarios.agent import CONTINUOUS, FOREIGN, is_gated, released

NAMESPACE = "daemonset-load"
SERVICES = ["default/kubernetes", "default/second"]
MOST_PER_ROUND = specification.most_calls_per_round()
ROUNDS = 41
"""Several times the rounds from one that runs all checks to the next."""
AGENTS = ("kube-node-ready", "kube-node-ready-worker")
STARTED = '"msg":"Verification started"'
FAILS = '"msg":"Re-verification failed"'
PASSES = '"msg":"All checks passed"'
_PORT = {"name": "dns", "port": 53, "protocol": "UDP"}


@pytest.fixture(scope="module")
def release(plane: lab.Plane) -> Iterator[Release]:
    """With two Services to check, as by default."""
    apply_second_service(plane)
    config = {**VALUES["worker"]["config"], "services": SERVICES}  # type: ignore[index]
    release = Release(plane, NAMESPACE, {**VALUES, "worker": {"config": config}})
    release.install()
    (node,) = plane.simulated_nodes(1, prefix="load-bystander").names
    release.wait_for_policy(node)
    yield release
    release.uninstall()
    plane.kubectl("delete", "node", node)
    plane.kubectl("delete", "service,endpointslice", "second", "--namespace=default")


def apply_second_service(plane: lab.Plane) -> None:
    metadata = {"name": "second", "namespace": "default"}
    slice_ = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "second"}},
        "addressType": "IPv4",
        "ports": [_PORT],
        "endpoints": [{"addresses": ["192.0.2.1"]}],
    }
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [_PORT]}}
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [service, slice_]})
    plane.kubectl("apply", "--filename=-", standard_input=listed)


@pytest.fixture
def world(release: Release, prefix: str, tmp_path: Path) -> Iterator[Real]:
    with a_world(release, prefix, tmp_path) as made:
        yield made


def rounds(world: Real) -> int:
    return world.output().count(STARTED)


def made_by_us(calls: Calls) -> int:
    return sum(calls.count(agent=agent) for agent in AGENTS)


def test_a_verified_node_asks_the_api_server_at_most_twice_per_round(world: Real, plane: lab.Plane) -> None:
    """Rounds take a second here and a minute by default; what they ask is the same."""
    released(world, *CONTINUOUS, "--log-level=debug")
    # Until the node's first turn, up to 1.5 intervals after its release, the Node is read without a round.
    world.until("a later round", lambda: "Checks passed, some omitted" in world.output())
    before = rounds(world)
    with plane.audit.window() as calls:
        world.until("many rounds", lambda: rounds(world) >= before + ROUNDS)
    counted = rounds(world) - before
    per_round = made_by_us(calls) / counted
    assert per_round <= MOST_PER_ROUND, f"{per_round:.2f} in {counted} rounds: {calls.by_kind}"
    assert calls.count(verb="get", resource="nodes", agent="kube-node-ready") <= counted + 1, "one read per round"
    assert calls.count(resource="/openapi/v2") >= 2, "all checks run now and then"


def test_a_fault_is_detected_by_the_next_round_and_counts_only_with_all_checks(world: Real) -> None:
    released(world, *CONTINUOUS, "--log-level=debug")
    before = rounds(world)
    world.until("later rounds", lambda: rounds(world) >= before + 3)
    world.break_network()
    before = rounds(world)
    world.until("it is noticed", lambda: world.metric('node_check_failures_total{check="network"}') >= 1)
    until_noticed = world.output().partition(FAILS)[0].count(STARTED)
    assert until_noticed <= before + 3, "the one under way, the next, and its repetition with all checks"
    world.until("the gate is closed", lambda: is_gated(world))
    streak = [line for line in world.output().splitlines() if FAILS in line]
    assert [json.loads(line)["failures"] for line in streak] == [1, 2, 3]


def test_a_changed_taint_runs_all_checks(world: Real) -> None:
    released(world, *CONTINUOUS, "--log-level=debug", "--check-interval=5s")
    world.until("a later round", lambda: "Checks passed, some omitted" in world.output())
    before = world.output().count(PASSES)
    world.add_taint({**FOREIGN, "key": "example.com/another"})
    seen = rounds(world)
    world.until("all checks ran", lambda: world.output().count(PASSES) > before)
    until_then = "".join(world.output().split(PASSES)[: before + 1])
    assert until_then.count(STARTED) <= seen + 2
