"""The ports for probes and scrapes, and what their clients cannot do to them."""

import errno
import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kube_node_ready import bounded_http
from kube_node_ready.bounded_http import BoundedServer
from kube_node_ready.probes import Health, ProbeServer

PROBE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
MOST = bounded_http._FEWEST_CONNECTIONS
BURST = 3000


class Slow(Collector):
    """Takes its time, and counts how often it was asked, and by how many threads at a time."""

    def __init__(self, seconds: float, size: int = 1) -> None:
        self.seconds = seconds
        self.size = size
        self.calls = 0
        self.most_at_a_time = 0
        self._running = 0

    def collect(self) -> Iterator[Metric]:
        self._running += 1
        self.most_at_a_time = max(self.most_at_a_time, self._running)
        self.calls += 1
        time.sleep(self.seconds)
        gauge = GaugeMetricFamily("nodes", "n" * self.size, labels=["call"])
        gauge.add_metric([str(self.calls)], 1)
        yield gauge
        self._running -= 1


@pytest.fixture
def few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "_MOST_CONNECTIONS", MOST)


@contextmanager
def serving(collector: Collector | None = None) -> Iterator[int]:
    """The port of a server for as long as the block runs."""
    registry = CollectorRegistry()
    if collector:
        registry.register(collector)
    server = ProbeServer(0, Health(), registry)
    server.start()
    try:
        yield server.port
    finally:
        server.stop()


def connect(port: int, sent: bytes = b"") -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), timeout=5)
    if sent:
        sock.sendall(sent)
    return sock


def answered(sock: socket.socket) -> bytes:
    """All that the server sends until it closes the connection."""
    got = b""
    try:
        while data := sock.recv(65536):
            got += data
    except ConnectionResetError:
        pass
    return got


def ask(port: int, sent: bytes = PROBE) -> bytes:
    with connect(port, sent) as sock:
        return answered(sock)


def is_closed(sock: socket.socket) -> bool:
    sock.settimeout(2)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def until(condition: Callable[[], bool], seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_probes_and_unknown_paths_are_answered() -> None:
    with serving() as port:
        assert ask(port).endswith(b"\r\n\r\nok\n")
        assert ask(port, b"GET /readyz?verbose HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 503 ")
        assert ask(port, b"GET /x HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 404 ")
        head = ask(port, b"HEAD /healthz HTTP/1.1\r\n\r\n")
        assert head.endswith(b"\r\n\r\n")
        assert b"Content-Length: 3\r\n" in head


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /healthz HTTP/1.1\r\n\r\n", b"405"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET  /healthz HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /healthz\xff HTTP/1.1\r\n\r\n", b"400"),
        (b"\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nX: " + 9000 * b"x", b"431"),
    ],
)
def test_invalid_requests_are_rejected(sent: bytes, status: bytes) -> None:
    with serving() as port:
        assert ask(port, sent).startswith(b"HTTP/1.1 " + status)


def test_a_request_can_arrive_in_parts() -> None:
    with serving() as port, connect(port) as sock:
        for byte in PROBE:
            sock.sendall(bytes([byte]))
        assert answered(sock).endswith(b"ok\n")


def test_trickled_bytes_do_not_extend_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "_CONNECTION_SECONDS", 0.5)
    with serving() as port, connect(port) as sock:
        began = time.monotonic()
        with pytest.raises(OSError):  # noqa: PT011  a reset or a broken pipe
            while time.monotonic() - began < 3:
                sock.sendall(b"x")
                time.sleep(0.05)
        assert time.monotonic() - began < 1


def test_a_client_that_does_not_read_is_dropped_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "_CONNECTION_SECONDS", 0.5)
    with serving(Slow(0, size=20_000_000)) as port:
        before = files()
        with connect(port, SCRAPE):
            until(lambda: files() > before + 1)
            until(lambda: files() == before + 1)  # our own end


@pytest.mark.usefixtures("few_connections")
def test_connections_are_capped_and_the_newest_is_served() -> None:
    with serving() as port, ExitStack() as stack:
        before = files()
        held = [stack.enter_context(connect(port, b"GET /")) for _ in range(3 * MOST)]
        assert ask(port).endswith(b"ok\n")
        until(lambda: files() - before - len(held) <= MOST)
        assert all(is_closed(sock) for sock in held[: 2 * MOST])


@pytest.mark.usefixtures("few_connections")
def test_the_address_with_the_most_connections_loses_one() -> None:
    """The kubelet's slow probe is kept, though it is the oldest."""
    with serving() as port, ExitStack() as stack:
        kubelet = stack.enter_context(socket.socket())
        kubelet.bind(("127.0.0.2", 0))
        kubelet.connect(("127.0.0.1", port))
        kubelet.settimeout(5)
        kubelet.sendall(PROBE[:10])
        held = [stack.enter_context(connect(port, b"GET /")) for _ in range(3 * MOST)]
        assert is_closed(held[0])
        kubelet.sendall(PROBE[10:])
        assert answered(kubelet).endswith(b"ok\n")


def test_a_probe_is_answered_beside_many_addresses_with_one_connection_each() -> None:
    """A probe's request can arrive after the connection of many others."""
    with serving() as port, ExitStack() as stack:

        def attack(network: int) -> None:
            for host in range(1, 41):
                sock = stack.enter_context(socket.socket())
                sock.bind((f"127.0.{network}.{host}", 0))
                sock.connect(("127.0.0.1", port))

        attack(1)
        with connect(port, PROBE[:10]) as probe:
            attack(2)
            time.sleep(0.05)
            probe.sendall(PROBE[10:])
            assert answered(probe).endswith(b"ok\n")


