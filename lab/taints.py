"""A taint, as the lab's nodes are given them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Taint:
    key: str
    effect: str = "NoSchedule"
    value: str = ""

    def as_dict(self) -> dict[str, str]:
        return {"key": self.key, "value": self.value, "effect": self.effect}
