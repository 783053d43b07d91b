"""Proxies that a kubeconfig can name with `proxy-url`: HTTP (CONNECT) and SOCKS5.

The handshake does no I/O, so that every client uses the same one: it yields what to send and is sent what arrives. The
server is named to the proxy, which resolves it, as kubectl does.
"""

import base64
import os
import re
import socket
import struct
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

    _Address = IPv4Address | IPv6Address
    _Network = IPv4Network | IPv6Network

Handshake = Generator[bytes, bytes, None]
EXPECTED = "http://HOST:PORT or socks5://HOST:PORT"
PIECE_BYTES = 4096
_PORTS = {"http": 80, "socks5": 1080}
_MAX_HEAD_BYTES = 16 * 1024
_MAX_NAME_BYTES = 255
_OK = b"200"
# Labels have at most 63 characters: Python's codec for international names rejects others with a UnicodeError.
_HOST_NAME = re.compile(r"(?=.{1,254}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?", re.IGNORECASE | re.ASCII)
_VISIBLE = re.compile(r"([^:/?#]*://)?(\[[^\]]*\]|[^:/?#\[]*)(:[0-9]{1,5}(?![^/?#]))?(/[^:?#]*)?")
_SHOWN = 200  # characters of a URL in a message
_VERSION, _NO_LOGIN, _PASSWORD, _CONNECT, _IPV4, _NAME, _IPV6 = 5, 0, 2, 1, 1, 3, 4
_REPLIES = {
    1: "general failure",
    2: "connection not allowed",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "command not supported",
    8: "address type not supported",
}


