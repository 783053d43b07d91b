"""TCP, TLS and HTTP/1.1 as a check needs them: every wait ends with a deadline, and an error says how far we came.

`http.client` would cost a third of the worker's time and memory budget, and its timeouts start anew with each packet,
so that a server that trickles is never late.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from contextlib import suppress

from kube_node_ready import http_syntax
from kube_node_ready.checks.model import CheckFailedError, Deadline, NotJudgedError
from kube_node_ready.checks.record import Record
from kube_node_ready.http_syntax import MAX_HEAD_BYTES, InvalidRequestError, Origin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

MTU_HINT = "large packets may be lost on the way (MTU)"
_LARGEST_BODY = 32 * 1024 * 1024
_PIECE = 64 * 1024
_RESET, _LINGER = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)
_WRONG_TIME = (9, 10)  # OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED


class UnreachableError(CheckFailedError):
    """No TCP or TLS connection."""


class NoAnswerError(CheckFailedError):
    """Connected, and then no whole answer; `received` bytes of its body came."""

    def __init__(self, why: str, received: int = 0) -> None:
        super().__init__(why)
        self.received = received


class NotSentError(NotJudgedError):
    """The request is not valid HTTP, so nothing was sent. That proves nothing about the node."""


class Answer(Record):
    status: int
    headers: dict[str, str]
    body: bytes
    asked: float
    answered: float


def is_address(host: str) -> bool:
    return packed(host) is not None


def packed(host: str) -> bytes | None:
    """An IP address as bytes, so that two ways to write it are equal."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError, ValueError):
            return socket.inet_pton(family, host)
    return None


def joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def addresses_of(host: str) -> list[str]:
    """As libc resolves it, which knows no deadline: the runner does not wait for it."""
    if is_address(host):
        return [host]
    # As bytes: for text, Python would load its tables of international names.
    found = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def connect(host: str, port: int, deadline: Deadline) -> socket.socket:
    """To the first of the host's addresses that answers."""
    try:
        addresses = addresses_of(host)
    except OSError as why:
        raise UnreachableError(f"{host} does not resolve: {why.strerror}") from why
    for at, address in enumerate(addresses, start=1):
        try:
            return _connect(address, port, deadline.part(1 / (len(addresses) - at + 1)))
        except OSError as why:
            if at == len(addresses):
                raise UnreachableError(_why_not_connected(address, port, why, deadline)) from why
    raise UnreachableError(f"{host} has no address")


def _connect(address: str, port: int, deadline: Deadline) -> socket.socket:
    plain = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        plain.settimeout(deadline.left())
        plain.connect((address, port))
    except BaseException:
        plain.close()
        raise
    return plain


def _why_not_connected(address: str, port: int, why: OSError, deadline: Deadline) -> str:
    if isinstance(why, TimeoutError):
        return f"no TCP connection to {joined(address, port)} within {deadline}: packets there or back are dropped"
    return f"no TCP connection to {joined(address, port)}: {why.strerror}"


def encrypt(plain: socket.socket, context: ssl.SSLContext, host: str, deadline: Deadline) -> ssl.SSLSocket:
    """A cut connection must not pass for the answer's end, hence no ragged ends."""
    try:
        plain.settimeout(deadline.left())
        return context.wrap_socket(plain, server_hostname=host, suppress_ragged_eofs=False)
    except TimeoutError as why:
        raise UnreachableError(f"TCP connects, but TLS got no answer within {deadline}: {MTU_HINT}") from why
    except ssl.SSLCertVerificationError as why:
        clock = ""
        if why.verify_code in _WRONG_TIME:
            clock = f"; this machine's clock says {time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime())}"
        raise UnreachableError(f"the server's certificate is not trusted: {why.verify_message}{clock}") from why
    except OSError as why:
        reason = getattr(why, "reason", None) or why.strerror or type(why).__name__
        raise UnreachableError(f"TCP connects, but TLS fails: {reason}") from why


