"""Small proxies on loopback, as `proxy-url` names them: HTTP (CONNECT) and SOCKS5. They count what they connect."""

import base64
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self


class ForwardProxy:
    """Connects where it is asked to. With `login`, only for that user and password."""

    def __init__(self, scheme: str, login: tuple[str, str] | None = None, address: str = "127.0.0.1") -> None:
        self.scheme = scheme
        self.targets: list[str] = []
        self._login = login
        self._listening = socket.create_server((address, 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        user = f"{self._login[0]}:{self._login[1]}@" if self._login else ""
        return f"{self.scheme}://{user}127.0.0.1:{self.port}"

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for made in list(self._open):
            with suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, EOFError):
            self._open.add(client)
            if (server := self._connect(client)) is not None:
                with server:
                    self._open.add(server)
                    back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                    back.start()
                    _copy(client, server)
                    back.join()
                self._open.discard(server)
        self._open.discard(client)

    def _connect(self, client: socket.socket) -> socket.socket | None:
        return self._http(client) if self.scheme == "http" else self._socks(client)

    def _http(self, client: socket.socket) -> socket.socket | None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += _exactly(client, 1)
        method, target, _ = head.decode().split(" ", 2)
        if self._login:
            expected = base64.b64encode(":".join(self._login).encode()).decode()
            if f"Proxy-Authorization: Basic {expected}\r\n" not in head.decode():
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                return None
        if method != "CONNECT":
            client.sendall(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n")
            return None
        host, _, port = target.rpartition(":")
        return self._connected(
            client,
            host.strip("[]"),
            int(port),
            b"HTTP/1.1 200 OK\r\nVia: test\r\n\r\n",
            b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
        )

    def _socks(self, client: socket.socket) -> socket.socket | None:
        methods = _exactly(client, _exactly(client, 2)[1])
        method = 2 if self._login else 0
        if method not in methods:
            client.sendall(b"\x05\xff")
            return None
        client.sendall(bytes([5, method]))
        if self._login:
            user = _exactly(client, _exactly(client, 2)[1]).decode()
            password = _exactly(client, _exactly(client, 1)[0]).decode()
            client.sendall(bytes([1, (user, password) != self._login]))
            if (user, password) != self._login:
                return None
        kind = _exactly(client, 4)[3]
        if kind == 3:
            host = _exactly(client, _exactly(client, 1)[0]).decode()
        else:
            family, size = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
            host = socket.inet_ntop(family, _exactly(client, size))
        (port,) = struct.unpack("!H", _exactly(client, 2))
        tail = b"\x00\x01" + bytes(6)
        return self._connected(client, host, port, b"\x05\x00" + tail, b"\x05\x05" + tail)

    def _connected(self, client: socket.socket, host: str, port: int, yes: bytes, no: bytes) -> socket.socket | None:
        self.targets.append(f"{host}:{port}")
        try:
            server = socket.create_connection((host, port))
        except OSError:
            client.sendall(no)
            return None
        client.sendall(yes)
        return server


@contextmanager
def forward_proxy(scheme: str, login: tuple[str, str] | None = None) -> Iterator[ForwardProxy]:
    proxy = ForwardProxy(scheme, login)
    try:
        yield proxy
    finally:
        proxy.close()


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = connection.recv(size - len(found))
        if not piece:
            raise EOFError
        found += piece
    return found


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class Forwarder(ForwardProxy):
    """A server at another address: what connects to it is connected to `url`."""

    def __init__(self, address: str, url: str) -> None:
        host, _, port = url.removeprefix("https://").rpartition(":")
        self._target = host, int(port)
        super().__init__("tcp", address=address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self, client: socket.socket) -> socket.socket | None:
        return self._connected(client, *self._target, b"", b"")
