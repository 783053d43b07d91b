"""DaemonSet mode in time that jumps, with the real checks and requests, on an API server in memory."""

import itertools
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kube_node_ready import log
from tests import daemonset_scenarios
from tests.check_servers import http_json
from tests.daemonset_scenarios import CONTINUOUS, GATE, ONCE, Scenario, is_gated, is_released
from tests.daemonset_world import Simulated, simulated


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    yield
    log.configure()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Simulated]:
    with simulated(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    "scenario", [*daemonset_scenarios.ALL, *daemonset_scenarios.SLOW], ids=lambda scenario: scenario.__name__
)
def test_in_memory(world: Simulated, scenario: Scenario) -> None:
    scenario(world)


def test_a_node_that_passes_costs_one_patch_one_condition_and_one_event(world: Simulated) -> None:
    world.join(GATE, labels={})
    world.start(*ONCE)
    world.until("released", lambda: is_released(world))
    world.stays(lambda: is_released(world))
    assert world.cluster.writes == ["json-patchnode-1", "strategic-merge-patchnode-1/status", "event Verified"]


def test_a_lost_race_costs_hardly_any_time(world: Simulated) -> None:
    world.join(GATE, labels={})
    world.overtake()
    world.start(*ONCE)
    begun = world.clock.time
    world.until("released", lambda: is_released(world))
    assert not world.cluster.before_patch
    assert (world.clock.time - begun).total_seconds() < 0.5


def test_retries_come_after_1_2_4_8_and_16_seconds(world: Simulated) -> None:
    """Each with up to a tenth of spread; then every five minutes."""
    world.join(GATE, labels={})
    world.break_network()
    world.start("--mode=once")
    times: list[float] = []
    while len(times) < 8:
        before = world.node().record.attempt
        world.until("another attempt", lambda before=before: world.node().record.attempt > before)  # type: ignore[misc]
        times.append(world.clock.time.timestamp())
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    for wait, expected in zip(waits, [1, 2, 4, 8, 16, 300, 300], strict=True):
        assert expected <= wait <= expected * 1.1 + 0.5


def test_in_the_continuous_pattern_a_round_comes_every_interval(world: Simulated) -> None:
    world.join(GATE, labels={})
    world.start(*CONTINUOUS, "--check-interval=60s")
    world.until("released", lambda: is_released(world))
    world.stays(lambda: is_released(world))
    times = [world.metric("node_check_completion_timestamp")]
    for _ in range(3):
        world.until("another round", lambda: world.metric("node_check_completion_timestamp") > times[-1])
        times.append(world.metric("node_check_completion_timestamp"))
    first, *waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert 29 < first < 91, "until the node's own turn"
    assert waits == pytest.approx([60, 60], abs=1)


def test_what_was_proved_of_one_node_does_not_open_another_of_the_same_name(world: Simulated) -> None:
    """It is deleted, and registers again, between the checks and the release."""
    world.join(GATE, labels={})
    world.start(*ONCE)
    world.cluster.before_patch.append(lambda: world.join(GATE, labels={}))
    uid = world.node().uid
    world.until("there is another one", lambda: world.node().uid != uid)
    world.break_network()
    world.stays(lambda: is_gated(world))
    world.heal_network()
    world.until("released", lambda: is_released(world))


def test_a_server_that_asks_for_patience_gets_no_checks_meanwhile(world: Simulated) -> None:
    world.join(GATE, labels={})
    world.cluster.is_busy = True
    world.start(*ONCE)
    for _ in range(4):
        world.step()
    assert not [path for path, *_ in world.cluster.asked if path.startswith("/openapi")]
    world.cluster.is_busy = False
    world.until("released", lambda: is_released(world))


def test_a_right_that_was_missing_is_asked_for_again_later(world: Simulated) -> None:
    world.join(GATE, labels={})
    world.forbid("nodes/status")
    world.start(*ONCE)
    world.until("it was refused", lambda: "event Verified" in world.cluster.writes)
    world.cluster.forbidden.clear()
    for _ in range(3):
        world.step()
    assert not world.condition()
    world.clock.time += timedelta(minutes=11)
    world.until("the condition follows", lambda: world.condition().get("status") == "True")


def test_a_patch_that_is_refused_for_good_is_told(
    world: Simulated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """To a JSON Patch, that looks like a race that is lost again and again."""
    refusal = http_json({"kind": "Status", "message": "a webhook does not like it", "reason": "Invalid"}, 422)
    monkeypatch.setattr(world.cluster, "_patch", lambda *_: refusal)
    world.join(GATE, labels={})
    world.start(*ONCE)
    for _ in range(12):
        world.step()
    assert capsys.readouterr().out.count("a webhook does not like it") == 1
    assert is_gated(world)


def test_a_node_object_that_is_missing_is_waited_for(world: Simulated) -> None:
    world.start(*ONCE)
    for _ in range(5):
        world.step()
    world.join(GATE, labels={})
    world.until("released", lambda: is_released(world))


def test_trouble_that_lasts_is_told_once(world: Simulated, capsys: pytest.CaptureFixture[str]) -> None:
    world.join(GATE, labels={})
    world.forbid("nodes")
    world.start(*ONCE)
    for _ in range(6):
        world.step()
    assert capsys.readouterr().out.count("PATCH /api/v1/nodes/node-1: Forbidden") == 1
    world.cluster.forbidden.clear()
    world.until("released", lambda: is_released(world))


def test_a_token_that_is_away_for_a_moment_is_waited_for(world: Simulated, tmp_path: Path) -> None:
    world.join(GATE, labels={})
    world.start(*ONCE)
    (tmp_path / "token").rename(tmp_path / "elsewhere")
    for _ in range(5):
        world.step()
    (tmp_path / "elsewhere").rename(tmp_path / "token")
    world.until("released", lambda: is_released(world))


def test_an_api_server_that_talks_nonsense_is_waited_for(world: Simulated) -> None:
    world.join(GATE, labels={})
    node = world.cluster.nodes["node-1"]
    world.cluster.nodes["node-1"] = {"metadata": "none"}
    world.start(*ONCE)
    for _ in range(3):
        world.step()
    world.cluster.nodes["node-1"] = node
    world.until("released", lambda: is_released(world))
