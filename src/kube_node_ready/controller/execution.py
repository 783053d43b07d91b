"""What executors of effects share: their context, the sink for responses, and errors."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

import msgspec

from kube_node_ready.api.objects import Pod
from kube_node_ready.api.record import VerificationRecord
from kube_node_ready.verification.model import Node, Pool


class CacheSink(Protocol):
    """Receives the responses to our own writes, so that the next reconcile sees them."""

    def node_written(self, answer: bytes) -> None: ...
    def worker_written(self, pod: Pod) -> None: ...
    def worker_found(self, pod: Pod) -> None: ...
    def worker_admitted(self, fingerprint: str) -> None: ...
    def worker_deleted(self, uid: str) -> None: ...
    def ledger_written(self, answer: bytes) -> None: ...
    def assume_empty_ledger(self) -> None: ...
    def record_sent(self, node: Node, record: VerificationRecord) -> None: ...
    def pool_found(self, node: Node, pool: Pool) -> None: ...


class RemovalBlocked(Exception):  # noqa: N818  a state of affairs, not a fault
    """The node cannot be removed now, for a reason other than the budget."""


class ForeignWorker(Exception):  # noqa: N818  a finding, not a fault
    """A pod looks like a worker, but does not run what the controller requested, or that cannot be determined."""


class ExecutorContext(msgspec.Struct, frozen=True):
    """What an executor needs to know about its process."""

    now: Callable[[], datetime]
    identity: str
    ledger_path: str
    removal_dry_run: bool = False


class RecentKeys:
    """The most recent keys."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._keys: dict[str, None] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def add(self, key: str) -> None:
        self._keys[key] = None
        if len(self._keys) > self._most:
            del self._keys[next(iter(self._keys))]
