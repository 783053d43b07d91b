# ruff: noqa: N818  these are the answers of a server, and `except NotFound` reads as what it means
"""The answers of an API server that we treat differently, and no others.

KubeError              anything that kept a request from its success
├── NotFound           404: the object, its namespace or its kind is not there
├── AlreadyExists      409 on create: somebody, perhaps an earlier life of us, was first
├── LostRace           the object is not what we believed: look again, then decide again
├── Gone               410: the server has forgotten that resourceVersion; list again
├── Throttled          429: come back after `retry_after` seconds
├── Refused            any other 4xx: understood, and no; the same request gets the same answer
├── Unreachable        no answer, half an answer, or 5xx. A write may or may not have happened
│   └── Silent         a watch was opened, and nothing came, not even a bookmark
├── InvalidRequest     not sent: a name in it does not fit HTTP's grammar. The same request fails again, so back off
└── AccessError        we do not know where the server is, or have nothing to show it
"""

from http import HTTPStatus

import msgspec
from msgspec import Struct

_MESSAGE_BYTES = 2000
_UID = "metadata.uid"
_LONGEST_RETRY_AFTER = 60.0  # whoever asks for a day does not know how long a node can wait


class KubeError(Exception):
    """`message` is the server's own; the text of the error also says what was asked."""

    def __init__(self, status: int, reason: str, message: str, call: str = "") -> None:
        super().__init__(status, reason, message, call)
        self.status = status
        self.reason = reason
        self.message = message
        self.call = call

    def __str__(self) -> str:
        asked = f"{self.call}: " if self.call else ""
        answer = f" ({self.status} {self.reason})" if self.status else ""
        return f"{asked}{self.message}{answer}"


class NotFound(KubeError):
    pass


class AlreadyExists(KubeError):
    pass


class LostRace(KubeError):
    """409 on a write with a resourceVersion or a UID, 422 from a JSON Patch or from a patch that names another UID."""


class Gone(KubeError):
    pass


class Throttled(KubeError):
    retry_after = 1.0


class Refused(KubeError):
    pass


class Unreachable(KubeError):
    pass


class Silent(Unreachable):
    pass


class InvalidRequest(KubeError):
    """Not a Refused: no server has seen it, and what is optional when the server forbids it is not optional here."""

    def __init__(self, message: str, call: str = "") -> None:
        super().__init__(0, "InvalidRequest", message, call)


class AccessError(KubeError):
    def __init__(self, message: str) -> None:
        super().__init__(0, "NoAccess", message)


class Cause(Struct, frozen=True):
    field: str = ""


class Details(Struct, frozen=True):
    causes: tuple[Cause, ...] = ()


class Status(Struct, frozen=True):
    """The body of every failure, and the object of an ERROR event in a watch."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


_decode = msgspec.json.Decoder(Status).decode


def of_answer(code: int, body: bytes, call: str, *, json_patch: bool = False, retry_after: str = "") -> KubeError:
    """What an answer that is no success means. `retry_after` is that header."""
    try:
        status = _decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError):
        # Something on the way speaks instead of the server: a proxy, a load balancer.
        status = Status(message=body[:_MESSAGE_BYTES].decode(errors="replace").strip())
    error = of_status(code, status, call, json_patch=json_patch)
    if isinstance(error, Throttled) and retry_after.isdecimal():
        error.retry_after = min(float(retry_after), _LONGEST_RETRY_AFTER)
    return error


def of_status(code: int, status: Status, call: str, *, json_patch: bool = False) -> KubeError:
    kind = _kind(code, status, json_patch=json_patch)
    reason = status.reason or _phrase(code)
    return kind(code, reason, status.message or f"the server gives no reason for its {code}", call)


def _kind(code: int, status: Status, *, json_patch: bool) -> type[KubeError]:
    if code == HTTPStatus.CONFLICT:
        return AlreadyExists if status.reason == "AlreadyExists" else LostRace
    if code == HTTPStatus.UNPROCESSABLE_ENTITY and _lost(status, json_patch=json_patch):
        return LostRace
    if (kind := _KINDS.get(code)) is not None:
        return kind
    understood = HTTPStatus.BAD_REQUEST <= code < HTTPStatus.INTERNAL_SERVER_ERROR
    return Refused if understood else Unreachable


_KINDS: dict[int, type[KubeError]] = {
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.REQUEST_TIMEOUT: Unreachable,
    HTTPStatus.GONE: Gone,
    HTTPStatus.TOO_MANY_REQUESTS: Throttled,
}


def _lost(status: Status, *, json_patch: bool) -> bool:
    causes = status.details.causes if status.details else ()
    # A patch that cannot be applied names no cause; an object that is invalid after it names the field. So a JSON Patch
    # that makes no sense looks like a lost race too: the server does not say which of the two it was.
    return (json_patch and not causes) or any(cause.field == _UID for cause in causes)


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "unknown status"
