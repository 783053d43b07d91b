"""What a node goes through in DaemonSet mode, written once.

Each scenario gets a World: a node, and DaemonSet mode running on it. In tests/unit it is an API server in memory and
time that jumps, in tests/cluster a real API server and a real process. A node's network is broken and healed by a
target of the network check that ceases to listen.
"""

from collections.abc import Callable
from typing import Any, Protocol

from kube_node_ready.api.record import Outcome
from kube_node_ready.verification.model import Node

GATE = {"key": "node-ready/unverified", "value": "true", "effect": "NoSchedule"}
FOREIGN = {"key": "example.com/foreign", "value": "x", "effect": "PreferNoSchedule"}
OTHER_EFFECT = {"key": "node-ready/unverified", "value": "true", "effect": "NoExecute"}
LABEL = "node-ready/verified"
ONCE = ("--mode=once", "--max-retries=2")
CONTINUOUS = ("--mode=continuous", "--max-retries=1", "--check-interval=1s", "--failure-threshold=3")


class World(Protocol):
    def join(self, *taints: dict[str, str], labels: dict[str, str]) -> None: ...
    def start(self, *flags: str) -> None: ...
    def restart(self) -> None: ...
    def break_network(self) -> None: ...
    def heal_network(self) -> None: ...
    def unlabel(self) -> None: ...
    def label(self) -> None: ...
    def add_taint(self, taint: dict[str, str]) -> None: ...
    def overtake(self) -> None:
        """Right before the next patch arrives, someone else changes the Node's taints."""

    def forbid(self, resource: str) -> None:
        """Take the right to write this resource away."""

    def cut_off(self) -> None:
        """The API server answers no client."""

    def reconnect(self) -> None:
        """Where time does not jump: and wait until it is noticed."""

    def node(self) -> Node: ...
    def condition(self) -> dict[str, Any]: ...
    def events(self) -> list[str]: ...
    def metric(self, series: str) -> float: ...
    def until(self, what: str, condition: Callable[[], object]) -> None: ...
    def stays(self, condition: Callable[[], bool]) -> None: ...


Scenario = Callable[[World], None]


def is_gated(world: World) -> bool:
    return (GATE["key"], GATE["effect"]) in [(taint.key, taint.effect) for taint in world.node().taints]


def is_released(world: World) -> bool:
    return world.node().labelled and not is_gated(world)


def foreign_taints(world: World) -> list[str]:
    return [taint.key for taint in world.node().taints if (taint.key, taint.effect) != (GATE["key"], GATE["effect"])]


def join(world: World, *taints: dict[str, str]) -> None:
    world.join(*(taints or (GATE,)), labels={})


def released(world: World, *flags: str) -> None:
    """A sound node, and DaemonSet mode on it has done its work."""
    join(world, FOREIGN, GATE)
    world.start(*flags)
    world.until("released", lambda: is_released(world))
    world.until("the condition is written", lambda: world.condition().get("status") == "True")


def a_healthy_node_is_released(world: World) -> None:
    released(world, *ONCE)
    assert world.node().record.attempt == 1
    assert world.condition()["message"] == "verified by attempt 1"
    world.until("the Event is written", lambda: world.events() == ["Verified"])
    assert foreign_taints(world) == [FOREIGN["key"]]


def then_it_waits(world: World) -> None:
    """Until the DaemonSet controller removes the pod: to end by itself would be to be started again."""
    released(world, *ONCE)
    version = world.node().record
    world.stays(lambda: is_released(world) and world.node().record == version)
    assert world.metric("node_check_status") == 1


def only_our_taint_goes(world: World) -> None:
    join(world, FOREIGN, GATE, OTHER_EFFECT)
    world.start(*ONCE)
    world.until("released", lambda: is_released(world))
    assert foreign_taints(world) == [FOREIGN["key"], OTHER_EFFECT["key"]]


def a_node_that_was_never_gated_is_verified(world: World) -> None:
    """As on the nodes of a cluster in which DaemonSet mode is new."""
    join(world, FOREIGN)
    world.start(*ONCE)
    world.until("released", lambda: is_released(world))


def a_failing_node_is_retried_with_a_reason(world: World) -> None:
    join(world)
    world.break_network()
    world.start(*ONCE)
    world.until("it failed twice", lambda: world.node().record.failures >= 2)
    assert is_gated(world)
    assert world.condition()["status"] == "False"
    assert "no TCP connection" in world.condition()["message"]
    assert "VerificationFailed" in world.events()
    assert world.metric('node_check_failures_total{check="network"}') >= 2
    assert world.metric("node_check_status") == 0
    world.heal_network()
    world.until("released", lambda: is_released(world))
    assert world.node().record.failures == 0


def too_many_failures_leave_it_gated_and_are_reported(world: World) -> None:
    join(world)
    world.break_network()
    world.start(*ONCE)
    world.until("exhausted", lambda: "VerificationExhausted" in world.events())
    world.until("the condition is written", lambda: world.condition().get("reason") == "VerificationExhausted")
    world.stays(lambda: is_gated(world) and world.node().record.failures == 3)


def a_node_that_recovers_is_released_automatically(world: World) -> None:
    """Takes five minutes where time does not jump."""
    too_many_failures_leave_it_gated_and_are_reported(world)
    world.heal_network()
    world.until("released", lambda: is_released(world))
    assert world.node().record.attempt == 4


def removing_the_label_requests_a_new_proof(world: World) -> None:
    released(world, *ONCE)
    world.unlabel()
    world.until("verified again", lambda: is_released(world) and world.node().record.attempt == 2)


