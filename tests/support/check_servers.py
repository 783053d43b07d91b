"""Small servers on loopback for tests of the checks. Each test chooses their answers, valid or not."""

import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from email.utils import formatdate
from pathlib import Path
from typing import BinaryIO

from kube_node_ready.checks import dns_client
from kube_node_ready.checks.access import Access, trusting
from lab import pki

LOOPBACK = "127.0.0.1"
API_SERVICE = "10.96.0.1"
DnsAnswer = Callable[[bytes], list[bytes]]
HttpAnswer = Callable[[str, dict[str, str]], bytes]


def dns_reply(query: bytes, *addresses: str, code: int = 0, flags: int = 0, number: int | None = None) -> bytes:
    """A right answer to a query, or one that is wrong in one way."""
    asked = struct.unpack_from("!H", query)[0] if number is None else number
    header = struct.pack("!6H", asked, 0x8180 | flags | code, 1, len(addresses), 0, 0)
    packed = [socket.inet_pton(_family(address), address) for address in addresses]
    kinds = {4: dns_client.A, 16: dns_client.AAAA}
    records = [struct.pack("!HHHIH", 0xC00C, kinds[len(data)], 1, 5, len(data)) + data for data in packed]
    return header + query[12:] + b"".join(records)


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


@contextmanager
def denying_server(address: str) -> Iterator[int]:
    """A DNS server at this address that knows no name at all."""
    with dns_server(lambda query: [dns_reply(query, code=3)], address=address) as port:
        yield port


@contextmanager
def dns_server(
    by_udp: DnsAnswer, by_tcp: DnsAnswer | None = None, address: str = LOOPBACK, port: int = 0
) -> Iterator[int]:
    """Answers each query with the datagrams that the function returns. By TCP, if at all, on the same port."""
    # TCP chooses the port: connections that are long over still keep some from it. Bound only, it refuses.
    tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    tcp.bind((address, port))
    port = tcp.getsockname()[1]
    udp.bind((address, port))
    stop = threading.Event()

    def serve() -> None:
        udp.settimeout(0.05)
        while not stop.is_set():
            with suppress(TimeoutError):
                query, asker = udp.recvfrom(4096)
                for datagram in by_udp(query):
                    udp.sendto(datagram, asker)

    def answer(connection: socket.socket) -> None:
        size = struct.unpack("!H", connection.recv(2))[0]
        for message in by_tcp(connection.recv(size)) if by_tcp else []:
            connection.sendall(struct.pack("!H", len(message)) + message)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        if by_tcp:
            with tcp_server(answer, tcp):
                yield port
        else:
            yield port
    finally:
        stop.set()
        thread.join()
        udp.close()
        tcp.close()


@contextmanager
def tcp_server(serve: Callable[[socket.socket], None], bound: socket.socket | None = None) -> Iterator[int]:
    """Calls `serve` with every connection, each in a thread of its own; at the end it closes them all."""
    listener = bound or socket.create_server((LOOPBACK, 0))
    listener.listen()
    listener.settimeout(0.05)
    stop = threading.Event()
    connections: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def one(connection: socket.socket) -> None:
        with suppress(OSError, struct.error):
            serve(connection)
        connection.close()

    def accept() -> None:
        while not stop.is_set():
            with suppress(TimeoutError):
                connection, _ = listener.accept()
                connection.settimeout(5)
                connections.append(connection)
                threads.append(threading.Thread(target=one, args=(connection,)))
                threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        stop.set()
        accepting.join()
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        listener.close()


def http(body: bytes = b"{}", status: int = 200, *, length: int | None = None, date: float | None = None) -> bytes:
    """An answer; `length` is what it claims if that is not the truth, `date` the server's time."""
    head = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body) if length is None else length}"]
    head.append(f"Date: {formatdate(date, usegmt=True)}")
    return "\r\n".join([*head, "", ""]).encode() + body


def http_json(value: object, status: int = 200) -> bytes:
    return http(json.dumps(value).encode(), status)


class FakeApi:
    """An API server that answers what a test says, and otherwise as a sound one. Real ones are in tests/e2e."""

    def __init__(self, folder: Path) -> None:
        self.authority = pki.Authority(folder)
        pair = self.authority.sign("server", "kube-apiserver", hosts=[LOOPBACK, "localhost"])
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pair.certificate, pair.key)
        self.answers: dict[str, bytes] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.port = 0
        self.cut = False
        self.longest_head = 0
        """If set, longer heads of requests are not answered, as if their packets were lost."""

    @contextmanager
    def running(self) -> Iterator["FakeApi"]:
        with tcp_server(self._serve) as self.port:
            yield self

    @property
    def access(self) -> Access:
        return Access(LOOPBACK, self.port, trusting(self.authority.certificate.read_text(), "ca.crt"), "the-token")

    def _serve(self, plain: socket.socket) -> None:
        with self._context.wrap_socket(plain, server_side=True) as connection:
            while head := _head(connection):
                path, headers = head
                self.asked.append((path, headers))
                if 0 < self.longest_head < sum(len(name) + len(value) for name, value in headers.items()):
                    connection.recv(1)
                    return
                connection.sendall(self._answer(path))
                if self.cut:
                    plain_end = connection.detach()
                    socket.close(plain_end)
                    return

    def _answer(self, path: str) -> bytes:
        plain = path.partition("?")[0]
        for known in (path, plain):
            if known in self.answers:
                return self.answers[known]
        if "/openapi/" in plain:
            return http(b"x" * 100_000)
        if plain.endswith("/endpointslices"):
            return http_json(slices([LOOPBACK]))
        return http()


def slices(ready: list[str], unready: list[str] | None = None, *, port: int = 53) -> Mapping[str, object]:
    endpoints = [{"addresses": [address]} for address in ready]
    endpoints += [{"addresses": [address], "conditions": {"ready": False}} for address in unready or []]  # type: ignore[dict-item]
    ports = [
        {"name": "dns", "port": port, "protocol": "UDP"},
        {"name": "dns-tcp", "port": port, "protocol": "TCP"},
        {"name": "metrics", "port": 9153, "protocol": "TCP"},
    ]
    return {"items": [{"addressType": "IPv4", "ports": ports, "endpoints": endpoints}]}


def headers_of(stream: BinaryIO) -> dict[str, str]:
    """Those of a request whose first line has been read. What follows is its body."""
    found = {}
    while line := stream.readline().decode().strip():
        name, _, value = line.partition(":")
        found[name.lower()] = value.strip()
    return found


def _head(connection: socket.socket) -> tuple[str, dict[str, str]] | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(4096)
        if not piece:
            return None
        data += piece
    first, *lines = data.decode().split("\r\n\r\n")[0].split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return first.split()[1], {name.lower(): value.strip() for name, _, value in pairs}
