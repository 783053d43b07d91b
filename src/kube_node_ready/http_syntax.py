"""HTTP/1.1 syntax: encode the head of a request and parse the head of a response, or reject it.

Paths and header values contain names that others chose: of nodes, of their owners, of pods. A CR LF in such a name ends
our request and begins another one that carries our credentials (request splitting). So every client of this project
encodes its request heads here, and whatever does not fit the grammar of RFC 9110 and RFC 9112 is rejected. Nothing is
repaired: a repaired name is the name of another object.

The worker starts on every node, so this module uses neither regular expressions nor anything else that takes time to
import. `str.isascii` with `str.isprintable` is exactly the range from space to tilde.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 128
MAX_INTERIM_ANSWERS = 8
NO_BODY = (204, 304)
_SWITCHING_PROTOCOLS = 101
_LOWEST_FINAL = 200

_TOKEN = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HEX = b"0123456789abcdefABCDEF"
_TEXT = bytes([9, *range(0x20, 0x7F), *range(0x80, 0x100)])  # what a line of a response can contain
_HOST = _TOKEN.translate(None, b"#|^`\"'*!$&+") + b":[]"
_PATH_EXPECTED = 'a path that begins with "/" and contains only visible ASCII characters other than "#"'
_VALUE_EXPECTED = "visible ASCII characters, with spaces only between them"
# They decide where a request ends and what becomes of its connection, so only the client itself sets them.
_FRAMING = frozenset(
    ("connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade")
)
_ONCE = ("content-length", "transfer-encoding")
_SECRET = ("authorization", "cookie", "proxy-authorization")
_SHOWN_CHARACTERS = 120
_KEPT_BLOCKS = 16
_MOST_DIGITS, _MOST_HEX_DIGITS = 18, 15  # less than 2**63


class InvalidRequestError(ValueError):
    """A part of a request does not fit HTTP's grammar, so nothing was sent. The text shows no credentials."""

    def __init__(self, part: str, value: str, expected: str) -> None:
        super().__init__(f"{part}: {value} is invalid; expected {expected}")


class Origin:
    """What requests to one server have in common, validated once: its Host, a path prefix, constant headers.

    Most requests also have the same few headers, so the latest blocks of those are kept, encoded: to look at each
    character of a token again takes longer than all the rest. They go with the connections they were made for.
    """

    __slots__ = ("_blocks", "_common", "_names", "path")

    def __init__(self, host: str, headers: Mapping[str, str], *, path: str = "", close: bool = False) -> None:
        if not is_host(host):
            raise InvalidRequestError("host", _shown(without_user(host)), "a host name or IP address, and a port")
        if path and (not _is_target(path) or "?" in path):
            raise InvalidRequestError("path prefix", _shown(path), f'{_PATH_EXPECTED} and "?"')
        self.path = path
        self._names = frozenset(map(str.lower, headers))
        self._common = f"Host: {host}\r\n{_fields(headers, ())}" + ("Connection: close\r\n" if close else "")
        self._blocks: dict[tuple[tuple[str, str], ...], str] = {}

    def fields(self, headers: Mapping[str, str]) -> str:
        """All header lines but the one for the body."""
        key = tuple(headers.items())
        block = self._blocks.get(key)
        if block is None:
            block = self._common + _fields(headers, self._names)
            if len(self._blocks) >= _KEPT_BLOCKS:
                self._blocks.clear()
            self._blocks[key] = block
        return block


def encode_head(
    method: str, target: str, headers: Mapping[str, str], origin: Origin, length: int | None = None
) -> bytes:
    """The head of one request, whose body has `length` bytes; None if it has no body."""
    if not (method.isascii() and method.isalpha() and method.isupper()):
        raise InvalidRequestError("method", _shown(method), "uppercase ASCII letters")
    if not _is_target(target):
        raise InvalidRequestError("target", _shown(target), _PATH_EXPECTED)
    framing = "" if length is None else f"Content-Length: {length:d}\r\n"
    return f"{method} {origin.path}{target} HTTP/1.1\r\n{origin.fields(headers)}{framing}\r\n".encode("ascii")


def is_host(text: str) -> bool:
    return bool(text) and text.isascii() and not text.encode("ascii").translate(None, _HOST)


def without_user(url: str) -> str:
    """For messages: what precedes an @ can be a password."""
    return f"…@{url.rpartition('@')[2]}" if "@" in url else url


