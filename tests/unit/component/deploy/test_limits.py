"""A server that sends too much, or never ends its answer, ends neither the memory nor the patience of the component."""

import gzip
import json
import math
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

import httpx2
import pytest

from kubekit.connection import Connection
from kubekit.credentials import Credentials, Identity, Source, Static
from kubernetes_daemonset.deploy import limits
from kubernetes_daemonset.deploy.api_client import Cluster, Unreachable, Unreadable
from kubernetes_daemonset.deploy.plan import Ref
from kubernetes_daemonset.deploy.transport import KubeconfigTransport

THING = Ref("Namespace", "thing")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
MEBIBYTE = 2**20
NAMESPACE = {"kind": "Namespace", "metadata": {}}
Answer = Callable[[socket.socket], None]


class Serve(Protocol):
    def __call__(self, answer: Answer, login: Source | None = None) -> Cluster: ...


class Logins:
    """A login that takes its time, and has other credentials each time."""

    reread_seconds = math.inf

    def __init__(self, seconds: float = 0) -> None:
        self._seconds = seconds
        self._count = 0

    def fetch(self) -> Identity:
        time.sleep(self._seconds)
        self._count += 1
        return Identity(f"Bearer {self._count}")


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """A cluster whose server responds as given, to a client with low limits."""
    monkeypatch.setattr(limits, "MAX_BYTES", MEBIBYTE)
    monkeypatch.setattr(limits, "MAX_SECONDS", 0.5)
    listeners: list[socket.socket] = []

    def serve(answer: Answer, login: Source | None = None) -> Cluster:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=_accept, args=(listener, answer), daemon=True).start()
        host, port = listener.getsockname()
        url = f"http://{host}:{port}"
        connection = Connection("test", url, host, port, "", "default", Credentials(login or Static()))
        return Cluster(httpx2.Client(base_url=url, timeout=5, transport=KubeconfigTransport(connection)))

    yield serve
    for listener in listeners:
        listener.close()


def _accept(listener: socket.socket, answer: Answer) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_answer, args=(connection, answer), daemon=True).start()


def _answer(connection: socket.socket, answer: Answer) -> None:
    with connection, suppress(OSError):
        connection.recv(65_536)
        answer(connection)


def _trickle(connection: socket.socket, piece: bytes) -> None:
    for _ in range(100):
        connection.sendall(piece)
        time.sleep(0.1)


def _endless(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(64):
        connection.sendall(b"10000\r\n" + bytes(65_536) + b"\r\n")
    connection.sendall(b"0\r\n\r\n")


def _in_turn(*answers: Answer) -> Answer:
    rest = iter(answers)

    def answer(connection: socket.socket) -> None:
        next(rest)(connection)

    return answer


def _endless_401(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 1000000000\r\n\r\n")
    for _ in range(1_000):
        connection.sendall(bytes(MEBIBYTE))


def _rejection(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def _namespace(connection: socket.socket) -> None:
    body = json.dumps(NAMESPACE).encode()
    connection.sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)


def test_an_answer_without_an_end_is_not_read_whole(serve: Serve) -> None:
    with serve(_endless) as cluster, pytest.raises(Unreadable, match=r"Namespace thing: .*more than 1 MiB"):
        cluster.get(THING)


def test_a_small_answer_that_expands_is_not_expanded(serve: Serve) -> None:
    """A thousand bytes can stand for a million, and the limit is on what arrives."""
    body = gzip.compress(b'{"a":"' + b" " * 64 * MEBIBYTE + b'"}')
    assert len(body) < MEBIBYTE

    def answer(connection: socket.socket) -> None:
        length = f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(HEAD + length.encode() + body)

    with serve(answer) as cluster, pytest.raises(Unreadable, match="gzip"):
        cluster.get(THING)


def test_a_large_401_that_leads_to_a_new_login_is_not_read(serve: Serve) -> None:
    """Only the client limits what it reads, and it does not see this answer."""
    cut = threading.Event()

    def too_large(connection: socket.socket) -> None:
        try:
            _endless_401(connection)
        except OSError:
            cut.set()
            raise

    with serve(_in_turn(too_large, _namespace), Logins()) as cluster:
        assert cluster.get(THING) == NAMESPACE
    assert cut.wait(5)


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"X-Header: value\r\n", id="head"),
        pytest.param(HEAD + b"Content-Length: 1000\r\n\r\n", b"{", id="body"),
    ],
)
def test_an_answer_that_trickles_in_ends_in_time(serve: Serve, head: bytes, piece: bytes) -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        _trickle(connection, piece)

    began = time.monotonic()
    with serve(answer) as cluster, pytest.raises(Unreachable, match=r"no complete response within 0\.5 s"):
        cluster.get(THING)
    assert time.monotonic() - began < 5


def test_the_time_of_a_login_does_not_count(serve: Serve) -> None:
    """Someone might have to log in on a web page, also after a 401."""
    with serve(_in_turn(_rejection, _namespace), Logins(seconds=1)) as cluster:
        assert cluster.get(THING) == NAMESPACE


def test_a_list_without_a_last_page_ends() -> None:
    pages = iter(range(2 * limits.MAX_PAGES))

    def answer(_: httpx2.Request) -> httpx2.Response:
        next(pages)
        return httpx2.Response(200, json={"items": [], "metadata": {"continue": "more"}})

    http = httpx2.Client(transport=httpx2.MockTransport(answer), base_url="https://cluster.test")
    with Cluster(http) as cluster, pytest.raises(Unreadable, match=r"pods in here: .* pages"):
        list(cluster.list("Pod", "here", {}))


def _pages(count: int, items: list[dict[str, object]], seconds: float = 0) -> Cluster:
    """A cluster whose lists have so many pages of these items, each of which takes that long."""
    left = iter(range(count, 0, -1))

    def answer(_: httpx2.Request) -> httpx2.Response:
        time.sleep(seconds)
        page = {"items": items, "metadata": {"continue": "more" if next(left) > 1 else ""}}
        return httpx2.Response(200, content=iter([json.dumps(page).encode()]))  # not in memory yet, as from a socket

    return Cluster(httpx2.Client(transport=httpx2.MockTransport(answer), base_url="https://cluster.test"))


def test_the_pages_of_a_list_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_LIST_BYTES", MEBIBYTE)
    page: list[dict[str, object]] = [{"metadata": {"name": "x" * 300_000}}]
    with _pages(3, page) as cluster:
        assert len(list(cluster.list("ConfigMap", "here", {}, budget=limits.Budget(MEBIBYTE)))) == 3
    with (
        _pages(4, page) as cluster,
        pytest.raises(Unreadable, match="configmaps in here: the list has more than 1 MiB"),
    ):
        list(cluster.list("ConfigMap", "here", {}, budget=limits.Budget(MEBIBYTE)))


def test_one_page_is_in_memory_at_a_time() -> None:
    page: list[dict[str, object]] = [{"metadata": {"name": "x" * MEBIBYTE}}]
    with _pages(20, page) as cluster:
        tracemalloc.start()
        count = sum(1 for _ in cluster.list("Pod", "here", {}))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert count == 20
    assert most < 10 * MEBIBYTE


def test_the_pages_of_a_list_have_one_deadline() -> None:
    began = time.monotonic()
    with (
        _pages(100, [], seconds=0.1) as cluster,
        pytest.raises(Unreadable, match=r"pods in here: .* not complete in time"),
    ):
        list(cluster.list("Pod", "here", {}, budget=limits.Budget(left_seconds=0.5)))
    assert time.monotonic() - began < 3
