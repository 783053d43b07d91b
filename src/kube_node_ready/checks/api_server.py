"""Check that the API server accepts the credentials, that large messages arrive, and that the clocks agree."""

import datetime as dt
import re
import time
from collections.abc import Callable

from kube_node_ready.checks import access
from kube_node_ready.checks.access import Access
from kube_node_ready.checks.check import CheckFailedError, Deadline, ElsewhereError, Evidence, InconclusiveError
from kube_node_ready.checks.settings import PAYLOAD_BYTES
from kube_node_ready.checks.transport import MTU_HINT, NoAnswerError, Response, UnreachableError

# Forbidden to anonymous callers, allowed to all authenticated ones, and small.
_PATH = "/api"
ApiRoot = Callable[[Deadline], Response]

_DATE = re.compile(r"[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT")
_DATE_SECONDS = 1.0  # The header has no fractions.
_PART = 2 * PAYLOAD_BYTES
_PADDING = 3000  # Two full packets. Proxies often limit the head of a request to 8 KiB, and a token takes 1 or 2.
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def api_root(api: Access) -> ApiRoot:
    """Return a shared lookup of the response to GET /api."""

    def fetch(deadline: Deadline) -> Response:
        with api.open(deadline) as connection:
            return connection.get(api.path + _PATH, deadline)

    return access.once(fetch)


def authenticates(api_root: ApiRoot, deadline: Deadline) -> Evidence:
    response = api_root(deadline)
    # A deleted ServiceAccount or ClusterRoleBinding causes these on every node.
    if response.status == access.UNAUTHORIZED:
        raise ElsewhereError("the API server rejects the credentials (401)")
    if response.status == access.FORBIDDEN:
        raise ElsewhereError(f"the API server forbids GET {_PATH} (403): {access.reason(response)}")
    if response.status != access.OK:
        text = f"the API server returned HTTP {response.status} to GET {_PATH}: {access.reason(response)}"
        # An overloaded server is not the node's fault.
        is_busy = response.status == access.TOO_MANY_REQUESTS or response.status >= access.SERVER_ERROR
        raise InconclusiveError(text) if is_busy else CheckFailedError(text)
    return Evidence()


def large_messages_arrive(api: Access, path: str, deadline: Deadline) -> Evidence:
    """With a wrong MTU, small packets pass and full-size packets are lost, in one direction or both.

    So both the request and the response are large. Nothing else that a worker sends fills a packet.
    """
    try:
        with api.open(deadline) as connection:
            response = connection.get(api.path + path, deadline, part=_PART, padding=_PADDING)
    except UnreachableError as error:
        raise InconclusiveError(f"cannot connect to the API server: {error}") from error
    except NoAnswerError as error:
        if isinstance(error.__cause__, TimeoutError):
            raise CheckFailedError(f"{error}: {MTU_HINT}") from error
        raise
    if response.status == access.NOT_FOUND:
        raise ElsewhereError("the API server does not have this path (404); set payloadPath to another")
    if response.status != access.PARTIAL:
        access.require_ok(response)
    if len(response.body) < PAYLOAD_BYTES:
        raise ElsewhereError(
            f"the response has {len(response.body)} bytes, expected at least {PAYLOAD_BYTES}; "
            "set payloadPath to a path with a larger response"
        )
    return Evidence({"bytes": len(response.body)})


def clock_in_sync(api_root: ApiRoot, limit: float, deadline: Deadline) -> Evidence:
    try:
        response = api_root(deadline)
    except (CheckFailedError, TimeoutError) as error:
        raise InconclusiveError(f"cannot read the API server's time: {str(error) or 'timed out'}") from error
    theirs = _seconds(response.headers.get("date", ""))
    skew = minimum_skew(theirs, response.sent_at, response.received_at)
    if abs(skew) > limit:
        side = "ahead of" if skew > 0 else "behind"
        raise CheckFailedError(
            f"this node's clock ({_shown(response.received_at)}) is {abs(skew):.0f} s {side} the API server's "
            f"({_shown(theirs)}); at most {limit:g} s are allowed"
        )
    return Evidence({"skew": f"{skew:.1f}s"})


def minimum_skew(theirs: float, sent_at: float, received_at: float) -> float:
    """Return by how much our clock is at least ahead: the server's time is between our two, and has no fractions."""
    if sent_at > theirs + _DATE_SECONDS:
        return sent_at - theirs - _DATE_SECONDS
    return min(0.0, received_at - theirs)


def _seconds(date: str) -> float:
    """Parse the date without `strptime`, whose names of months depend on the locale."""
    match = _DATE.fullmatch(date)
    if not match or match[2] not in _MONTHS:
        raise InconclusiveError(f"the API server's Date header is invalid: {date[:40]!a}")
    month = _MONTHS.index(match[2]) + 1
    day, year, hour, minute, second = (int(match[at]) for at in (1, 3, 4, 5, 6))
    try:
        return dt.datetime(year, month, day, hour, minute, min(second, 59), tzinfo=dt.UTC).timestamp()
    except ValueError as error:
        raise InconclusiveError(f"the API server's Date header is invalid: {date[:40]!a}") from error


def _shown(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(moment))
