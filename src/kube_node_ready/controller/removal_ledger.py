"""Record removals in a ConfigMap before they happen, so that the removal budget survives a restart."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from kube_node_ready.api.objects import ConfigMap
from kube_node_ready.verification.model import Ledger, Removal
from kube_node_ready.verification.node_reader import is_paused

_KEY = "removals"


MISSING = Ledger(error="the removal ledger does not exist yet")
EMPTY = Ledger()


def read(wire: ConfigMap) -> Ledger:
    """Read the ledger. An invalid one blocks all removals, because the used budget is unknown."""
    text = (wire.data or {}).get(_KEY, "[]")
    paused = is_paused(wire.metadata.annotations or {})
    try:
        removals = msgspec.json.decode(text, type=tuple[Removal, ...])
        if not all(removal.at.tzinfo for removal in removals):
            raise msgspec.ValidationError("a time without its zone")
    except (msgspec.DecodeError, RecursionError) as error:
        problem = (
            f"ConfigMap {wire.metadata.name}, {_KEY}: {error}. Make it a list of removals, or delete the ConfigMap"
        )
        return Ledger(paused=paused, error=problem)
    return Ledger(removals, paused, version=wire.metadata.resource_version)


def with_removal(removals: Sequence[Removal], removal: Removal, window: timedelta, now: datetime) -> list[Removal]:
    """Return the list with one more removal, without those outside of the window."""
    return [*(entry for entry in removals if now - entry.at < window), removal]


def patch(version: str, removals: list[Removal]) -> dict[str, Any]:
    """Build a merge patch that fails if the ledger has changed since the decision."""
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
