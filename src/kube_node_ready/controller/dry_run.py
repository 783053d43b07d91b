"""Execute nothing: log each effect once instead."""

from kube_node_ready.controller.execution import CacheSink, RecentKeys
from kube_node_ready.log import log
from kube_node_ready.verification.model import ConfirmWorker, Effect, Node


class DryRun:
    def __init__(self, sink: CacheSink) -> None:
        self._sink = sink
        self._logged = RecentKeys()

    async def ensure_ledger(self) -> None:
        """A dry run records no removals."""
        self._sink.assume_empty_ledger()

    async def apply(self, effect: Effect) -> bool:
        if isinstance(effect, ConfirmWorker):  # in a dry run, a verdict is only logged
            self._sink.worker_admitted(effect.worker.fingerprint)
            return True
        node: Node | None = getattr(effect, "node", None)
        attempt = getattr(effect, "attempt", "")
        kind, on = type(effect).__name__, node.name if node else getattr(effect, "name", "")
        if (key := f"{kind} {on} {attempt}") not in self._logged:
            self._logged.add(key)
            log("Dry run: effect skipped", effect=kind, on=on, attempt=attempt)
        return False
