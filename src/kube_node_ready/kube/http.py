"""HTTP/1.1 client for an API server: connection pool, one request at a time per connection, streamed responses.

Parsing is llhttp's (httptools). Why not a larger client: docs/decisions/0003-requests-of-our-own.md.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import NoReturn, Self, cast
from urllib.parse import urlsplit

import httptools

from kube_node_ready.http_syntax import (
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    MAX_INTERIM_ANSWERS,
    Origin,
    encode_head,
    parse_length,
)
from kube_node_ready.kube import sockets
from kubekit.proxy import Proxy

# Room for any object (etcd stores 1.5 MiB, JSON takes a few times that) and for lists that are not paged. Callers that
# read large pages, or only an error's message, set their own limit.
MAX_BODY_BYTES = 64 << 20
PIECE_BYTES = 64
"""The overhead of each piece in memory: a server that sends two bytes at a time fills memory, too."""
_CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 60.0  # the API server closes after 90
_MAX_BUFFERED = 1 << 20


class ConnectionBroken(OSError):  # noqa: N818  as in errors.py
    """The connection ended before the response did, or the response is not HTTP or exceeds a limit."""


PauseReading = Callable[[], Awaitable[None] | None]
"""Called when everything that arrived was read. Returns a pause to wait for before reading on, or None."""


class Response:
    """A response: `await head()`, then `read()` or `chunks()`. `async with` returns the connection to the pool."""

    def __init__(self, pool: "ConnectionPool", connection: "_Connection") -> None:
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
        self._interim_responses = 0
        self._complete = False
        self._keep_alive = False
        self._failure: ConnectionBroken | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def head(self) -> None:
        """Wait for the status and the headers."""
        while not self.status:
            await self._wait_for_data()

    async def read(self, limit: int = MAX_BODY_BYTES) -> bytes:
        """Return the body. If it has more than `limit` bytes, raise ConnectionBroken as soon as that is known."""
        self._body_limit = limit
        if max(self._buffered, self._content_length()) > limit:
            self._reject(f"the body has more than {limit} bytes")
        self._connection.resume()
        while not self._complete:
            await self._wait_for_data()
        return b"".join(self._body)

    def _content_length(self) -> int:
        try:
            return parse_length(self.headers.get("content-length", "0"))
        except ValueError as error:  # the parser takes any number of leading zeros
            self._reject(f"the response is not HTTP: {error}")

    async def chunks(self, stall_timeout: float, pause: PauseReading | None = None) -> AsyncGenerator[bytes, None]:
        """Yield chunks as they arrive. Raises TimeoutError if none arrives for `stall_timeout` seconds.

        What arrives during a pause is buffered, and yielded when the pause ends.
        """
        while True:
            while self._body:
                yield self._body.popleft()
            self._buffered = 0
            if self._complete:
                return
            if pause and not self._failure and (rest := pause()):
                self._connection.pause()
                await rest
            self._connection.resume()
            if self._body or self._complete:  # it arrived during the pause
                continue
            async with asyncio.timeout(stall_timeout):
                await self._wait_for_data()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Return the connection to the pool. After an incomplete response, it is not used again."""
        self._connection.response = None
        self._connection.resume()
        self._pool.release(self._connection, reusable=self._complete and self._keep_alive)
        # The parser and this object refer to each other: the body would wait for the garbage collector.
        del self._parser
        self._body.clear()

    async def _wait_for_data(self) -> None:
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
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, ConnectionBroken) as error:
            self.fail(f"the response is not HTTP: {error}")
            self._connection.abort()
        self._wake()

    def _check_quiet(self, data: bytes) -> None:
        """Limit what the parser does not: it buffers a header until it ends, and skips chunk extensions."""
        if not self._bytes_without_body and not self.status and data[:1] != b"H":
            self._reject(
                f"the response is not HTTP: it begins with {data[:20]!r}"
            )  # the parser also reads RTSP and ICE
        if self._bytes_without_body > MAX_HEAD_BYTES:
            self._reject(f"more than {MAX_HEAD_BYTES} bytes were received before the body")
        self._bytes_without_body += len(data)

    def _reject(self, reason: str) -> NoReturn:
        self._failure = self._failure or ConnectionBroken(reason)
        self._keep_alive = False
        raise self._failure

    def fail(self, reason: str) -> None:
        if self._complete:
            self._keep_alive = False  # what followed the response must not become part of the next one
        else:
            self._failure = self._failure or ConnectionBroken(reason)
        self._wake()

    def closed_by_server(self) -> None:
        """The server closed the connection. That is how a response without a length ends."""
        has_length = "content-length" in self.headers or "transfer-encoding" in self.headers
        if self.status and not has_length and not self._failure:
            self._complete = True
        self.fail("the server closed the connection")

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self._complete:  # a second response to one request
            self._keep_alive = False
            raise ConnectionBroken("the server sent more than one response")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        self._header_bytes += len(name) + len(value)
        if self._header_count > MAX_HEADERS:
            self._reject(f"the response has more than {MAX_HEADERS} headers")
        if self._header_bytes > MAX_HEAD_BYTES:
            self._reject(f"the headers of the response have more than {MAX_HEAD_BYTES} bytes")
        key = name.decode("latin-1").lower()
        # The parser rejects several lengths, or a length with an encoding, but not other encodings.
        if key == "transfer-encoding" and (key in self.headers or value.strip(b" \t").lower() != b"chunked"):
            self._reject(f"transfer-encoding: {value[:40]!r} is invalid; expected chunked, once")
        if not self.status:  # otherwise it is a trailer
            self.headers[key] = value.strip(b" \t").decode("latin-1")

    def on_headers_complete(self) -> None:
        status, version = self._parser.get_status_code(), self._parser.get_http_version()
        if status < HTTPStatus.CONTINUE or version not in ("1.0", "1.1"):
            self._reject(f"the response is not HTTP: version {version}, status {status}")
        if status >= HTTPStatus.OK:
            self.status = status
            return
        self.headers.clear()  # an interim response: the final one follows
        self._interim_responses += 1
        if self._interim_responses > MAX_INTERIM_ANSWERS:
            self._reject(f"the response follows more than {MAX_INTERIM_ANSWERS} interim responses")

    def on_body(self, body: bytes) -> None:
        self._bytes_without_body = 0
        self._body.append(body)
        self._buffered += len(body) + PIECE_BYTES
        if self._body_limit is not None:
            if self._buffered > self._body_limit:
                self._reject(f"the body has more than {self._body_limit} bytes")
        elif self._buffered > _MAX_BUFFERED:
            self._connection.pause()

    def on_message_complete(self) -> None:
        if not self.status:
            return
        self._keep_alive = self._parser.should_keep_alive()  # it forgets
        self._complete = True


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.response: Response | None = None
        self.lost = False
        self.idle_since = 0.0
        self.tls: ssl.SSLContext | None = None
        self._paused = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.response:
            self.response.feed(data)
        else:  # data without a request
            self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        if self.response and error:
            self.response.fail(str(error))
        elif self.response:
            self.response.closed_by_server()

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
        """Close immediately: a TLS shutdown takes half a minute if the server does not respond."""
        self.lost = True
        if self._transport:
            self._transport.abort()


