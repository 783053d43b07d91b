"""DaemonSet mode in time that jumps, with the real checks and requests, on an API server in memory."""

import itertools
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kube_node_ready import log
from kube_node_ready.kube.pace import Pace
from tests.support.agent_model import Simulated, simulated
from tests.support.check_servers import http_json
from tests.support.scenarios import agent
from tests.support.scenarios.agent import CONTINUOUS, GATE, ONCE, Scenario, is_gated, is_released


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    yield
    log.configure()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Simulated]:
    with simulated(tmp_path) as made:
        yield made


@pytest.mark.parametrize("scenario", [*agent.ALL, *agent.SLOW], ids=lambda scenario: scenario.__name__)
def test_in_memory(world: Simulated, scenario: Scenario) -> None:
    scenario(world)


def test_a_node_that_passes_costs_one_patch_one_condition_and_one_event(world: Simulated) -> None:
    world.join(GATE, labels={})
    world.start(*ONCE)
    world.until("released", lambda: is_released(world))
    world.stays(lambda: is_released(world))
    assert world.cluster.writes == ["json-patchnode-1", "strategic-merge-patchnode-1/status", "event Verified"]


def test_a_conflict_is_retried_quickly(world: Simulated) -> None:
    world.join(GATE, labels={})
    world.overtake()
    world.start(*ONCE)
    begun = world.clock.time
    world.until("released", lambda: is_released(world))
    assert not world.cluster.before_patch
    assert (world.clock.time - begun).total_seconds() < 0.5


def test_retries_wait_1_2_4_8_and_16_seconds(world: Simulated) -> None:
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


def test_in_continuous_mode_a_round_runs_every_interval(world: Simulated) -> None:
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


def test_a_proof_does_not_open_another_node_of_the_same_name(world: Simulated) -> None:
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


def test_no_checks_run_while_the_server_throttles(world: Simulated) -> None:
    world.join(GATE, labels={})
    world.cluster.is_busy = True
    world.start(*ONCE)
    for _ in range(4):
        world.step()
    assert not [path for path, *_ in world.cluster.asked if path.startswith("/openapi")]
    world.cluster.is_busy = False
    world.until("released", lambda: is_released(world))


def test_a_missing_permission_is_retried_later(world: Simulated) -> None:
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


@pytest.mark.parametrize(("path", "status"), [("/api/v1/namespaces/kube-system/services/kube-dns", 403), ("/api", 401)])
def test_a_deleted_role_binding_or_service_account_closes_no_gate_and_opens_none(
    world: Simulated, path: str, status: int
) -> None:
    world.join(GATE, labels={})
    world.start(*CONTINUOUS)
    world.until("released", lambda: is_released(world))
    sound = dict(world.cluster.answers)
    world.cluster.answers[path] = http_json({"kind": "Status", "message": "no"}, status)
    world.cluster.asked.clear()
    world.until("six runs fail", lambda: [asked.partition("?")[0] for asked, _ in world.cluster.asked].count(path) == 6)
    assert is_released(world)
    world.unlabel()
    world.add_taint(GATE)
    world.stays(lambda: is_gated(world))
    world.cluster.answers.clear()
    world.cluster.answers |= sound
    world.until("released", lambda: is_released(world))


