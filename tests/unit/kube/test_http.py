"""HTTP/1.1 against servers that answer as servers do: in pieces, too soon, never, or not in HTTP at all."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import pytest

from kube_node_ready.kube.http import ConnectionBroken, ConnectionPool
from tests.support.http_servers import HELLO, Server, Speaks, on_both_loops, saying, speaking

EVENTS = 200
EVENT = b"x" * 65_536
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def ask(pool: ConnectionPool, method: str = "GET", body: bytes | None = None) -> bytes:
    async with await pool.send(method, "/a?b=c", {"X": "y"}, body) as answer:
        return await answer.read()


@on_both_loops
async def test_a_connection_serves_one_request_after_another() -> None:
    async with speaking(saying(HELLO), path="/base/") as (server, pool):
        assert [await ask(pool) for _ in range(3)] == [b"hello"] * 3
        assert server.connections == 1
        port = server.heads[0].partition("Host: 127.0.0.1:")[2].split()[0]
        common = f"HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: x\r\nX: y\r\n"
        assert server.heads[0] == f"GET /base/a?b=c {common}\r\n"


@on_both_loops
async def test_concurrent_requests_use_separate_connections() -> None:
    async with speaking(saying(HELLO)) as (server, pool):
        assert await asyncio.gather(*(ask(pool) for _ in range(5))) == [b"hello"] * 5
        assert server.connections == 5
        await asyncio.gather(*(ask(pool) for _ in range(5)))
        assert server.connections == 5, "and they are used again"


@on_both_loops
async def test_a_body_has_a_content_length() -> None:
    async with speaking(saying(HELLO)) as (server, pool):
        await ask(pool, "POST", b"")
        assert "Content-Length: 0\r\n" in server.heads[0]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@on_both_loops
async def test_a_response_can_arrive_in_any_pieces(size: int) -> None:
    whole = CHUNKED + b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    async with speaking(saying(*pieces)) as (server, pool):
        assert await ask(pool) == b"hello world"
        assert await ask(pool) == b"hello world"
        assert server.connections == 1


@on_both_loops
async def test_a_large_answer_is_read_whole() -> None:
    size = 5 << 20
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode()
    async with speaking(saying(head, b"x" * size)) as (_, pool):
        assert len(await ask(pool)) == size


class Flood:
    """A server that sends as fast as it is read."""

    def __init__(self) -> None:
        self.sent = 0

    def speaks(self, server: Server) -> Speaks:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await server.hear(reader)
            writer.write(CHUNKED)
            for _ in range(EVENTS):
                writer.write(b"10000\r\n" + EVENT + b"\r\n")
                await writer.drain()
                self.sent += 1
            writer.write(b"0\r\n\r\n")
            await server.hear(reader)  # the next one, on the same connection
            writer.write(HELLO)

        return answer

    async def until_it_waits(self) -> None:
        before = -1
        while before < self.sent:
            before = self.sent
            await asyncio.sleep(0.1)
        assert self.sent < EVENTS, "the server waits"


@pytest.fixture(params=["tcp", "tls"])
def tls(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path if request.param == "tls" else None


@on_both_loops
async def test_a_slow_reader_applies_backpressure_and_loses_nothing(tls: Path | None) -> None:
    flood = Flood()
    async with speaking(flood.speaks, tls=tls) as (server, pool):
        async with await pool.send("GET", "/", {}, None) as answer:
            await flood.until_it_waits()
            assert sum([len(part) async for part in answer.chunks(5)]) == EVENTS * len(EVENT)
        assert await ask(pool, "POST", b"{}") == b"hello", "whatever was paused is read again"
        assert server.connections == 1


@on_both_loops
async def test_data_during_a_nap_waits_until_its_end(tls: Path | None) -> None:
    flood, asleep = Flood(), asyncio.Event()
    naps = 0

    async def sleep() -> None:
        asleep.set()
        await flood.until_it_waits()

    def nap() -> Awaitable[None] | None:
        nonlocal naps
        naps += 1
        return sleep() if naps == 1 else None

    async with speaking(flood.speaks, tls=tls) as (_, pool), await pool.send("GET", "/", {}, None) as answer:
        assert sum([len(part) async for part in answer.chunks(5, nap)]) == EVENTS * len(EVENT)
        assert asleep.is_set()


@on_both_loops
async def test_data_received_during_a_nap_is_not_lost() -> None:
    """A transport can still deliver data after it was paused."""
    heard: list[bytes] = []

    async with speaking(saying(CHUNKED + b"1\r\na\r\n")) as (_, pool), await pool.send("GET", "/", {}, None) as answer:

        async def late() -> None:
            answer.feed(b"1\r\nb\r\n")

        parts = answer.chunks(1, lambda: late() if heard == [b"a"] else None)
        heard.append(await anext(parts))
        heard.append(await anext(parts))
        assert heard == [b"a", b"b"]


@on_both_loops
async def test_a_broken_response_causes_no_nap() -> None:
    def speaks(server: Server) -> Speaks:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await server.hear(reader)
            writer.write(CHUNKED + b"1\r\na\r\n")

        return answer

    async with speaking(speaks) as (_, pool), await pool.send("GET", "/", {}, None) as answer:
        await asyncio.sleep(0.1)
        with pytest.raises(ConnectionBroken):
            [part async for part in answer.chunks(5, lambda: asyncio.sleep(60))]


@on_both_loops
async def test_an_interim_answer_is_not_the_answer() -> None:
    async with speaking(saying(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + HELLO)) as (server, pool):
        assert [await ask(pool), await ask(pool)] == [b"hello", b"hello"]
        assert server.connections == 1


@on_both_loops
async def test_extra_responses_are_not_the_next_response() -> None:
    async with speaking(saying(HELLO + HELLO)) as (server, pool):
        assert [await ask(pool), await ask(pool)] == [b"hello", b"hello"]
        assert server.connections == 2


@pytest.mark.parametrize(
    ("answer", "body", "connections"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", 1),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", b"hello", 2),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000 + b"\r\nContent-Length: 5\r\n\r\nhello", b"hello", 1),
    ],
    ids=["no content", "closing", "a long header"],
)
@on_both_loops
async def test_a_connection_is_kept_as_the_response_specifies(answer: bytes, body: bytes, connections: int) -> None:
    async with speaking(saying(answer)) as (server, pool):
        assert [await ask(pool), await ask(pool)] == [body, body]
        assert server.connections == connections


@on_both_loops
async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    """As the error pages of some load balancers do."""

    def speaks(server: Server) -> Speaks:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await server.hear(reader)
            writer.write(b"HTTP/1.0 503 Service Unavailable\r\nConnection: close\r\n\r\nno server is up")

        return answer

    async with speaking(speaks) as (_, pool), await pool.send("GET", "/", {}, None) as answer:
        assert answer.status == 503
        assert await answer.read() == b"no server is up"


@on_both_loops
async def test_nothing_is_sent_without_permission() -> None:
    def before_write() -> None:
        raise PermissionError

    async with speaking(saying(HELLO)) as (server, pool):
        await ask(pool)
        with pytest.raises(PermissionError):
            await pool.send("POST", "/", {}, b"{}", before_write)
        assert len(server.heads) == 1
        assert not pool._all


@on_both_loops
async def test_an_answer_that_stalls_is_a_timeout() -> None:
    async with speaking(saying(CHUNKED + b"1\r\na\r\n")) as (_, pool), await pool.send("GET", "/", {}, None) as answer:
        parts = answer.chunks(0.05)
        assert await anext(parts) == b"a"
        with pytest.raises(TimeoutError):
            await anext(parts)


def closing_when_idle(server: Server) -> Speaks:
    """Answers once, then closes as soon as it hears more."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.hear(reader)
        writer.write(HELLO)
        await server.hear(reader)

    return answer


