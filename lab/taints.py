"""A taint, as the lab's nodes are given them."""

import re
from dataclasses import dataclass

from lab.errors import LabError

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class Taint:
    """Checked at once: a kubelet that is given a bad one only dies."""

    key: str
    effect: str = "NoSchedule"
    value: str = ""

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise LabError(f"{self.key!r} cannot be a taint's key; gate or example.com/gate could")
        if self.effect not in EFFECTS:
            raise LabError(f"{self.effect!r} is not a taint's effect; there are {', '.join(EFFECTS)}")

    def as_dict(self) -> dict[str, str]:
        return {"key": self.key, "value": self.value, "effect": self.effect}