class Conversation:
    """One connection, one question after another. With `close`, the server is asked to close it after the first."""

    def __init__(self, connection: socket.socket, host: str, headers: dict[str, str], *, close: bool = False) -> None:
        self._connection = connection
        # An answer that does not arrive keeps the server busy until it learns that nobody waits any more, and it must
        # learn that even if we are killed; so to close this connection is to reset it, until all went well.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._rest = b""
        common = {"Accept-Encoding": "identity", "User-Agent": "kube-node-ready-worker", **headers}
        try:
            self._origin = Origin(host, common, close=close)
        except InvalidRequestError as error:
            connection.close()
            raise NotSentError(f"cannot send requests to {host!a}: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, why: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            if why is None:
                self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
        self._connection.close()

    def get(self, path: str, deadline: Deadline, *, part: int = 0, wants_body: bool = True) -> Answer:
        """With `part`, no more than so many bytes are asked for; a server may send all of them nevertheless."""
        headers = {"Range": f"bytes=0-{part - 1}"} if part else {}
        request = self._encoded("GET", path, headers, None)
        return self._ask(f"GET {path}", request, deadline, wants_body=wants_body)

    def send(self, method: str, path: str, content: bytes, kind: str, deadline: Deadline) -> Answer:
        """`kind` is the media type of the content."""
        request = self._encoded(method, path, {"Content-Type": kind}, content)
        return self._ask(f"{method} {path}", request, deadline)

    def _encoded(self, method: str, path: str, headers: dict[str, str], content: bytes | None) -> bytes:
        length = None if content is None else len(content)
        try:
            return http_syntax.encode_head(method, path, headers, self._origin, length) + (content or b"")
        except InvalidRequestError as error:
            raise NotSentError(f"cannot send the request: {error}") from error

    def _ask(self, what: str, request: bytes, deadline: Deadline, *, wants_body: bool = True) -> Answer:
        body = bytearray()
        shown = what.partition("?")[0]
        try:
            asked = time.time()
            self._send(request, deadline)
            status, headers = self._head(deadline)
            answered = time.time()
            if wants_body and status not in http_syntax.NO_BODY:
                self._read_body(headers, body, deadline)
        except TimeoutError as why:
            came = f"{len(body)} bytes of the answer to" if body else "no answer to"
            raise NoAnswerError(f"{came} {shown} within {deadline}", len(body)) from why
        except EOFError as why:
            raise NoAnswerError(f"the answer to {shown} was cut off: {why}", len(body)) from why
        except OSError as why:
            reason = why.strerror or type(why).__name__
            raise NoAnswerError(f"the answer to {shown} was cut off: {reason}", len(body)) from why
        except ValueError as why:
            raise NoAnswerError(f"the answer to {shown} is not HTTP: {why}", len(body)) from why
        return Answer(status, headers, bytes(body), asked, answered)

    def _send(self, request: bytes, deadline: Deadline) -> None:
        if self._rest:  # it followed the last answer, so it cannot answer this request
            raise ValueError("it began before the request was sent")
        self._connection.settimeout(deadline.left())
        self._connection.sendall(request)

    def _head(self, deadline: Deadline) -> tuple[int, dict[str, str]]:
        """Of the final answer: interim ones are read and dropped."""
        for _ in range(http_syntax.MAX_INTERIM_ANSWERS + 1):
            status, headers = http_syntax.parse_head(self._until(b"\r\n\r\n", deadline))
            if not http_syntax.is_interim(status):
                return status, headers
        raise ValueError(f"it has more than {http_syntax.MAX_INTERIM_ANSWERS} interim answers")

    def _read_body(self, headers: dict[str, str], body: bytearray, deadline: Deadline) -> None:
        if http_syntax.is_chunked(headers):
            self._take_chunks(body, deadline)
        elif "content-length" in headers:
            self._take(http_syntax.parse_length(headers["content-length"]), body, deadline)
        else:
            self._take_all(body, deadline)

    def _take_chunks(self, body: bytearray, deadline: Deadline) -> None:
        while size := http_syntax.parse_chunk_size(self._until(b"\r\n", deadline)):
            self._take(size, body, deadline)
            if end := self._until(b"\r\n", deadline):
                raise ValueError(f"a chunk of {size} bytes is followed by {end[:40]!r}")
        self._skip_trailers(deadline)

    def _skip_trailers(self, deadline: Deadline) -> None:
        lines, left = [], MAX_HEAD_BYTES
        while line := self._until(b"\r\n", deadline, left):
            lines.append(line)
            left -= len(line)
            if len(lines) > http_syntax.MAX_HEADERS:
                break
        http_syntax.check_trailers(lines)

    def _take(self, size: int, body: bytearray, deadline: Deadline) -> None:
        wanted = len(body) + size
        if wanted > _LARGEST_BODY:
            raise ValueError(f"it claims {wanted} bytes, more than {_LARGEST_BODY}")
        while len(body) < wanted:
            piece = self._rest or self._receive(deadline)
            if not piece:
                raise EOFError(f"it ended after {len(body)} of at least {wanted} bytes")
            missing = wanted - len(body)
            body += piece[:missing]
            self._rest = piece[missing:]

    def _take_all(self, body: bytearray, deadline: Deadline) -> None:
        while piece := self._rest or self._receive(deadline):
            self._rest = b""
            body += piece
            if len(body) > _LARGEST_BODY:
                raise ValueError(f"it has more than {_LARGEST_BODY} bytes")

    def _until(self, end: bytes, deadline: Deadline, limit: int = MAX_HEAD_BYTES) -> bytes:
        while (length := self._rest.find(end)) < 0 and len(self._rest) <= limit:
            piece = self._receive(deadline)
            if not piece:
                raise EOFError("the connection was closed")
            self._rest += piece
        if not 0 <= length <= limit:
            raise ValueError(f"it has more than {MAX_HEAD_BYTES} bytes without an end")
        found, self._rest = self._rest[:length], self._rest[length + len(end) :]
        return found

    def _receive(self, deadline: Deadline) -> bytes:
        self._connection.settimeout(deadline.left())
        return self._connection.recv(_PIECE)
