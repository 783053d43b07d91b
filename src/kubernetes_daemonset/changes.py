"""What applying a manifest would do: objects before and after. Pure."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

Json = dict[str, Any]

# What a server changes by itself.
_NOT_ESSENTIAL: Final = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink")
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


@dataclass(frozen=True, slots=True)
class Ref:
    """One object of a cluster."""

    kind: str
    name: str
    namespace: str = ""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        return cls(body["kind"], body["metadata"]["name"], body["metadata"].get("namespace", ""))

    def __str__(self) -> str:
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"


@dataclass(frozen=True, slots=True)
class Change:
    """One object before and after; either may not be there."""

    ref: Ref
    before: Json | None
    after: Json | None

    @property
    def verb(self) -> str:
        if self.before is None:
            return "create"
        if self.after is None:
            return "delete"
        return "unchanged" if essence(self.before) == essence(self.after) else "change"


@dataclass(frozen=True, slots=True)
class Plan:
    """What applying would do, tried out on the server."""

    changes: tuple[Change, ...]
    warnings: tuple[str, ...] = field(default=())


def essence(body: Json) -> Json:
    """An object without what changes by itself, for comparing and showing."""
    kept = copy.deepcopy(body)
    kept.pop("status", None)
    metadata = kept["metadata"]
    for key in _NOT_ESSENTIAL:
        metadata.pop(key, None)
    annotations = metadata.get("annotations", {})
    annotations.pop(_TEMPLATE_GENERATION, None)
    if not annotations:
        metadata.pop("annotations", None)
    return kept
