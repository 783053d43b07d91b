"""Send requests to the API server: bytes in, bytes out, and errors classified by how to handle them.

Every request is rate-limited (`TokenBucket`), counted (`on_call`) and has a timeout. A watch is not limited and can
last indefinitely, but ends when no event arrives for too long. docs/decisions/0003-requests-of-our-own.md has the
reasons for this client.
"""

import asyncio
import errno
import os
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from enum import Enum
from http import HTTPStatus
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from kube_node_ready import __version__
from kube_node_ready.api.paths import resource_of
from kube_node_ready.http_syntax import InvalidRequestError
from kube_node_ready.kube import errors
from kube_node_ready.kube.access import Access, TokenSource
from kube_node_ready.kube.errors import AccessError, InvalidRequest, KubeError, Unreachable, WatchStalled
from kube_node_ready.kube.http import (
    MAX_BODY_BYTES,
    PIECE_BYTES,
    ConnectionBroken,
    ConnectionPool,
    PauseReading,
    Response,
)
from kube_node_ready.kube.rate_limit import TokenBucket
from kubekit.credentials import Identity

JSON = "application/json"
CALL_SECONDS = 30.0
STALL_SECONDS = 150.0  # bookmarks come every minute
# A page of 500 objects: Nodes and Pods have 10 to 50 KiB each, so this is ten times the expected size.
MAX_PAGE_BYTES = 256 << 20
_MAX_ERROR_BYTES = 1 << 20  # a Status, or the page of a proxy
# A watch event holds one object. A request has at most 3 MiB, and the object's JSON up to 8 times as many bytes as the
# protobuf that was sent (empty `status.runtimeHandlers`). An event that is rejected here would end every watch.
_MAX_LINE_BYTES = MAX_BODY_BYTES
_AGENT = f"kube-node-ready-controller/{__version__}"
# Compression costs both sides more than the network between them.
_HEADERS = {"Accept-Encoding": "identity"}


