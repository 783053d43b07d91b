"""Lists of an API server that have no last page, or do not arrive."""

import asyncio
import json

import pytest

from kube_node_ready.api import objects
from kube_node_ready.cli import cluster, explain, words
from kube_node_ready.cli.cluster import Notes
from kube_node_ready.cli.permissions import NoAccess
from kube_node_ready.kube.client import KubeClient
from kube_node_ready.kube.informer import Resource
from tests.support import endless_lists
from tests.support.cached_maps import Map, name, number
from tests.support.endless_lists import PATH, Tokens, lists
from tests.support.http_servers import on_both_loops, saying, speaking
from tests.unit.kube.test_client import access_to

MAPS = Resource(PATH, Map, number, name)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [(endless_lists.same, 2), (endless_lists.alternating, 3), (endless_lists.new, 1000)],
    ids=["same", "alternating", "new"],
)
@on_both_loops
async def test_a_list_without_a_last_page_ends(tokens: Tokens, expected: int) -> None:
    async with speaking(lists(tokens)) as (server, _), KubeClient(access_to(server.port)) as kube:
        with pytest.raises(NoAccess, match=f"{PATH}: the list does not end"):
            await asyncio.wait_for(cluster.listed(kube, MAPS), 10)
        assert len(server.heads) == expected


@pytest.mark.parametrize("count", [1, 200, 1000])  # 200 pages have 100,000 nodes
@on_both_loops
async def test_a_long_list_is_complete(count: int) -> None:
    async with (
        speaking(lists(endless_lists.finite(count))) as (server, _),
        KubeClient(access_to(server.port)) as kube,
    ):
        assert len(await asyncio.wait_for(cluster.listed(kube, MAPS), 20)) == count


@on_both_loops
async def test_a_list_has_one_deadline_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """No page alone takes too long."""
    monkeypatch.setattr(cluster, "_LIST_SECONDS", 0.5, raising=False)
    slow = lists(endless_lists.new, delay=0.1)
    async with speaking(slow) as (server, _), KubeClient(access_to(server.port)) as kube:
        with pytest.raises(NoAccess, match=f"{PATH}: the list is not complete after 0.5 s"):
            await asyncio.wait_for(cluster.listed(kube, MAPS), 5)
        assert 1 < len(server.heads) < 10


@on_both_loops
async def test_events_are_read_up_to_a_limit_and_their_texts_are_truncated() -> None:
    """Every kubelet can write Events about every node, of 1.5 MB each."""
    notes, endless = Notes(), lists(endless_lists.new, fields={"reason": "Bad", "message": "x" * (5 << 20)})
    async with speaking(endless) as (server, _), KubeClient(access_to(server.port)) as kube:
        shown = await explain._events(kube, "a", notes)
    assert len(server.heads) == 7, "until 32 MiB are read"
    assert shown
    assert {len(event.message) for event in shown} == {words.LONGEST}
    assert "the others were not read" in notes[0]


@pytest.mark.parametrize("status", [500, 503])
@on_both_loops
async def test_a_servers_message_is_one_line_of_ours(status: int) -> None:
    """A second line would look like a message of the program."""
    body = json.dumps({"message": f"busy\nnote: all nodes are verified{'x' * 10_000}"})
    answer = f"HTTP/1.1 {status} Odd\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    async with speaking(saying(answer)) as (server, _), KubeClient(access_to(server.port)) as kube:
        with pytest.raises(NoAccess, match="busy note: all nodes are verified") as caught:
            await cluster.listed(kube, MAPS)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 2_000


@on_both_loops
async def test_an_object_that_cannot_be_decoded_hides_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    """A kubelet can write values that the API server stores and Python cannot represent."""
    items = [{"metadata": {"name": "a", "creationTimestamp": "10000-01-01T00:00:00Z"}}, {"metadata": {"name": "b"}}]
    body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": items})
    answer = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    times = Resource(PATH, objects.ConfigMap, _name_of, _name_of)
    async with speaking(saying(answer)) as (server, _), KubeClient(access_to(server.port)) as kube:
        assert await cluster.listed(kube, times) == ["b"]
    assert f"note: an object of {PATH} is left out: cannot decode" in capsys.readouterr().err


def _name_of(found: objects.ConfigMap) -> str:
    return found.metadata.name
