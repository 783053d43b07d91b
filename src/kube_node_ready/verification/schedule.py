"""Things done once an interval, by each node at its own time, so that a fleet does not do them all at once."""

import zlib
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


def since_turn(uid: str, interval: timedelta, now: datetime) -> timedelta:
    """How long ago this node's last turn began."""
    place = interval * (zlib.crc32(uid.encode()) / 2**32)
    return (now - _EPOCH - place) % interval


def next_turn(uid: str, interval: timedelta, earliest: datetime) -> datetime:
    """When its first turn from then on begins."""
    since = since_turn(uid, interval, earliest)
    return earliest + (interval - since) % interval
