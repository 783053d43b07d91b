"""Requests to the API server: bytes in, bytes out, and errors that say what to do next.

Whatever is asked is limited (`Limit`), counted (`observe`) and bounded in time. A watch is not limited and may last,
but ends when it says nothing for too long. Why these requests are our own: docs/decisions/0003-requests-of-our-own.md.
"""

import asyncio
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
from kube_node_ready.http_syntax import InvalidRequestError
from kube_node_ready.kube import errors
from kube_node_ready.kube.access import Access, Login
from kube_node_ready.kube.errors import AccessError, InvalidRequest, KubeError, Silent, Unreachable
from kube_node_ready.kube.http import MAX_BODY_BYTES, PIECE_BYTES, Broken, Exchange, Nap, Pool
from kube_node_ready.kube.limits import Limit

JSON = "application/json"
CALL_SECONDS = 30.0
SILENCE_SECONDS = 150.0  # bookmarks come every minute
# A page of 500 objects: Nodes and Pods have 10 to 50 KiB each, so this is ten times what is likely, and finite.
MAX_PAGE_BYTES = 256 << 20
_MAX_ERROR_BYTES = 1 << 20  # a Status, or the page of some proxy
_MAX_LINE_BYTES = 16 << 20  # a watch event holds one object, of which etcd stores at most 1.5 MiB
_AGENT = f"kube-node-ready-controller/{__version__}"
# Compression costs both sides more than the network between them.
_HEADERS = {"Accept-Encoding": "identity"}


