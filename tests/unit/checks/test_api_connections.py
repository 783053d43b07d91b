"""Many connections to the API Service: a node from which some of its endpoints cannot be reached is held."""

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kube_node_ready.checks import network, plan, transport
from kube_node_ready.checks.check import Check, CheckFailedError, Deadline, PodIdentity
from kube_node_ready.checks.plan import Known
from kube_node_ready.checks.settings import Settings
from kube_node_ready.checks.transport import Response, UnreachableError
from tests.support.check_servers import LOOPBACK, FakeApi

HERE = PodIdentity("this-node", "default")


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeApi]:
    with FakeApi(tmp_path / "pki").running() as running:
        yield running


@contextmanager
def accepting(connections: int) -> Iterator[int]:
    """A port at which this many connections can be made. The packets of all others are dropped."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen(connections - 1)  # Linux queues one more than the backlog
        yield listener.getsockname()[1]


@contextmanager
def counting() -> Iterator[tuple[int, list[int]]]:
    """A server that notes how many connections are open when each one ends."""
    ended: list[int] = []
    listener = socket.create_server((LOOPBACK, 0), backlog=100)
    accepted: list[socket.socket] = []
    stop = threading.Event()

    def serve() -> None:
        listener.settimeout(0.05)
        while not stop.is_set():
            try:
                accepted.append(listener.accept()[0])
            except TimeoutError:
                continue

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1], ended
        deadline = time.monotonic() + 5
        for connection in accepted:
            connection.settimeout(max(0.1, deadline - time.monotonic()))
            assert connection.recv(1) == b"", "the client closed it, and sent nothing"
            ended.append(len(accepted))
    finally:
        stop.set()
        thread.join()
        for connection in accepted:
            connection.close()
        listener.close()


def check_of(settings: Settings, fake: FakeApi, port: int) -> Check:
    access = fake.access._replace(port=port)
    (found,) = (
        check
        for check in plan.in_pod(settings, access, HERE)
        if check.name == "network" and check.target == access.target
    )
    return found


@pytest.mark.parametrize(("settings", "count"), [(Settings(), 12), (Settings().after_failure(), 24)])
def test_an_attempt_opens_many_connections_and_closes_them(fake: FakeApi, settings: Settings, count: int) -> None:
    with counting() as (port, ended):
        assert check_of(settings, fake, port).run(Deadline(5)).details == {"connections": count}
        time.sleep(0.2)
    assert ended == [count] * count


def test_connections_that_cannot_be_made_fail_the_check_and_are_counted(fake: FakeApi) -> None:
    with accepting(8) as port:
        started = time.monotonic()
        with pytest.raises(CheckFailedError) as error:
            check_of(Settings(), fake, port).run(Deadline(0.5))
    assert str(error.value) == f"4 of 12 connections to {LOOPBACK}:{port} failed: timed out"
    assert 0.4 < time.monotonic() - started < 1.5, "it ends at its deadline, and waits for all connections together"


def test_a_closed_port_fails_all_of_them_immediately(fake: FakeApi) -> None:
    with socket.socket() as closed:
        closed.bind((LOOPBACK, 0))
        port = closed.getsockname()[1]
        with pytest.raises(UnreachableError, match=f"^12 of 12 connections to .*:{port} failed: Connection refused$"):
            check_of(Settings(), fake, port).run(Deadline(30))


def test_different_causes_are_counted() -> None:
    assert network.described(["timed out", "no route", "timed out"]) == "2 timed out, 1 no route"
    assert network.described(["timed out"] * 3) == "timed out"


def test_a_failed_address_of_a_host_is_followed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    with counting() as (port, ended):
        monkeypatch.setattr(transport, "addresses_of", lambda _: ["127.0.0.9", LOOPBACK])
        assert transport.failed_connections("two.example", port, 5, Deadline(5)) == []
        time.sleep(0.2)
    assert ended == [5] * 5


def test_a_name_that_does_not_resolve_is_named() -> None:
    with pytest.raises(UnreachableError, match=r"^nobody\.invalid does not resolve: "):
        network.always_accepts_connections("nobody.invalid", 443, 3, Deadline(30))


@pytest.mark.parametrize("accepts", [24, 8])
def test_no_socket_stays_open_and_no_thread_is_started(accepts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []
    real = socket.socket

    def make(*kinds: int) -> socket.socket:
        made.append(real(*kinds))
        return made[-1]

    with accepting(accepts) as port:
        monkeypatch.setattr(socket, "socket", make)
        monkeypatch.setattr(threading.Thread, "start", lambda _: pytest.fail("a thread was started"))
        failed = transport.failed_connections(LOOPBACK, port, 12, Deadline(0.3))
    assert len(failed) == max(0, 12 - accepts)
    assert [plain.fileno() for plain in made] == [-1] * 12


def test_a_process_without_file_descriptors_closes_what_it_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []
    real = socket.socket

    def make(*kinds: int) -> socket.socket:
        if len(made) == 5:
            raise OSError(24, "Too many open files")
        made.append(real(*kinds))
        return made[-1]

    with accepting(12) as port:
        monkeypatch.setattr(socket, "socket", make)
        failed = transport.failed_connections(LOOPBACK, port, 12, Deadline(5))
    assert failed == ["Too many open files"] * 7
    assert [plain.fileno() for plain in made] == [-1] * 5


def test_configured_targets_and_partial_runs_connect_once(fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    connected: list[int] = []
    monkeypatch.setattr(transport, "failed_connections", lambda *_: pytest.fail("many connections"))
    real = transport.connect

    def connect(host: str, port: int, deadline: Deadline) -> socket.socket:
        connected.append(port)
        return real(host, port, deadline)

    monkeypatch.setattr(transport, "connect", connect)
    settings = Settings(network_targets=(f"{LOOPBACK}:{fake.port}",), dns_service="", services=())
    target = plan.in_pod(settings, fake.access, HERE)[-1]
    target.run(Deadline(5))
    known = Known(Response(200, {}, b"", 0, 0), {}, ("dns", "payload"))
    for check in plan.later(settings._replace(network_targets=()), fake.access, HERE, known):
        if check.name == "network":
            check.run(Deadline(5))
    assert connected == [fake.port] * 2


class TestProbabilities:
    """A Service that sends a share of new connections to an endpoint that this node cannot reach."""

    def pass_probability(self, dead: float, settings: Settings) -> float:
        return float((1 - dead) ** settings.api_connections)

    def test_one_dead_api_server_of_three_is_found(self) -> None:
        first = self.pass_probability(1 / 3, Settings())
        later = self.pass_probability(1 / 3, Settings().after_failure())
        assert first == pytest.approx(0.0077, rel=0.01)
        assert later < 0.0001
        assert 1 - (1 - first) * (1 - later) ** 19 < 0.01, "released within 20 attempts"
        page = Path(__file__).parents[3] / "docs" / "reference" / "operator.md"
        assert f"| one of three | {100 * first:.1f} % | {100 * later:.3f} % |" in page.read_text()

    def test_a_single_connection_would_release_it(self) -> None:
        assert 1 - (1 / 3) ** 5 > 0.99

    def test_the_real_check_holds_nearly_every_node(self, fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transport, "failed_connections", balanced(1 / 3, random.Random(1)))  # noqa: S311
        check = check_of(Settings(), fake, 443)
        released = sum(passes(check) for _ in range(2000))
        assert released / 2000 == pytest.approx(0.0077, abs=0.006)


def balanced(dead: float, random: random.Random) -> Callable[..., list[str]]:
    """Connections through a Service that selects an endpoint for each of them at random."""

    def connect(_host: str, _port: int, count: int, _deadline: Deadline) -> list[str]:
        return ["timed out" for _ in range(count) if random.random() < dead]

    return connect


def passes(check: Check) -> bool:
    try:
        check.run(Deadline(5))
    except CheckFailedError:
        return False
    return True
