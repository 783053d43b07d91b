"""HTTP/1.1 as the checks speak it: what they refuse to send, and what they refuse to believe."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from kube_node_ready.checks import transport
from kube_node_ready.checks.check import CheckFailedError, Deadline, InconclusiveError
from kube_node_ready.checks.transport import HttpConnection, NoAnswerError, Response

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HELLO = OK + b"Content-Length: 5\r\n\r\nhello"


@contextmanager
def conversing(*pieces: bytes, ends: bool = True) -> Iterator[tuple[HttpConnection, socket.socket]]:
    """A conversation with a server that has sent these already, and closes by default."""
    ours, theirs = socket.socketpair()

    def send() -> None:
        with suppress(OSError):
            for piece in pieces:
                theirs.sendall(piece)
            if ends:
                theirs.shutdown(socket.SHUT_WR)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        with theirs, HttpConnection(ours, "host:443", {}) as conversation:
            yield conversation, theirs
    finally:
        sender.join()


def asked(*pieces: bytes, ends: bool = True) -> Response:
    with conversing(*pieces, ends=ends) as (conversation, _):
        return conversation.get("/", Deadline(20))


def test_a_path_with_a_line_break_is_not_a_second_request() -> None:
    with conversing(HELLO, ends=False) as (conversation, server):
        server.settimeout(0)
        with pytest.raises(CheckFailedError, match="cannot send the request: target: "):
            conversation.get("/a HTTP/1.1\r\nHost: h\r\n\r\nDELETE /b", Deadline(5))
        with pytest.raises(BlockingIOError):
            server.recv(1)


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/a HTTP/1.1\r\nHost: h\r\n\r\nDELETE /b", "text/plain"),
        ("POST", "/ä", "text/plain"),
        ("POST", "/", "text/plain\r\nX: y"),
        ("POST /a HTTP/1.1\r\n\r\nDELETE", "/", "text/plain"),
    ],
    ids=["path", "not ASCII", "media type", "method"],
)
def test_a_request_with_injected_lines_is_not_sent(method: str, path: str, kind: str) -> None:
    with conversing(HELLO, ends=False) as (conversation, server):
        server.settimeout(0)
        with pytest.raises(CheckFailedError, match=r"cannot send the request: .* is invalid; expected") as error:
            conversation.send(method, path, b"{}", kind, Deadline(5))
        with pytest.raises(BlockingIOError):
            server.recv(1)
    assert isinstance(error.value, InconclusiveError), "it proves nothing about the node"


@pytest.mark.parametrize(
    ("host", "headers"),
    [("a b", {}), ("a\r\nX: y", {}), ("a", {"Authorization": "Bearer secret\r\nX: y"}), ("a", {"Connection": "close"})],
)
def test_a_conversation_needs_headers_that_can_be_sent(host: str, headers: dict[str, str]) -> None:
    ours, theirs = socket.socketpair()
    with theirs, pytest.raises(CheckFailedError, match="cannot send requests to ") as error:
        HttpConnection(ours, host, headers)
    assert ours.fileno() < 0, "its connection is closed"
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (HELLO, 200, b"hello"),
        (OK + b"content-length:\t005 \r\n\r\nhello", 200, b"hello"),
        (CHUNKED + b"5;a=b\r\nhello\r\n0\r\n\r\n", 200, b"hello"),
        (CHUNKED + b"5\r\nhello\r\n0\r\nX: y\r\nZ: \r\n\r\n", 200, b"hello"),
        (OK + b"Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", 200, b""),
        (b"HTTP/1.0 503\r\n\r\nno server", 503, b"no server"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 8 + HELLO, 200, b"hello"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + HELLO, 200, b"hello"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n", 304, b""),
    ],
)
def test_an_answer_is_read(answer: bytes, status: int, body: bytes) -> None:
    found = asked(answer)
    assert (found.status, found.body) == (status, body)


def test_no_content_has_no_body() -> None:
    assert asked(b"HTTP/1.1 204 No Content\r\n\r\n", ends=False).body == b""


LENGTHS = [b"-5", b"+5", b"0x5", b"1_0", b"5 5", b"5, 5", b"\xb2", b"", b"5\x0b", b"9" * 30]
SIZES = [b"-5", b"+5", b"0x5", b"1_0", b" 5", b"5 ", b"", b"g", b"f" * 17]


@pytest.mark.parametrize(
    "answer",
    [
        *(OK + b"Content-Length: " + length + b"\r\n\r\nhellohello" for length in LENGTHS),
        *(CHUNKED + size + b"\r\nhellohellohellohello\r\n0\r\n\r\n" for size in SIZES),
        OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        OK + b"Content-Length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: identity\r\n\r\nhello",
        CHUNKED + b"5\r\nhelloXX\r\n0\r\n\r\n",
        CHUNKED + b"0\r\nTransfer-Encoding: gzip\r\n\r\n",
        CHUNKED + b"0\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 304 No\r\nContent-Length:: 7\r\n\r\n",
        b"HTTP/1.1 204 No\r\nTransfer-Encoding: gzip\r\n\r\n",
        CHUNKED + b"5\r\nhello\r\n0\r\nno header\r\n\r\n",
        CHUNKED + b"0\r\n" + b"X: y\r\n" * 129 + b"\r\n",
        OK + b"X : y\r\n\r\n",
        OK + b"X: y\r\n folded\r\n\r\n",
        OK + b"no header\r\n\r\n",
        OK + b": y\r\n\r\n",
        OK + b"X: a\x00b\r\n\r\n",
        OK + b"X: a\nContent-Length: 0\r\n\r\n",
        OK + b"X: y\r\n" * 129 + b"\r\n",
        b"HTTP/1.1 \xb2\xb2\xb2 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 000 OK\r\n\r\n",
        b"HTTP/1.x 200 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + HELLO,
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 9 + HELLO,
        b"\r\n" + HELLO,
    ],
)
def test_a_malformed_or_ambiguous_answer_is_not_http(answer: bytes) -> None:
    with pytest.raises(NoAnswerError, match="is not HTTP"):
        asked(answer)


@pytest.mark.parametrize(
    "begin",
    [OK + b"X: ", b"HTTP/1.1 200 ", CHUNKED + b"1;", CHUNKED + b"0\r\nX: "],
    ids=["header", "reason", "extension", "trailer"],
)
def test_an_endless_response_is_not_read_completely(begin: bytes) -> None:
    with pytest.raises(NoAnswerError, match="more than 65536 bytes without an end"):
        asked(begin, *[b"x" * 1024] * 1024, ends=False)


def test_trailers_are_not_the_next_response() -> None:
    with conversing(ends=False) as (conversation, server):
        for _ in range(2):
            server.sendall(CHUNKED + b"5\r\nhello\r\n0\r\nX: y\r\n\r\n")
            assert conversation.get("/", Deadline(5)).body == b"hello"


def test_extra_bytes_are_not_the_next_response() -> None:
    with conversing(HELLO + HELLO) as (conversation, _):
        assert conversation.get("/", Deadline(5)).body == b"hello"
        with pytest.raises(NoAnswerError, match="it began before the request was sent"):
            conversation.get("/", Deadline(5))


@pytest.mark.parametrize("answer", [HELLO[:-1], CHUNKED + b"5\r\nhello\r\n", CHUNKED, OK, CHUNKED + b"0\r\nX: y\r\n"])
def test_a_truncated_answer_is_cut_off(answer: bytes) -> None:
    with pytest.raises(NoAnswerError, match="cut off"):
        asked(answer)


@pytest.mark.parametrize(
    "answer", [OK + b"Content-Length: 33554433\r\n\r\n", CHUNKED + b"2000001\r\nhello"], ids=["length", "chunk"]
)
def test_an_answer_that_is_too_large_is_not_read(answer: bytes) -> None:
    with pytest.raises(transport.TooLargeError, match="is too large: it claims 33554433 bytes, more than 33554432"):
        asked(answer)


def test_the_limit_of_a_body_is_exact() -> None:
    size = transport._LARGEST_BODY
    head = OK + f"Content-Length: {size}\r\n\r\n".encode()
    assert len(asked(head, b"x" * size).body) == size
