"""Where removals are written down before they happen: a ConfigMap, so that the budget outlives the controller."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from kube_node_ready.objects import ConfigMap
from kube_node_ready.verify.model import Ledger, Removal
from kube_node_ready.verify.nodes import is_paused

_KEY = "removals"


MISSING = Ledger(trouble="the ledger of removals is not there yet")
EMPTY = Ledger()


def read(wire: ConfigMap) -> Ledger:
    """A ledger that cannot be read holds everything: what was spent is unknown."""
    text = (wire.data or {}).get(_KEY, "[]")
    paused = is_paused(wire.metadata.annotations or {})
    try:
        removals = msgspec.json.decode(text, type=tuple[Removal, ...])
        if not all(removal.at.tzinfo for removal in removals):
            raise msgspec.ValidationError("a time without its zone")
    except (msgspec.DecodeError, RecursionError) as why:
        trouble = f"ConfigMap {wire.metadata.name}, {_KEY}: {why}. Make it a list of removals, or delete the ConfigMap"
        return Ledger(paused=paused, trouble=trouble)
    return Ledger(removals, paused, version=wire.metadata.resource_version)


def with_removal(book: Sequence[Removal], removal: Removal, window: timedelta, now: datetime) -> list[Removal]:
    """The list with one more, without those that no longer weigh."""
    return [*(entry for entry in book if now - entry.at < window), removal]


def patch(version: str, removals: list[Removal]) -> dict[str, Any]:
    """A merge patch that fails if the ledger is not what it was when we decided."""
    return {"metadata": {"resourceVersion": version}, "data": {_KEY: msgspec.json.encode(removals).decode()}}


def empty(name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/name": "kube-node-ready", "app.kubernetes.io/component": "ledger"},
        },
        "data": {_KEY: "[]"},
    }
