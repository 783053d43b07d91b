"""The cache against a real API server: it equals what the server has, and has our own writes immediately."""

import asyncio
import json
from collections.abc import Callable

import pytest

import lab
from kube_node_ready.kube.access import Access, access
from kube_node_ready.kube.client import KubeClient, PatchKind
from tests.support.cached_maps import Copy, play, running, write_at_random


@pytest.fixture(scope="module")
def admin(plane: lab.Plane) -> Access:
    return access(plane.kubeconfig())


def test_the_cache_equals_the_server_after_hundreds_of_random_writes(admin: Access, namespace: str) -> None:
    async def scenario(copy: Copy) -> None:
        await asyncio.gather(*(write_at_random(copy, seed, 100) for seed in range(6)))
        await copy.equals_the_server()
        assert copy.cache.lists == 1
        assert len(copy.heard.changes) > 100
        assert not copy.heard.watch_errors

    play(admin, namespace, scenario)


def test_a_write_is_in_the_cache_immediately(admin: Access, namespace: str) -> None:
    async def scenario(copy: Copy) -> None:
        copy.cache.observe_write(await copy.write("a", 1))
        assert copy.cache.objects == {"a": 1}

    play(admin, namespace, scenario)


def test_a_deleted_object_does_not_return_by_put(admin: Access, namespace: str) -> None:
    async def scenario(copy: Copy) -> None:
        written = await copy.write("a", 1)
        await copy.has({"a": 1})
        await copy.delete("a")
        await copy.has({})
        copy.cache.observe_write(written)
        assert not copy.cache.objects

    play(admin, namespace, scenario)


def test_objects_that_leave_the_selector_leave_the_cache(admin: Access, namespace: str) -> None:
    async def scenario(copy: Copy) -> None:
        await copy.write("a", 1)
        await copy.has({"a": 1})
        copy.cache.observe_write(await copy.write("a", 2, ours="no"))
        await copy.has({})

    play(admin, namespace, scenario)


def test_objects_outside_the_selector_do_not_stay_after_put(admin: Access, namespace: str) -> None:
    async def scenario(copy: Copy) -> None:
        copy.cache.observe_write(await copy.write("stranger", 1, ours="no"))
        await copy.write("a", 1)
        await copy.has({"a": 1})

    play(admin, namespace, scenario)


def test_events_without_changes_of_kept_fields_are_not_delivered(admin: Access, namespace: str) -> None:
    async def scenario(copy: Copy) -> None:
        await copy.write("a", 1)
        await copy.has({"a": 1})
        note = json.dumps({"metadata": {"annotations": {"x": "y"}}}).encode()
        await copy.kube.patch(f"{copy.path}/a", note, PatchKind.MERGE)
        await copy.write("b", 1)
        await copy.has({"a": 1, "b": 1})
        assert copy.heard.changes == [("a", None, 1), ("b", None, 1)]

    play(admin, namespace, scenario)


def test_metadata_watches_receive_only_metadata(admin: Access, namespace: str) -> None:
    async def main() -> None:
        async with KubeClient(admin) as kube:
            copy = Copy(kube, namespace, metadata_only=True)
            await copy.write("a", 7)
            async with running(copy):
                await copy.has({"a": 0})
                await copy.write("b", 7)
                await copy.has({"a": 0, "b": 0})

    asyncio.run(main())


def test_an_unreadable_object_does_not_affect_others(admin: Access, namespace: str) -> None:
    """It is left out, with a complaint, and comes back when it can be read again."""

    async def scenario(copy: Copy) -> None:
        await copy.write("good", 1)
        await copy.write("bad", 1)
        await copy.has({"good": 1, "bad": 1})
        await copy.write("bad", "not a number")
        await copy.has({"good": 1})
        assert any("'not a number'" in complaint for complaint in copy.heard.watch_errors)
        await copy.write("good", 2)
        await copy.write("bad", 2)
        await copy.has({"good": 2, "bad": 2})

    play(admin, namespace, scenario)


def test_the_cache_survives_a_restart_of_the_server_and_lists_once(
    fresh_plane: Callable[..., lab.Plane],
) -> None:
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