class PatchKind(Enum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Call(Struct, frozen=True):
    """A request for metrics. Its status is 0 without a response; a watch counts when it is opened."""

    verb: str
    resource: str
    status: int
    seconds: float


class _Request(Struct, frozen=True):
    verb: str
    method: str
    path: str
    params: dict[str, str]
    accept: str = JSON
    body: bytes | None = None
    content: str = JSON
    max_bytes: int = MAX_BODY_BYTES

    def __str__(self) -> str:
        return f"{self.method} {self.path}{'?watch=1' if self.verb == 'watch' else ''}"

    def target(self) -> str:
        if not self.params:
            return self.path
        try:
            return f"{self.path}?{urlencode(self.params, quote_via=quote)}"
        except UnicodeEncodeError as error:  # arguments of the command line that are not UTF-8
            raise InvalidRequestError("query", ascii(error.object[:120]), "valid Unicode text") from error


def _ignore_call(_: Call) -> None:
    return None


def _allow_write() -> None:
    return None


class KubeClient:
    """One API server: `async with KubeClient(access()) as kube: await kube.get("/api/v1/nodes")`.

    `timeout_seconds` limits a call, not counting the wait for the rate limit; `params` become the query.
    `before_write` is called right before each write, and raises to prevent it. `agent` is the User-Agent, for audits.
    """

    def __init__(
        self,
        access: Access,
        *,
        limit: TokenBucket | None = None,
        on_call: Callable[[Call], None] = _ignore_call,
        before_write: Callable[[], None] = _allow_write,
        agent: str = _AGENT,
    ) -> None:
        try:
            self._pool = _pool(access, {**_HEADERS, "User-Agent": agent})
        except InvalidRequestError as error:
            raise AccessError(f"cannot use this API server: {error}") from error
        self._limit = limit or TokenBucket(qps=0)
        self._on_call = on_call
        self._before_write = before_write
        self._token_source = TokenSource(access, self._pool.use_tls)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.close()

    async def get(
        self,
        path: str,
        *,
        timeout_seconds: float = CALL_SECONDS,
        accept: str = JSON,
        max_bytes: int = MAX_BODY_BYTES,
        **params: str,
    ) -> bytes:
        return await self._call(_Request("get", "GET", path, params, accept, max_bytes=max_bytes), timeout_seconds)

    async def create(self, path: str, body: bytes, *, timeout_seconds: float = CALL_SECONDS, **params: str) -> bytes:
        return await self._call(_Request("create", "POST", path, params, body=body), timeout_seconds)

    async def patch(
        self, path: str, body: bytes, kind: PatchKind, *, timeout_seconds: float = CALL_SECONDS, **params: str
    ) -> bytes:
        return await self._call(
            _Request("patch", "PATCH", path, params, body=body, content=kind.value), timeout_seconds
        )

    async def replace(self, path: str, body: bytes, *, timeout_seconds: float = CALL_SECONDS, **params: str) -> bytes:
        return await self._call(_Request("replace", "PUT", path, params, body=body), timeout_seconds)

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        version: str | None = None,
        grace_seconds: int | None = None,
        timeout_seconds: float = CALL_SECONDS,
    ) -> None:
        """With `uid`, delete only that object: if another one has the name, raise a Conflict.

        With `version`, also raise a Conflict if the object changed since.
        """
        options: dict[str, object] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
        }
        preconditions = {"uid": uid, "resourceVersion": version}
        if required := {field: value for field, value in preconditions.items() if value is not None}:
            options["preconditions"] = required
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        await self._call(_Request("delete", "DELETE", path, {}, body=msgspec.json.encode(options)), timeout_seconds)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        stall_timeout: float = STALL_SECONDS,
        pause: PauseReading | None = None,
        accept: str = JSON,
        **params: str,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch, and yield its lines. Raises WatchStalled if nothing arrives for `stall_timeout` seconds."""
        request = _Request("watch", "GET", path, params, accept)
        with _as_unreachable(request):
            async with asyncio.timeout(CALL_SECONDS):
                response = await self._respond(request)
        async with response, aclosing(_lines(response.chunks(stall_timeout, pause), request)) as lines:
            yield lines

    async def _call(self, request: _Request, timeout_seconds: float) -> bytes:
        await self._limit.acquire()
        with _as_unreachable(request):
            async with asyncio.timeout(timeout_seconds), await self._respond(request) as response:
                return await response.read(request.max_bytes)

    async def _respond(self, request: _Request) -> Response:
        """Return a successful response, its body still unread."""
        started, status, is_sent = time.monotonic(), 0, True
        try:
            response = await self._send_authenticated(request)
            status = response.status
            if status >= HTTPStatus.MULTIPLE_CHOICES:
                raise await _error(response, request)
        except InvalidRequest:
            is_sent = False  # and its path must not become the label of a metric
            raise
        finally:
            if is_sent:
                self._on_call(Call(request.verb, resource_of(request.path), status, time.monotonic() - started))
        return response

    async def _send_authenticated(self, request: _Request) -> Response:
        identity = await self._token_source.identity()
        response = await self._send(request, identity)
        if response.status != HTTPStatus.UNAUTHORIZED:
            return response
        try:
            renewed = await self._token_source.refresh(identity)
        except BaseException:
            response.close()
            raise
        if renewed == identity:
            return response
        async with response:
            await response.read(_MAX_ERROR_BYTES)
        return await self._send(request, renewed)

    async def _send(self, request: _Request, identity: Identity) -> Response:
        headers = {"Accept": request.accept}
        if identity.authorization:
            headers["Authorization"] = identity.authorization
        if request.body is not None:
            headers["Content-Type"] = request.content
        before_write = self._before_write if request.body is not None else None
        try:
            return await self._pool.send(request.method, request.target(), headers, request.body, before_write)
        except InvalidRequestError as error:
            raise InvalidRequest(str(error), request.method) from error


def _pool(access: Access, headers: dict[str, str]) -> ConnectionPool:
    connection = access.connection
    if connection is None:
        return ConnectionPool(access.server, access.tls, headers)
    return ConnectionPool(
        access.server, access.tls, headers, proxy=connection.proxy, tls_name=connection.tls_server_name
    )


async def _lines(chunks: AsyncIterator[bytes], request: _Request) -> AsyncGenerator[bytes, None]:
    """Yield complete lines. The rest of a line that a broken connection left is discarded."""
    begun: list[bytes] = []
    size = 0
    with _as_unreachable(request, is_open=True):
        async for chunk in chunks:
            first, *more = chunk.split(b"\n")
            size += len(first) + PIECE_BYTES
            if size > _MAX_LINE_BYTES:
                raise ConnectionBroken(f"an event has more than {_MAX_LINE_BYTES} bytes")
            begun.append(first)
            if more:
                yield b"".join(begun)
                for line in more[:-1]:
                    yield line
                begun = [more[-1]]
                size = len(more[-1])


async def _error(response: Response, request: _Request) -> KubeError:
    async with response:
        body = await response.read(_MAX_ERROR_BYTES)
    json_patch = request.content == PatchKind.JSON.value
    retry_after = response.headers.get("retry-after", "")
    return errors.from_response(response.status, body, str(request), json_patch=json_patch, retry_after=retry_after)


@contextmanager
def _as_unreachable(request: _Request, *, is_open: bool = False) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        if is_open:
            raise WatchStalled(0, "Silent", "the watch has stalled", str(request)) from error
        raise Unreachable(0, "Unreachable", "no response in time", str(request)) from error
    except OSError as error:
        raise Unreachable(0, "Unreachable", _cause(error), str(request)) from error


def _cause(error: OSError) -> str:
    """Return the cause without the number and the address that asyncio adds: they are no help to users."""
    if isinstance(error, socket.gaierror):
        return str(error.strerror)
    if isinstance(error, ConnectionRefusedError):
        return os.strerror(errno.ECONNREFUSED).lower()
    return str(error) or type(error).__name__