@on_both_loops
async def test_a_read_is_repeated_if_a_kept_connection_is_closed() -> None:
    async with speaking(closing_when_idle) as (server, pool):
        assert [await ask(pool) for _ in range(3)] == [b"hello"] * 3
        assert server.connections == 3


@on_both_loops
async def test_a_write_is_not_repeated_automatically() -> None:
    async with speaking(closing_when_idle) as (_, pool):
        await ask(pool)
        with pytest.raises(ConnectionBroken, match="the server closed the connection"):
            await ask(pool, "POST", b"{}")


@on_both_loops
async def test_an_answer_cut_short_is_broken() -> None:
    def speaks(server: Server) -> Speaks:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await server.hear(reader)
            writer.write(HELLO[:-1])

        return answer

    async with speaking(speaks) as (_, pool):
        with pytest.raises(ConnectionBroken):
            await ask(pool)


@on_both_loops
async def test_a_response_that_is_not_http_is_broken() -> None:
    async with speaking(saying(b"SSH-2.0-OpenSSH_9.2\r\n")) as (_, pool):
        with pytest.raises(ConnectionBroken, match="the response is not HTTP"):
            await ask(pool)


@on_both_loops
async def test_a_canceled_request_leaks_no_connection() -> None:
    async with speaking(saying(CHUNKED + b"1\r\na\r\n")) as (server, pool):
        for _ in range(2):
            async with await pool.send("GET", "/", {}, None) as answer:
                assert await anext(answer.chunks(1)) == b"a"
        assert server.connections == 2
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), await pool.send("GET", "/", {}, None) as answer:
                await answer.read()
        assert not pool._all


