"""Lists of an API server that have no last page."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from kube_node_ready.kube import informer
from kube_node_ready.kube.client import KubeClient
from kube_node_ready.kube.informer import Informer, Resource
from tests.support import endless_lists
from tests.support.cached_maps import Map, name, number
from tests.support.endless_lists import PATH, Tokens, lists
from tests.support.http_servers import Server, on_both_loops, speaking
from tests.unit.kube.test_client import access_to

ERROR = f"{PATH}: the list does not end"


@contextlib.asynccontextmanager
async def listing(tokens: Tokens) -> AsyncIterator[tuple[Server, Informer[Map, int], asyncio.Queue[str]]]:
    """An informer that lists once, and its errors."""
    errors: asyncio.Queue[str] = asyncio.Queue()
    async with speaking(lists(tokens)) as (server, _), KubeClient(access_to(server.port)) as kube:
        cache = Informer(
            kube, Resource(PATH, Map, number, name), lambda *_: None, lambda error: errors.put_nowait(str(error))
        )
        running = asyncio.create_task(cache.run())
        try:
            yield server, cache, errors
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


def pages(server: Server) -> int:
    return len([head for head in server.heads if "watch=1" not in head])


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [(endless_lists.same, 2), (endless_lists.alternating, 3), (endless_lists.new, 1000)],
    ids=["same", "alternating", "new"],
)
@on_both_loops
async def test_a_list_without_a_last_page_ends(monkeypatch: pytest.MonkeyPatch, tokens: Tokens, expected: int) -> None:
    monkeypatch.setattr(informer, "_backoff_seconds", lambda *_: 3600.0)
    async with listing(tokens) as (server, cache, errors):
        assert ERROR in await asyncio.wait_for(errors.get(), 10)
        assert pages(server) == expected
        assert not cache.synced


@pytest.mark.parametrize("count", [1, 200, 1000])  # 200 pages have 100,000 nodes
@on_both_loops
async def test_a_long_list_is_complete(count: int) -> None:
    async with listing(endless_lists.finite(count)) as (_, cache, errors):
        await asyncio.wait_for(cache.wait_for_sync(), 20)
        assert len(cache.objects) == count
        assert errors.empty()
