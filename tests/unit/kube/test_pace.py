"""The budget of writes that each node has."""

from kube_node_ready.kube.pace import Pace


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_free_and_then_two_per_second() -> None:
    clock = Clock()
    pace = Pace(clock)
    for _ in range(30):
        assert pace.wait("a") == 0
        pace.wrote("a")
    assert pace.wait("a") == 0.5
    clock.now += 0.25
    assert pace.wait("a") == 0.25
    clock.now += 0.25
    assert pace.wait("a") == 0
    pace.wrote("a")
    assert pace.wait("a") == 0.5


def test_one_node_does_not_slow_another() -> None:
    pace = Pace(Clock())
    for _ in range(100):
        pace.wrote("a")
    assert pace.wait("a") == 35.5
    assert pace.wait("b") == 0


def test_the_budget_is_whole_again_after_a_while() -> None:
    clock = Clock()
    pace = Pace(clock)
    for _ in range(30):
        pace.wrote("a")
    clock.now += 15
    for _ in range(30):
        assert pace.wait("a") == 0
        pace.wrote("a")


def test_nodes_whose_budget_is_whole_are_forgotten() -> None:
    clock = Clock()
    pace = Pace(clock)
    for number in range(1000):
        pace.wrote(f"old-{number}")
    clock.now += 2
    pace.wrote("new")
    assert len(pace._full_at) == 1
