from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from kubekit import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("1.5", 1.5),
        ("0", 0),
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5400),
        ("1.5m", 90),
        ("1m30s", 90),
        ("1500ms", 1.5),
        ("1h1m1s1ms", 3661.001),
    ],
)
def test_a_duration_has_units_or_is_a_number_of_seconds(text: str, seconds: float) -> None:
    assert durations.parse(text, float) == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "-1", "-1s", "+1s", "1d", "5 s", "1m30", "1s1m", ".5s", "5.s", "s", "1e3", "1s\n", "٣s"]
)
def test_a_text_that_is_not_a_duration(text: str) -> None:
    assert durations.parse(text, float) is None


def test_a_number_alone_is_optional() -> None:
    assert durations.parse("90", float, bare=False) is None
    assert durations.parse("90s", float, bare=False) == 90


def test_units_can_be_restricted() -> None:
    assert durations.parse("1500ms", float, units=("h", "m", "s")) is None
    assert durations.parse("2m", float, units=("h", "m", "s")) == 120


def test_the_pattern_of_numbers_can_be_chosen() -> None:
    assert durations.parse("٣s", float, number=durations.UNICODE_NUMBER) == 3
    assert durations.parse("٣", float, number=durations.UNICODE_NUMBER) == 3
    assert durations.parse("1.5h", float, number="[0-9]{1,9}") is None


def test_decimals_are_exact() -> None:
    assert durations.parse("0.7ms", Decimal) == Decimal("0.0007")
    assert durations.parse("8760h0.000000001ms", Decimal) == Decimal("31536000.000000000001")


@pytest.mark.parametrize(
    ("seconds", "duration", "age"),
    [
        (0.2, "1 s", "0s"),
        (12, "12 s", "12s"),
        (119, "1 min 59 s", "119s"),
        (250, "4 min 10 s", "4m10s"),
        (300, "5 min", "5m"),
        (601, "10 min 1 s", "10m"),
        (7199, "1 h 59 min", "119m"),
        (7500, "2 h 5 min", "2h"),
        (86400 * 2 - 1, "1 d 23 h", "47h"),
        (86400 * 3, "3 d", "3d"),
        (-5, "0 s", "0s"),
    ],
)
def test_durations_and_ages_for_people(seconds: float, duration: str, age: str) -> None:
    time = timedelta(seconds=seconds)
    assert (durations.format_duration(time), durations.format_age(time)) == (duration, age)


def test_times() -> None:
    then = datetime(2026, 11, 18, 12, 30, 5, 999_999, tzinfo=UTC)
    assert durations.format_time(then) == "2026-11-18T12:30:05Z"
    assert durations.format_ago(then, then + timedelta(minutes=2)) == "2 min ago"


def test_plurals() -> None:
    assert [durations.plural(number, "node") for number in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]
    assert durations.plural(1000, "node") == "1000 nodes"
    assert durations.plural(1000, "node", thousands=",") == "1,000 nodes"


def test_how_often() -> None:
    assert [durations.times(number) for number in (1, 2, 3)] == ["once", "twice", "3 times"]


def test_lists() -> None:
    lists = [durations.listed(items) for items in ([], ["a"], ["a", "b"], ["a", "b", "c"])]
    assert lists == ["", "a", "a and b", "a, b and c"]
