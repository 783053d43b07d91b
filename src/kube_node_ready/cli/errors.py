"""Mistakes of whoever typed the command, each a sentence."""

from collections.abc import Iterable, Sequence

from kube_node_ready.configuration.spelling import similar
from kube_node_ready.console import words
from kube_node_ready.verify.report import printable


class Mistake(Exception):  # noqa: N818  theirs, and told to them
    """The command cannot be meant as it stands."""


def check_names(names: Sequence[str], known: Iterable[str]) -> None:
    """All that are unknown, with the nearest that are."""
    there = list(known)
    missing = [name for name in names if name not in set(there)]
    if not missing:
        return
    meant = [(name, similar(name, there)) for name in missing]
    guesses = [f"{printable(name)} (did you mean {near}?)" if near else printable(name) for name, near in meant]
    raise Mistake(f"there is no node {words.listed(guesses)}; there are {words.count(len(there), 'node')}")
