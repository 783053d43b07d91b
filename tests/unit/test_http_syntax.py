"""The grammar of requests and answers, case by case. tests/property/test_http.py compares it with another parser."""

import pytest

from kube_node_ready import http_syntax
from kube_node_ready.http_syntax import InvalidRequestError, Origin, encode_head

ORIGIN = Origin("10.96.0.1:443", {"User-Agent": "agent"}, path="/prefix")
SPLIT = "x HTTP/1.1\r\nHost: h\r\n\r\nDELETE /api/v1/nodes/victim HTTP/1.1\r\nX-Rest: "


def test_a_head_contains_exactly_what_was_given() -> None:
    head = encode_head("PATCH", "/a?b=%20c", {"Accept": "a, b"}, ORIGIN, 5)
    assert head == (
        b"PATCH /prefix/a?b=%20c HTTP/1.1\r\n"
        b"Host: 10.96.0.1:443\r\nUser-Agent: agent\r\nAccept: a, b\r\nContent-Length: 5\r\n\r\n"
    )


def test_only_a_request_with_a_body_has_a_length() -> None:
    assert b"Content-Length" not in encode_head("GET", "/", {}, ORIGIN)
    assert b"Content-Length: 0\r\n" in encode_head("POST", "/", {}, ORIGIN, 0)


@pytest.mark.parametrize("method", ["", "get", "GE T", "GET\r\n", "GET /x", "ÄB", "G3T"])
def test_a_malformed_method_is_rejected(method: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^method: .* is invalid; expected uppercase ASCII letters$"):
        encode_head(method, "/", {}, ORIGIN)


@pytest.mark.parametrize(
    "target",
    [
        "",
        "a",
        "*",
        "http://other/",
        f"/nodeclaims/{SPLIT}",
        "/a b",
        "/a\tb",
        "/a\nb",
        "/a\rb",
        "/a\0b",
        "/a\x7f",
        "/ä",
        "/a#b",
    ],
)
def test_a_malformed_target_is_rejected(target: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^target: .* is invalid; expected a path") as error:
        encode_head("GET", target, {}, ORIGIN)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("name", ["", "X Y", "X:", "X\r\nY", "Ä", "X\0", "(x)"])
def test_a_malformed_header_name_is_rejected(name: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^header name: "):
        encode_head("GET", "/", {name: "v"}, ORIGIN)


@pytest.mark.parametrize(
    "name", ["Content-Length", "transfer-encoding", "HOST", "Connection", "Upgrade", "Expect", "TE", "Trailer"]
)
def test_framing_headers_are_the_clients_own(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="only the HTTP client itself can set"):
        encode_head("GET", "/", {name: "1"}, ORIGIN)
    with pytest.raises(InvalidRequestError, match="only the HTTP client itself can set"):
        Origin("host", {name: "1"})


@pytest.mark.parametrize("headers", [{"User-agent": "other"}, {"X": "1", "x": "2"}])
def test_a_header_comes_once(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError, match="expected each header once"):
        encode_head("GET", "/", headers, ORIGIN)


@pytest.mark.parametrize(
    "value", ["a\r\nb: c", "a\nb", "a\rb", "a\0b", "a\tb", " a", "a ", "ä", "a\x7f", "a\x85b", " "]
)
def test_a_malformed_header_value_is_rejected(value: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^header X: .* is invalid; expected visible ASCII"):
        encode_head("GET", "/", {"X": value}, ORIGIN)


@pytest.mark.parametrize("name", ["Authorization", "authorization", "Cookie", "Proxy-Authorization"])
def test_a_secret_is_not_shown(name: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"^header {name}: a value that is not shown") as error:
        encode_head("GET", "/", {name: "Bearer secret\r\n"}, ORIGIN)
    assert "secret" not in str(error.value)


def test_a_long_value_is_shortened_in_the_error() -> None:
    with pytest.raises(InvalidRequestError) as error:
        encode_head("GET", "/" + "\n" * 100_000, {}, ORIGIN)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("host", ["", "a b", "a\r\nb", "a/b", "a?b", "ä", "a#b", "user:secret@host"])
def test_a_malformed_host_is_rejected_without_its_password(host: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^host: ") as error:
        Origin(host, {})
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("path", ["a", "/a b", "/a?b", "/a\r\n", "/a#"])
def test_a_malformed_prefix_is_rejected(path: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^path prefix: "):
        Origin("host", {}, path=path)


def test_cached_headers_are_bounded_and_correct() -> None:
    origin = Origin("host", {})
    for number in range(100):
        for _ in range(2):
            assert f"X: {number}\r\n".encode() in encode_head("GET", "/", {"X": str(number)}, origin)
    assert len(origin._blocks) <= 16
    with pytest.raises(InvalidRequestError):
        encode_head("GET", "/", {"X": "99\n"}, origin)


@pytest.mark.parametrize(
    "digits", ["", "+5", "-5", "0x10", "1_0", " 5", "5 ", "5\n", "\u0665", "²", "1e3", "9" * 19, "9" * 5000]
)
def test_only_ascii_digits_are_a_length(digits: str) -> None:
    with pytest.raises(ValueError, match="its content-length is"):
        http_syntax.parse_length(digits)


@pytest.mark.parametrize(
    "line", [b"", b"+5", b"-5", b"0x10", b"1_0", b" 5", b"5 ", b"\xb2", b";a", b"g", b"f" * 16, b"5;a\nb", b"5;\0"]
)
def test_only_hexadecimal_digits_are_the_size_of_a_chunk(line: bytes) -> None:
    with pytest.raises(ValueError, match="a chunk begins with"):
        http_syntax.parse_chunk_size(line)


def test_lengths_and_sizes_are_read() -> None:
    assert http_syntax.parse_length("0010") == 10
    assert http_syntax.parse_chunk_size(b"fF;name=value") == 255
