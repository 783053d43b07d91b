"""The cache behind a bad connection to a real API server: cut, silent, refused, forgotten."""

import asyncio
import json
from collections.abc import Callable

import pytest

import lab
from kube_node_ready.kube.access import Access, access
from tests.support.cached_maps import Copy, running, through
from tests.support.faulty_proxy import Cuts, Fault, Proxy, Says, Stalls, in_turn


@pytest.fixture(scope="module")
def admin(plane: lab.Plane) -> Access:
    return access(plane.kubeconfig())


def watches(proxy: Proxy) -> list[str]:
    return [asked for asked in proxy.asked if "watch=1" in asked]


@pytest.mark.parametrize("fault", [Cuts(after=5), Cuts(after=300), Stalls(after=1000)], ids=str)
def test_a_watch_that_breaks_within_a_line_resumes(admin: Access, namespace: str, fault: Fault) -> None:
    async def scenario(proxy: Proxy, copy: Copy) -> None:
        async with running(copy):
            proxy.plan = in_turn(fault, fault)
            proxy.cut()
            for n in range(5):
                await copy.write("a", n)
            await copy.has({"old": 1, "a": 4})
            assert len(watches(proxy)) == 4
            assert copy.cache.lists == 1

    through(admin, namespace, scenario, stall_timeout=3)


@pytest.mark.parametrize(
    "fault",
    [Says(429, b"later", {"Retry-After": "1"}), Says(500), Says(200, b"<html>not Kubernetes</html>\n"), Cuts()],
    ids=lambda fault: str(fault)[:20],
)
def test_requests_to_an_unresponsive_server_are_retried(admin: Access, namespace: str, fault: Fault) -> None:
    async def scenario(proxy: Proxy, copy: Copy) -> None:
        proxy.plan = in_turn(fault, fault)
        async with running(copy):
            await copy.has({"old": 1})
            assert len(watches(proxy)) == 3
            assert len(copy.heard.watch_errors) == 1
            proxy.plan = in_turn(fault, fault)
            proxy.cut()
            await copy.write("new", 1)
            await copy.has({"old": 1, "new": 1})

    through(admin, namespace, scenario)


def test_late_events_do_not_undo_a_put(admin: Access, namespace: str) -> None:
    async def scenario(proxy: Proxy, copy: Copy) -> None:
        async with running(copy):
            copy.heard.changes.clear()
            proxy.plan = in_turn(*[Says(500)] * 5)
            proxy.cut()
            first = await copy.write("a", 1)
            copy.cache.observe_write(await copy.write("a", 2))
            copy.cache.observe_write(first)
            await copy.write("last", 0)
            await copy.has({"old": 1, "a": 2, "last": 0})
            assert copy.heard.changes == [("a", None, 2), ("last", None, 0)]

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
def test_an_expired_resource_version_causes_one_list_with_all_missed_events(
    admin: Access, namespace: str, gone: Fault
) -> None:
    async def scenario(proxy: Proxy, copy: Copy) -> None:
        for called in ("changes", "vanishes", "is made anew"):
            await copy.write(called.replace(" ", "-"), 1)
        async with running(copy):
            copy.heard.changes.clear()
            proxy.plan = in_turn(*[Says(500)] * 5, gone)
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


def test_watches_that_end_immediately_are_retried_with_backoff(admin: Access, namespace: str) -> None:
    async def scenario(proxy: Proxy, copy: Copy) -> None:
        async with running(copy):
            proxy.plan = in_turn(*[Says(200)] * 1000)
            proxy.asked.clear()
            proxy.cut()
            await asyncio.sleep(3)
            assert 2 < len(proxy.asked) < 10
            # It might be unable to write an object into a watch, so each list is asked for in pages.
            assert all("limit=" in each for each in proxy.asked[1:] if "watch=" not in each)
            assert copy.cache.lists < 5

    through(admin, namespace, scenario)


def test_a_silent_watch_is_replaced_by_a_list(admin: Access, namespace: str) -> None:
    async def scenario(proxy: Proxy, copy: Copy) -> None:
        async with running(copy):
            proxy.plan = in_turn(Stalls(after=0))
            proxy.cut()
            await copy.write("new", 1)
            await copy.has({"old": 1, "new": 1})
            assert copy.cache.lists == 2

    through(admin, namespace, scenario, stall_timeout=3)


def test_older_resource_versions_after_a_restore_are_accepted(admin: Access, namespace: str) -> None:
    """Its resourceVersions begin again below those we know."""

    async def scenario(proxy: Proxy, copy: Copy) -> None:
        async with running(copy):
            lives = copy.cache._revisions
            copy.cache._revisions = {key: type(life)(life.uid, life.version + 10**9) for key, life in lives.items()}
            copy.cache._version += 10**9
            proxy.plan = in_turn(Says(410))
            proxy.cut()
            await copy.write("old", 2)
            await copy.has({"old": 2})

    through(admin, namespace, scenario)


def test_a_truncated_list_is_restarted(admin: Access, namespace: str) -> None:
    async def scenario(proxy: Proxy, copy: Copy) -> None:
        for n in range(20):
            await copy.write(f"m{n}", n)
        proxy.plan = in_turn(Cuts(after=3000), Cuts(after=3000))
        async with running(copy):
            await copy.has({"old": 1} | {f"m{n}": n for n in range(20)})
            assert copy.cache.lists == 1
            assert len(watches(proxy)) == 3

    through(admin, namespace, scenario)


def test_servers_without_streaming_lists_are_paged(fresh_plane: Callable[..., lab.Plane]) -> None:
    plane = fresh_plane(apiserver_flags=["--feature-gates=WatchList=false"])

    async def scenario(proxy: Proxy, copy: Copy) -> None:
        for first in range(0, 1100, 50):  # each write is a connection of its own, and the machine is shared
            await asyncio.gather(*(copy.write(f"m{n}", n) for n in range(first, first + 50)))
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
