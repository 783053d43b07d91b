"""Connections through proxies, by another name, and with another client certificate than before."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from kube_node_ready.kube import http
from kube_node_ready.kube.http import ConnectionPool
from kubekit import proxy
from kubekit.proxy import ProxyError
from lab import pki
from tests.support.forward_proxies import forward_proxy
from tests.support.http_servers import HELLO, on_both_loops, saying, speaking


async def ask(pool: ConnectionPool) -> bytes:
    async with await pool.send("GET", "/", {}, None) as answer:
        return await answer.read()


@pytest.mark.parametrize("scheme", ["http", "socks5"])
@on_both_loops
async def test_requests_go_through_the_proxy(tmp_path: Path, scheme: str) -> None:
    async with speaking(saying(HELLO), tls=tmp_path) as (server, direct):
        with forward_proxy(scheme, ("me", "secret")) as through:
            pool = ConnectionPool(f"https://127.0.0.1:{server.port}", direct._tls, {}, proxy=proxy.parse(through.url))
            assert [await ask(pool), await ask(pool)] == [b"hello", b"hello"]
            assert through.targets == [f"127.0.0.1:{server.port}"], "the connection is used again"
            pool.close()
            await asyncio.sleep(0.1)


@on_both_loops
async def test_an_unavailable_proxy_is_named_and_not_bypassed(tmp_path: Path) -> None:
    async with speaking(saying(HELLO), tls=tmp_path) as (server, direct):
        with forward_proxy("http") as through:
            gone = proxy.parse(through.url)
        pool = ConnectionPool(f"https://127.0.0.1:{server.port}", direct._tls, {}, proxy=gone)
        with pytest.raises(ProxyError, match=f"cannot connect to proxy {gone}: "):
            await ask(pool)
        assert server.connections == 0


@on_both_loops
async def test_an_unresponsive_proxy_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        through = proxy.parse(f"socks5://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(TimeoutError):
            await ask(ConnectionPool("https://127.0.0.1:1", None, {}, proxy=through))


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_resolver_that_does_not_answer_delays_nothing(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[Coroutine[Any, Any, bytes]], bytes]
) -> None:
    """`asyncio.run` waits for the threads of its own executor."""
    resolve, answered = socket.getaddrinfo, threading.Event()

    def slowly(host: str, *further: Any, **named: Any) -> list[Any]:  # noqa: ANN401  as they come
        if host == "slow.example" and not named.get("flags"):
            answered.wait(3)
            host = "127.0.0.1"
        return resolve(host, *further, **named)

    monkeypatch.setattr(socket, "getaddrinfo", slowly)
    monkeypatch.setattr(http, "_CONNECT_SECONDS", 0.2)
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        run(ask(ConnectionPool("https://slow.example:1", None, {})))
    assert time.monotonic() - began < 2
    answered.set()


@on_both_loops
async def test_a_name_that_does_not_resolve_is_reported() -> None:
    with pytest.raises(socket.gaierror):
        await ask(ConnectionPool("https://does-not-exist.invalid:1", None, {}))


@on_both_loops
async def test_the_certificate_can_have_another_name(tmp_path: Path) -> None:
    """Other than the server's address, which is not in it."""
    authority = pki.Authority(tmp_path)
    pair = authority.sign("server", "server", hosts=["kubernetes"])
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=authority.certificate)
    theirs.load_cert_chain(pair.certificate, pair.key)

    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HELLO)
        writer.close()

    async with await asyncio.start_server(hello, "127.0.0.1", 0, ssl=theirs) as listening:
        server = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        pool = ConnectionPool(server, ours, {}, tls_name="kubernetes")
        assert await ask(pool) == b"hello"
        pool.close()
        with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
            await ask(ConnectionPool(server, ours, {}))


@on_both_loops
async def test_no_connection_with_a_former_certificate_is_used_again(tmp_path: Path) -> None:
    async with speaking(saying(HELLO), tls=tmp_path) as (server, pool):
        assert await ask(pool) == b"hello"
        former = pool._tls
        assert former
        pool.use_tls(ssl.create_default_context(cafile=tmp_path / "ca.crt"))
        assert not pool._all, "the one that idles is closed"
        async with await pool.send("GET", "/", {}, None) as answer:
            pool.use_tls(former)
            await answer.read()
        assert not pool._all, "the one that was busy is closed when it is given back"
        assert await ask(pool) == b"hello"
        assert server.connections == 3
