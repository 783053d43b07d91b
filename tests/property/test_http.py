"""Both HTTP clients against an independent parser, h11: whatever is put into a request, a server sees that one request
or nothing; whatever a server answers, the outcome is what h11 sees or the documented error, in bounded time and memory.
"""

import asyncio
import re
import socket  # noqa: TC003  as everywhere, for a cast
from collections.abc import Callable, Iterable, Iterator
from typing import cast

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kube_node_ready.checks import transport
from kube_node_ready.checks.check import Deadline
from kube_node_ready.checks.transport import HttpConnection, NoAnswerError, NotSentError
from kube_node_ready.http_syntax import InvalidRequestError
from kube_node_ready.kube.http import ConnectionBroken, ConnectionPool, Response, _Connection

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
SPLIT = "/x HTTP/1.1\r\nHost: h\r\n\r\nDELETE /api/v1/nodes/victim HTTP/1.1\r\nX-Rest: "
BODY_LIMIT = 100_000

# Requests.

hostile = st.text("aZ09/?#%:;=,_-. \t\r\n\0\x0b\x7f\x85é\u0665\u2028\udcff", max_size=12)
methods = st.sampled_from(["GET", "POST", "PATCH", "PUT", "DELETE"]) | hostile
targets = (
    st.sampled_from(["/", "/api/v1/nodes/a", "/a?b=c%20d", SPLIT]) | hostile.map(lambda text: f"/{text}") | hostile
)
names = st.sampled_from(["Accept", "accept", "X-A", "Authorization", "Content-Type"]) | hostile
framing = st.sampled_from(["Content-Length", "transfer-encoding", "Host", "Connection", "Upgrade", "Expect", "TE"])
values = st.sampled_from(["", "a", "a, b;q=1", "5", "chunked", "a\r\nContent-Length: 5"]) | hostile
headers = st.dictionaries(names, values, max_size=3) | st.dictionaries(names | framing, values, max_size=3)
bodies = st.none() | st.binary(max_size=20) | st.just(b"DELETE /victim HTTP/1.1\r\nHost: h\r\n\r\n")

Seen = tuple[str, str, dict[str, str], bytes]


