"""ConfigMaps in an informer: a running informer, a callback that records its events, and a client that changes them."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from msgspec import Struct

from kube_node_ready.kube.access import Access
from kube_node_ready.kube.client import KubeClient, PatchKind
from kube_node_ready.kube.errors import AlreadyExists, KubeError, NotFound
from kube_node_ready.kube.informer import Informer, Resource
from tests.support.faulty_proxy import Proxy

PATIENCE = 120.0
OURS = {"labelSelector": "ours=yes"}


class Meta(Struct, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str


class Map(Struct, frozen=True):
    """A ConfigMap; what is kept of it is its number."""

    metadata: Meta
    data: dict[str, str] = {}


def number(wire: Map) -> int:
    return int(wire.data.get("n", "0"))


def name(wire: Map) -> str:
    return wire.metadata.name


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def a_map(called: str, n: object, ours: str = "yes") -> bytes:
    return json.dumps({"metadata": {"name": called, "labels": {"ours": ours}}, "data": {"n": str(n)}}).encode()


class Listener:
    """The state that results from the change events alone."""

    def __init__(self) -> None:
        self.objects: dict[str, int] = {}
        self.changes: list[tuple[str, int | None, int | None]] = []
        self.watch_errors: list[str] = []

    def changed(self, key: str, before: int | None, after: int | None) -> None:
        assert self.objects.get(key) == before
        self.changes.append((key, before, after))
        if after is None:
            del self.objects[key]
        else:
            self.objects[key] = after


class Copy:
    """A cache of the namespace's ConfigMaps of ours, its listener, and a good connection to write them by."""

    def __init__(
        self,
        kube: KubeClient,
        namespace: str,
        *,
        by: KubeClient | None = None,
        stall_timeout: float = 150,
        metadata_only: bool = False,
    ) -> None:
        self.kube = by or kube
        self.path = maps(namespace)
        self.heard = Listener()
        kind = Resource(self.path, Map, number, name, OURS, metadata_only)
        self.cache = Informer(
            kube,
            kind,
            self.heard.changed,
            lambda error: self.heard.watch_errors.append(str(error)),
            stall_timeout=stall_timeout,
        )

    async def write(self, called: str, n: object, ours: str = "yes") -> bytes:
        with suppress(AlreadyExists):
            return await self.kube.create(self.path, a_map(called, n, ours))
        return await self.kube.patch(f"{self.path}/{called}", a_map(called, n, ours), PatchKind.MERGE)

    async def delete(self, called: str) -> None:
        await self.kube.delete(f"{self.path}/{called}")

    async def has(self, expected: dict[str, int]) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.cache.objects != expected:  # noqa: ASYNC110  the cache has no event for a test's wish
                await asyncio.sleep(0.02)
        assert self.heard.objects == expected

    async def equals_the_server(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.cache.objects != (expected := await self._on_the_server()):  # noqa: ASYNC110  the same
                await asyncio.sleep(0.2)
        assert self.heard.objects == expected

    async def _on_the_server(self) -> dict[str, int]:
        try:
            items = json.loads(await self.kube.get(self.path, **OURS))["items"]  # type: ignore[arg-type]
        except KubeError:
            return {"the server does not answer": 0}
        return {item["metadata"]["name"]: int(item["data"]["n"]) for item in items}


@asynccontextmanager
async def running(copy: Copy) -> AsyncIterator[Copy]:
    task = asyncio.create_task(copy.cache.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await copy.cache.wait_for_sync()
        yield copy
        assert not task.done(), "the cache stopped"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def play(how: Access, namespace: str, scenario: Callable[[Copy], Awaitable[None]]) -> None:
    async def main() -> None:
        async with KubeClient(how) as kube, running(Copy(kube, namespace)) as copy:
            await scenario(copy)

    asyncio.run(main())


async def write_at_random(copy: Copy, seed: int, writes: int) -> None:
    """Create, change, delete, and move in and out of the selector. Every other response is put immediately."""
    chance = random.Random(seed)  # noqa: S311  a test that can be repeated
    for step in range(writes):
        called = f"m{seed % 3}-{chance.randrange(20)}"
        with suppress(NotFound):  # another client deleted it between our create and our patch
            if chance.random() < 0.25:
                await copy.delete(called)
                continue
            written = await copy.write(called, step, chance.choice(["yes", "yes", "yes", "no"]))
            if step % 2:
                copy.cache.observe_write(written)


def through(
    admin: Access, namespace: str, scenario: Callable[[Proxy, Copy], Awaitable[None]], stall_timeout: float = 150
) -> None:
    """Play it with a bad connection between the cache and the server, and one object there from the start."""

    async def main() -> None:
        async with KubeClient(admin) as direct, Proxy(admin) as proxy, KubeClient(proxy.access) as kube:
            copy = Copy(kube, namespace, by=direct, stall_timeout=stall_timeout)
            await copy.write("old", 1)
            await scenario(proxy, copy)

    asyncio.run(main())
