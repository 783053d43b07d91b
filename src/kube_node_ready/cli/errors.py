"""Errors in the use of a command, each with one message."""

from collections.abc import Iterable, Sequence

from kube_node_ready.api.report import printable
from kubekit import durations
from kubekit.suggestions import did_you_mean


class UsageError(Exception):
    """The command is invalid."""


def check_names(names: Sequence[str], known: Iterable[str]) -> None:
    """Raise an error that names all unknown nodes, with the most similar known ones."""
    existing = list(known)
    missing = [name for name in names if name not in set(existing)]
    if not missing:
        return
    meant = [(name, did_you_mean(name, existing)) for name in missing]
    guesses = [f"{printable(name)} (did you mean {near}?)" if near else printable(name) for name, near in meant]
    raise UsageError(
        f"node not found: {durations.listed(guesses)}; "
        f"the cluster has {durations.plural(len(existing), 'node', thousands=',')}"
    )
