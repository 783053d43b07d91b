"""The API server accepts us, sends large answers whole, and lives in the same time."""

import datetime as dt
import re
import time
from collections.abc import Callable

from kube_node_ready.checks import access
from kube_node_ready.checks.access import Access
from kube_node_ready.checks.model import CheckFailedError, Deadline, NotJudgedError, Proof
from kube_node_ready.checks.settings import PAYLOAD_BYTES
from kube_node_ready.checks.wire import MTU_HINT, Answer, NoAnswerError, UnreachableError

# Refused to anonymous callers, open to everyone authenticated, and tiny.
_PATH = "/api"
Greeting = Callable[[Deadline], Answer]

_DATE = re.compile(r"[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT")
_DATE_SECONDS = 1.0  # The header has no fractions.
_PART = 2 * PAYLOAD_BYTES
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def greeting(api: Access) -> Greeting:
    """What the API server answers us: who asks first asks for all."""

    def look(deadline: Deadline) -> Answer:
        with api.converse(deadline) as conversation:
            return conversation.get(api.path + _PATH, deadline)

    return access.shared(look)


def authenticates(hello: Greeting, deadline: Deadline) -> Proof:
    answer = hello(deadline)
    if answer.status == access.UNAUTHORIZED:
        raise CheckFailedError("the API server does not accept our credentials (401)")
    if answer.status == access.FORBIDDEN:
        raise CheckFailedError(f"the API server forbids GET {_PATH} (403): {access.reason(answer)}")
    if answer.status != access.OK:
        raise CheckFailedError(f"the API server answers {answer.status} to GET {_PATH}: {access.reason(answer)}")
    return Proof()


def sends_large_answers(api: Access, path: str, deadline: Deadline) -> Proof:
    """Small packets pass through a tunnel whose MTU nobody adjusted; full ones vanish, and only they tell."""
    try:
        with api.converse(deadline) as conversation:
            answer = conversation.get(api.path + path, deadline, part=_PART)
    except UnreachableError as why:
        raise NotJudgedError(f"the API server cannot be asked: {why}") from why
    except NoAnswerError as why:
        if isinstance(why.__cause__, TimeoutError):
            raise CheckFailedError(f"{why}: {MTU_HINT}") from why
        raise
    if answer.status == access.NOT_FOUND:
        raise CheckFailedError("the API server does not have this path (404); payloadPath must name another")
    if answer.status != access.PARTIAL:
        access.refuse_unless_ok(answer)
    if len(answer.body) < PAYLOAD_BYTES:
        raise CheckFailedError(
            f"the answer has {len(answer.body)} bytes, and proves nothing below {PAYLOAD_BYTES}; "
            "payloadPath must name a larger one"
        )
    return Proof({"bytes": len(answer.body)})


def tells_our_time(hello: Greeting, limit: float, deadline: Deadline) -> Proof:
    try:
        answer = hello(deadline)
    except (CheckFailedError, TimeoutError) as why:
        raise NotJudgedError(f"the API server cannot be asked for its time: {str(why) or 'timed out'}") from why
    theirs = _seconds(answer.headers.get("date", ""))
    skew = least_skew(theirs, answer.asked, answer.answered)
    if abs(skew) > limit:
        side = "ahead of" if skew > 0 else "behind"
        raise CheckFailedError(
            f"this node's clock ({_shown(answer.answered)}) is {abs(skew):.0f} s {side} the API server's "
            f"({_shown(theirs)}); at most {limit:g} s are allowed"
        )
    return Proof({"skew": f"{skew:.1f}s"})


def least_skew(theirs: float, asked: float, answered: float) -> float:
    """By how much our clock is ahead of theirs at the very least: their moment lies between our two, and their
    header leaves up to a second away.
    """
    if asked > theirs + _DATE_SECONDS:
        return asked - theirs - _DATE_SECONDS
    return min(0.0, answered - theirs)


def _seconds(date: str) -> float:
    """`strptime` would ask the locale what a month is called."""
    match = _DATE.fullmatch(date)
    if not match or match[2] not in _MONTHS:
        raise NotJudgedError(f"the API server's Date header is {date[:40]!r}, and says no time")
    month = _MONTHS.index(match[2]) + 1
    day, year, hour, minute, second = (int(match[at]) for at in (1, 3, 4, 5, 6))
    try:
        return dt.datetime(year, month, day, hour, minute, min(second, 59), tzinfo=dt.UTC).timestamp()
    except ValueError as why:
        raise NotJudgedError(f"the API server's Date header is {date[:40]!r}, and says no time") from why


def _shown(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(moment))
