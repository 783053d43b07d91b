"""Informer: a local cache of objects, kept current by list and watch.

    start ──▶ list ──▶ watch ──┐  When the server ends the watch, the connection breaks, or no event arrives:
               ▲        ▲──────┤  watch again from the last resourceVersion. In a burst that happens dozens of times.
               └───────────────┘  When that resourceVersion has expired (410): list again.

The list is streamed at the beginning of the watch (`sendInitialEvents`): objects arrive one by one and are never in
memory all together. Servers that reject that are asked for pages.

**No object stops the others.** An API server can be unable to write an object into a watch (one that a client sent as
protobuf, nested more deeply than JSON allows), and ends the watch there, each time and without an error. So a watch
that ends early and without an event is an error, and the next list is asked for in pages, which contain such objects.

**Never back in time.** The responses to our own writes are stored immediately, so an event can be older than the cache:
a resourceVersion that is not higher than the stored one changes nothing. An object that is *not* in the cache was
deleted, or did not match, as of the last event: an older response is not stored, and a stored one is dropped if its
event does not arrive.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Generic, NoReturn, TypeVar

import msgspec
from msgspec import Raw, Struct

from kube_node_ready.api.nesting import tolerant
from kube_node_ready.kube import errors, wire
from kube_node_ready.kube.client import JSON, MAX_PAGE_BYTES, STALL_SECONDS, KubeClient
from kube_node_ready.kube.errors import Expired, KubeError, Rejected, Throttled, WatchStalled
from kube_node_ready.kube.http import PauseReading
from kube_node_ready.kube.pages import Pages
from kube_node_ready.kube.wire import W

_PAGE = "500"
_WATCH_SECONDS = (300, 600)
_FIRST_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS = 0.1, 5.0
_MAX_DOUBLINGS = 10
_LIST_ENDS = "k8s.io/initial-events-end"
_CHANGES = (b'{"type":"MODIFIED"', b'{"type":"ADDED"', b'{"type":"DELETED"')
_STREAMED = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
_UNKNOWN_PARAMETERS = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


T = TypeVar("T")
S = TypeVar("S")


class Resource(Struct, Generic[W, T], frozen=True):
    """Which objects are watched, and what is kept: they are decoded as `wire`, and `transform` returns what is stored.

    With `metadata_only`, the server sends only metadata.
    """

    path: str
    wire: type[W]
    transform: Callable[[W], T]
    key: Callable[[W], str]
    params: Mapping[str, str] = {}
    metadata_only: bool = False

    def accept(self, what: str) -> str:
        return f"{JSON};as={what};g=meta.k8s.io;v=v1" if self.metadata_only else JSON


class _Revision(Struct, frozen=True, gc=False):
    """Which object of that name is stored, in which version."""

    uid: str
    version: int


class _ProtocolError(KubeError):
    def __init__(self, message: str) -> None:
        super().__init__(0, "Garbled", message)


_UNREADABLE = (msgspec.MsgspecError, ValueError)


def _ignore(_: KubeError) -> None:
    return None


class Informer(Generic[W, T]):
    """`objects` is the cache. Read it, and change it only with `observe_write`.

    `on_change(key, before, after)` is called for every change of what is kept, and when a new object has the name of a
    deleted one; None means that there is no object. `on_error` gets each new error. A watch is opened again if
    nothing arrives for `stall_timeout` seconds. `pause` is called whenever everything that arrived was read: it can
    return a pause during which the watch is not read.
    """

    def __init__(
        self,
        kube: KubeClient,
        resource: Resource[W, T],
        on_change: Callable[[str, T | None, T | None], None],
        on_error: Callable[[KubeError], None] = _ignore,
        *,
        stall_timeout: float = STALL_SECONDS,
        pause: PauseReading | None = None,
    ) -> None:
        self.objects: dict[str, T] = {}
        self.lists = 0
        self.watches = 0
        self.last_event_at = float("-inf")
        self._client = kube
        self._resource = resource
        self._on_change = on_change
        self._on_error = on_error
        self._stall_timeout = stall_timeout
        self._pause_reading = pause
        self._last_error = ""
        self._revisions: dict[str, _Revision] = {}
        self._unconfirmed: dict[str, int] = {}
        self._version = 0
        self._listed: set[str] | None = None
        self._must_list = True
        self._server_streams_lists = True
        self._is_stuck = False
        self._complete = asyncio.Event()
        self._decode_object = tolerant(msgspec.json.Decoder(resource.wire).decode)
        self._decode_change = tolerant(msgspec.json.Decoder(wire.Change[resource.wire]).decode)  # type: ignore[name-defined]

    @property
    def synced(self) -> bool:
        """Whether the first list is complete."""
        return self._complete.is_set()

    async def wait_for_sync(self) -> None:
        await self._complete.wait()

    def version(self, key: str) -> str:
        """Return the resourceVersion of a cached object."""
        return str(self._revisions[key].version)

    def observe_write(self, written: bytes | W) -> None:
        """Store the response to a write of ours, unless the cache has a newer version."""
        key, revision, kept = self._read(self._decode_object(written) if isinstance(written, bytes) else written)
        if revision.version > self._version and self._store(key, revision, kept):
            self._unconfirmed[key] = revision.version

    async def run(self) -> NoReturn:
        """Keep the cache current, until canceled."""
        failures = 0
        while True:
            before, began, is_list = self.last_event_at, time.monotonic(), self._must_list
            failure = await self._list_and_watch()
            received = self.last_event_at > before
            if failure is None and self._ended_early(began, received=received):
                failure = _ProtocolError(f"the watch of {self._resource.path} ended without an event")
                self._is_stuck = True
            elif received and not is_list:
                self._is_stuck = False
            if isinstance(failure, (Expired, Rejected, _ProtocolError)) or (
                isinstance(failure, WatchStalled) and not received
            ):
                self._must_list = True
            # Lists succeed while watches do not, so they do not end the backoff.
            failures = 0 if received and not self._must_list and not self._is_stuck else failures + 1
            if failure or not self._is_stuck:
                self._report_failure(failure if failures else None)
            await asyncio.sleep(_backoff_seconds(failures, failure))

    def _ended_early(self, began: float, *, received: bool) -> bool:
        """Whether the server ended a watch before its time, with nothing new or in the middle of a list."""
        is_listing = self._listed is not None
        return is_listing or (not received and time.monotonic() - began < _WATCH_SECONDS[0])

    async def _list_and_watch(self) -> KubeError | None:
        """List if necessary, then watch until the server ends it. Return the error that ended it, if any."""
        try:
            if not self._must_list:
                await self._watch({"resourceVersion": str(self._version)})
            elif self._server_streams_lists and not self._is_stuck:
                await self._stream_list()
            else:
                await self._list()
        except KubeError as error:
            return error
        return None

    def _report_failure(self, failure: KubeError | None) -> None:
        """Report each new error once. An expired watch is not an error."""
        known, self._last_error = self._last_error, ""
        if failure is None or isinstance(failure, Expired):
            return
        self._last_error = str(failure)
        if self._last_error != known:
            self._on_error(failure)

    async def _stream_list(self) -> None:
        try:
            await self._watch(_STREAMED)
        except Rejected as error:
            if error.status not in _UNKNOWN_PARAMETERS:
                raise
            await self._list()
            self._server_streams_lists = False

    async def _list(self) -> None:
        self._listed = set()
        pages, more = Pages(self._resource.path), dict[str, str]()
        accept = self._resource.accept("PartialObjectMetadataList")
        while True:
            params = {**self._resource.params, **more, "limit": _PAGE}
            answer = await self._client.get(self._resource.path, accept=accept, max_bytes=MAX_PAGE_BYTES, **params)  # type: ignore[arg-type]
            page = self._readable(wire.decode_page, answer)
            self.last_event_at = time.monotonic()
            for item in page.items:
                self._on_listed_object(item)
            if not page.metadata.continue_:
                break
            more = pages.after(page.metadata.continue_)
        self._end_list(self._number(page.metadata.resource_version))

    async def _watch(self, start: Mapping[str, str]) -> None:
        """Watch until the server ends it."""
        self._listed = set() if start is _STREAMED else None
        seconds = str(random.randint(*_WATCH_SECONDS))  # noqa: S311  so that watches do not end simultaneously
        params = {
            **self._resource.params,
            **start,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": seconds,
        }
        accept = self._resource.accept("PartialObjectMetadata")
        watch = self._client.stream(
            self._resource.path, stall_timeout=self._stall_timeout, pause=self._pause_if_idle, accept=accept, **params
        )
        async with watch as lines:
            self.watches += 1
            async for line in lines:
                self._on_line(line)

    def _pause_if_idle(self) -> Awaitable[None] | None:
        return self._pause_reading() if self._pause_reading and self._listed is None else None

    def _on_line(self, line: bytes) -> None:
        self.last_event_at = time.monotonic()
        if line.startswith(_CHANGES):
            self._on_watch_event(line)
        elif line:
            event = self._readable(wire.decode_event, line)
            if event.type == "BOOKMARK":
                self._on_bookmark(self._readable(wire.decode_bookmark, event.object).metadata)
            elif event.type == "ERROR":
                status = self._readable(wire.decode_status, event.object)
                raise errors.from_status(
                    status.code or HTTPStatus.INTERNAL_SERVER_ERROR, status, f"GET {self._resource.path}?watch=1"
                )
            else:
                self._on_watch_event(line)

    def _on_watch_event(self, line: bytes) -> None:
        try:
            change = self._decode_change(line)
            key, revision, kept = self._read(change.object)
        except _UNREADABLE as error:
            self._skip_unreadable(error)
            return
        deleted = change.type == "DELETED"
        if deleted:
            self._delete(key, revision.version)
        else:
            self._confirm(key, revision, kept)
        if self._listed is None:
            self._advance(revision.version)
        elif deleted:
            self._listed.discard(key)
        else:
            self._listed.add(key)

    def _on_listed_object(self, item: Raw) -> None:
        assert self._listed is not None
        try:
            key, revision, kept = self._read(self._decode_object(item))
        except _UNREADABLE as error:
            self._skip_unreadable(error)
            return
        self._confirm(key, revision, kept)
        self._listed.add(key)

    def _on_bookmark(self, mark: wire.BookmarkMetadata) -> None:
        if self._listed is None:
            self._advance(self._number(mark.resource_version))
        elif _LIST_ENDS in mark.annotations:
            self._end_list(self._number(mark.resource_version))

    def _end_list(self, version: int) -> None:
        if version < self._version:
            # A list is never older than earlier events, unless the cluster was restored from a backup.
            newest, self._version = self._version, 0
            self._unconfirmed.clear()
            self._revisions = {key: _Revision(revision.uid, 0) for key, revision in self._revisions.items()}
            raise _ProtocolError(
                f"{self._resource.path}: the server went back from resourceVersion {newest} to {version}"
            )
        assert self._listed is not None
        for key in self.objects.keys() - self._listed:
            self._delete(key, version)
        self._listed, self._must_list = None, False
        self._advance(version)
        self.lists += 1
        self._complete.set()

    def _advance(self, version: int) -> None:
        """All events up to this version have arrived. Writes that no event has confirmed by then do not match."""
        self._version = version
        if self._unconfirmed:
            for key in [key for key, put in self._unconfirmed.items() if put <= version]:
                self._delete(key, self._unconfirmed.pop(key))

    def _read(self, wire_object: W) -> tuple[str, _Revision, T]:
        revision = _Revision(wire_object.metadata.uid, int(wire_object.metadata.resource_version))
        return self._resource.key(wire_object), revision, self._resource.transform(wire_object)

    def _skip_unreadable(self, error: Exception) -> None:
        """Skip an object in a list. In a watch its version is unknown, so a new list is needed."""
        failure = _ProtocolError(f"{self._resource.path}: cannot decode an object, so it is skipped: {error}")
        if self._listed is None:
            raise failure
        self._on_error(failure)

    def _number(self, version: str) -> int:
        if not version.isdecimal():
            raise _ProtocolError(f"{self._resource.path}: resourceVersion {version!r} is invalid")
        return int(version)

    def _readable(self, decode: Callable[[bytes], S], data: bytes) -> S:
        try:
            return decode(data)
        except _UNREADABLE as error:
            raise _ProtocolError(f"{self._resource.path}: cannot decode the response: {error}") from error

    def _confirm(self, key: str, revision: _Revision, kept: T) -> None:
        if self._unconfirmed and self._unconfirmed.get(key, revision.version + 1) <= revision.version:
            del self._unconfirmed[key]
        self._store(key, revision, kept)

    def _store(self, key: str, revision: _Revision, kept: T) -> bool:
        """Return whether the version is new."""
        known, before = self._revisions.get(key), self.objects.get(key)
        if known is not None and known.version >= revision.version:
            return False
        self._revisions[key], self.objects[key] = revision, kept
        if known is None or known.uid != revision.uid or before != kept:
            self._on_change(key, before, kept)
        return True

    def _delete(self, key: str, version: int) -> None:
        known = self._revisions.get(key)
        if known is not None and known.version <= version:
            del self._revisions[key]
            self._on_change(key, self.objects.pop(key), None)


def _backoff_seconds(failures: int, failure: KubeError | None) -> float:
    if not failures:
        return 0.0
    longest = min(_FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 1, _MAX_DOUBLINGS), _MAX_BACKOFF_SECONDS)
    pause = random.uniform(longest / 2, longest)  # noqa: S311  spreads load
    return max(pause, failure.retry_after) if isinstance(failure, Throttled) else pause
