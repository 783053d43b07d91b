"""HTTP/1.1 against servers that answer as servers do: in pieces, too soon, never, or not in HTTP at all."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from kube_node_ready.kube.http import Broken, Pool

pytestmark = pytest.mark.asyncio
Speaks = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Server:
    """Speaks as it is told on every connection, and counts them."""

    def __init__(self, speaks: "Callable[[Server], Speaks]") -> None:
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
async def speaking(speaks: Callable[[Server], Speaks], path: str = "") -> AsyncIterator[tuple[Server, Pool]]:
    server = Server(speaks)
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        pool = Pool(f"http://127.0.0.1:{port}{path}", None, {"Accept": "x"})
        try:
            yield server, pool
        finally:
            pool.close()


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


async def ask(pool: Pool, method: str = "GET", body: bytes | None = None) -> bytes:
    async with await pool.send(method, "/a?b=c", {"X": "y"}, body) as answer:
        return await answer.read()


async def test_a_connection_serves_one_request_after_another() -> None:
    async with speaking(saying(HELLO), path="/base/") as (server, pool):
        assert [await ask(pool) for _ in range(3)] == [b"hello"] * 3
        assert server.connections == 1
        port = server.heads[0].partition("Host: 127.0.0.1:")[2].split()[0]
        common = f"HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: x\r\nX: y\r\n"
        assert server.heads[0] == f"GET /base/a?b=c {common}\r\n"


async def test_requests_at_the_same_time_have_connections_of_their_own() -> None:
    async with speaking(saying(HELLO)) as (server, pool):
        assert await asyncio.gather(*(ask(pool) for _ in range(5))) == [b"hello"] * 5
        assert server.connections == 5
        await asyncio.gather(*(ask(pool) for _ in range(5)))
        assert server.connections == 5, "and they are used again"


async def test_a_body_says_its_length() -> None:
    async with speaking(saying(HELLO)) as (server, pool):
        await ask(pool, "POST", b"")
        assert "Content-Length: 0\r\n" in server.heads[0]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_an_answer_may_come_in_any_pieces(size: int) -> None:
    whole = CHUNKED + b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    async with speaking(saying(*pieces)) as (server, pool):
        assert await ask(pool) == b"hello world"
        assert await ask(pool) == b"hello world"
        assert server.connections == 1


async def test_a_large_answer_is_read_whole() -> None:
    size = 5 << 20
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode()
    async with speaking(saying(head, b"x" * size)) as (_, pool):
        assert len(await ask(pool)) == size


async def test_who_reads_slowly_stops_the_server_and_loses_nothing() -> None:
    count, chunk = 200, b"x" * 65_536
    sent = 0

    def speaks(server: Server) -> Speaks:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            await server.hear(reader)
            writer.write(CHUNKED)
            for _ in range(count):
                writer.write(b"10000\r\n" + chunk + b"\r\n")
                await writer.drain()
                sent += 1
            writer.write(b"0\r\n\r\n")

        return answer

    async with speaking(speaks) as (_, pool), await pool.send("GET", "/", {}, None) as answer:
        for _ in range(20):
            await asyncio.sleep(0.02)
        assert sent < count, "the server waits"
        assert sum([len(part) async for part in answer.chunks(5)]) == count * len(chunk)


async def test_an_answer_that_goes_silent_is_a_timeout() -> None:
    async with speaking(saying(CHUNKED + b"1\r\na\r\n")) as (_, pool), await pool.send("GET", "/", {}, None) as answer:
        parts = answer.chunks(0.05)
        assert await anext(parts) == b"a"
        with pytest.raises(TimeoutError):
            await anext(parts)


async def test_what_comes_during_a_nap_is_not_taken_until_it_ends() -> None:
    pieces = [b"1\r\n%c\r\n" % letter for letter in b"bcd"]
    awake = asyncio.Event()

    async def sleep() -> None:
        await awake.wait()

    naps = iter([None, sleep()])
    speaks = saying(CHUNKED + b"1\r\na\r\n", *pieces, b"0\r\n\r\n")
    async with speaking(speaks) as (_, pool), await pool.send("GET", "/", {}, None) as answer:
        parts = answer.chunks(5, lambda: next(naps, None))
        heard = [await anext(parts)]
        asyncio.get_running_loop().call_later(0.1, awake.set)
        heard += [part async for part in parts]
        assert awake.is_set()
        assert b"".join(heard) == b"abcd"


def closing_when_idle(server: Server) -> Speaks:
    """Answers once, then closes as soon as it hears more."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.hear(reader)
        writer.write(HELLO)
        await server.hear(reader)

    return answer


async def test_a_look_is_repeated_when_a_kept_connection_turns_out_closed() -> None:
    async with speaking(closing_when_idle) as (server, pool):
        assert [await ask(pool) for _ in range(3)] == [b"hello"] * 3
        assert server.connections == 3


async def test_a_write_is_not_repeated_on_its_own() -> None:
    async with speaking(closing_when_idle) as (_, pool):
        await ask(pool)
        with pytest.raises(Broken, match="the server closed the connection"):
            await ask(pool, "POST", b"{}")


async def test_an_answer_cut_short_is_broken() -> None:
    def speaks(server: Server) -> Speaks:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await server.hear(reader)
            writer.write(HELLO[:-1])

        return answer

    async with speaking(speaks) as (_, pool):
        with pytest.raises(Broken):
            await ask(pool)


async def test_what_is_no_http_is_broken() -> None:
    async with speaking(saying(b"SSH-2.0-OpenSSH_9.2\r\n")) as (_, pool):
        with pytest.raises(Broken, match="the answer is no HTTP"):
            await ask(pool)


async def test_who_leaves_in_the_middle_leaves_no_connection_behind() -> None:
    async with speaking(saying(CHUNKED + b"1\r\na\r\n")) as (server, pool):
        for _ in range(2):
            async with await pool.send("GET", "/", {}, None) as answer:
                assert await anext(answer.chunks(1)) == b"a"
        assert server.connections == 2
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), await pool.send("GET", "/", {}, None) as answer:
                await answer.read()
        assert not pool._all
