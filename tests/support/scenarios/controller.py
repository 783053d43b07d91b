"""What a node goes through, shared: each runs in the model (tests/unit) and on a real API server (tests/cluster)."""

from collections.abc import Callable
from typing import Any, Protocol

from kube_node_ready.api.record import Outcome
from kube_node_ready.verification.model import Node, Worker
from tests.support.model_cluster import GATE

FOREIGN = {"key": "example.com/foreign", "value": "x", "effect": "PreferNoSchedule"}
OTHER_GATE = {"key": "example.com/second-gate", "value": "whatever", "effect": "NoExecute"}


class World(Protocol):
    """A cluster with a running controller."""

    def join(self, name: str, *, taints: list[dict[str, str]], verdict: str, labels: dict[str, str]) -> None: ...
    def leave(self, name: str) -> None: ...
    def ordain(self, name: str, verdict: str) -> None: ...
    def unlabel(self, name: str) -> None: ...
    def add_taint(self, name: str, taint: dict[str, str]) -> None: ...
    def delete_worker(self, worker: Worker) -> None: ...
    def node(self, name: str) -> Node: ...
    def condition(self, name: str) -> dict[str, Any]: ...
    def workers(self, name: str) -> list[Worker]: ...
    def events(self, name: str) -> list[str]: ...
    def until(self, what: str, condition: Callable[[], object]) -> None: ...
    def stays(self, condition: Callable[[], bool]) -> None: ...


Scenario = Callable[[World, str], None]


def released(world: World, name: str) -> bool:
    node = world.node(name)
    return node.labelled and not any(taint.key == GATE["key"] for taint in node.taints)


def join(world: World, name: str, verdict: str = "passes", *, taints: tuple[dict[str, str], ...] = (GATE,)) -> None:
    world.join(name, taints=[dict(taint) for taint in taints], verdict=verdict, labels={})


def a_healthy_node_is_released(world: World, name: str) -> None:
    join(world, name)
    world.until("released", lambda: released(world, name))
    world.until("the worker is gone", lambda: not world.workers(name))
    world.until("the condition says so", lambda: world.condition(name).get("status") == "True")
    assert world.node(name).record.attempt == 1
    assert world.events(name) == ["Verified"]


def only_our_taints_go(world: World, name: str) -> None:
    join(world, name, taints=(FOREIGN, GATE, OTHER_GATE))
    world.until("released", lambda: released(world, name))
    assert FOREIGN["key"] in [taint.key for taint in world.node(name).taints]
    assert OTHER_GATE["key"] not in [taint.key for taint in world.node(name).taints]


def any_value_of_the_gate_is_accepted(world: World, name: str) -> None:
    join(world, name, taints=({**GATE, "value": "something-else"},))
    world.until("released", lambda: released(world, name))


def a_node_without_a_gate_is_left_alone(world: World, name: str) -> None:
    join(world, name, taints=(FOREIGN,))
    world.stays(lambda: not world.workers(name) and not world.node(name).labelled)


def a_broken_node_stays_gated_with_a_reason(world: World, name: str) -> None:
    join(world, name, "fails")
    world.until("it failed twice", lambda: world.node(name).record.failures >= 2)
    assert not released(world, name)
    assert world.condition(name)["status"] == "False"
    assert "VerificationFailed" in world.events(name)
    assert len(world.workers(name)) <= 2


def a_node_that_recovers_is_released_automatically(world: World, name: str) -> None:
    join(world, name, "fails")
    world.until("it failed", lambda: world.node(name).record.failures >= 1)
    world.ordain(name, "passes")
    world.until("released", lambda: released(world, name))
    assert world.node(name).record.failures == 0


def an_exhausted_node_is_retried_slowly(world: World, name: str) -> None:
    join(world, name, "fails")
    world.until("exhausted", lambda: "VerificationExhausted" in world.events(name))
    world.until("and tried again", lambda: world.node(name).record.failures > 3)
    world.ordain(name, "passes")
    world.until("released", lambda: released(world, name))


