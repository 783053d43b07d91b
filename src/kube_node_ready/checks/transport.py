"""TCP, TLS and HTTP/1.1 for checks: every wait has a deadline, and errors state which step failed.

`http.client` would cost a third of the worker's time and memory budget, and its timeouts restart with each packet,
so that a server that trickles is never late.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import struct
import time
from contextlib import suppress

from kube_node_ready import http_syntax
from kube_node_ready.checks import resolver
from kube_node_ready.checks.check import CheckFailedError, Deadline, InconclusiveError
from kube_node_ready.checks.fast_tuple import FastTuple
from kube_node_ready.http_syntax import MAX_HEAD_BYTES, InvalidRequestError, Origin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

MTU_HINT = "large packets might be lost on the way (MTU)"
_LARGEST_BODY = 32 * 1024 * 1024
_PIECE = 64 * 1024
_RESET, _LINGER = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)
_WRONG_TIME = (9, 10)  # OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED


class UnreachableError(CheckFailedError):
    """No TCP or TLS connection."""


class NoAnswerError(CheckFailedError):
    """Connected, but the response is incomplete; `received` bytes of its body arrived."""

    def __init__(self, reason: str, received: int = 0) -> None:
        super().__init__(reason)
        self.received = received


class TooLargeError(NoAnswerError):
    """The response has, or announces, more bytes than the caller accepts."""


class NotSentError(InconclusiveError):
    """The request is not valid HTTP, so nothing was sent. That proves nothing about the node."""


class _OversizeError(ValueError):
    pass


class Response(FastTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    sent_at: float
    received_at: float


def is_address(host: str) -> bool:
    return ip_bytes(host) is not None


def ip_bytes(host: str) -> bytes | None:
    """Return the IP address as bytes, so that different notations are equal; None if it is not one."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError, ValueError):
            return socket.inet_pton(family, host)
    return None


def host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def addresses_of(host: str) -> list[str]:
    """Resolve with libc, which has no deadline: the runner does not wait for it."""
    if is_address(host):
        return [host]
    if resolver.can_be_complete(host) and not resolver.is_in_hosts_file(host):
        # Otherwise the Service `example` in the namespace `com` could answer for example.com.
        with suppress(socket.gaierror):
            return _addresses_of(f"{host}.")
    return _addresses_of(host)


def _addresses_of(host: str) -> list[str]:
    # As bytes: for text, Python would load its tables of international names.
    found = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def connect(host: str, port: int, deadline: Deadline) -> socket.socket:
    """Connect to the first of the host's addresses that accepts."""
    addresses = _resolved(host)
    for at, address in enumerate(addresses, start=1):
        try:
            return _connect(address, port, deadline.part(1 / (len(addresses) - at + 1)))
        except OSError as error:
            if at == len(addresses):
                raise UnreachableError(_connection_error(address, port, error, deadline)) from error
    raise UnreachableError(f"{host} has no address")


def _resolved(host: str) -> list[str]:
    try:
        return addresses_of(host)
    except OSError as error:
        raise UnreachableError(f"{host} does not resolve: {error.strerror}") from error


def failed_connections(host: str, port: int, count: int, deadline: Deadline) -> list[str]:
    """Make TCP connections in parallel, and close them. Return the cause of each that cannot be made.

    As in `connect`, those that one of the host's addresses does not accept are tried with the next one.
    """
    failures = ["no address"] * count
    addresses = _resolved(host)
    for at, address in enumerate(addresses, start=1):
        failures = _Connections(address, port).make(len(failures), deadline.part(1 / (len(addresses) - at + 1)))
        if not failures:
            break
    return failures


class _Connections:
    """Makes connections to one address in one thread.

    All stay open until the last one is decided: load balancers that prefer the endpoint with the fewest connections
    would otherwise select the same one for each.
    """

    def __init__(self, address: str, port: int) -> None:
        self._place = (address, port)
        self._family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._poll = select.poll()
        self._pending: dict[int, socket.socket] = {}
        self._open: list[socket.socket] = []
        self._failures: list[str] = []

    def make(self, count: int, deadline: Deadline) -> list[str]:
        try:
            for _ in range(count):
                self._begin()
            self._wait(deadline)
            return [*self._failures, *("timed out" for _ in self._pending)]
        finally:
            for plain in self._open:
                plain.close()

    def _begin(self) -> None:
        try:
            plain = socket.socket(self._family, socket.SOCK_STREAM)
        except OSError as error:
            self._failures.append(error.strerror or "no socket")
            return
        self._open.append(plain)
        plain.settimeout(0)
        error_number = plain.connect_ex(self._place)
        if error_number == errno.EINPROGRESS:
            self._pending[plain.fileno()] = plain
            self._poll.register(plain, select.POLLOUT)
        elif error_number:
            self._failures.append(os.strerror(error_number))

    def _wait(self, deadline: Deadline) -> None:
        """Look at least once: what was decided while this process had no CPU is not late."""
        while self._pending:
            left = deadline.end - time.monotonic()
            for descriptor, _ in self._poll.poll(max(0.0, left * 1000)):
                self._poll.unregister(descriptor)
                error_number = self._pending.pop(descriptor).getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error_number:
                    self._failures.append(os.strerror(error_number))
            if left <= 0:
                return


def _connect(address: str, port: int, deadline: Deadline) -> socket.socket:
    plain = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        plain.settimeout(deadline.left())
        plain.connect((address, port))
    except BaseException:
        plain.close()
        raise
    return plain