def a_gate_that_returns_needs_a_new_proof(world: World) -> None:
    """A kubelet can write the record of its own Node, so the record opens no gate."""
    released(world, *ONCE)
    world.break_network()
    world.add_taint(GATE)
    world.until("it is checked again", lambda: world.node().record.failures >= 1)
    assert is_gated(world)
    world.heal_network()
    world.until("released again", lambda: is_released(world))
    record = world.node().record
    assert record.outcome is Outcome.PASSED
    assert record.attempt >= 3


def a_conflict_is_retried(world: World) -> None:
    join(world, FOREIGN, GATE)
    world.overtake()
    world.start(*ONCE)
    world.until("released", lambda: is_released(world))
    assert FOREIGN["key"] in foreign_taints(world)
    assert len(foreign_taints(world)) == 2, "theirs is there, too"


def what_a_killed_process_did_not_report_its_successor_reports(world: World) -> None:
    join(world)
    world.start(*ONCE)
    world.until("released", lambda: is_released(world))
    world.restart()
    world.until("the condition is written", lambda: world.condition().get("status") == "True")


def without_the_right_to_write_conditions_it_works(world: World) -> None:
    join(world)
    world.forbid("nodes/status")
    world.break_network()
    world.start(*ONCE)
    world.until("it failed twice", lambda: world.node().record.failures >= 2)
    world.heal_network()
    world.until("released", lambda: is_released(world))
    assert not world.condition()


def without_the_right_to_write_events_it_works(world: World) -> None:
    join(world)
    world.forbid("events")
    world.start(*ONCE)
    world.until("released", lambda: is_released(world))
    world.until("the condition is written", lambda: world.condition().get("status") == "True")


def a_few_failures_of_a_verified_node_change_nothing(world: World) -> None:
    released(world, *CONTINUOUS, "--failure-threshold=9")
    world.break_network()
    world.until("a round failed", lambda: world.metric("node_check_consecutive_failures") >= 1)
    world.heal_network()
    world.until("a round passed", lambda: world.metric("node_check_consecutive_failures") == 0)
    assert is_released(world)
    assert world.condition()["status"] == "True"
    assert world.events() == ["Verified"]


def failures_in_a_row_close_the_gate_and_recovery_opens_it(world: World) -> None:
    released(world, *CONTINUOUS)
    world.break_network()
    world.until("the gate is closed", lambda: is_gated(world))
    assert not world.node().labelled
    assert world.node().record.failures >= 1
    assert foreign_taints(world) == [FOREIGN["key"]]
    world.until("the condition is written", lambda: world.condition()["status"] == "False")
    assert "GateRestored" in world.events()
    assert world.metric("node_check_gate_restored_total") == 1
    world.until("it is seen", lambda: world.metric("node_check_status") == 0)
    world.heal_network()
    world.until("released again", lambda: is_released(world))
    assert foreign_taints(world) == [FOREIGN["key"]]
    world.until("the condition is written", lambda: world.condition()["status"] == "True")
    world.until("it is seen", lambda: world.metric("node_check_status") == 1)


def a_gate_that_someone_else_closed_is_not_closed_twice(world: World) -> None:
    released(world, *CONTINUOUS, "--failure-threshold=12")
    world.break_network()
    world.until("a round failed", lambda: world.metric("node_check_consecutive_failures") >= 2)
    world.add_taint({**GATE, "value": "by-someone-else"})
    world.until("the label is off", lambda: not world.node().labelled)
    assert [taint.value for taint in world.node().taints if taint.key == GATE["key"]] == ["by-someone-else"]


def a_lost_race_for_closing_is_tried_again(world: World) -> None:
    released(world, *CONTINUOUS)
    world.break_network()
    world.overtake()
    world.until("the gate is closed", lambda: is_gated(world))
    assert not world.node().labelled
    assert len(foreign_taints(world)) == 2


def a_label_set_by_hand_does_not_open_a_failing_node(world: World) -> None:
    released(world, *CONTINUOUS)
    world.break_network()
    world.until("the gate is closed", lambda: is_gated(world))
    world.label()
    world.stays(lambda: is_gated(world))


def an_outage_of_the_api_server_closes_no_gate(world: World) -> None:
    released(world, *CONTINUOUS)
    world.cut_off()
    world.until("rounds fail", lambda: world.metric('node_check_failures_total{check="api"}') >= 4)
    world.reconnect()
    failures = world.metric('node_check_failures_total{check="api"}')
    world.stays(lambda: is_released(world))
    assert world.metric('node_check_failures_total{check="api"}') == failures
    assert world.events() == ["Verified"]


ALL: list[Scenario] = [
    a_healthy_node_is_released,
    then_it_waits,
    only_our_taint_goes,
    a_node_that_was_never_gated_is_verified,
    a_failing_node_is_retried_with_a_reason,
    too_many_failures_leave_it_gated_and_are_reported,
    removing_the_label_requests_a_new_proof,
    a_gate_that_returns_needs_a_new_proof,
    a_conflict_is_retried,
    what_a_killed_process_did_not_report_its_successor_reports,
    without_the_right_to_write_conditions_it_works,
    without_the_right_to_write_events_it_works,
    a_few_failures_of_a_verified_node_change_nothing,
    failures_in_a_row_close_the_gate_and_recovery_opens_it,
    a_gate_that_someone_else_closed_is_not_closed_twice,
    a_lost_race_for_closing_is_tried_again,
    a_label_set_by_hand_does_not_open_a_failing_node,
    an_outage_of_the_api_server_closes_no_gate,
]
SLOW: list[Scenario] = [a_node_that_recovers_is_released_automatically]
"""For those who can wait, or whose time jumps."""
