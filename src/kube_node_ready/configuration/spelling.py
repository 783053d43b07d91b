"""For a key nobody knows: the one that was probably meant."""

import difflib
from collections.abc import Iterable

from kube_node_ready.configuration.model import Config
from kube_node_ready.configuration.schema import leaves

MOVED = {
    "checkTimeout": "worker.checkTimeoutSeconds",
    "clusterDNSIP": "worker.clusterDnsIp",
    "deleteFailedNode": "nodeManagement.deleteFailedNodes",
    "dnsTestDomains": "worker.dnsTestDomains",
    "enableMetrics": "metrics.enabled",
    "initialTimeout": "worker.timeoutSeconds",
    "logFormat": "logging.format",
    "logLevel": "logging.level",
    "maxRetries": "reconciliation.maxRetries",
    "metricsPort": "metrics.port",
    "retryBackoff": "reconciliation.retryBackoff",
    "taintEffect": "nodeManagement.taints[0].effect",
    "taintKey": "nodeManagement.taints[0].key",
    "taintValue": "nodeManagement.taints[0].value",
    "verifiedLabel": "nodeManagement.verifiedLabel.key",
    "verifiedLabelValue": "nodeManagement.verifiedLabel.value",
}
"""Keys of the flat `config:` section that older versions read, and where the same is said today."""


def nearest(key: str, names: Iterable[str], path: str) -> str:
    """The reason to refuse the key, with the best guess at what was meant."""
    by_letters = {_letters(name): name for name in sorted(names)}
    if meant := by_letters.get(_letters(key)) or _elsewhere(key, path) or _similar(key, by_letters):
        return f"unknown key (did you mean {meant}?)"
    return f"unknown key (there are {', '.join(sorted(by_letters.values()))})"


def similar(word: str, words: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, list(words), n=1)), None)


def _similar(key: str, by_letters: dict[str, str]) -> str | None:
    close = similar(_letters(key), by_letters)
    return by_letters[close] if close else None


def _elsewhere(key: str, path: str) -> str | None:
    """A key that is right, in the wrong place."""
    if key in MOVED and not MOVED[key].startswith(f"{path}."):
        return MOVED[key]
    places = [at for at, _, _ in leaves(Config) if at.rpartition(".")[2] == key]
    return places[0] if len(places) == 1 else None


def _letters(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()
