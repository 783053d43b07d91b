"""A taint of the lab's nodes."""

import re
from dataclasses import dataclass

from lab.errors import LabError

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class Taint:
    """A taint. It is validated immediately: a kubelet exits on an invalid one."""

    key: str
    effect: str = "NoSchedule"
    value: str = ""

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise LabError(f"{self.key!r} is invalid; expected a taint key such as gate or example.com/gate")
        if self.effect not in EFFECTS:
            raise LabError(f"{self.effect!r} is invalid; expected {', '.join(EFFECTS)}")

    def as_dict(self) -> dict[str, str]:
        return {"key": self.key, "value": self.value, "effect": self.effect}