class ConnectionPool:
    """Connections to one server, as many as there are exchanges at a time. Those that idle are used again.

    With a `proxy`, all of them go through it. `tls_name` is the name in the server's certificate, if not its host's.
    """

    def __init__(
        self,
        server: str,
        tls: ssl.SSLContext | None,
        headers: Mapping[str, str],
        *,
        proxy: Proxy | None = None,
        tls_name: str = "",
    ) -> None:
        url = urlsplit(server)  # which silently drops line breaks; kubekit.kubeconfig rejects such a server
        secure = url.scheme == "https"
        self._host = url.hostname or ""
        self._port = url.port or (443 if secure else 80)
        self._tls = tls if secure else None
        self._tls_name = tls_name or self._host
        self._proxy = proxy
        self._origin = Origin(url.netloc, headers, path=url.path.rstrip("/"))
        self._idle: deque[_Connection] = deque()
        self._all: set[_Connection] = set()

    async def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        before_write: Callable[[], None] | None = None,
    ) -> Response:
        """Send a request and read the head of its response. `before_write` is called right before the first byte."""
        request = self._encoded(method, target, headers, body)
        while kept := self._take_idle():
            try:
                return await self._send_on(kept, request, before_write)
            except ConnectionBroken:
                # The server might have closed it while the request was sent. Only a GET is safe to repeat.
                if method != "GET":
                    raise
        return await self._send_on(await self._connect(), request, before_write)

    def release(self, connection: _Connection, *, reusable: bool) -> None:
        now = asyncio.get_running_loop().time()
        if reusable and not connection.lost and connection.tls is self._tls:
            connection.idle_since = now
            self._idle.append(connection)
        else:
            self._drop(connection)
        while self._idle and self._idle[0].idle_since < now - _IDLE_SECONDS:
            self._drop(self._idle.popleft())

    def use_tls(self, tls: ssl.SSLContext) -> None:
        """Present another client certificate from now on. No connection with the former one is used again."""
        self._tls = tls if self._tls else None
        while self._idle:
            self._drop(self._idle.pop())

    def close(self) -> None:
        for connection in list(self._all):
            self._drop(connection)
        self._idle.clear()

    def _encoded(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
        if body is None:
            return encode_head(method, target, headers, self._origin)
        return encode_head(method, target, headers, self._origin, len(body)) + body

    async def _send_on(
        self, connection: _Connection, request: bytes, before_write: Callable[[], None] | None
    ) -> Response:
        response = connection.response = Response(self, connection)
        try:
            if before_write:
                before_write()
            connection.write(request)
            await response.head()
        except BaseException:
            response.close()
            raise
        return response

    def _take_idle(self) -> _Connection | None:
        """Return the connection that was used last: after a burst, the others become too old and are closed."""
        oldest = asyncio.get_running_loop().time() - _IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if not connection.lost and connection.idle_since >= oldest:
                return connection
            self._drop(connection)
        return None

    async def _connect(self) -> _Connection:
        loop, tls = asyncio.get_running_loop(), self._tls
        async with asyncio.timeout(_CONNECT_SECONDS):
            transport, connection = await loop.create_connection(
                _Connection, sock=await sockets.connect(self._host, self._port, self._proxy)
            )
            try:
                if tls:
                    await self._start_tls(transport, connection, tls)
            except BaseException:
                transport.abort()
                raise
        connection.tls = tls
        self._all.add(connection)
        return connection

    async def _start_tls(self, transport: asyncio.Transport, connection: _Connection, tls: ssl.SSLContext) -> None:
        """Secure the connection, in a step of its own.

        If `create_connection` with TLS is canceled in its first moment, asyncio (3.11) keeps a transport whose socket
        is closed, and the next socket with that number cannot be used.
        """
        loop = asyncio.get_running_loop()
        secured = await loop.start_tls(transport, connection, tls, server_hostname=self._tls_name)
        assert secured
        connection.connection_made(secured)

    def _drop(self, connection: _Connection) -> None:
        self._all.discard(connection)
        connection.abort()
