"""The Lease and what is written: whoever lost the one must not do the other."""

import asyncio
import ssl

import pytest

from kube_node_ready.kube.access import Access, Login
from kube_node_ready.kube.client import Kube
from kube_node_ready.kube.errors import AccessError
from kube_node_ready.kube.lease import LeaseLost
from kube_node_ready.kube.limits import Limit
from tests.http_servers import HELLO, on_both_loops, saying, speaking


def access_to(port: int) -> Access:
    return Access(f"http://127.0.0.1:{port}", "default", ssl.create_default_context())


@on_both_loops
async def test_a_write_that_waited_for_its_turn_is_not_sent_once_the_lease_is_lost() -> None:
    held = True

    def permit() -> None:
        if not held:
            raise LeaseLost("the Lease is no longer ours")

    async with (
        speaking(saying(HELLO)) as (server, _),
        Kube(access_to(server.port), limit=Limit(qps=1, burst=1), permit=permit) as kube,
    ):
        await kube.delete("/api/v1/nodes/a")
        waiting = asyncio.create_task(kube.delete("/api/v1/nodes/b"))
        await asyncio.sleep(0)
        held = False
        with pytest.raises(LeaseLost):
            await waiting
        assert await kube.get("/api/v1/nodes/a") == b"hello", "looking is free"
        assert [head.split()[:2] for head in server.heads] == [
            ["DELETE", "/api/v1/nodes/a"],
            ["GET", "/api/v1/nodes/a"],
        ]


@on_both_loops
async def test_whoever_cannot_renew_credentials_leaves_no_connection_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(_login: Login, _refused: str | None) -> bool:
        raise AccessError("the plugin ended with 1")

    monkeypatch.setattr(Login, "renew", fails)
    refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}"
    async with speaking(saying(refusal)) as (server, _), Kube(access_to(server.port)) as kube:
        for _ in range(3):
            with pytest.raises(AccessError):
                await kube.get("/api")
        assert server.connections == 1
