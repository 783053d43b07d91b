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
        matched = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return matched != self.negated


class Selector(Struct, frozen=True):
    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse(text: str) -> Selector | None:
    """Return None if the text is not a selector."""
    return Selector(tuple(_requirements(text))) if LABEL_SELECTOR.matches(text) else None


def _requirements(text: str) -> Iterator[Requirement]:
    for match in _REQUIREMENT.finditer(text):
        negated = bool(match["absent"]) or match["sign"] == "!=" or match["set"] == "notin"
        yield Requirement(match["key"], _values(match), negated=negated)


def _values(match: re.Match[str]) -> frozenset[str] | None:
    if match["set"]:
        return frozenset(value.strip() for value in match["values"].split(","))
    return frozenset([match["value"]]) if match["sign"] else None