class ProxyError(OSError):
    """The proxy did not connect to the server."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """`str` shows neither the user nor the password."""

    scheme: str
    host: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.scheme}://{address(self.host, self.port)}"


def parse(url: str) -> Proxy:
    """Raise ValueError, with a text that shows no password."""
    named = shown(url)[:_SHOWN]
    invalid = ValueError(f"{named!a} is invalid; expected {EXPECTED}")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise invalid from None
    if not url.isascii() or not url.isprintable() or " " in url or not host or parts.path not in ("", "/"):
        raise invalid
    if parts.scheme not in _PORTS:
        raise ValueError(f"{named!a} is not supported; expected {EXPECTED}")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if parts.query or parts.fragment or port == 0 or max(len(user.encode()), len(password.encode())) > _MAX_NAME_BYTES:
        raise invalid
    if not is_host(host):
        raise invalid
    return Proxy(parts.scheme, host, port or _PORTS[parts.scheme], user, password)


def shown(url: str) -> str:
    """Return a rejected URL for a message, without what can be a password: a login, a query, an odd port."""
    _, login, rest = url.rpartition("@")
    visible = _VISIBLE.match(rest)
    assert visible is not None
    return f"{'…@' if login else ''}{visible[0]}{'' if visible[0] == rest else '…'}"


def is_host(text: str) -> bool:
    """Return whether it is an IP address, or a name that resolvers accept."""
    return _HOST_NAME.fullmatch(text) is not None or _is_address(text)


def _is_address(text: str) -> bool:
    for family in (socket.AF_INET6, socket.AF_INET):
        try:
            socket.inet_pton(family, text)
        except (OSError, ValueError):
            continue
        return True
    return False


def from_environment(server: str, host: str, port: int) -> Proxy | None:
    """Return the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name for this server, as kubectl uses it.

    As in kubectl, the machine itself is never reached through it. Raise ValueError as `parse` does.
    """
    variable = f"{server.partition(':')[0].upper()}_PROXY"
    if variable == "HTTP_PROXY" and os.environ.get("REQUEST_METHOD"):
        return None  # in a CGI program, the header `Proxy` of a request sets it
    url = _variable(variable)
    if not url or _is_excepted(host, port):
        return None
    try:
        return parse(url if "://" in url else f"http://{url}")
    except ValueError as error:
        raise ValueError(f"{variable}: {error}") from None


def _variable(name: str) -> str:
    """As in Go, upper case takes precedence."""
    return os.environ.get(name) or os.environ.get(name.lower(), "")


def _is_excepted(host: str, port: int) -> bool:
    """Return whether Go connects to this host directly, by the rules of golang.org/x/net/http/httpproxy."""
    address_ = _address(host)
    if host == "localhost" or (address_ is not None and address_.is_loopback):
        return True
    entries = (entry.strip().lower() for entry in _variable("NO_PROXY").split(","))
    return any(_matches(entry, host.lower(), address_, str(port)) for entry in entries if entry)


def _matches(entry: str, host: str, address_: "_Address | None", port: str) -> bool:
    if entry == "*":
        return True
    if (network := _network(entry)) is not None:
        return address_ is not None and address_ in network
    name, wanted_port = _split(entry)
    if not name or (wanted_port and wanted_port != port):
        return False
    if (wanted := _address(name)) is not None:
        return wanted == address_
    name = name[1:] if name.startswith("*.") else name
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _split(entry: str) -> tuple[str, str]:
    """Split like net.SplitHostPort: an IPv6 address is in brackets if, and only if, a port follows."""
    if entry.startswith("["):
        name, found, port = entry[1:].partition("]:")
        return (name, port) if found else (entry, "")
    name, _, port = entry.partition(":")
    return (entry, "") if ":" in port else (name, port)


def _network(entry: str) -> "_Network | None":
    from ipaddress import ip_network  # noqa: PLC0415  only few need it

    if not entry.rpartition("/")[2].isdecimal() or "/" not in entry:
        return None  # unlike Go, Python accepts a mask after the slash
    try:
        return ip_network(entry, strict=False)
    except ValueError:
        return None


def _address(text: str) -> "_Address | None":
    """An IPv4 address, also if it is written as an IPv6 one, as in Go."""
    from ipaddress import ip_address  # noqa: PLC0415  as above

    try:
        found = ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def handshake(proxy: Proxy, host: str, port: int) -> Handshake:
    """Ask the proxy for a connection. Raise ProxyError if it does not make one."""
    if proxy.scheme == "http":
        yield from _http(proxy, address(host, port))
    else:
        yield from _socks(proxy, host, port)


def unreachable(proxy: Proxy, error: OSError) -> ProxyError:
    return ProxyError(f"cannot connect to proxy {proxy}: {error.strerror or error}")


def run(connection: socket.socket, steps: Handshake, left: Callable[[], float]) -> None:
    """Run a handshake on a connected socket. `left` is how many seconds it can still take."""
    sent = next(steps)
    while True:
        connection.settimeout(left())
        connection.sendall(sent)
        received = connection.recv(PIECE_BYTES)
        try:
            sent = steps.send(received)
        except StopIteration:
            return


def address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _http(proxy: Proxy, server: str) -> Handshake:
    login = ""
    if proxy.user or proxy.password:
        login = f"Proxy-Authorization: Basic {base64.b64encode(f'{proxy.user}:{proxy.password}'.encode()).decode()}\r\n"
    received = yield from _more(proxy, f"CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n{login}\r\n".encode())
    while b"\r\n\r\n" not in received:
        if len(received) > _MAX_HEAD_BYTES:
            raise ProxyError(f"proxy {proxy} sent more than {_MAX_HEAD_BYTES} bytes before its response")
        received += yield from _more(proxy)
    head, _, rest = received.partition(b"\r\n\r\n")
    version, _, status = head.partition(b"\r\n")[0].partition(b" ")
    if version not in (b"HTTP/1.0", b"HTTP/1.1"):
        raise ProxyError(f"proxy {proxy} did not answer with HTTP")
    if status[:3] != _OK:
        raise ProxyError(f"proxy {proxy} did not connect to {server}: HTTP {_printable(status[:80])}")
    if rest:
        raise ProxyError(f"proxy {proxy} sent data before the server was asked for any")


def _socks(proxy: Proxy, host: str, port: int) -> Handshake:
    login = bool(proxy.user or proxy.password)
    methods = [_NO_LOGIN, _PASSWORD] if login else [_NO_LOGIN]
    answer = yield from _exactly(proxy, 2, bytes([_VERSION, len(methods), *methods]))
    if answer[0] != _VERSION:
        raise ProxyError(f"proxy {proxy} did not answer with SOCKS5")
    if answer[1] == _PASSWORD and login:
        user, password = proxy.user.encode(), proxy.password.encode()
        request = bytes([1, len(user)]) + user + bytes([len(password)]) + password
        if (yield from _exactly(proxy, 2, request))[1]:
            raise ProxyError(f"proxy {proxy} rejected the user name and password")
    elif answer[1] != _NO_LOGIN:
        raise ProxyError(f"proxy {proxy} requires another login than a user name and password in proxy-url")
    request = bytes([_VERSION, _CONNECT, 0]) + _target(host) + struct.pack("!H", port)
    answer = yield from _exactly(proxy, 5, request, more=True)
    if answer[1]:
        reply = _REPLIES.get(answer[1], f"reply {answer[1]}")
        raise ProxyError(f"proxy {proxy} did not connect to {address(host, port)}: {reply}")
    sizes = {_IPV4: 4 + 2 - 1, _IPV6: 16 + 2 - 1, _NAME: answer[4] + 2}
    if answer[3] not in sizes:
        raise ProxyError(f"proxy {proxy} did not answer with SOCKS5")
    missing = sizes[answer[3]] - len(answer[5:])
    if missing < 0:
        raise ProxyError(f"proxy {proxy} sent data before the server was asked for any")
    if missing:
        yield from _exactly(proxy, missing)


def _target(host: str) -> bytes:
    for family, kind in ((socket.AF_INET, _IPV4), (socket.AF_INET6, _IPV6)):
        try:
            return bytes([kind]) + socket.inet_pton(family, host)
        except OSError:
            continue
    name = host.encode("ascii")
    if len(name) > _MAX_NAME_BYTES:
        raise ProxyError(f"the server's name has {len(name)} characters; expected at most {_MAX_NAME_BYTES}")
    return bytes([_NAME, len(name)]) + name


def _exactly(proxy: Proxy, size: int, request: bytes = b"", *, more: bool = False) -> Generator[bytes, bytes, bytes]:
    """So many bytes; with `more`, at least so many."""
    received = yield from _more(proxy, request)
    while len(received) < size:
        received += yield from _more(proxy)
    if len(received) > size and not more:
        raise ProxyError(f"proxy {proxy} sent data before the server was asked for any")
    return received


def _more(proxy: Proxy, request: bytes = b"") -> Generator[bytes, bytes, bytes]:
    received = yield request
    if not received:
        raise ProxyError(f"proxy {proxy} closed the connection")
    return received


def _printable(text: bytes) -> str:
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text.decode("latin-1"))
