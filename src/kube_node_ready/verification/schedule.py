"""When attempts are due: backoff after failures, and turns of periodic work at a fixed offset per node."""

import zlib
from datetime import UTC, datetime, timedelta

from kube_node_ready.api.record import CONTEST_THRESHOLD, VerificationRecord
from kube_node_ready.verification.model import Node, Policy

_JITTER = 0.1
_FIRST_CONTEST_BACKOFF = timedelta(seconds=2)
_MAX_CONTEST_BACKOFF = timedelta(minutes=5)
_MAX_DOUBLINGS = 60
"""Enough to get from the shortest wait that can be configured, 1 µs, to the longest, a year."""
_EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


def since_turn(uid: str, interval: timedelta, now: datetime) -> timedelta:
    """Return the time since this node's last turn began."""
    place = interval * (zlib.crc32(uid.encode()) / 2**32)
    return (now - _EPOCH - place) % interval


def next_turn(uid: str, interval: timedelta, earliest: datetime) -> datetime:
    """Return when the first turn at or after `earliest` begins."""
    since = since_turn(uid, interval, earliest)
    return earliest + (interval - since) % interval


def backoff(node: Node, policy: Policy) -> timedelta:
    """Return the backoff after failures or a contest, with a jitter that is the same in every reconcile."""
    wait = max(_failure_backoff(node.record, policy), _contest_backoff(node.record))
    spread = zlib.crc32(f"{node.uid} {node.record.attempt}".encode()) / 2**32
    return wait * (1 + _JITTER * spread)


def _failure_backoff(record: VerificationRecord, policy: Policy) -> timedelta:
    """Return 1, 2, 4, … times the first backoff, or always the first; at most the longest."""
    if not record.failures:
        return timedelta()
    return _doubled(policy.first_backoff, record.failures - 1 if policy.exponential else 0, policy.max_backoff)


def _contest_backoff(record: VerificationRecord) -> timedelta:
    """Return a backoff for contested gates: each verification costs a worker pod, without effect."""
    if not record.is_contested:
        return timedelta()
    return _doubled(_FIRST_CONTEST_BACKOFF, record.contested - CONTEST_THRESHOLD, _MAX_CONTEST_BACKOFF)


def _doubled(first: timedelta, times: int, most: timedelta) -> timedelta:
    # In seconds: a timedelta overflows before it can be compared with the longest wait.
    seconds = first.total_seconds() * 2 ** min(times, _MAX_DOUBLINGS)
    return timedelta(seconds=min(seconds, most.total_seconds()))
