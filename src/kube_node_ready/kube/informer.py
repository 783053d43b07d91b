"""A local copy of some objects, kept by list and watch.

    begin ──▶ list ──▶ follow ─┐  When the server ends the watch, or the connection breaks, or says nothing any more:
               ▲        ▲──────┤  follow again from the last resourceVersion. In a burst that happens dozens of times.
               └───────────────┘  When the server has forgotten that resourceVersion (410): list again.

The list is streamed as the beginning of a watch (`sendInitialEvents`): its objects come one by one and never lie in
memory all at once. Servers that refuse that are asked for pages.

**Never back in time.** The answers to our own writes are put here at once, so an event may tell of what is past: a
resourceVersion that is not above the one we have changes nothing. And what is *not* here was deleted, or did not match,
as of the last event heard: nothing that old can be put here, and what was put here goes if its event does not come.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Generic, NoReturn, TypeVar

import msgspec
from msgspec import Raw, Struct

from kube_node_ready.kube import errors, wire
from kube_node_ready.kube.client import JSON, MAX_PAGE_BYTES, SILENCE_SECONDS, Kube
from kube_node_ready.kube.errors import Gone, KubeError, Refused, Silent, Throttled
from kube_node_ready.kube.http import Nap
from kube_node_ready.kube.wire import W

_PAGE = "500"
_WATCH_SECONDS = (300, 600)
_FIRST_PAUSE_SECONDS, _LAST_PAUSE_SECONDS = 0.1, 5.0
_MOST_DOUBLINGS = 10
_LIST_ENDS = "k8s.io/initial-events-end"
_CHANGES = (b'{"type":"MODIFIED"', b'{"type":"ADDED"', b'{"type":"DELETED"')
_STREAMED = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
_UNKNOWN_PARAMETERS = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


T = TypeVar("T")
S = TypeVar("S")


class Kind(Struct, Generic[W, T], frozen=True):
    """Which objects, and what of them is kept: `wire` is what is decoded, `keep` makes the rest of it.

    With `metadata_only` the server sends metadata and nothing else.
    """

    path: str
    wire: type[W]
    keep: Callable[[W], T]
    key: Callable[[W], str]
    params: Mapping[str, str] = {}
    metadata_only: bool = False

    def accept(self, what: str) -> str:
        return f"{JSON};as={what};g=meta.k8s.io;v=v1" if self.metadata_only else JSON


class _Life(Struct, frozen=True, gc=False):
    """Which object of that name it is, and how far we know it."""

    uid: str
    version: int


class _Garbled(KubeError):  # noqa: N818  as in errors.py
    def __init__(self, message: str) -> None:
        super().__init__(0, "Garbled", message)


_UNREADABLE = (msgspec.MsgspecError, ValueError)


def _ignore(_: str) -> None:
    return None


class Cache(Generic[W, T]):
    """`objects` is the copy; read it, and change it only by `put`.

    `changed(key, before, after)` is called on the spot for every change of what is kept, and for every new object of an
    old name; None is for what is not there. `complain` gets a sentence for the log. A watch may say nothing for as many
    seconds as `silence`. `nap` is asked whenever all of a watch was read: how long to let the rest of it wait.
    """

    def __init__(
        self,
        kube: Kube,
        kind: Kind[W, T],
        changed: Callable[[str, T | None, T | None], None],
        complain: Callable[[str], None] = _ignore,
        *,
        silence: float = SILENCE_SECONDS,
        nap: Nap | None = None,
    ) -> None:
        self.objects: dict[str, T] = {}
        self.lists = 0
        self.watches = 0
        self.last_heard = float("-inf")
        self._kube = kube
        self._kind = kind
        self._changed = changed
        self._complain = complain
        self._silence = silence
        self._nap = nap
        self._complaint = ""
        self._lives: dict[str, _Life] = {}
        self._unconfirmed: dict[str, int] = {}
        self._version = 0
        self._listed: set[str] | None = None
        self._must_list = True
        self._server_streams_lists = True
        self._complete = asyncio.Event()
        self._decode_object = msgspec.json.Decoder(kind.wire).decode
        self._decode_change = msgspec.json.Decoder(wire.Change[kind.wire]).decode  # type: ignore[name-defined]

    @property
    def synced(self) -> bool:
        """Whether all objects have been here at least once."""
        return self._complete.is_set()

    async def ready(self) -> None:
        await self._complete.wait()

    def version(self, key: str) -> str:
        """The resourceVersion of an object that is here."""
        return str(self._lives[key].version)

    def put(self, written: bytes | W) -> None:
        """The server's answer to a write of ours: known at once, unless something newer is known already."""
        key, life, kept = self._read(self._decode_object(written) if isinstance(written, bytes) else written)
        if life.version > self._version and self._store(key, life, kept):
            self._unconfirmed[key] = life.version

    async def run(self) -> NoReturn:
        """Keep the copy, for ever; to be cancelled."""
        failures = 0
        while True:
            before = self.last_heard
            failure = await self._attempt()
            heard = self.last_heard > before
            if isinstance(failure, (Gone, Refused, _Garbled)) or (isinstance(failure, Silent) and not heard):
                self._must_list = True
            failures = 0 if heard and not self._must_list else failures + 1
            self._report(failure if failures else None)
            await asyncio.sleep(_pause(failures, failure))

    async def _attempt(self) -> KubeError | None:
        """List if need be, then follow to the watch's end. Returns what ended it too early."""
        try:
            if not self._must_list:
                await self._watch({"resourceVersion": str(self._version)})
            elif self._server_streams_lists:
                await self._stream_list()
            else:
                await self._list()
        except KubeError as why:
            return why
        return None

    def _report(self, failure: KubeError | None) -> None:
        """Once for each new kind of trouble. That a watch ends is none."""
        complaint = str(failure) if failure and not isinstance(failure, Gone) else ""
        if complaint and complaint != self._complaint:
            self._complain(complaint)
        self._complaint = complaint

    async def _stream_list(self) -> None:
        try:
            await self._watch(_STREAMED)
        except Refused as why:
            if why.status not in _UNKNOWN_PARAMETERS:
                raise
            await self._list()
            self._server_streams_lists = False

    async def _list(self) -> None:
        self._listed = set()
        more: dict[str, str] = {}
        accept = self._kind.accept("PartialObjectMetadataList")
        while True:
            params = {**self._kind.params, **more, "limit": _PAGE}
            answer = await self._kube.get(self._kind.path, accept=accept, max_bytes=MAX_PAGE_BYTES, **params)  # type: ignore[arg-type]
            page = self._readable(wire.decode_page, answer)
            self.last_heard = time.monotonic()
            for item in page.items:
                self._hear_object(item)
            if not page.metadata.continue_:
                break
            more = {"continue": page.metadata.continue_}
        self._end_list(self._number(page.metadata.resource_version))

    async def _watch(self, start: Mapping[str, str]) -> None:
        """Until the server ends it."""
        self._listed = set() if start is _STREAMED else None
        seconds = str(random.randint(*_WATCH_SECONDS))  # noqa: S311  so that not all watches end at once
        params = {**self._kind.params, **start, "watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": seconds}
        accept = self._kind.accept("PartialObjectMetadata")
        watch = self._kube.stream(self._kind.path, silence=self._silence, nap=self._rest, accept=accept, **params)
        async with watch as lines:
            self.watches += 1
            async for line in lines:
                self._hear(line)

    def _rest(self) -> Awaitable[None] | None:
        return self._nap() if self._nap and self._listed is None else None

    def _hear(self, line: bytes) -> None:
        self.last_heard = time.monotonic()
        if line.startswith(_CHANGES):
            self._hear_change(line)
        elif line:
            event = self._readable(wire.decode_event, line)
            if event.type == "BOOKMARK":
                self._hear_bookmark(self._readable(wire.decode_bookmark, event.object).metadata)
            elif event.type == "ERROR":
                status = self._readable(wire.decode_status, event.object)
                raise errors.of_status(
                    status.code or HTTPStatus.INTERNAL_SERVER_ERROR, status, f"watch {self._kind.path}"
                )
            else:
                self._hear_change(line)

    def _hear_change(self, line: bytes) -> None:
        try:
            change = self._decode_change(line)
            key, life, kept = self._read(change.object)
        except _UNREADABLE as why:
            self._leave_out(why)
            return
        deleted = change.type == "DELETED"
        if deleted:
            self._drop(key, life.version)
        else:
            self._confirm(key, life, kept)
        if self._listed is None:
            self._advance(life.version)
        elif deleted:
            self._listed.discard(key)
        else:
            self._listed.add(key)

    def _hear_object(self, item: Raw) -> None:
        assert self._listed is not None
        try:
            key, life, kept = self._read(self._decode_object(item))
        except _UNREADABLE as why:
            self._leave_out(why)
            return
        self._confirm(key, life, kept)
        self._listed.add(key)

    def _hear_bookmark(self, mark: wire.BookmarkMetadata) -> None:
        if self._listed is None:
            self._advance(self._number(mark.resource_version))
        elif _LIST_ENDS in mark.annotations:
            self._end_list(self._number(mark.resource_version))

    def _end_list(self, version: int) -> None:
        if version < self._version:
            # A list is never older than what was seen before it, unless the cluster was restored from a backup.
            newest, self._version = self._version, 0
            self._unconfirmed.clear()
            self._lives = {key: _Life(life.uid, 0) for key, life in self._lives.items()}
            raise _Garbled(f"{self._kind.path}: the server went back from resourceVersion {newest} to {version}")
        assert self._listed is not None
        for key in self.objects.keys() - self._listed:
            self._drop(key, version)
        self._listed, self._must_list = None, False
        self._advance(version)
        self.lists += 1
        self._complete.set()

    def _advance(self, version: int) -> None:
        """All events up to this version have been heard. What was put here and not confirmed by then does not match."""
        self._version = version
        if self._unconfirmed:
            for key in [key for key, put in self._unconfirmed.items() if put <= version]:
                self._drop(key, self._unconfirmed.pop(key))

    def _read(self, found: W) -> tuple[str, _Life, T]:
        life = _Life(found.metadata.uid, int(found.metadata.resource_version))
        return self._kind.key(found), life, self._kind.keep(found)

    def _leave_out(self, why: Exception) -> None:
        """A list goes on without an object that cannot be read. In a watch, it takes a list to know where we are."""
        complaint = f"{self._kind.path}: an object is left out because it cannot be read: {why}"
        if self._listed is None:
            raise _Garbled(complaint)
        self._complain(complaint)

    def _number(self, version: str) -> int:
        if not version.isdecimal():
            raise _Garbled(f"{self._kind.path}: {version!r} is no resourceVersion")
        return int(version)

    def _readable(self, decode: Callable[[bytes], S], data: bytes) -> S:
        try:
            return decode(data)
        except _UNREADABLE as why:
            raise _Garbled(f"{self._kind.path}: the server's answer cannot be read: {why}") from why

    def _confirm(self, key: str, life: _Life, kept: T) -> None:
        if self._unconfirmed and self._unconfirmed.get(key, life.version + 1) <= life.version:
            del self._unconfirmed[key]
        self._store(key, life, kept)

    def _store(self, key: str, life: _Life, kept: T) -> bool:
        """Whether it was news."""
        known, before = self._lives.get(key), self.objects.get(key)
        if known is not None and known.version >= life.version:
            return False
        self._lives[key], self.objects[key] = life, kept
        if known is None or known.uid != life.uid or before != kept:
            self._changed(key, before, kept)
        return True

    def _drop(self, key: str, version: int) -> None:
        known = self._lives.get(key)
        if known is not None and known.version <= version:
            del self._lives[key]
            self._changed(key, self.objects.pop(key), None)


def _pause(failures: int, failure: KubeError | None) -> float:
    if not failures:
        return 0.0
    longest = min(_FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), _LAST_PAUSE_SECONDS)
    pause = random.uniform(longest / 2, longest)  # noqa: S311  spreads load
    return max(pause, failure.retry_after) if isinstance(failure, Throttled) else pause
