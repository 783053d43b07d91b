"""Recognize verification records that another client wrote, by the records that this process sent."""

from collections.abc import Callable
from datetime import datetime

from kube_node_ready.api.record import Outcome, VerificationRecord, decode_record, encode_record
from kube_node_ready.verification.model import Node

_SENT = 4
"""This many of our last records of a node are recognized: the watch can lag, and a response can be lost."""


class OwnRecords:
    """`on_forgery` is called for each record that another client wrote."""

    def __init__(self, on_forgery: Callable[[], None]) -> None:
        self._on_forgery = on_forgery
        self._only_writer_since: datetime | None = None
        self._sent: dict[str, tuple[int, ...]] = {}
        self._forged: set[str] = set()

    def expect_no_others(self, now: datetime) -> None:
        """From now on, no other controller writes records."""
        self._only_writer_since = now

    def sent(self, node: Node, record: VerificationRecord) -> None:
        read_back = hash(decode_record(encode_record(record)))
        self._sent[node.uid] = (*self._sent.get(node.uid, ()), read_back)[-_SENT:]

    def node_changed(self, before: Node | None, after: Node | None) -> None:
        """Only the controller writes verdicts. Other clients can write a pending record, to request a verification."""
        if after is None:
            if before:
                self._sent.pop(before.uid, None)
            return
        since = self._only_writer_since
        if not since or after.record.outcome is Outcome.PENDING:
            return
        if before and before.uid == after.uid:
            is_change = before.record != after.record
        else:  # a Node that appears with a verdict: one that is older might have it from an earlier controller
            is_change = after.created is not None and after.created > since
        if not is_change:
            return
        if hash(after.record) not in self._sent.get(after.uid, ()):
            self._forged.add(after.name)
            self._on_forgery()

    def take_forgery(self, name: str) -> bool:
        """Return whether another client has written the node's record since the last call."""
        if name not in self._forged:
            return False
        self._forged.discard(name)
        return True
