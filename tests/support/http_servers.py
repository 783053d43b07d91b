"""HTTP servers with chosen answers, and the event loops that clients run on."""

import asyncio
import functools
import inspect
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from kube_node_ready.kube.http import ConnectionPool
from lab import pki

Speaks = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Ours, and Python's own."""

    @pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
    @functools.wraps(test)
    def on(run: Callable[[Coroutine[Any, Any, None]], None], **fixtures: object) -> None:
        run(test(**fixtures))

    asked = inspect.signature(test)
    run = inspect.Parameter("run", inspect.Parameter.KEYWORD_ONLY)
    setattr(on, "__signature__", asked.replace(parameters=[*asked.parameters.values(), run]))  # noqa: B010  mypy's sake
    wrapped: Callable[..., None] = on
    return wrapped


class Server:
    """A server that runs a given handler on every connection, and counts them."""

    def __init__(self, speaks: "Callable[[Server], Speaks]") -> None:
        self.port = 0
        self.connections = 0
        self.heads: list[str] = []
        self._speaks = speaks(self)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._speaks(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def hear(self, reader: asyncio.StreamReader) -> str:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        return head


@asynccontextmanager
async def speaking(
    speaks: Callable[[Server], Speaks], path: str = "", tls: Path | None = None
) -> AsyncIterator[tuple[Server, ConnectionPool]]:
    """A server and a client; by TLS, if there is a folder for its certificates."""
    server = Server(speaks)
    theirs, ours = contexts(tls) if tls else (None, None)
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=theirs) as listening:
        server.port = listening.sockets[0].getsockname()[1]
        pool = ConnectionPool(f"{'https' if tls else 'http'}://127.0.0.1:{server.port}{path}", ours, {"Accept": "x"})
        try:
            yield server, pool
        finally:
            pool.close()


def contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = pki.Authority(folder)
    pair = authority.sign("server", "server", hosts=["127.0.0.1"])
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(pair.certificate, pair.key)
    return theirs, ssl.create_default_context(cafile=str(authority.certificate))


def saying(*pieces: bytes) -> Callable[[Server], Speaks]:
    """The same to every request, piece by piece."""

    def speaks(server: Server) -> Speaks:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                await server.hear(reader)
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)

        return answer

    return speaks
