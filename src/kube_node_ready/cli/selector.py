"""Select nodes by their labels, with the syntax and the semantics of `kubectl get --selector`.

The server is not asked: the decisions about the selected nodes depend on all nodes, so all are read anyway.
"""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from kubekit.names import LABEL_SELECTOR

_REQUIREMENT = re.compile(
    r"(?P<absent>!?) *(?P<key>[^\s,!=()]+) *"
    r"(?:(?P<sign>==?|!=) *(?P<value>[^\s,()]*)|(?P<set>in|notin) *\((?P<values>[^)]*)\))?"
)


class Requirement(Struct, frozen=True):
    key: str
    values: frozenset[str] | None = None
    """The values that match; None if any does."""
    negated: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels match. As in Kubernetes, a missing label matches a negated requirement."""
        found = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return found != self.negated


class Selector(Struct, frozen=True):
    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse(text: str) -> Selector | None:
    """Return None if the text is not a selector."""
    return Selector(tuple(_requirements(text))) if LABEL_SELECTOR.matches(text) else None


def _requirements(text: str) -> Iterator[Requirement]:
    for found in _REQUIREMENT.finditer(text):
        negated = bool(found["absent"]) or found["sign"] == "!=" or found["set"] == "notin"
        yield Requirement(found["key"], _values(found), negated=negated)


def _values(found: re.Match[str]) -> frozenset[str] | None:
    if found["set"]:
        return frozenset(value.strip() for value in found["values"].split(","))
    return frozenset([found["value"]]) if found["sign"] else None
