"""Durations, ages and counts: read from text as Go writes them, and written for people.

Four places read durations, and each accepts what it always has:

- the controller's configuration: h, m, s and ms with fractions, at most 9 digits on each side of the point; a number
  alone is a YAML number, which the caller reads;
- the worker's and the agent's settings: the same units, any number of digits, also of other scripts; a number alone
  means seconds;
- `kube-node-ready --timeout`: h, m and s, of which only s can have a fraction and can be left out (90, 1m30);
- `kubernetes-daemonset --timeout`: h, m and s with fractions; a number alone means seconds.

Limits belong to the callers: each knows how long is too long, and reports it in its own message.
"""

from __future__ import annotations

import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta
    from decimal import Decimal
    from typing import TypeVar

    Number = TypeVar("Number", float, Decimal)

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
UNICODE_NUMBER = r"\d+(?:\.\d+)?"
"""Also digits of other scripts, which Python converts as it does ours."""

_SECONDS = {"h": "3600", "m": "60", "s": "1", "ms": "0.001"}
"""Of each unit, the largest first. As text, so that 0.001 is exact as a Decimal."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_EXACT_MINUTES = 10
_EXACT_DAYS = 2


def parse(
    text: str,
    convert: Callable[[str], Number],
    *,
    units: Sequence[str] = tuple(_SECONDS),
    number: str = NUMBER,
    bare: bool = True,
) -> Number | None:
    """Return the seconds of a duration such as 90s, 1h30m or 1500ms, or None if the text is not one.

    `convert` chooses the arithmetic: float is cheap, Decimal is exact. `number` is the pattern of a unit's number;
    each unit can be written once, the largest first. With `bare`, a number alone means seconds.
    """
    if bare and re.fullmatch(number, text):
        text += "s"
    allowed = [unit for unit in _SECONDS if unit in units]
    match = re.fullmatch("".join(f"(?:({number}){unit})?" for unit in allowed), text) if text else None
    if not match:
        return None
    total = convert("0")
    for part, unit in zip(match.groups(), allowed, strict=True):
        total += convert(part or "0") * convert(_SECONDS[unit])
    return total


def format_duration(time: timedelta) -> str:
    """Return `12 s`, `4 min 10 s` or `2 h 5 min`: at most two units, for a sentence. A second that has begun counts."""
    seconds = max(0, math.ceil(time.total_seconds()))
    for unit, size, lesser, part in (("d", _DAY, "h", _HOUR), ("h", _HOUR, "min", _MINUTE), ("min", _MINUTE, "s", 1)):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size} {unit}" + (f" {rest} {lesser}" if rest else "")
    return f"{seconds} s"


def format_age(time: timedelta) -> str:
    """Return `36s`, `5m`, `3h` or `12d`: as kubectl does, for a column."""
    seconds = max(0, int(time.total_seconds()))
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < _EXACT_MINUTES * _MINUTE and seconds % _MINUTE:
        return f"{seconds // _MINUTE}m{seconds % _MINUTE}s"
    if seconds < 2 * _HOUR:
        return f"{seconds // _MINUTE}m"
    return f"{seconds // _HOUR}h" if seconds < _EXACT_DAYS * _DAY else f"{seconds // _DAY}d"


def format_ago(then: datetime, now: datetime) -> str:
    return f"{format_duration(now - then)} ago"


def format_time(time: datetime) -> str:
    """Return a UTC time to the second, as Kubernetes writes it."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def plural(number: int, noun: str, *, thousands: str = "") -> str:
    """Return `1 node` or `2 nodes`. `thousands` separates groups of digits: `1,000 nodes`."""
    return f"{number:{thousands}} {noun}{'' if number == 1 else 's'}"


def times(number: int) -> str:
    """Return `once`, `twice` or `3 times`."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def listed(items: Sequence[str], conjunction: str = "and") -> str:
    """Return `a`, `a and b` or `a, b and c`."""
    return f" {conjunction} ".join(filter(None, (", ".join(items[:-1]), items[-1]))) if items else ""
