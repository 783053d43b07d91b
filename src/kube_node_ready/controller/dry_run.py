"""Execute nothing: log each effect once instead."""

from kube_node_ready.controller.execution import CacheSink, RecentKeys
from kube_node_ready.log import log
from kube_node_ready.verification.effects import ConfirmAttempt, DiscardAttempt, Effect, EmitEvent, StartAttempt
from kube_node_ready.verification.model import Worker


class DryRun:
    def __init__(self, sink: CacheSink) -> None:
        self._sink = sink
        self._logged = RecentKeys()

    async def ensure_ledger(self) -> None:
        """A dry run records no removals."""
        self._sink.assume_empty_ledger()

    async def apply(self, effect: Effect) -> bool:
        if isinstance(effect, ConfirmAttempt):  # in a dry run, a verdict is only logged
            self._sink.worker_admitted(effect.worker.fingerprint)
            return True
        kind, (on, attempt) = type(effect).__name__, _target(effect)
        if (key := f"{kind} {on} {attempt}") not in self._logged:
            self._logged.add(key)
            log("Dry run: effect skipped", effect=kind, on=on, attempt=attempt)
        return False


def _target(effect: Effect) -> tuple[str, int | str]:
    """Return the name of the object that the effect is about, and the number of an attempt, if there is one."""
    match effect:
        case StartAttempt(node, number) | EmitEvent(node=node, attempt=number):
            return node.name, number
        case DiscardAttempt(attempt):
            assert isinstance(attempt, Worker)
            return attempt.name, ""
        case _:
            return effect.node.name, ""
