"""Writes require the Lease: without it nothing is written."""

import asyncio
import socket
import ssl
from typing import Any

import pytest

from kube_node_ready.kube import client, errors
from kube_node_ready.kube.access import Access, TokenSource
from kube_node_ready.kube.client import Call, KubeClient
from kube_node_ready.kube.errors import AccessError, KubeError, Unreachable
from kube_node_ready.kube.leader_election import LeaseLost
from kube_node_ready.kube.rate_limit import TokenBucket
from tests.support.http_servers import HELLO, on_both_loops, saying, speaking


def access_to(port: int) -> Access:
    return Access(f"http://127.0.0.1:{port}", "default", ssl.create_default_context())


@on_both_loops
async def test_a_queued_write_is_not_sent_after_the_lease_is_lost() -> None:
    held = True

    def before_write() -> None:
        if not held:
            raise LeaseLost("the lease is no longer held")

    async with (
        speaking(saying(HELLO)) as (server, _),
        KubeClient(access_to(server.port), limit=TokenBucket(qps=1, burst=1), before_write=before_write) as kube,
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
async def test_a_failed_renewal_leaks_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(_token_source: TokenSource, _rejected: str | None) -> bool:
        raise AccessError("the plugin ended with 1")

    monkeypatch.setattr(TokenSource, "refresh", fails)
    refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}"
    async with speaking(saying(refusal)) as (server, _), KubeClient(access_to(server.port)) as kube:
        for _ in range(3):
            with pytest.raises(AccessError):
                await kube.get("/api")
        assert server.connections == 1


SPLIT = "x HTTP/1.1\r\nHost: h\r\n\r\nDELETE /api/v1/nodes/victim HTTP/1.1\r\nX-Rest: "


@on_both_loops
async def test_a_name_with_a_line_break_is_not_a_second_request() -> None:
    calls: list[Call] = []
    async with speaking(saying(HELLO)) as (server, _), KubeClient(access_to(server.port), on_call=calls.append) as kube:
        with pytest.raises(KubeError) as error:
            await kube.get(f"/apis/karpenter.sh/v1/nodeclaims/{SPLIT}")
        assert not server.heads
        assert isinstance(error.value, errors.InvalidRequest)
        assert str(error.value).isprintable()
        assert not calls, "the name must not become the label of a metric"
        assert await kube.get("/api") == b"hello"


@on_both_loops
async def test_a_query_that_is_not_text_is_not_sent() -> None:
    """Bytes of the command line that are not UTF-8 arrive as surrogates."""
    async with speaking(saying(HELLO)) as (server, _), KubeClient(access_to(server.port)) as kube:
        with pytest.raises(KubeError, match=r"query: .* is invalid"):
            await kube.get("/api", fieldSelector="metadata.name=\udcff")
        assert not server.heads


def test_a_server_that_cannot_be_addressed_is_an_access_error() -> None:
    with pytest.raises(AccessError, match="cannot use this API server: host: ") as error:
        KubeClient(Access("https://user:secret@host", "default", ssl.create_default_context()))
    assert "secret" not in str(error.value)


def of_status(status: str, size: int) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n".encode() + b"x" * size


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (of_status("403 Forbidden", (1 << 20) + 1), "the body has more than 1048576 bytes"),
        (of_status("401 Unauthorized", (1 << 20) + 1), "the body has more than 1048576 bytes"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 67108865\r\n\r\n", "the body has more than 67108864 bytes"),
    ],
    ids=["error", "refused token", "object"],
)
@on_both_loops
async def test_an_answer_beyond_its_limit_is_unreachable(answer: bytes, complaint: str) -> None:
    async with speaking(saying(answer)) as (server, _), KubeClient(access_to(server.port)) as kube:
        with pytest.raises(Unreachable, match=complaint):
            await kube.get("/api", timeout_seconds=10)


@pytest.mark.parametrize("piece", [b"x" * (1 << 20), b"xx"], ids=["large pieces", "tiny pieces"])
@on_both_loops
async def test_an_event_beyond_its_limit_ends_the_watch(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kube_node_ready.kube.client._MAX_LINE_BYTES", 2 << 20, raising=False)
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    event = b"6\r\nwhole\n\r\n"
    rest = (b"%x\r\n" % len(piece) + piece + b"\r\n") * (2 if len(piece) > 2 else 40_000)
    lines: list[Any] = []
    async with speaking(saying(chunked, event, rest)) as (server, _), KubeClient(access_to(server.port)) as kube:
        with pytest.raises(Unreachable, match="an event has more than 2097152 bytes"):
            async with asyncio.timeout(20), kube.stream("/api", stall_timeout=5) as found:
                async for line in found:
                    lines.append(line)  # noqa: PERF401  what came before the error counts
        assert lines == [b"whole"]


@on_both_loops
async def test_a_failed_connection_is_described_in_words() -> None:
    async with KubeClient(access_to(1)) as kube:
        with pytest.raises(Unreachable) as caught:
            await kube.get("/api")
    assert caught.value.message == "connection refused"


def test_a_name_that_does_not_resolve_is_described_in_words() -> None:
    error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    with pytest.raises(Unreachable) as caught, client._as_unreachable(client._Request("get", "GET", "/api", {})):
        raise error
    assert caught.value.message == "Name or service not known"