def a_worker_that_cannot_start_is_a_failed_attempt(world: World, name: str) -> None:
    join(world, name, "stuck")
    world.until("it failed", lambda: world.node(name).record.failures >= 1)
    assert "ImagePullBackOff" in world.node(name).record.reason
    assert not released(world, name)


def a_worker_that_hangs_is_a_failed_attempt(world: World, name: str) -> None:
    join(world, name, "hangs")
    world.until("it failed", lambda: world.node(name).record.failures >= 1)
    assert "no verdict within 30 s" in world.node(name).record.reason
    world.ordain(name, "passes")
    world.until("released", lambda: released(world, name))


def a_manually_deleted_worker_is_replaced(world: World, name: str) -> None:
    join(world, name, "hangs")
    world.until("a worker", lambda: world.workers(name))
    (first,) = world.workers(name)
    world.ordain(name, "passes")
    world.delete_worker(first)
    world.until("released", lambda: released(world, name))
    assert world.node(name).record.attempt == 1, "no attempt was lost"


def removing_the_label_verifies_again(world: World, name: str) -> None:
    join(world, name)
    world.until("released", lambda: released(world, name))
    world.ordain(name, "fails")
    world.unlabel(name)
    world.until("it fails now", lambda: world.node(name).record.failures >= 1)
    world.ordain(name, "passes")
    world.until("released again", lambda: released(world, name))
    assert world.node(name).record.attempt > 1


def a_label_of_another_client_counts_until_its_removal(world: World, name: str) -> None:
    """As on nodes that an older controller verified, which left no record."""
    world.join(name, taints=[], verdict="passes", labels={"node-ready/verified": "true"})
    world.until("it is noted", lambda: world.node(name).record.attempt)
    assert not world.workers(name)
    assert not world.condition(name), "nothing was proved to us"
    world.unlabel(name)
    world.until("verified by us", lambda: world.node(name).record.outcome is Outcome.PASSED)
    assert released(world, name)


def a_gate_that_returns_needs_a_new_proof(world: World, name: str) -> None:
    """The label and the record prove nothing: a kubelet can write both on its own Node."""
    join(world, name)
    world.until("released", lambda: released(world, name))
    world.until("the worker is gone", lambda: not world.workers(name))
    world.ordain(name, "fails")
    world.add_taint(name, dict(GATE))
    world.until("it fails now", lambda: world.node(name).record.failures >= 1)
    assert not released(world, name)
    world.ordain(name, "passes")
    world.until("released again", lambda: released(world, name))
    assert world.node(name).record.attempt > 1


def a_node_of_the_same_name_starts_over(world: World, name: str) -> None:
    join(world, name, "hangs")
    world.until("a worker", lambda: world.workers(name))
    old = world.node(name)
    world.leave(name)
    join(world, name)
    world.until("released", lambda: world.node(name).uid != old.uid and released(world, name))
    assert world.node(name).record.attempt == 1


def a_very_long_name_is_supported(world: World, name: str) -> None:
    parts = ["ip-192-168-100-100.us-west-2.compute.internal", "x" * 60, "y" * 60, "z" * 60]
    long = f"{'.'.join(parts)[: 253 - len(name) - 1].rstrip('.-')}.{name}"
    join(world, long)
    world.until("released", lambda: released(world, long))


def karpenter_registers_first(world: World, name: str) -> None:
    unregistered = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
    join(world, name, taints=(unregistered, GATE))
    world.stays(lambda: not world.workers(name))


ALL: list[Scenario] = [
    a_healthy_node_is_released,
    only_our_taints_go,
    any_value_of_the_gate_is_accepted,
    a_node_without_a_gate_is_left_alone,
    a_broken_node_stays_gated_with_a_reason,
    a_node_that_recovers_is_released_automatically,
    an_exhausted_node_is_retried_slowly,
    a_worker_that_cannot_start_is_a_failed_attempt,
    a_worker_that_hangs_is_a_failed_attempt,
    a_manually_deleted_worker_is_replaced,
    removing_the_label_verifies_again,
    a_label_of_another_client_counts_until_its_removal,
    a_gate_that_returns_needs_a_new_proof,
    a_node_of_the_same_name_starts_over,
    a_very_long_name_is_supported,
    karpenter_registers_first,
]
