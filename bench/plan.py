"""The measurements of `make bench`, their order, and their approximate duration on two idle cores."""

from dataclasses import dataclass

BURSTS = (200, 1000, 5000)
IDLE = (1000, 5000)
TRICKLE = 600
FLEET = 1000
"""Of the outage, the churn, and the burst in a crowd."""


@dataclass(frozen=True)
class Step:
    scenario: str
    nodes: int
    seconds: int

    @property
    def name(self) -> str:
        return self.scenario if self.scenario in ALONE else f"{self.scenario}-{self.nodes}"

    @property
    def command(self) -> list[str]:
        """The arguments of `python -m` that measure it and save the result."""
        if self.scenario in ALONE:
            return [f"bench.{self.scenario}", *ALONE[self.scenario]]
        return ["bench.operator", self.scenario, str(self.nodes), "--save"]


ALONE = {"lab": [], "worker": ["--save"], "component": ["--save"]}
"""Measurements other than scenarios of the operator, with their own commands. The lab's figures are only printed."""

STEPS = (
    Step("lab", 1, 120),
    Step("worker", 1, 150),
    Step("component", 1000, 20),
    Step("floor", 200, 70),
    Step("burst", 200, 80),
    Step("floor", 1000, 130),
    Step("burst", 1000, 150),
    Step("floor", 5000, 400),
    Step("burst", 5000, 450),
    Step("trickle", TRICKLE, 130),
    Step("outage", FLEET, 500),
    Step("churn", FLEET, 290),
    Step("crowd", FLEET, 280),
    Step("idle", 1000, 190),
    Step("idle", 5000, 300),
)


def told(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d} min"