def seen_by_a_server(sent: bytes) -> Seen:
    """The one request in these bytes. Fails if there is another one, a part of one, or none."""
    server = h11.Connection(h11.SERVER)
    server.receive_data(sent)
    request, body = server.next_event(), b""
    assert isinstance(request, h11.Request)
    while isinstance(event := server.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert server.trailing_data == (b"", False)
    found = {name.decode(): value.decode() for name, value in request.headers}
    assert len(found) == len(request.headers)
    return request.method.decode(), request.target.decode(), found, body


def check_text(error: Exception) -> None:
    """It goes to logs and terminals."""
    assert str(error).isprintable()
    assert len(str(error)) < 2000


def expected(given_headers: dict[str, str], own: dict[str, str], body: bytes | None) -> dict[str, str]:
    length = {} if body is None else {"content-length": str(len(body))}
    return own | {name.lower(): value for name, value in given_headers.items()} | length


@settings(max_examples=600)
@given(methods, targets, headers, bodies)
@example("GET", SPLIT, {}, None)
@example("GET", "/", {"X": "y\r\nContent-Length: 5"}, None)
def test_a_pool_sends_the_given_request_or_none(
    method: str, target: str, given_headers: dict[str, str], body: bytes | None
) -> None:
    pool = ConnectionPool("https://10.0.0.1:6443/prefix/", None, {"User-Agent": "agent"})
    try:
        sent = pool._encoded(method, target, given_headers, body)
    except InvalidRequestError as error:
        check_text(error)
        return
    own = {"host": "10.0.0.1:6443", "user-agent": "agent"}
    whole = expected(given_headers, own, body)
    assert seen_by_a_server(sent) == (method, f"/prefix{target}", whole, body or b"")


class Peer:
    """The end of a connection whose server sends these pieces and closes it."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.sent = b""
        self.received = 0
        self._pieces = iter(pieces)
        self._rest = b""

    def recv(self, most: int) -> bytes:
        piece = self._rest or next(self._pieces, b"")
        self._rest = piece[most:]
        self.received += len(piece[:most])
        return piece[:most]

    def sendall(self, data: bytes) -> None:
        self.sent += data

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def setsockopt(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass


def conversation(peer: Peer, given_headers: dict[str, str] | None = None) -> HttpConnection:
    return HttpConnection(cast("socket.socket", peer), "10.0.0.1:6443", given_headers or {})


@settings(max_examples=600)
@given(methods, targets, headers, bodies)
@example("GET", SPLIT, {}, None)
@example("GET", "/", {"X": "y\r\nContent-Length: 5"}, None)
def test_a_conversation_sends_the_given_request_or_none(
    method: str, target: str, given_headers: dict[str, str], body: bytes | None
) -> None:
    peer = Peer([HELLO])
    try:
        with conversation(peer, given_headers) as asking:
            if body is None:
                method = "GET"
                asking.get(target, Deadline(60))
            else:
                asking.send(method, target, body, "text/plain", Deadline(60))
    except NotSentError as error:
        check_text(error)
        assert not peer.sent
        return
    own = {"host": "10.0.0.1:6443", "accept-encoding": "identity", "user-agent": "kube-node-ready-worker"}
    if body is not None:
        own["content-type"] = "text/plain"
    assert seen_by_a_server(peer.sent) == (method, target, expected(given_headers, own, body), body or b"")


# Answers.

Outcome = tuple[int, bytes]
"""The status and the body of a well-formed answer."""


def seen_by_h11(data: bytes) -> Outcome | None:
    """None if it refuses the answer."""
    client = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
    client.send(h11.EndOfMessage())
    status, body = 0, b""
    try:
        client.receive_data(data)
        client.receive_data(b"")
        while not isinstance(event := client.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif not isinstance(event, h11.InformationalResponse):
                return None
    except h11.RemoteProtocolError:
        return None
    return status, body


async def _seen_by_exchange(pieces: Iterable[bytes], *, in_chunks: bool) -> Outcome | None:
    connection = _Connection()
    response = connection.response = Response(ConnectionPool("http://h", None, {}), connection)

    async def consume() -> Outcome:
        async with response:
            await response.head()
            if in_chunks:
                return response.status, b"".join([part async for part in response.chunks(60)])
            return response.status, await response.read(BODY_LIMIT)

    reading = asyncio.create_task(consume())
    await asyncio.sleep(0)
    for piece in pieces:
        if connection.lost or reading.done():  # a transport that was aborted delivers nothing
            break
        connection.data_received(piece)
        await asyncio.sleep(0)
    connection.connection_lost(None)
    try:
        async with asyncio.timeout(60):
            return await reading
    except ConnectionBroken:
        return None


def seen_by_exchange(pieces: Iterable[bytes], *, in_chunks: bool = False) -> Outcome | None:
    return asyncio.run(_seen_by_exchange(pieces, in_chunks=in_chunks))


def seen_by_conversation(pieces: Iterable[bytes]) -> Outcome | None:
    try:
        with conversation(Peer(pieces)) as asking:
            answer = asking.get("/", Deadline(60))
    except NoAnswerError:
        return None
    return answer.status, answer.body


def joined(parts: Iterable[bytes]) -> bytes:
    return b"".join(parts)


def chunked(parts: list[bytes], extension: bytes, trailers: bytes) -> bytes:
    whole = joined(b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts if part)
    return b"Transfer-Encoding: chunked\r\n\r\n" + whole + b"0" + extension + b"\r\n" + trailers + b"\r\n"


def with_length(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


contents = st.lists(
    st.sampled_from([b"", b"{}", b"0\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"]) | st.binary(max_size=9), max_size=3
)
fields = st.lists(
    st.sampled_from([b"X: y\r\n", b"Date: now\r\n", b"x:\r\n", b"Connection: close\r\n", b"Z: \xe4 \t\r\n"]), max_size=3
)
interim = st.sampled_from([b"", b"", b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n" * 2])
starts = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 200 OK\r\n",
        b"HTTP/1.1 404 \r\n",
        b"HTTP/1.1 503 No \xe4\r\n",
        b"HTTP/1.1 999 x\r\n",
    ]
)
framed = (
    contents.map(joined).map(with_length)
    | st.builds(chunked, contents, st.sampled_from([b"", b";a", b';a="b"']), st.sampled_from([b"", b"X: y\r\n"]))
    | contents.map(joined).map(lambda body: b"\r\n" + body)
)
well_formed = st.builds(lambda *parts: joined(parts), interim, starts, fields.map(joined), framed) | st.sampled_from(
    [b"HTTP/1.1 204 No\r\n\r\n", b"HTTP/1.1 304 No\r\nContent-Length: 7\r\n\r\n"]
)

LETTERS = [b"\r\n", *(bytes([code]) for code in b"\n\r\0 \t\x0b\xff:;+-_05f")]
LINES = [
    b"Content-Length: 5\r\n",
    b"Content-Length: 1_0\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"transfer-encoding: gzip, chunked\r\n",
    b"Connection: upgrade\r\nUpgrade: x\r\n",
    b" folded\r\n",
    b"X : y\r\n",
    b"X: y\r\n" * 130,
    b"RTSP/1.0 200 OK\r\n",
    b"HTTP/2.0 200 OK\r\n",
]
HEADS = [b"HTTP/1.1 101 Switching\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n" * 9, b"HTTP/1.1 000 x\r\n\r\n"]
oddities = st.sampled_from([*LETTERS, *LINES, *HEADS, HELLO, b"0x", b"9" * 20, b"x" * 70_000])
changes = st.tuples(st.sampled_from(["insert", "delete", "replace", "repeat", "cut"]), st.integers(0, 400), oddities)


def changed(answer: bytes, steps: list[tuple[str, int, bytes]]) -> bytes:
    for kind, number, odd in steps:
        at = number % (len(answer) + 1)
        before, after = answer[:at], answer[at:]
        answer = {
            "insert": before + odd + after,
            "delete": before + after[1 + number % 7 :],
            "replace": before + odd + after[len(odd) :],
            "repeat": answer + after,
            "cut": before,
        }[kind]
    return answer


malformed = st.builds(changed, well_formed, st.lists(changes, min_size=1, max_size=3))
sizes = st.lists(st.integers(1, 40), min_size=1, max_size=8) | st.just([1 << 20])


def in_pieces(data: bytes, lengths: list[int]) -> list[bytes]:
    """Of these lengths, the last of them for all the rest; no more than some hundred."""
    pieces, at = [], 0
    for length in lengths:
        pieces.append(data[at : at + length])
        at += length
    step = max(lengths[-1], len(data) // 300, 1)
    return [piece for piece in [*pieces, *(data[i : i + step] for i in range(at, len(data), step))] if piece]


Read = Callable[[Iterable[bytes]], Outcome | None]
READERS: dict[str, Read] = {
    "pool": seen_by_exchange,
    "watch": lambda pieces: seen_by_exchange(pieces, in_chunks=True),
    "conversation": seen_by_conversation,
}
readers = pytest.mark.parametrize("reader", READERS)


@readers
@given(well_formed, sizes)
def test_a_well_formed_response_is_read_in_any_pieces(reader: str, answer: bytes, lengths: list[int]) -> None:
    outcome = READERS[reader](in_pieces(answer, lengths))
    assert outcome is not None
    assert outcome == seen_by_h11(answer)


def as_llhttp_reads(answer: bytes) -> bytes:
    """The answer without what llhttp tolerates and h11 does not. None of it changes the status or the body: empty lines
    after an interim answer, control characters in a reason phrase, and the name of another protocol behind an interim
    answer.
    """
    while re.match(rb"HTTP/1\.[01] 1", answer):
        answer = answer.partition(b"\r\n\r\n")[2].lstrip(b"\r\n")
    start, end, rest = answer.partition(b"\r\n")
    named = re.sub(rb"^(RTSP|ICE)/", b"HTTP/", start)
    return re.sub(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", b"?", named) + end + rest


@readers
@settings(max_examples=800)
@given(malformed, sizes)
@example(HELLO + b"garbage", [1])
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n", [1])
@example(b"HTTP/1.1 304 No\r\nContent-Length:: 7\r\n\r\n", [1])
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [9])
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\nhellohello", [1 << 20])
def test_a_malformed_response_is_rejected_or_read_as_by_other_clients(
    reader: str, answer: bytes, lengths: list[int]
) -> None:
    outcome = READERS[reader](in_pieces(answer, lengths))
    if outcome is not None:
        theirs = seen_by_h11(answer)
        if theirs is None and reader != "conversation":
            theirs = seen_by_h11(as_llhttp_reads(answer))
        assert theirs == outcome


@readers
@given(st.binary(max_size=200), sizes)
def test_garbage_is_rejected(reader: str, garbage: bytes, lengths: list[int]) -> None:
    assert READERS[reader](in_pieces(garbage, lengths)) is None


# Answers that never end.

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
endless = st.sampled_from(
    [
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"HTTP/1.1 200 ", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"\r\n"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"x"),
        (CHUNKED, b"1\r\nx\r\n"),
        (CHUNKED, b"2;" + b"a" * 50 + b"\r\nxx\r\n"),
        (CHUNKED + b"1;", b"a"),
        (CHUNKED, b"0"),
        (CHUNKED + b"0\r\n", b"X: y\r\n"),
        (CHUNKED + b"0\r\nX: ", b"y"),
        (CHUNKED + b"fffffff\r\n", b"x"),
    ]
)
MOST_READ = 4 << 20
"""Beyond it, a limit was not kept: each chunk of two bytes can come with an extension."""


class Endless:
    def __init__(self, begin: bytes, again: bytes, size: int) -> None:
        self.sent = 0
        self._begin, self._again = begin, again * (1 + size // len(again))

    def __iter__(self) -> Iterator[bytes]:
        piece = self._begin + self._again
        while self.sent < 2 * MOST_READ:
            self.sent += len(piece)
            yield piece
            piece = self._again


@settings(max_examples=40)
@given(endless, st.integers(200, 70_000))
def test_a_pool_stops_reading_an_endless_response(answer: tuple[bytes, bytes], size: int) -> None:
    source = Endless(*answer, size)
    assert seen_by_exchange(source) is None
    assert source.sent < MOST_READ


@settings(max_examples=40)
@given(endless, st.integers(200, 70_000))
def test_a_conversation_stops_reading_an_endless_response(answer: tuple[bytes, bytes], size: int) -> None:
    source = Endless(*answer, size)
    with pytest.MonkeyPatch.context() as patch, conversation(Peer(source)) as asking:
        patch.setattr(transport, "_LARGEST_BODY", BODY_LIMIT)
        with pytest.raises(NoAnswerError):
            asking.get("/", Deadline(1))
    assert source.sent < MOST_READ