def _connection_error(address: str, port: int, error: OSError, deadline: Deadline) -> str:
    if isinstance(error, TimeoutError):
        return f"no TCP connection to {host_port(address, port)} within {deadline}: packets there or back are dropped"
    return f"no TCP connection to {host_port(address, port)}: {error.strerror}"


def start_tls(plain: socket.socket, context: ssl.SSLContext, host: str, deadline: Deadline) -> ssl.SSLSocket:
    """Start TLS. A broken connection must not look like the end of a response, so ragged EOFs are errors."""
    try:
        plain.settimeout(deadline.left())
        return context.wrap_socket(plain, server_hostname=host, suppress_ragged_eofs=False)
    except TimeoutError as error:
        raise UnreachableError(f"TCP connects, but TLS received no response within {deadline}: {MTU_HINT}") from error
    except ssl.SSLCertVerificationError as error:
        clock = ""
        if error.verify_code in _WRONG_TIME:
            clock = f"; this machine's time is {time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime())}"
        raise UnreachableError(f"the server's certificate is not trusted: {error.verify_message}{clock}") from error
    except OSError as error:
        reason = getattr(error, "reason", None) or error.strerror or type(error).__name__
        raise UnreachableError(f"TCP connects, but TLS fails: {reason}") from error


class HttpConnection:
    """A connection for sequential requests. With `close`, the server is asked to close it after the first."""

    def __init__(self, connection: socket.socket, host: str, headers: dict[str, str], *, close: bool = False) -> None:
        self._connection = connection
        # A response that does not arrive keeps the server busy until it learns that the client is gone, which must work
        # even if this process is killed. So closing the connection resets it, until everything has succeeded.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._rest = b""
        self._largest = _LARGEST_BODY
        common = {"Accept-Encoding": "identity", "User-Agent": "kube-node-ready-worker", **headers}
        try:
            self._origin = Origin(host, common, close=close)
        except InvalidRequestError as error:
            connection.close()
            raise NotSentError(f"cannot send requests to {host!a}: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            if error is None:
                self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
        self._connection.close()

    def get(
        self,
        path: str,
        deadline: Deadline,
        *,
        part: int = 0,
        padding: int = 0,
        wants_body: bool = True,
        largest: int = 0,
    ) -> Response:
        """With `part`, only this many bytes are requested; a server can send all of them nevertheless.

        With `padding`, the request has a header of this many bytes, which servers ignore.
        A body of more than `largest` bytes is a TooLargeError; without it, a body of more than 32 MiB is one.
        """
        headers = {"Range": f"bytes=0-{part - 1}"} if part else {}
        if padding:
            headers["X-Padding"] = "x" * padding
        request = self._encoded("GET", path, headers, None)
        self._largest = largest or _LARGEST_BODY
        return self._exchange(f"GET {path}", request, deadline, wants_body=wants_body)

    def send(self, method: str, path: str, content: bytes, kind: str, deadline: Deadline) -> Response:
        """`kind` is the media type of the content."""
        request = self._encoded(method, path, {"Content-Type": kind}, content)
        self._largest = _LARGEST_BODY
        return self._exchange(f"{method} {path}", request, deadline)

    def _encoded(self, method: str, path: str, headers: dict[str, str], content: bytes | None) -> bytes:
        length = None if content is None else len(content)
        try:
            return http_syntax.encode_head(method, path, headers, self._origin, length) + (content or b"")
        except InvalidRequestError as error:
            raise NotSentError(f"cannot send the request: {error}") from error

    def _exchange(self, what: str, request: bytes, deadline: Deadline, *, wants_body: bool = True) -> Response:
        body = bytearray()
        shown = what.partition("?")[0]
        try:
            sent_at = time.time()
            self._send(request, deadline)
            status, headers = self._head(deadline)
            received_at = time.time()
            if wants_body and status not in http_syntax.NO_BODY:
                self._read_body(headers, body, deadline)
        except TimeoutError as error:
            came = f"{len(body)} bytes of the response to" if body else "no response to"
            raise NoAnswerError(f"{came} {shown} within {deadline}", len(body)) from error
        except EOFError as error:
            raise NoAnswerError(f"the response to {shown} was cut off: {error}", len(body)) from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise NoAnswerError(f"the response to {shown} was cut off: {reason}", len(body)) from error
        except _OversizeError as error:
            raise TooLargeError(f"the response to {shown} is too large: {error}", len(body)) from error
        except ValueError as error:
            raise NoAnswerError(f"the response to {shown} is not HTTP: {error}", len(body)) from error
        return Response(status, headers, bytes(body), sent_at, received_at)

    def _send(self, request: bytes, deadline: Deadline) -> None:
        if self._rest:  # it followed the last response, so it does not belong to this request
            raise ValueError("it began before the request was sent")
        self._connection.settimeout(deadline.left())
        self._connection.sendall(request)

    def _head(self, deadline: Deadline) -> tuple[int, dict[str, str]]:
        """Return the head of the final response: interim ones are discarded."""
        for _ in range(http_syntax.MAX_INTERIM_ANSWERS + 1):
            status, headers = http_syntax.parse_head(self._until(b"\r\n\r\n", deadline))
            if not http_syntax.is_interim(status):
                return status, headers
        raise ValueError(f"it has more than {http_syntax.MAX_INTERIM_ANSWERS} interim responses")

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
        if wanted > self._largest:
            raise _OversizeError(f"it claims {wanted} bytes, more than {self._largest}")
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
            if len(body) > self._largest:
                raise _OversizeError(f"it has more than {self._largest} bytes")

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