def is_field_value(text: str) -> bool:
    """Tabs are allowed by RFC 9110, and no header of ours has a use for them."""
    return text.isascii() and text.isprintable() and text[:1] != " " and text[-1:] != " "


def _is_target(text: str) -> bool:
    return text[:1] == "/" and text.isascii() and text.isprintable() and " " not in text and "#" not in text


def _fields(headers: Mapping[str, str], taken: Container[str]) -> str:
    lines, seen = "", set()
    for name, value in headers.items():
        key = _field_key(name)
        if key in taken or key in seen:
            raise InvalidRequestError("header name", _shown(name), "each header once")
        if not is_field_value(value):
            shown = "a value that is not shown" if key in _SECRET else _shown(value)
            raise InvalidRequestError(f"header {name}", shown, _VALUE_EXPECTED)
        seen.add(key)
        lines += f"{name}: {value}\r\n"
    return lines


def _field_key(name: str) -> str:
    if not name or not name.isascii() or name.encode("ascii").translate(None, _TOKEN):
        raise InvalidRequestError("header name", _shown(name), "letters, digits and hyphens")
    key = name.lower()
    if key in _FRAMING:
        raise InvalidRequestError("header name", _shown(name), "no header that only the HTTP client itself can set")
    return key


def _shown(value: str) -> str:
    """On one line and in ASCII, whatever it contains."""
    return ascii(value) if len(value) <= _SHOWN_CHARACTERS else f"{value[:_SHOWN_CHARACTERS]!a}…"


def parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    """The status and the headers, by lowercase name, of a response's head without its empty line.

    All parsers here raise a ValueError that says what is wrong with the response.
    """
    first, *lines = head.split(b"\r\n")
    status, headers = _status(first), _parse_fields(lines)
    _check_framing(headers)
    return status, headers


def check_trailers(lines: Iterable[bytes]) -> None:
    """They come too late to describe the response, and must not try to reframe it."""
    if set(_ONCE) & _parse_fields(lines).keys():
        raise ValueError("its trailers contain content-length or transfer-encoding")


def _status(line: bytes) -> int:
    version, digits, separator = line[:9], line[9:12], line[12:13]
    is_numbered = digits.isdigit() and b"100" <= digits <= b"999" and separator in (b"", b" ")
    if version not in (b"HTTP/1.0 ", b"HTTP/1.1 ") or not is_numbered or line.translate(None, _TEXT):
        raise ValueError(f"it begins with {line[:40]!r}")
    return int(digits)


def _parse_fields(lines: Iterable[bytes]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for count, line in enumerate(lines, start=1):
        name, colon, value = line.partition(b":")
        if count > MAX_HEADERS:
            raise ValueError(f"it has more than {MAX_HEADERS} headers")
        if not colon or not name or name.translate(None, _TOKEN) or line.translate(None, _TEXT):
            raise ValueError(f"a header line is {line[:40]!r}")
        key = name.decode("ascii").lower()
        if key in fields and key in _ONCE:
            raise ValueError(f"it has several {key} headers")
        fields[key] = value.strip(b" \t").decode("latin-1")
    return fields


def _check_framing(headers: Mapping[str, str]) -> None:
    """Ambiguous framing is rejected, also where no body follows: two parsers could see two different responses."""
    if is_chunked(headers) and "content-length" in headers:
        raise ValueError("it has both content-length and transfer-encoding")
    if "content-length" in headers:
        parse_length(headers["content-length"])


def is_interim(status: int) -> bool:
    """Whether another response follows this one. We never ask for another protocol."""
    if status == _SWITCHING_PROTOCOLS:
        raise ValueError("it switches protocols, which was not requested")
    return status < _LOWEST_FINAL


def is_chunked(headers: Mapping[str, str]) -> bool:
    coding = headers.get("transfer-encoding")
    if coding is not None and coding.lower() != "chunked":
        raise ValueError(f"its transfer-encoding is {coding[:40]!r}, expected chunked")
    return coding is not None


def parse_length(text: str) -> int:
    """`int` alone would also read "+5", "1_0", " 5" and digits of other scripts."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise ValueError(f"its content-length is {text[:40]!r}")
    return int(text)


def parse_chunk_size(line: bytes) -> int:
    """Of the line that begins a chunk. Extensions are ignored, as RFC 9112 demands."""
    digits = line.partition(b";")[0]
    if not 0 < len(digits) <= _MOST_HEX_DIGITS or digits.translate(None, _HEX) or line.translate(None, _TEXT):
        raise ValueError(f"a chunk begins with {line[:40]!r}")
    return int(digits, 16)