@on_both_loops
async def test_a_cancellation_while_connecting_does_not_break_the_next_connection(tls: Path | None) -> None:
    """Whichever step of connecting is canceled: a transport left behind would claim the next socket of that number."""
    async with speaking(saying(HELLO), tls=tls) as (_, pool):
        for steps in range(40):
            leaving = asyncio.create_task(ask(pool))
            for _ in range(steps):
                await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.wait([leaving])
            assert await asyncio.gather(*(ask(pool) for _ in range(2))) == [b"hello"] * 2
            pool.close()


SPLIT = "x HTTP/1.1\r\nHost: h\r\n\r\nDELETE /api/v1/nodes/victim HTTP/1.1\r\nX-Rest: "


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("GET", f"/nodeclaims/{SPLIT}", {}),
        ("GET", "/", {"X": "y\r\nContent-Length: 9"}),
        ("GET", "/", {"X\r\nY": "z"}),
        ("GET / HTTP/1.1\r\n\r\nDELETE", "/", {}),
        ("GET", "/", {"Content-Length": "5"}),
        ("GET", "/ä", {}),
    ],
    ids=["target", "header value", "header name", "method", "framing", "not ASCII"],
)
@on_both_loops
async def test_a_request_with_injected_lines_is_not_sent(method: str, target: str, headers: dict[str, str]) -> None:
    async with speaking(saying(HELLO)) as (server, pool):
        with pytest.raises(ValueError, match="is invalid; expected"):
            await pool.send(method, target, headers, None)
        assert server.connections == 0
        assert await ask(pool) == b"hello"


def test_a_server_that_cannot_be_a_host_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"^host: ") as error:
        ConnectionPool("https://user:secret@host", None, {})
    assert "secret" not in str(error.value)


