"""The cache against a real API server: it equals what the server has, whatever happens on the way."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from msgspec import Struct

import lab
from kube_node_ready.kube.access import Access, access
from kube_node_ready.kube.cache import Cache, Kind
from kube_node_ready.kube.client import Kube, PatchKind
from kube_node_ready.kube.errors import AlreadyExists, KubeError, NotFound
from tests.proxy import Cuts, Fault, Proxy, Says, Stalls, in_turn

Fresh = Callable[..., lab.Plane]
PATIENCE = 60.0
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
    """What somebody knows who only hears of changes."""

    def __init__(self) -> None:
        self.objects: dict[str, int] = {}
        self.changes: list[tuple[str, int | None, int | None]] = []
        self.complaints: list[str] = []

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
        self, kube: Kube, namespace: str, *, by: Kube | None = None, silence: float = 150, metadata_only: bool = False
    ) -> None:
        self.kube = by or kube
        self.path = maps(namespace)
        self.heard = Listener()
        kind = Kind(self.path, Map, number, name, OURS, metadata_only)
        self.cache = Cache(kube, kind, self.heard.changed, self.heard.complaints.append, silence=silence)

    async def write(self, called: str, n: object, ours: str = "yes") -> bytes:
        with suppress(AlreadyExists):
            return await self.kube.create(self.path, a_map(called, n, ours))
        return await self.kube.patch(f"{self.path}/{called}", a_map(called, n, ours), PatchKind.MERGE)

    async def delete(self, called: str) -> None:
        await self.kube.delete(f"{self.path}/{called}")

    async def has(self, expected: dict[str, int]) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.cache.objects != expected:
                await asyncio.sleep(0.02)
        assert self.heard.objects == expected

    async def equals_the_server(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.cache.objects != (expected := await self._on_the_server()):
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
            await copy.cache.ready()
        yield copy
        assert not task.done(), "the cache stopped"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def play(how: Access, namespace: str, scenario: Callable[[Copy], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Kube(how) as kube, running(Copy(kube, namespace)) as copy:
            await scenario(copy)

    asyncio.run(main())


async def write_at_random(copy: Copy, seed: int, writes: int) -> None:
    """Create, change, delete, and move in and out of the selector. Every other answer is put at once."""
    chance = random.Random(seed)  # noqa: S311  a test that can be repeated
    for step in range(writes):
        called = f"m{seed % 3}-{chance.randrange(20)}"
        with suppress(NotFound):  # somebody else deleted it between our create and our patch
            if chance.random() < 0.25:
                await copy.delete(called)
                continue
            written = await copy.write(called, step, chance.choice(["yes", "yes", "yes", "no"]))
            if step % 2:
                copy.cache.put(written)


@pytest.fixture(scope="module")
def admin(plane: lab.Plane) -> Access:
    return access(plane.kubeconfig())


def test_the_cache_equals_the_server_after_hundreds_of_random_writes(admin: Access, namespace: str) -> None:
    async def scenario(copy: Copy) -> None:
        await asyncio.gather(*(write_at_random(copy, seed, 100) for seed in range(6)))
        await copy.equals_the_server()
        assert copy.cache.lists == 1
        assert len(copy.heard.changes) > 100
        assert not copy.heard.complaints

    play(admin, namespace, scenario)


def test_a_write_is_known_at_once_and_its_event_changes_nothing(admin: Access, namespace: str) -> None:
    async def scenario(copy: Copy) -> None:
        first = await copy.write("a", 1)
        second = await copy.write("a", 2)
        copy.cache.put(second)
        assert copy.cache.objects == {"a": 2}
        copy.cache.put(first)
        assert copy.cache.objects == {"a": 2}
        await copy.write("later", 0)
        await copy.has({"a": 2, "later": 0})
        assert [change for change in copy.heard.changes if change[0] == "a"] in (
            [("a", None, 2)],
            [("a", None, 1), ("a", 1, 2)],  # the first event may outrun the second answer
        )

    play(admin, namespace, scenario)


def test_what_was_deleted_is_not_put_back(admin: Access, namespace: str) -> None:
    async def scenario(copy: Copy) -> None:
        written = await copy.write("a", 1)
        await copy.has({"a": 1})
        await copy.delete("a")
        await copy.has({})
        copy.cache.put(written)
        assert not copy.cache.objects

    play(admin, namespace, scenario)


def test_what_leaves_the_selector_leaves_the_cache_even_if_it_was_put(admin: Access, namespace: str) -> None:
    async def scenario(copy: Copy) -> None:
        await copy.write("a", 1)
        await copy.has({"a": 1})
        copy.cache.put(await copy.write("a", 2, ours="no"))
        await copy.has({})

    play(admin, namespace, scenario)


def test_events_that_change_nothing_we_keep_are_not_told(admin: Access, namespace: str) -> None:
    async def scenario(copy: Copy) -> None:
        await copy.write("a", 1)
        await copy.has({"a": 1})
        note = json.dumps({"metadata": {"annotations": {"x": "y"}}}).encode()
        await copy.kube.patch(f"{copy.path}/a", note, PatchKind.MERGE)
        await copy.write("b", 1)
        await copy.has({"a": 1, "b": 1})
        assert copy.heard.changes == [("a", None, 1), ("b", None, 1)]

    play(admin, namespace, scenario)


def test_only_metadata_comes_when_only_metadata_is_wanted(admin: Access, namespace: str) -> None:
    async def main() -> None:
        async with Kube(admin) as kube:
            copy = Copy(kube, namespace, metadata_only=True)
            await copy.write("a", 7)
            async with running(copy):
                await copy.has({"a": 0})
                await copy.write("b", 7)
                await copy.has({"a": 0, "b": 0})

    asyncio.run(main())


def test_an_object_that_cannot_be_read_costs_nobody_else_anything(admin: Access, namespace: str) -> None:
    """It is left out, with a complaint, and comes back when it can be read again."""

    async def scenario(copy: Copy) -> None:
        await copy.write("good", 1)
        await copy.write("bad", 1)
        await copy.has({"good": 1, "bad": 1})
        await copy.write("bad", "not a number")
        await copy.has({"good": 1})
        assert any("'not a number'" in complaint for complaint in copy.heard.complaints)
        await copy.write("good", 2)
        await copy.write("bad", 2)
        await copy.has({"good": 2, "bad": 2})

    play(admin, namespace, scenario)


def through(
    admin: Access, namespace: str, scenario: Callable[[Proxy, Copy], Awaitable[None]], silence: float = 150
) -> None:
    """Play it with a bad connection between the cache and the server, and one object there from the start."""

    async def main() -> None:
        async with Kube(admin) as direct, Proxy(admin) as proxy, Kube(proxy.access) as kube:
            copy = Copy(kube, namespace, by=direct, silence=silence)
            await copy.write("old", 1)
            await scenario(proxy, copy)

    asyncio.run(main())


def watches(proxy: Proxy) -> list[str]:
    return [asked for asked in proxy.asked if "watch=1" in asked]


@pytest.mark.parametrize("fault", [Cuts(after=5), Cuts(after=300), Stalls(after=300)], ids=str)
def test_a_watch_that_breaks_in_the_middle_of_a_line_goes_on_where_it_was(
    admin: Access, namespace: str, fault: Fault
) -> None:
    async def scenario(proxy: Proxy, copy: Copy) -> None:
        async with running(copy):
            proxy.plan = in_turn(fault, fault)
            proxy.cut()
            for n in range(5):
                await copy.write("a", n)
            await copy.has({"old": 1, "a": 4})
            assert len(watches(proxy)) == 4
            assert copy.cache.lists == 1

    through(admin, namespace, scenario, silence=1)


@pytest.mark.parametrize(
    "fault",
    [Says(429, b"later", {"Retry-After": "1"}), Says(500), Says(200, b"<html>not Kubernetes</html>\n"), Cuts()],
    ids=lambda fault: str(fault)[:20],
)
def test_a_server_that_does_not_answer_is_asked_again(admin: Access, namespace: str, fault: Fault) -> None:
    async def scenario(proxy: Proxy, copy: Copy) -> None:
        proxy.plan = in_turn(fault, fault)
        async with running(copy):
            await copy.has({"old": 1})
            assert len(watches(proxy)) == 3
            assert len(copy.heard.complaints) == 1
            proxy.plan = in_turn(fault, fault)
            proxy.cut()
            await copy.write("new", 1)
            await copy.has({"old": 1, "new": 1})

    through(admin, namespace, scenario)


GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}


@pytest.mark.parametrize(
    "gone",
    [
        Says(410, json.dumps(GONE).encode()),
        Says(200, json.dumps({"type": "ERROR", "object": GONE}, separators=(",", ":")).encode() + b"\n"),
    ],
    ids=["as an answer", "as an event"],
)
def test_a_forgotten_version_costs_one_list_which_tells_all_that_was_missed(
    admin: Access, namespace: str, gone: Fault
) -> None:
    async def scenario(proxy: Proxy, copy: Copy) -> None:
        for called in ("changes", "vanishes", "is made anew"):
            await copy.write(called.replace(" ", "-"), 1)
        async with running(copy):
            copy.heard.changes.clear()
            proxy.plan = in_turn(Says(500), Says(500), gone)
            proxy.cut()
            await copy.write("changes", 2)
            await copy.delete("vanishes")
            await copy.delete("is-made-anew")
            await copy.write("is-made-anew", 1)
            await copy.has({"old": 1, "changes": 2, "is-made-anew": 1})
            assert sorted(copy.heard.changes, key=str) == [
                ("changes", 1, 2),
                ("is-made-anew", 1, 1),
                ("vanishes", 1, None),
            ]
            assert copy.cache.lists == 2

    through(admin, namespace, scenario)


def test_a_server_that_ends_every_watch_at_once_is_not_run_down(admin: Access, namespace: str) -> None:
    async def scenario(proxy: Proxy, copy: Copy) -> None:
        async with running(copy):
            proxy.plan = in_turn(*[Says(200)] * 1000)
            proxy.asked.clear()
            proxy.cut()
            await asyncio.sleep(3)
            assert 2 < len(proxy.asked) < 10
            assert copy.cache.lists == 1

    through(admin, namespace, scenario)


def test_a_watch_on_which_nothing_is_ever_heard_ends_in_a_list(admin: Access, namespace: str) -> None:
    async def scenario(proxy: Proxy, copy: Copy) -> None:
        async with running(copy):
            proxy.plan = in_turn(Stalls(after=0))
            proxy.cut()
            await copy.write("new", 1)
            await copy.has({"old": 1, "new": 1})
            assert copy.cache.lists == 2

    through(admin, namespace, scenario, silence=1)


def test_a_cluster_that_was_restored_from_a_backup_is_believed(admin: Access, namespace: str) -> None:
    """Its resourceVersions begin again below those we know."""

    async def scenario(proxy: Proxy, copy: Copy) -> None:
        async with running(copy):
            lives = copy.cache._lives
            copy.cache._lives = {key: type(life)(life.uid, life.version + 10**9) for key, life in lives.items()}
            copy.cache._version += 10**9
            proxy.plan = in_turn(Says(410))
            proxy.cut()
            await copy.write("old", 2)
            await copy.has({"old": 2})

    through(admin, namespace, scenario)


def test_a_list_that_ends_too_early_is_begun_again(admin: Access, namespace: str) -> None:
    async def scenario(proxy: Proxy, copy: Copy) -> None:
        for n in range(20):
            await copy.write(f"m{n}", n)
        proxy.plan = in_turn(Cuts(after=3000), Cuts(after=3000))
        async with running(copy):
            await copy.has({"old": 1} | {f"m{n}": n for n in range(20)})
            assert copy.cache.lists == 1
            assert len(watches(proxy)) == 3

    through(admin, namespace, scenario)


def test_a_server_that_does_not_stream_lists_is_asked_for_pages(fresh_plane: Fresh) -> None:
    plane = fresh_plane(apiserver_flags=["--feature-gates=WatchList=false"])

    async def scenario(proxy: Proxy, copy: Copy) -> None:
        await asyncio.gather(*(copy.write(f"m{n}", n) for n in range(1100)))
        async with running(copy):
            expected = {"old": 1} | {f"m{n}": n for n in range(1100)}
            await copy.has(expected)
            assert [asked for asked in proxy.asked if "sendInitialEvents" in asked] == proxy.asked[:1]
            assert sum("limit=500" in asked for asked in proxy.asked) == 3
            proxy.plan = in_turn(Says(410))
            proxy.cut()
            await copy.write("new", 1)
            await copy.has(expected | {"new": 1})
            assert sum("sendInitialEvents" in asked for asked in proxy.asked) == 1
            assert copy.cache.lists == 2

    through(access(plane.kubeconfig()), "default", scenario)


def test_the_cache_outlives_the_server_and_asks_for_forgotten_versions_once(fresh_plane: Fresh) -> None:
    plane = fresh_plane()

    async def scenario(copy: Copy) -> None:
        await write_at_random(copy, 1, 100)
        await copy.equals_the_server()
        plane.apiserver.stop()
        await asyncio.sleep(4)
        plane.apiserver.start()
        await asyncio.to_thread(plane.wait_for_api)
        await write_at_random(copy, 2, 100)
        await copy.equals_the_server()
        assert copy.cache.lists <= 2
        late = Copy(copy.kube, "default")
        late.cache._must_list, late.cache._version = False, 1  # which no server that was restarted remembers
        async with running(late):
            await late.equals_the_server()
            assert (late.cache.lists, late.cache.watches) == (1, 2)

    play(access(plane.kubeconfig()), "default", scenario)
