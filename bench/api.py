"""A minimal Kubernetes client for the generator: cheap requests, and watches that resume when they are closed."""

import asyncio
import http
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec
from msgspec import Raw, Struct

AGENT = "kube-node-ready-bench"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_IN_FLIGHT = 50
_PAUSE_SECONDS = 0.3
_LINE_BYTES = 4 << 20
_BUSY_ANSWERS = (http.HTTPStatus.TOO_MANY_REQUESTS, *range(http.HTTPStatus.INTERNAL_SERVER_ERROR, 600))


class Credentials(Struct, frozen=True):
    """The address of the API server, and the credential files."""

    url: str
    authority: str
    certificate: str
    key: str


class Answer(Struct, frozen=True):
    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        return self.status < http.HTTPStatus.MULTIPLE_CHOICES


class _ListMeta(Struct, frozen=True, rename="camel"):
    resource_version: str


class _List(Struct, frozen=True):
    metadata: _ListMeta
    items: list[Raw]


class _Event(Struct, frozen=True):
    type: str
    object: Raw


class _Versioned(Struct, frozen=True):
    """The common fields of the objects of all events, including the `Status` of an error."""

    metadata: _ListMeta = _ListMeta("")
    code: int = 0


class Api:
    """Sends a limited number of concurrent requests and retries when the server is busy or unavailable."""

    def __init__(self, credentials: Credentials) -> None:
        trust = ssl.create_default_context(cafile=credentials.authority)
        trust.load_cert_chain(credentials.certificate, credentials.key)
        self._session = aiohttp.ClientSession(
            credentials.url,
            connector=aiohttp.TCPConnector(ssl=trust, limit=0),
            headers={"User-Agent": AGENT, "Accept": "application/json", "Accept-Encoding": "identity"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
            read_bufsize=_LINE_BYTES,
        )
        self._turn = asyncio.Semaphore(_IN_FLIGHT)
        self.retries = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> Answer:
        async with self._turn:
            while True:
                try:
                    headers = {"Content-Type": kind}
                    async with self._session.request(method, path, data=body, headers=headers) as answer:
                        if answer.status not in _BUSY_ANSWERS:
                            return Answer(answer.status, await answer.read())
                except aiohttp.ClientError:
                    pass
                self.retries += 1
                await asyncio.sleep(_PAUSE_SECONDS)

    async def must(self, method: str, path: str, value: Any, *, kind: str = "application/json") -> Answer:  # noqa: ANN401  any JSON
        """Send a request like `ask` that must succeed."""
        answer = await self.ask(method, path, value if isinstance(value, bytes) else msgspec.json.encode(value), kind)
        if not answer.ok:
            raise RuntimeError(f"{method} {path} was answered {answer.status}: {answer.body.decode(errors='replace')}")
        return answer

    def watch(self, path: str, found: Callable[[Raw], None]) -> "Watch":
        return Watch(self._session, path, found)


class Watch:
    """Passes every object of a collection to `found`, initially and on each change.

    A new API server closes node watches dozens of times in a burst. So a watch resumes at the last version it received;
    it lists again only when the server no longer has that version.
    """

    def __init__(self, session: aiohttp.ClientSession, path: str, found: Callable[[Raw], None]) -> None:
        self._session = session
        self._path = path
        self._found = found
        self._version = ""
        self._events = msgspec.json.Decoder(_Event)
        self._versioned = msgspec.json.Decoder(_Versioned)
        self.begun = asyncio.Event()
        self.resumed = 0
        self.listed = 0

    async def follow(self) -> None:
        """Watch until canceled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                self.begun.set()
                await self._listen()
                self.resumed += 1
            except aiohttp.ClientError:
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _list(self) -> None:
        async with self._session.get(self._path, raise_for_status=True) as answer:
            listed = msgspec.json.decode(await answer.read(), type=_List)
        for item in listed.items:
            self._found(item)
        self._version = listed.metadata.resource_version
        self.listed += 1

    async def _listen(self) -> None:
        asked = {"watch": "1", "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        async with self._session.get(self._path, params=asked) as answer:
            if answer.status == http.HTTPStatus.GONE:
                self._version = ""
                return
            answer.raise_for_status()
            async for line in answer.content:
                if not self._take(self._events.decode(line)):
                    return

    def _take(self, event: _Event) -> bool:
        """Return whether the watch can resume."""
        seen = self._versioned.decode(event.object)
        if event.type == "ERROR":
            if seen.code == http.HTTPStatus.GONE:
                self._version = ""
            return False
        self._version = seen.metadata.resource_version
        if event.type in ("ADDED", "MODIFIED"):
            self._found(event.object)
        return True
