# ruff: noqa: N818  these are the answers of a server, and `except NotFound` reads as what it means
"""Errors of API requests, classified by how callers handle them.

KubeError              any failed request
├── NotFound           404: the object, its namespace or its kind does not exist
├── AlreadyExists      409 on create: another client, or an earlier process of ours, created it
├── Conflict           the object changed since it was read. Read it again, then decide again
├── Expired            410: the resourceVersion is too old. List again
├── Throttled          429: retry after `retry_after` seconds
├── Rejected           any other 4xx: rejected. The same request would be rejected again
├── Unreachable        no response, an incomplete one, or 5xx. A write might have been applied
│   └── WatchStalled   a watch was opened, and nothing arrived, not even a bookmark
├── InvalidRequest     not sent: a name in it is not valid in HTTP. The same request fails again, so back off
└── AccessError        the API server's address or the credentials are unknown
"""

from http import HTTPStatus

import msgspec
from msgspec import Struct

from kube_node_ready.api.nesting import tolerant
from kube_node_ready.api.paths import resource_of, verb_of

_MESSAGE_BYTES = 2000
_UID = "metadata.uid"
_MAX_RETRY_AFTER = 60.0  # a server that asks for a day would stop all verifications


class KubeError(Exception):
    """`message` is the server's; the text of the error also has the request."""

    def __init__(self, status: int, reason: str, message: str, call: str = "") -> None:
        super().__init__(status, reason, message, call)
        self.status = status
        self.reason = reason
        self.message = message
        self.call = call

    def __str__(self) -> str:
        request = f"{self.call}: " if self.call else ""
        response = f" ({self.status} {self.reason})" if self.status else ""
        return f"{request}{self.message}{response}"

    @property
    def fields(self) -> dict[str, object]:
        """The fields of a log line, as far as they are known."""
        method, _, path = self.call.partition(" ")
        known = {
            "error": str(self),
            "status": self.status,
            "verb": verb_of(method, path),
            "resource": resource_of(path.partition("?")[0]),
        }
        return {name: value for name, value in known.items() if value}


class NotFound(KubeError):
    pass


class AlreadyExists(KubeError):
    pass


class Conflict(KubeError):
    """409 on a write with a resourceVersion or a UID, 422 from a JSON Patch or from a patch that names another UID."""


class Expired(KubeError):
    pass


class Throttled(KubeError):
    retry_after = 1.0


class Rejected(KubeError):
    pass


class Unreachable(KubeError):
    pass


class WatchStalled(Unreachable):
    pass


class InvalidRequest(KubeError):
    """Not a Rejected: no server has seen the request, so what is optional if it is forbidden is not optional here."""

    def __init__(self, message: str, call: str = "") -> None:
        super().__init__(0, "InvalidRequest", message, call)


class AccessError(KubeError):
    def __init__(self, message: str) -> None:
        super().__init__(0, "NoAccess", message)


class StatusCause(Struct, frozen=True):
    field: str = ""


class Details(Struct, frozen=True):
    causes: tuple[StatusCause, ...] = ()


class Status(Struct, frozen=True):
    """The body of every error response, and the object of an ERROR event in a watch."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


_decode = tolerant(msgspec.json.Decoder(Status).decode)


def from_response(code: int, body: bytes, call: str, *, json_patch: bool = False, retry_after: str = "") -> KubeError:
    """Classify a response that is not a success. `retry_after` is the header."""
    try:
        status = _decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError):
        # The response comes from something between, such as a proxy or a load balancer.
        status = Status(message=body[:_MESSAGE_BYTES].decode(errors="replace").strip())
    error = from_status(code, status, call, json_patch=json_patch)
    if isinstance(error, Throttled) and retry_after.isdecimal():
        error.retry_after = min(float(retry_after), _MAX_RETRY_AFTER)
    return error


def from_status(code: int, status: Status, call: str, *, json_patch: bool = False) -> KubeError:
    kind = _error_type(code, status, json_patch=json_patch)
    reason = status.reason or _phrase(code)
    return kind(code, reason, status.message or f"no reason given for status {code}", call)


def _error_type(code: int, status: Status, *, json_patch: bool) -> type[KubeError]:
    if code == HTTPStatus.CONFLICT:
        return AlreadyExists if status.reason == "AlreadyExists" else Conflict
    if code == HTTPStatus.UNPROCESSABLE_ENTITY and _is_conflict(status, json_patch=json_patch):
        return Conflict
    if (kind := _ERROR_TYPES.get(code)) is not None:
        return kind
    understood = HTTPStatus.BAD_REQUEST <= code < HTTPStatus.INTERNAL_SERVER_ERROR
    return Rejected if understood else Unreachable


_ERROR_TYPES: dict[int, type[KubeError]] = {
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.REQUEST_TIMEOUT: Unreachable,
    HTTPStatus.GONE: Expired,
    HTTPStatus.TOO_MANY_REQUESTS: Throttled,
}


def _is_conflict(status: Status, *, json_patch: bool) -> bool:
    causes = status.details.causes if status.details else ()
    # A patch that cannot be applied has no cause; an object that is invalid afterwards has the field as its cause. So a
    # JSON Patch that can never be applied is a Conflict, too: the server does not distinguish the two.
    return (json_patch and not causes) or any(cause.field == _UID for cause in causes)


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "unknown status"