FINAL = b"Content-Length: 5\r\n\r\nhello"


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 128 + FINAL, "more than 128 headers"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 65_536 + b"\r\n" + FINAL, "more than 65536 bytes"),
        (b"HTTP/1.1 103 Early\r\n\r\n" * 9 + HELLO, "more than 8 interim responses"),
        (CHUNKED + b"1\r\na\r\n0\r\n" + b"X: y\r\n" * 128 + b"\r\n", "more than 128 headers"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" + FINAL, "Duplicate Content-Length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + FINAL, "Content-Length can't be present"),
        (CHUNKED[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "transfer-encoding: .* expected chunked, once"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "transfer-encoding: .* is invalid"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nhello", "transfer-encoding: .* is invalid"),
        (CHUNKED + b"0\r\nTransfer-Encoding: gzip\r\n\r\n", "transfer-encoding: .* is invalid"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 000 OK\r\n" + FINAL, "status 0"),
        (b"HTTP/1.1 099 OK\r\n" + FINAL, "status 99"),
        (b"HTTP/2.0 200 OK\r\n" + FINAL, "version 2.0"),
        (b"RTSP/1.0 200 OK\r\n" + FINAL, "it begins with"),
        (b"\r\n" + HELLO, "it begins with"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"0" * 5_000 + b"5\r\n\r\nhello", "its content-length is"),
    ],
)
@on_both_loops
async def test_an_oversized_or_ambiguous_response_is_broken(answer: bytes, complaint: str) -> None:
    async with speaking(saying(answer)) as (_, pool):
        with pytest.raises(ConnectionBroken, match=complaint):
            async with asyncio.timeout(10):
                await ask(pool)
        assert not pool._all, "and its connection is closed"


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 1024),
        (b"HTTP/1.1 200 ", b"x" * 1024),
        (CHUNKED + b"1;", b"x" * 1024),
        (CHUNKED + b"0\r\nX: ", b"x" * 1024),
    ],
    ids=["header", "reason", "chunk extension", "trailer"],
)
@on_both_loops
async def test_an_endless_response_is_not_read_completely(begin: bytes, piece: bytes) -> None:
    sent = 0

    def speaks(server: Server) -> Speaks:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            await server.hear(reader)
            writer.write(begin)
            while sent < 8 << 20:
                writer.write(piece)
                await writer.drain()
                sent += len(piece)

        return answer

    async with speaking(speaks) as (_, pool):
        with pytest.raises(ConnectionBroken, match="more than 65536 bytes were received before the body"):
            await ask(pool)
        assert not pool._all


def of_length(size: int) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode()


@pytest.mark.parametrize(
    "answer",
    [
        of_length(2001),
        CHUNKED + b"3e8\r\n" + b"x" * 1000 + b"\r\n3e8\r\n" + b"x" * 1000,
        CHUNKED + b"2\r\nxx\r\n" * 100,
    ],
    ids=["claimed", "sent", "in tiny pieces"],
)
@on_both_loops
async def test_a_body_beyond_its_limit_is_broken(answer: bytes) -> None:
    async with speaking(saying(answer)) as (_, pool):
        with pytest.raises(ConnectionBroken, match="the body has more than 2000 bytes"):
            async with asyncio.timeout(10), await pool.send("GET", "/", {}, None) as found:
                await found.read(2000)
        assert not pool._all


@on_both_loops
async def test_a_body_up_to_its_limit_is_read() -> None:
    answer = of_length(1900) + b"x" * 1900
    async with speaking(saying(answer)) as (_, pool), await pool.send("GET", "/", {}, None) as found:
        assert len(await found.read(2000)) == 1900


@on_both_loops
async def test_a_trailer_does_not_change_the_headers() -> None:
    answer = CHUNKED + b"1\r\na\r\n0\r\nRetry-After: 60\r\n\r\n"
    async with speaking(saying(answer)) as (_, pool), await pool.send("GET", "/", {}, None) as found:
        assert await found.read() == b"a"
        assert found.headers == {"transfer-encoding": "chunked"}


@on_both_loops
async def test_a_connection_on_which_something_follows_the_answer_is_not_used_again() -> None:
    async with speaking(saying(HELLO + b"garbage")) as (server, pool):
        assert [await ask(pool), await ask(pool)] == [b"hello", b"hello"]
        assert server.connections == 2


@on_both_loops
async def test_an_oversized_body_is_not_complete_when_the_server_closes() -> None:
    """Both can be noticed in the same turn of the event loop."""
    answer = b"HTTP/1.1 200 OK\r\n\r\n"
    async with speaking(saying(answer)) as (_, pool), await pool.send("GET", "/", {}, None) as found:
        reading = asyncio.create_task(found.read(1000))
        await asyncio.sleep(0)
        found.feed(b"x" * 2000)
        found.closed_by_server()
        with pytest.raises(ConnectionBroken, match="more than 1000 bytes"):
            await reading
