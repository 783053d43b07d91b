"""Spans of time and numbers, as people say them."""

import math
from datetime import datetime, timedelta

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_EXACT_MINUTES = 10
_EXACT_DAYS = 2
LONGEST = 1000
"""Letters of a reason: whole, unless somebody means harm by it."""


def span(time: timedelta) -> str:
    """`12 s`, `4 min 10 s`, `2 h 5 min`: two units at most, for a sentence. What is begun counts."""
    seconds = max(0, math.ceil(time.total_seconds()))
    for unit, size, lesser, part in (("d", _DAY, "h", _HOUR), ("h", _HOUR, "min", _MINUTE), ("min", _MINUTE, "s", 1)):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size} {unit}" + (f" {rest} {lesser}" if rest else "")
    return f"{seconds} s"


def age(time: timedelta) -> str:
    """`36s`, `5m`, `3h`, `12d`: as kubectl's, for a column."""
    seconds = max(0, int(time.total_seconds()))
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < _EXACT_MINUTES * _MINUTE and seconds % _MINUTE:
        return f"{seconds // _MINUTE}m{seconds % _MINUTE}s"
    if seconds < 2 * _HOUR:
        return f"{seconds // _MINUTE}m"
    return f"{seconds // _HOUR}h" if seconds < _EXACT_DAYS * _DAY else f"{seconds // _DAY}d"


def ago(then: datetime, now: datetime) -> str:
    return f"{span(now - then)} ago"


def moment(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def listed(things: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(things[:-1]), things[-1]))) if things else ""