def test_writes_that_fail_count_in_the_pace(world: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another client could make all of them fail."""
    counted: list[str] = []
    patched: list[str] = []

    def refuse(path: str, *_: object) -> bytes:
        patched.append(path)
        return http_json({"kind": "Status", "message": "no", "reason": "Invalid"}, 422)

    monkeypatch.setattr(Pace, "wrote", lambda _, node: counted.append(node))
    monkeypatch.setattr(world.cluster, "_patch", refuse)
    world.join(GATE, labels={})
    world.start(*ONCE)
    world.until("patches fail", lambda: len(patched) == 4)
    assert counted == ["node-1"] * 4


def test_a_patch_that_is_always_rejected_is_reported(
    world: Simulated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """To a JSON Patch, that looks like repeated conflicts, until the fifth one."""
    refusal = http_json({"kind": "Status", "message": "a webhook does not like it", "reason": "Invalid"}, 422)
    monkeypatch.setattr(world.cluster, "_patch", lambda *_: refusal)
    world.join(GATE, labels={})
    world.start(*ONCE)
    world.until("the Event is written", lambda: "ReleaseRejected" in world.events())
    for _ in range(12):
        world.step()
    assert capsys.readouterr().out.count('"Node write rejected"') == 1
    assert is_gated(world)


def test_a_node_object_that_is_missing_is_waited_for(world: Simulated) -> None:
    world.start(*ONCE)
    for _ in range(5):
        world.step()
    world.join(GATE, labels={})
    world.until("released", lambda: is_released(world))


def test_a_lasting_error_is_logged_once(world: Simulated, capsys: pytest.CaptureFixture[str]) -> None:
    world.join(GATE, labels={})
    world.cluster.is_busy = True
    world.start(*ONCE)
    for _ in range(6):
        world.step()
    assert capsys.readouterr().out.count("API request failed") == 1
    world.cluster.is_busy = False
    world.until("released", lambda: is_released(world))


def test_a_briefly_missing_token_is_waited_for(world: Simulated, tmp_path: Path) -> None:
    world.join(GATE, labels={})
    world.start(*ONCE)
    (tmp_path / "token").rename(tmp_path / "elsewhere")
    for _ in range(5):
        world.step()
    (tmp_path / "elsewhere").rename(tmp_path / "token")
    world.until("released", lambda: is_released(world))


def test_an_api_server_with_invalid_responses_is_waited_for(world: Simulated) -> None:
    world.join(GATE, labels={})
    node = world.cluster.nodes["node-1"]
    world.cluster.nodes["node-1"] = {"metadata": "none"}
    world.start(*ONCE)
    for _ in range(3):
        world.step()
    world.cluster.nodes["node-1"] = node
    world.until("released", lambda: is_released(world))


def releases(world: Simulated) -> int:
    return world.cluster.writes.count("json-patchnode-1")


def contest(world: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, another client puts the gate back before the agent can see it open."""
    patch = world.cluster._patch

    def undo(path: str, kind: str, body: Any) -> bytes:  # noqa: ANN401  as the server's own
        answer = patch(path, kind, body)
        if not is_gated(world):
            world.add_taint(GATE)
        return answer

    monkeypatch.setattr(world.cluster, "_patch", undo)


class TestContested:
    """Decided by `verification.decide`, as in the controller: tests/unit/verification/test_contests.py."""

    def test_releases_wait_2_4_8_and_more_seconds(self, world: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
        """The first time a gate comes back is not a contest."""
        world.join(GATE, labels={})
        contest(world, monkeypatch)
        world.start(*ONCE)
        times: list[float] = []
        while len(times) < 11:
            before = releases(world)
            world.until("another release", lambda before=before: releases(world) > before)  # type: ignore[misc]
            times.append(world.clock.time.timestamp())
        waits = [later - earlier for earlier, later in itertools.pairwise(times)]
        for wait, expected in zip(waits, [0, 2, 4, 8, 16, 32, 64, 128, 256, 300], strict=True):
            assert expected <= wait <= expected * 1.1 + 1
        assert world.metric("node_check_gate_contested_total") == 9, "all but the first, and the last is not seen yet"

    def test_it_is_reported_at_2_4_and_8_releases(
        self, world: Simulated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        world.join(GATE, labels={})
        contest(world, monkeypatch)
        world.start(*ONCE)
        begun = world.clock.time
        world.until("it is reported", lambda: world.condition().get("reason") == "GateContested")
        assert (world.clock.time - begun).total_seconds() < 4
        assert world.condition()["status"] == "Unknown"
        assert world.cluster.writes.count("event GateContested") == 1
        world.until("it goes on", lambda: world.node().record.contested == 9)
        assert world.cluster.writes.count("event GateContested") == 3
        assert capsys.readouterr().out.count('"Gate contested"') == 3

    def test_it_survives_a_restart(self, world: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
        world.join(GATE, labels={})
        contest(world, monkeypatch)
        world.start(*ONCE)
        world.until("it is contested", lambda: world.node().record.contested == 5)
        before, begun = releases(world), world.clock.time
        world.restart()
        world.until("another release", lambda: releases(world) > before)
        assert (world.clock.time - begun).total_seconds() >= 16

    def test_a_gate_that_stayed_open_is_no_longer_contested(
        self, world: Simulated, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.join(GATE, labels={})
        with monkeypatch.context() as patched:
            contest(world, patched)
            world.start(*ONCE)
            world.until("it is reported", lambda: "GateContested" in world.events())
        world.until("released", lambda: is_released(world))
        world.until("the condition is written", lambda: world.condition()["status"] == "True")
        end = world.clock.time + timedelta(minutes=11)
        while world.clock.time < end:
            world.step()
        world.add_taint(GATE)
        begun = world.clock.time
        world.until("released", lambda: is_released(world))
        assert (world.clock.time - begun).total_seconds() < 11, "it is looked at every ten seconds"
        assert world.node().record.contested == 0

    def test_it_is_opened_only_after_checks_that_passed_since(
        self, world: Simulated, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.join(GATE, labels={})
        contest(world, monkeypatch)
        world.start(*ONCE)
        world.until("it is reported", lambda: "GateContested" in world.events())
        before = releases(world)
        world.break_network()
        world.until("checks fail", lambda: world.metric("node_check_consecutive_failures") >= 2)
        assert releases(world) == before
        world.heal_network()
        world.until("it is tried again", lambda: releases(world) > before)

    def test_a_client_that_also_deletes_the_record_gets_a_round_of_checks_for_each_release(
        self, world: Simulated, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The count is lost with the record. What is left is the pace: two writes per second after a burst of 30."""
        patch = world.cluster._patch

        def undo(path: str, kind: str, body: Any) -> bytes:  # noqa: ANN401  as the server's own
            answer = patch(path, kind, body)
            if not is_gated(world):
                world.add_taint(GATE)
                world.cluster.nodes["node-1"]["metadata"]["annotations"].clear()
            return answer

        monkeypatch.setattr(world.cluster, "_patch", undo)
        world.join(GATE, labels={})
        world.start(*ONCE)
        begun = world.clock.time
        while world.clock.time < begun + timedelta(seconds=20):
            world.step()
        rounds = [path for path, *_ in world.cluster.asked if path.startswith("/openapi")]
        assert 1 < releases(world) <= len(rounds)
        assert releases(world) <= 30 + 2 * 20 + 1

    def test_our_own_closing_is_not_a_contest(self, world: Simulated) -> None:
        world.join(GATE, labels={})
        world.start(*CONTINUOUS)
        for _ in range(3):
            world.until("released", lambda: is_released(world))
            world.break_network()
            world.until("closed", lambda: is_gated(world))
            world.heal_network()
        world.until("released", lambda: is_released(world))
        assert "GateContested" not in world.events()
        assert world.metric("node_check_gate_contested_total") == 0

    def test_one_removal_of_the_label_is_not_a_contest(self, world: Simulated) -> None:
        """It asks for a new proof."""
        world.join(GATE, labels={})
        world.start(*ONCE)
        world.until("released", lambda: is_released(world))
        world.unlabel()
        world.until("released", lambda: is_released(world))
        assert "GateContested" not in world.events()


class TestRefused:
    def test_releases_wait_longer_and_require_new_checks(
        self, world: Simulated, capsys: pytest.CaptureFixture[str]
    ) -> None:
        world.join(GATE, labels={})
        world.forbid("nodes")
        world.start(*ONCE)
        begun = world.clock.time
        while world.clock.time < begun + timedelta(minutes=10):
            world.step()
        refused = world.metric("node_check_release_rejected_total")
        assert refused == 10, "immediately, and after 1, 2, 4, … 256 s"
        assert world.cluster.writes.count("event ReleaseRejected") == 1
        assert (world.condition()["reason"], world.condition()["status"]) == ("ReleaseRejected", "Unknown")
        assert "Forbidden, as this test wants it" in world.condition()["message"]
        assert capsys.readouterr().out.count('"Node write rejected"') == 1
        world.break_network()
        world.cluster.forbidden.clear()
        world.stays(lambda: is_gated(world))
        world.heal_network()
        world.until("released", lambda: is_released(world))
        world.until("the condition is written", lambda: world.condition()["status"] == "True")

    def test_it_is_reported_without_the_right_to_write_conditions(self, world: Simulated) -> None:
        world.join(GATE, labels={})
        world.forbid("nodes")
        world.forbid("nodes/status")
        world.start(*ONCE)
        world.until("it is reported", lambda: "ReleaseRejected" in world.events())
        world.cluster.forbidden.clear()
        world.until("released", lambda: is_released(world))

    @pytest.mark.parametrize("status", [429, 500])
    def test_an_error_of_the_release_that_lasts_is_reported(
        self, world: Simulated, monkeypatch: pytest.MonkeyPatch, status: int
    ) -> None:
        """As when the webhook that all patches go through is down, or throttles."""
        words = {"kind": "Status", "message": "failed calling webhook", "reason": "InternalError"}
        world.join(GATE, labels={})
        with monkeypatch.context() as patched:
            patched.setattr(world.cluster, "_patch", lambda *_: http_json(words, status))
            world.start(*ONCE)
            world.until("it is reported", lambda: "ReleaseRejected" in world.events())
        world.until("released", lambda: is_released(world))

    def test_a_record_that_is_rejected_is_reported(self, world: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
        """The failure's own Event comes before."""
        words = {"kind": "Status", "message": "Too long", "reason": "RequestEntityTooLarge"}
        patch = world.cluster._patch
        world.join(GATE, labels={})
        world.break_network()

        def refuse(path: str, kind: str, body: Any) -> bytes:  # noqa: ANN401  as the server's own
            has_record = "verification" in str(body)
            return http_json(words, 413) if has_record else patch(path, kind, body)

        with monkeypatch.context() as patched:
            patched.setattr(world.cluster, "_patch", refuse)
            world.start(*ONCE)
            world.until("it is reported", lambda: "RecordRejected" in world.events())
            world.until("the condition shows it", lambda: world.condition().get("reason") == "RecordRejected")
            assert world.condition()["status"] == "Unknown"
            assert world.events()[0] == "VerificationFailed"
        world.until("recorded", lambda: world.node().record.failures >= 1)
        world.until("the condition follows", lambda: world.condition().get("status") == "False")


class TestNotApplicable:
    def test_checks_without_targets_are_not_counted_as_passed(self, world: Simulated) -> None:
        world.join(GATE, labels={})
        world.start(*ONCE, "--enable-connectivity-matrix")
        world.until("the Event is written", lambda: world.events() == ["Verified"])
        (event,) = world.cluster.events.values()
        recorded = world.node().record.checks
        (matrix,) = [check for check in recorded if not check.applies]
        assert matrix.name == "matrix"
        assert matrix.error.startswith("not enough peers: 0 of 2 ")
        assert event["message"].startswith(f"attempt 1: {len(recorded) - 1} checks passed")
        assert event["message"].endswith(f"; not applicable: matrix ({matrix.error})")
