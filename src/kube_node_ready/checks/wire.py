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

from kube_node_ready.checks.model import CheckFailedError, Deadline
from kube_node_ready.checks.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

MTU_HINT = "large packets may be lost on the way (MTU)"
_LARGEST_HEAD = 64 * 1024
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
    """One connection, one question after another."""

    def __init__(self, connection: socket.socket, host: str, headers: dict[str, str]) -> None:
        self._connection = connection
        # An answer that does not arrive keeps the server busy until it learns that nobody waits any more, and it must
        # learn that even if we are killed; so to close this connection is to reset it, until all went well.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._rest = b""
        lines = {"Host": host, "Accept-Encoding": "identity", "User-Agent": "kube-node-ready-worker", **headers}
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in lines.items())

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
        head = f"Range: bytes=0-{part - 1}\r\n" if part else ""
        return self._ask(f"GET {path}", head.encode("latin-1") + b"\r\n", deadline, wants_body=wants_body)

    def send(self, what: str, content: bytes, kind: str, deadline: Deadline) -> Answer:
        """`what` is the method and the path, `kind` the media type of the content."""
        head = f"Content-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
        return self._ask(what, head.encode("latin-1") + content, deadline)

    def _ask(self, what: str, rest: bytes, deadline: Deadline, *, wants_body: bool = True) -> Answer:
        body = bytearray()
        shown = what.partition("?")[0]
        try:
            asked = time.time()
            self._connection.settimeout(deadline.left())
            self._connection.sendall(f"{what} HTTP/1.1\r\n{self._headers}".encode("latin-1") + rest)
            status, headers = self._head(deadline)
            answered = time.time()
            if wants_body:
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

    def _head(self, deadline: Deadline) -> tuple[int, dict[str, str]]:
        first, *lines = self._until(b"\r\n\r\n", deadline).decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
            raise ValueError(f"it begins with {first[:40]!r}")
        pairs = (line.partition(":") for line in lines)
        return int(rest[:3]), {name.strip().lower(): value.strip() for name, _, value in pairs}

    def _read_body(self, headers: dict[str, str], body: bytearray, deadline: Deadline) -> None:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while size := self._size(self._until(b"\r\n", deadline).split(b";")[0], 16, body):
                self._take(size, body, deadline)
                self._until(b"\r\n", deadline)
            self._until(b"\r\n", deadline)
        elif "content-length" in headers:
            self._take(self._size(headers["content-length"].encode(), 10, body), body, deadline)
        else:
            self._take_all(body, deadline)

    @staticmethod
    def _size(digits: bytes, base: int, body: bytearray) -> int:
        size = int(digits, base)
        if not 0 <= size <= _LARGEST_BODY - len(body):
            raise ValueError(f"it claims {size} bytes")
        return size

    def _take(self, size: int, body: bytearray, deadline: Deadline) -> None:
        wanted = len(body) + size
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

    def _until(self, end: bytes, deadline: Deadline) -> bytes:
        while end not in self._rest:
            piece = self._receive(deadline)
            if not piece:
                raise EOFError("the connection was closed")
            self._rest += piece
            if len(self._rest) > _LARGEST_HEAD + _PIECE:
                raise ValueError(f"it has more than {_LARGEST_HEAD} bytes without an end")
        found, _, self._rest = self._rest.partition(end)
        return found

    def _receive(self, deadline: Deadline) -> bytes:
        self._connection.settimeout(deadline.left())
        return self._connection.recv(_PIECE)
