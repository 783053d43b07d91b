"""When each node's turn is."""

import zlib
from datetime import UTC, datetime, timedelta

import pytest

from kube_node_ready.verification.schedule import next_turn, since_turn

HOUR = timedelta(hours=1)
EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
UIDS = [f"uid-{number}" for number in range(20)]


def place(uid: str) -> timedelta:
    return HOUR * (zlib.crc32(uid.encode()) / 2**32)


@pytest.mark.parametrize("uid", UIDS)
def test_a_turn_begins_at_the_nodes_own_place_in_every_interval(uid: str) -> None:
    # Every controller process has to compute the same turns, so the places are part of the contract.
    began = EPOCH + 1000 * HOUR + place(uid)
    assert since_turn(uid, HOUR, began + timedelta(seconds=1)) == timedelta(seconds=1)
    assert since_turn(uid, HOUR, began - timedelta(seconds=1)) == HOUR - timedelta(seconds=1)


@pytest.mark.parametrize("uid", UIDS)
def test_the_next_turn_is_the_first_one_that_is_not_earlier(uid: str) -> None:
    began = EPOCH + 1000 * HOUR + place(uid)
    assert next_turn(uid, HOUR, began) == began
    assert next_turn(uid, HOUR, began - timedelta(seconds=1)) == began
    assert next_turn(uid, HOUR, began + timedelta(seconds=1)) == began + HOUR


def test_intervals_are_counted_from_2020() -> None:
    # Seven hours do not divide a day, a month or a year, so another beginning would be another turn.
    interval = timedelta(hours=7)
    began = EPOCH + 1000 * interval + interval * (zlib.crc32(b"uid") / 2**32)
    assert next_turn("uid", interval, began - timedelta(seconds=1)) == began


def test_places_spread_over_the_whole_interval() -> None:
    places = sorted(since_turn(f"uid-{number}", HOUR, EPOCH) for number in range(1000))
    assert places[0] < HOUR / 50
    assert places[-1] > HOUR * 49 / 50