class PatchKind(Enum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Call(Struct, frozen=True):
    """One request. Its status is 0 if there was no answer; a watch counts when it is opened."""

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
        return f"{self.method} {self.path}"

    def target(self) -> str:
        if not self.params:
            return self.path
        try:
            return f"{self.path}?{urlencode(self.params, quote_via=quote)}"
        except UnicodeEncodeError as error:  # bytes of the command line that are not UTF-8
            raise InvalidRequestError("query", ascii(error.object[:120]), "valid Unicode text") from error


def _nobody_counts(_: Call) -> None:
    return None


def _everybody_may() -> None:
    return None


class Kube:
    """One API server: `async with Kube(access()) as kube: await kube.get("/api/v1/nodes")`.

    `within` bounds a call in seconds, once the limit has let it pass; `params` go into the query as they are.
    `permit` is asked right before anything is written, and raises if it must not be. `agent` is who asks, for audits.
    """

    def __init__(
        self,
        access: Access,
        *,
        limit: Limit | None = None,
        observe: Callable[[Call], None] = _nobody_counts,
        permit: Callable[[], None] = _everybody_may,
        agent: str = _AGENT,
    ) -> None:
        try:
            self._pool = Pool(access.server, access.tls, {**_HEADERS, "User-Agent": agent})
        except InvalidRequestError as error:
            raise AccessError(f"cannot use this API server: {error}") from error
        self._limit = limit or Limit(qps=0)
        self._observe = observe
        self._permit = permit
        self._login = Login(access)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.close()

    async def get(
        self,
        path: str,
        *,
        within: float = CALL_SECONDS,
        accept: str = JSON,
        max_bytes: int = MAX_BODY_BYTES,
        **params: str,
    ) -> bytes:
        return await self._call(_Request("get", "GET", path, params, accept, max_bytes=max_bytes), within)

    async def create(self, path: str, body: bytes, *, within: float = CALL_SECONDS, **params: str) -> bytes:
        return await self._call(_Request("create", "POST", path, params, body=body), within)

    async def patch(
        self, path: str, body: bytes, kind: PatchKind, *, within: float = CALL_SECONDS, **params: str
    ) -> bytes:
        return await self._call(_Request("patch", "PATCH", path, params, body=body, content=kind.value), within)

    async def replace(self, path: str, body: bytes, *, within: float = CALL_SECONDS, **params: str) -> bytes:
        return await self._call(_Request("replace", "PUT", path, params, body=body), within)

    async def delete(
        self, path: str, *, uid: str | None = None, grace_seconds: int | None = None, within: float = CALL_SECONDS
    ) -> None:
        """With `uid`, that very object: if another one bears the name by now, it stays, and this is a LostRace."""
        options: dict[str, object] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
        }
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        await self._call(_Request("delete", "DELETE", path, {}, body=msgspec.json.encode(options)), within)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        silence: float = SILENCE_SECONDS,
        nap: Nap | None = None,
        accept: str = JSON,
        **params: str,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of an answer that goes on: a watch. It is Silent when no byte comes for `silence` seconds."""
        request = _Request("watch", "GET", path, params, accept)
        with _as_unreachable(request):
            async with asyncio.timeout(CALL_SECONDS):
                answer = await self._answer(request)
        async with answer, aclosing(_lines(answer.chunks(silence, nap), request)) as lines:
            yield lines

    async def _call(self, request: _Request, within: float) -> bytes:
        await self._limit.take()
        with _as_unreachable(request):
            async with asyncio.timeout(within), await self._answer(request) as answer:
                return await answer.read(request.max_bytes)

    async def _answer(self, request: _Request) -> Exchange:
        """An answer that says yes, its body still unread."""
        started, status, is_sent = time.monotonic(), 0, True
        try:
            answer = await self._send_again_if_refused(request)
            status = answer.status
            if status >= HTTPStatus.MULTIPLE_CHOICES:
                raise await _no(answer, request)
        except InvalidRequest:
            is_sent = False  # and its path must not become the label of a metric
            raise
        finally:
            if is_sent:
                self._observe(Call(request.verb, resource(request.path), status, time.monotonic() - started))
        return answer

    async def _send_again_if_refused(self, request: _Request) -> Exchange:
        shown = await self._login.header()
        answer = await self._send(request, shown)
        if answer.status != HTTPStatus.UNAUTHORIZED:
            return answer
        try:
            renewed = await self._login.renew(shown)
        except BaseException:
            answer.end()
            raise
        if not renewed:
            return answer
        async with answer:
            await answer.read(_MAX_ERROR_BYTES)
        return await self._send(request, await self._login.header())

    async def _send(self, request: _Request, shown: str | None) -> Exchange:
        headers = {"Accept": request.accept}
        if shown is not None:
            headers["Authorization"] = shown
        if request.body is not None:
            headers["Content-Type"] = request.content
        permit = self._permit if request.body is not None else None
        try:
            return await self._pool.send(request.method, request.target(), headers, request.body, permit)
        except InvalidRequestError as error:
            raise InvalidRequest(str(error), request.method) from error


def resource(path: str) -> str:
    """What a path is about, without names: `nodes`, `nodes/status`, `pods`, `leases`."""
    parts = path.strip("/").split("/")
    kind = parts[2:] if parts[0] == "api" else parts[3:]
    if kind[:1] == ["namespaces"] and len(kind) > 2:  # noqa: PLR2004  /namespaces/NAME/pods, not /namespaces/NAME
        kind = kind[2:]
    return "/".join(kind[::2])


async def _lines(chunks: AsyncIterator[bytes], request: _Request) -> AsyncGenerator[bytes, None]:
    """Whole lines only: what a cut connection left of its last line is dropped."""
    begun: list[bytes] = []
    size = 0
    with _as_unreachable(request, heard_before=True):
        async for chunk in chunks:
            first, *more = chunk.split(b"\n")
            size += len(first) + PIECE_BYTES
            if size > _MAX_LINE_BYTES:
                raise Broken(f"an event has more than {_MAX_LINE_BYTES} bytes")
            begun.append(first)
            if more:
                yield b"".join(begun)
                for line in more[:-1]:
                    yield line
                begun = [more[-1]]
                size = len(more[-1])


async def _no(answer: Exchange, request: _Request) -> KubeError:
    async with answer:
        body = await answer.read(_MAX_ERROR_BYTES)
    json_patch = request.content == PatchKind.JSON.value
    retry_after = answer.headers.get("retry-after", "")
    return errors.of_answer(answer.status, body, str(request), json_patch=json_patch, retry_after=retry_after)


@contextmanager
def _as_unreachable(request: _Request, *, heard_before: bool = False) -> Iterator[None]:
    try:
        yield
    except TimeoutError as why:
        if heard_before:
            raise Silent(0, "Silent", "nothing was heard for too long", str(request)) from why
        raise Unreachable(0, "Unreachable", "no answer in time", str(request)) from why
    except OSError as why:
        raise Unreachable(0, "Unreachable", str(why) or type(why).__name__, str(request)) from why