@pytest.mark.parametrize(("files", "most"), [(128, 16), (1024, 64), (4096, 256), (2**20, 256)])
def test_few_connections_are_kept_where_file_descriptors_are_scarce(
    monkeypatch: pytest.MonkeyPatch, files: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert bounded_http.most_connections() == most


def test_a_probe_is_answered_after_thousands_of_connections_in_a_moment() -> None:
    """If the kernel's queue overflows, the probe's connection is dropped, and tried again after a second."""
    if int(Path("/proc/sys/net/core/somaxconn").read_text()) < BURST:
        pytest.skip("net.core.somaxconn is too low")
    server = ProbeServer(0, Health(), CollectorRegistry())
    for _ in range(BURST):  # before anything is accepted, so that all of them wait
        with socket.socket() as sock:
            sock.settimeout(0)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.connect_ex(("127.0.0.1", server.port))
    began = time.monotonic()
    try:
        with connect(server.port, PROBE) as probe:
            server.start()
            assert answered(probe).endswith(b"ok\n")
        assert time.monotonic() - began < 0.9
    finally:
        server.stop()


@pytest.mark.usefixtures("few_connections")
def test_a_flood_of_connections_takes_at_most_half_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause is as long as accepting took."""
    monkeypatch.setattr(bounded_http, "_CROWDED_PAUSE_SECONDS", 0.0)
    pauses: list[tuple[float, float]] = []
    accept_all, pause = BoundedServer._accept_all, BoundedServer._pause
    began = 0.0

    def accepting(server: BoundedServer) -> None:
        nonlocal began
        began = time.monotonic()
        accept_all(server)

    def pausing(server: BoundedServer, seconds: float) -> None:
        pauses.append((time.monotonic() - began, seconds))
        pause(server, seconds)

    monkeypatch.setattr(BoundedServer, "_accept_all", accepting)
    monkeypatch.setattr(BoundedServer, "_pause", pausing)
    with serving() as port, ExitStack() as held:
        for _ in range(10 * MOST):
            held.enter_context(connect(port))
        until(lambda: bool(pauses))
    assert all(seconds >= 0.5 * worked for worked, seconds in pauses)


def test_concurrent_scrapes_share_one_page() -> None:
    slow = Slow(0.3)
    with serving(slow) as port:
        slow.calls = 0  # registering asks once
        answers: list[bytes] = []
        scrapes = [threading.Thread(target=lambda: answers.append(ask(port, SCRAPE))) for _ in range(MOST - 1)]
        for scrape in scrapes:
            scrape.start()
        began = time.monotonic()
        assert ask(port).endswith(b"ok\n")
        assert time.monotonic() - began < 0.2, "a probe does not wait for a page"
        for scrape in scrapes:
            scrape.join()
        assert all(b"nodes{" in answer for answer in answers)
        assert slow.most_at_a_time == 1
        assert slow.calls <= 2


def test_a_quick_page_is_rendered_again() -> None:
    quick = Slow(0)
    with serving(quick) as port:
        first = ask(port, SCRAPE)
        time.sleep(0.2)
        assert ask(port, SCRAPE) != first


def test_a_page_that_cannot_be_rendered_is_an_error_and_the_next_is_tried(capfd: pytest.CaptureFixture[str]) -> None:
    class Broken(Slow):
        def collect(self) -> Iterator[Metric]:
            if self.seconds:
                raise KeyError("lost")
            yield from super().collect()

    broken = Broken(0)
    with serving(broken) as port:
        broken.seconds = 1
        assert ask(port, SCRAPE).startswith(b"HTTP/1.1 500 ")
        broken.seconds = 0
        until(lambda: ask(port, SCRAPE).startswith(b"HTTP/1.1 200 "))
    assert "KeyError('lost')" in capfd.readouterr().out


def test_probes_are_answered_without_free_file_descriptors() -> None:
    """Another part of the process has taken all there are."""
    with serving() as port, ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(3)]  # before there are none left
        with no_files_left():
            for client in clients:
                client.settimeout(5)
                client.connect(("127.0.0.1", port))
                client.sendall(PROBE)
                assert answered(client).endswith(b"ok\n")
        assert ask(port).endswith(b"ok\n")


def test_accepting_pauses_without_descriptors_and_without_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "_RESERVED_FILES", 0)
    with serving() as port, ExitStack() as stack:
        client = stack.enter_context(socket.socket())
        with no_files_left():
            client.connect(("127.0.0.1", port))
            client.sendall(PROBE)
            spent = time.process_time()
            time.sleep(1)
            assert time.process_time() - spent < 0.2, "it spins"
        client.settimeout(5)
        assert answered(client).endswith(b"ok\n"), "it goes on"


@contextmanager
def no_files_left() -> Iterator[None]:
    """A limit at what is open now, and all below it taken."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(file.name) for file in Path("/proc/self/fd").iterdir()) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest, before[1]))
    taken: list[int] = []
    try:
        with pytest.raises(OSError) as error:  # noqa: PT011  its number is compared
            while True:
                taken.append(os.dup(0))
        assert error.value.errno == errno.EMFILE
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for number in taken:
            os.close(number)
