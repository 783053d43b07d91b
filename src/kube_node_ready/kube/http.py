"""HTTP/1.1, as far as an API server asks for it: kept connections, one exchange at a time on each, endless answers.

Parsing is llhttp's (httptools). Why not a larger client: docs/decisions/0003-requests-of-our-own.md.
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import NoReturn, Self, cast
from urllib.parse import urlsplit

import httptools

from kube_node_ready.http_syntax import MAX_HEAD_BYTES, MAX_HEADERS, MAX_INTERIM_ANSWERS, Origin, encode_head

# Room for any object (etcd stores 1.5 MiB, JSON takes a few times that) and for lists that are not paged. Callers that
# read large pages, or only an error's message, set their own limit.
MAX_BODY_BYTES = 64 << 20
PIECE_BYTES = 64
"""What Python needs for each piece beside its content: a server that sends two bytes at a time fills memory too."""
_CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 60.0  # the API server closes after 90
_MOST_BUFFERED = 1 << 20
# Together they notice within half a minute that a connection was cut without a word. Not every system has them all.
_SOCKET_OPTIONS = {
    "TCP_NODELAY": 1,
    "TCP_KEEPIDLE": 15,
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 30_000,
}


class Broken(OSError):  # noqa: N818  as in errors.py
    """The connection ended before the answer did, what came is not HTTP, or it exceeds a limit."""


Nap = Callable[[], Awaitable[None] | None]
"""Asked when all was read: how long not to read on; None for not at all."""


class Exchange:
    """A request and its answer: `await head()`, then `read()` or `chunks()`; `async with` gives the connection back."""

    def __init__(self, pool: "Pool", connection: "_Connection") -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._pool = pool
        self._connection = connection
        self._parser = httptools.HttpResponseParser(self)
        self._body: deque[bytes] = deque()
        self._buffered = 0
        self._body_limit: int | None = None
        self._bytes_without_body = 0
        self._header_bytes = 0
        self._header_count = 0
        self._interim_answers = 0
        self._complete = False
        self._keep_alive = False
        self._failure: Broken | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def head(self) -> None:
        """Until the status and the headers are here."""
        while not self.status:
            await self._more()

    async def read(self, limit: int = MAX_BODY_BYTES) -> bytes:
        """The whole body. One of more than `limit` bytes is Broken, as soon as that is known."""
        self._body_limit = limit
        if self._buffered > limit or int(self.headers.get("content-length", 0)) > limit:
            self._reject(f"the body has more than {limit} bytes")
        self._connection.resume()
        while not self._complete:
            await self._more()
        return b"".join(self._body)

    async def chunks(self, silence: float, nap: Nap | None = None) -> AsyncGenerator[bytes, None]:
        """As they come. A TimeoutError when none does for so many seconds.

        What comes during a nap waits in buffers, and is handed over at once when it ends.
        """
        while True:
            while self._body:
                yield self._body.popleft()
            self._buffered = 0
            if self._complete:
                return
            if nap and not self._failure and (rest := nap()):
                self._connection.pause()
                await rest
            self._connection.resume()
            if self._body or self._complete:  # it came all the same
                continue
            async with asyncio.timeout(silence):
                await self._more()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Whoever stops in the middle of an answer has no use for the rest of the connection."""
        self._connection.exchange = None
        self._connection.resume()
        self._pool.give_back(self._connection, reusable=self._complete and self._keep_alive)
        # The parser refers to us, and we to it: the body would wait for the garbage collector.
        del self._parser
        self._body.clear()

    async def _more(self) -> None:
        if self._failure:
            raise self._failure
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def feed(self, data: bytes) -> None:
        if self._failure:
            return
        try:
            self._check_quiet(data)
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, Broken) as error:
            self.fail(f"the answer is not HTTP: {error}")
            self._connection.abort()
        self._wake()

    def _check_quiet(self, data: bytes) -> None:
        """The parser buffers a header until it ends and skips chunk extensions, so neither has a limit there."""
        if not self._bytes_without_body and not self.status and data[:1] != b"H":
            self._reject(f"the answer is not HTTP: it begins with {data[:20]!r}")  # the parser also reads RTSP and ICE
        if self._bytes_without_body > MAX_HEAD_BYTES:
            self._reject(f"more than {MAX_HEAD_BYTES} bytes came without a byte of the body")
        self._bytes_without_body += len(data)

    def _reject(self, reason: str) -> NoReturn:
        self._failure = self._failure or Broken(reason)
        self._keep_alive = False
        raise self._failure

    def fail(self, why: str) -> None:
        if self._complete:
            self._keep_alive = False  # whatever followed the answer, the next one must not begin with it
        else:
            self._failure = self._failure or Broken(why)
        self._wake()

    def closed(self) -> None:
        """By the server, and in good order: which is how an answer ends that does not say how long it is."""
        has_length = "content-length" in self.headers or "transfer-encoding" in self.headers
        if self.status and not has_length and not self._failure:
            self._complete = True
        self.fail("the server closed the connection")

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self._complete:  # nobody asked for a second answer
            self._keep_alive = False
            raise Broken("more came than was asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        self._header_bytes += len(name) + len(value)
        if self._header_count > MAX_HEADERS:
            self._reject(f"the answer has more than {MAX_HEADERS} headers")
        if self._header_bytes > MAX_HEAD_BYTES:
            self._reject(f"the headers of the answer have more than {MAX_HEAD_BYTES} bytes")
        key = name.decode("latin-1").lower()
        # Several lengths, or a length with an encoding, the parser refuses; other encodings it does not.
        if key == "transfer-encoding" and (key in self.headers or value.strip(b" \t").lower() != b"chunked"):
            self._reject(f"transfer-encoding: {value[:40]!r} is invalid; expected chunked, once")
        if not self.status:  # otherwise it is a trailer, which comes too late to describe the answer
            self.headers[key] = value.strip(b" \t").decode("latin-1")

    def on_headers_complete(self) -> None:
        status, version = self._parser.get_status_code(), self._parser.get_http_version()
        if status < HTTPStatus.CONTINUE or version not in ("1.0", "1.1"):
            self._reject(f"the answer is not HTTP: version {version}, status {status}")
        if status >= HTTPStatus.OK:
            self.status = status
            return
        self.headers.clear()  # an interim answer: the one we wait for follows
        self._interim_answers += 1
        if self._interim_answers > MAX_INTERIM_ANSWERS:
            self._reject(f"the answer follows more than {MAX_INTERIM_ANSWERS} interim answers")

    def on_body(self, body: bytes) -> None:
        self._bytes_without_body = 0
        self._body.append(body)
        self._buffered += len(body) + PIECE_BYTES
        if self._body_limit is not None:
            if self._buffered > self._body_limit:
                self._reject(f"the body has more than {self._body_limit} bytes")
        elif self._buffered > _MOST_BUFFERED:
            self._connection.pause()

    def on_message_complete(self) -> None:
        if not self.status:
            return
        self._keep_alive = self._parser.should_keep_alive()  # it forgets
        self._complete = True


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.exchange: Exchange | None = None
        self.lost = False
        self.idle_since = 0.0
        self._paused = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.exchange:
            self.exchange.feed(data)
        else:  # nobody asked
            self.abort()

    def connection_lost(self, why: Exception | None) -> None:
        self.lost = True
        if self.exchange and why:
            self.exchange.fail(str(why))
        elif self.exchange:
            self.exchange.closed()

    def write(self, data: bytes) -> None:
        assert self._transport
        self._transport.write(data)

    def pause(self) -> None:
        if self._transport and not self._paused and not self.lost:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport and self._paused and not self.lost:
            self._paused = False
            self._transport.resume_reading()

    def abort(self) -> None:
        """At once: saying goodbye by TLS to a server that does not listen takes half a minute."""
        self.lost = True
        if self._transport:
            self._transport.abort()


class Pool:
    """Connections to one server, as many as there are exchanges at a time. Those that idle are used again."""

    def __init__(self, server: str, tls: ssl.SSLContext | None, headers: Mapping[str, str]) -> None:
        url = urlsplit(server)  # which silently drops line breaks; access.py rejects such a server
        secure = url.scheme == "https"
        self._host = url.hostname or ""
        self._port = url.port or (443 if secure else 80)
        self._tls = tls if secure else None
        self._origin = Origin(url.netloc, headers, path=url.path.rstrip("/"))
        self._idle: deque[_Connection] = deque()
        self._all: set[_Connection] = set()

    async def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        permit: Callable[[], None] | None = None,
    ) -> Exchange:
        """A request on its way; its answer's head is here. `permit` is asked right before its first byte is sent."""
        request = self._encoded(method, target, headers, body)
        while kept := self._take_idle():
            try:
                return await self._exchange(kept, request, permit)
            except Broken:
                # The server may have closed it while our request was on its way. Only a look can be asked twice.
                if method != "GET":
                    raise
        return await self._exchange(await self._connect(), request, permit)

    def give_back(self, connection: _Connection, *, reusable: bool) -> None:
        now = asyncio.get_running_loop().time()
        if reusable and not connection.lost:
            connection.idle_since = now
            self._idle.append(connection)
        else:
            self._drop(connection)
        while self._idle and self._idle[0].idle_since < now - _IDLE_SECONDS:
            self._drop(self._idle.popleft())

    def close(self) -> None:
        for connection in list(self._all):
            self._drop(connection)
        self._idle.clear()

    def _encoded(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
        if body is None:
            return encode_head(method, target, headers, self._origin)
        return encode_head(method, target, headers, self._origin, len(body)) + body

    async def _exchange(self, connection: _Connection, request: bytes, permit: Callable[[], None] | None) -> Exchange:
        exchange = connection.exchange = Exchange(self, connection)
        try:
            if permit:
                permit()
            connection.write(request)
            await exchange.head()
        except BaseException:
            exchange.end()
            raise
        return exchange

    def _take_idle(self) -> _Connection | None:
        """The one used last: after a burst, the others grow too old and go."""
        oldest = asyncio.get_running_loop().time() - _IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if not connection.lost and connection.idle_since >= oldest:
                return connection
            self._drop(connection)
        return None

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_CONNECT_SECONDS):
            made = await self._connected_socket(loop)
            try:
                _, connection = await loop.create_connection(
                    _Connection, sock=made, ssl=self._tls, server_hostname=self._host if self._tls else None
                )
            except BaseException:
                made.close()
                raise
        self._all.add(connection)
        return connection

    async def _connected_socket(self, loop: asyncio.AbstractEventLoop) -> socket.socket:
        failure: OSError | None = None
        for found in await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM):
            made = _socket(found[0], found[1], found[2])
            try:
                await loop.sock_connect(made, found[4])
            except OSError as why:
                failure = why
                made.close()
            except BaseException:
                made.close()
                raise
            else:
                return made
        raise failure or OSError(f"{self._host} has no address")

    def _drop(self, connection: _Connection) -> None:
        self._all.discard(connection)
        connection.abort()


def _socket(family: int, kind: int, protocol: int) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)  # noqa: FBT003  so it is called
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SOCKET_OPTIONS.items():
        if (option := getattr(socket, name, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
