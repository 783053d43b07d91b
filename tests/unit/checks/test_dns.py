"""Asking DNS servers directly, and what is made of their answers."""

import itertools
import socket
import struct
import time
from typing import Any

import pytest

from kube_node_ready.checks import dns, dns_client, transport
from kube_node_ready.checks.check import CheckFailedError, Deadline
from kube_node_ready.checks.dns_client import MalformedError, Question
from kube_node_ready.checks.settings import Settings
from tests.support.check_servers import API_SERVICE, LOOPBACK, dns_reply, dns_server

NAME = "kubernetes.default.svc.cluster.local"
QUESTION = Question(NAME)
SAMPLING = Settings().sampling


def test_the_address_in_an_answer_is_found() -> None:
    with dns_server(lambda query: [dns_reply(query, API_SERVICE)]) as port:
        reply = dns_client.ask(LOOPBACK, port, QUESTION, Deadline(30))
    assert reply.addresses == (API_SERVICE,)


def test_ipv6_addresses_are_found_too() -> None:
    with dns_server(lambda query: [dns_reply(query, "fd00::1")]) as port:
        reply = dns_client.ask(LOOPBACK, port, Question(NAME, dns_client.AAAA), Deadline(30))
    assert reply.addresses == ("fd00::1",)


def test_a_name_that_does_not_exist_is_an_answer() -> None:
    with dns_server(lambda query: [dns_reply(query, code=3)]) as port:
        assert not dns_client.ask(LOOPBACK, port, QUESTION, Deadline(30)).addresses


@pytest.mark.parametrize(("code", "word"), [(2, "SERVFAIL"), (5, "REFUSED"), (9, "code 9")])
def test_a_server_that_responds_with_an_error_fails(code: int, word: str) -> None:
    with (
        dns_server(lambda query: [dns_reply(query, code=code)]) as port,
        pytest.raises(CheckFailedError, match=f"returned {word}"),
    ):
        dns_client.ask(LOOPBACK, port, QUESTION, Deadline(30))


def test_responses_to_other_queries_are_ignored() -> None:
    def answers(query: bytes) -> list[bytes]:
        number = int.from_bytes(query[:2], "big") ^ 1
        other_name = query[:12] + dns_client.encode(Question("example.com"), 0)[12:]
        return [
            dns_reply(query, "192.0.2.1", number=number),
            dns_reply(other_name, "192.0.2.1"),
            b"nonsense",
            query,
            dns_reply(query, API_SERVICE),
        ]

    with dns_server(answers) as port:
        assert dns_client.ask(LOOPBACK, port, QUESTION, Deadline(30)).addresses == (API_SERVICE,)


def test_malformed_responses_are_reported() -> None:
    with (
        dns_server(lambda query: [dns_reply(query, API_SERVICE)[:-3]]) as port,
        pytest.raises(CheckFailedError, match=r"by UDP within 2 s; received an invalid answer: a record is truncated"),
    ):
        dns_client.ask(LOOPBACK, port, QUESTION, Deadline(2))


def test_a_lost_packet_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns_client, "_SECONDS_BETWEEN_TRIES", 0.1)
    tries = itertools.count()
    with dns_server(lambda query: [] if next(tries) < 2 else [dns_reply(query, API_SERVICE)]) as port:
        assert dns_client.ask(LOOPBACK, port, QUESTION, Deadline(5)).addresses == (API_SERVICE,)
    assert next(tries) >= 3


def test_a_response_after_the_next_retry_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns_client, "_SECONDS_BETWEEN_TRIES", 0.1)

    def slowly(query: bytes) -> list[bytes]:
        time.sleep(0.25)
        return [dns_reply(query, API_SERVICE)]

    with dns_server(slowly) as port:
        assert dns_client.ask(LOOPBACK, port, QUESTION, Deadline(3)).addresses == (API_SERVICE,)


def test_a_silent_server_fails_at_the_deadline() -> None:
    begun = time.monotonic()
    with dns_server(lambda _query: []) as port, pytest.raises(CheckFailedError, match=r"by UDP within 0\.3 s$"):
        dns_client.ask(LOOPBACK, port, QUESTION, Deadline(0.3))
    assert 0.2 < time.monotonic() - begun < 30


def test_a_closed_port_fails_immediately() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind((LOOPBACK, 0))
        port = unused.getsockname()[1]
    with pytest.raises(CheckFailedError, match="by UDP: Connection refused"):
        dns_client.ask(LOOPBACK, port, QUESTION, Deadline(5))


def test_a_truncated_answer_is_retried_by_tcp() -> None:
    truncated = 0x0200
    with dns_server(
        lambda query: [dns_reply(query, flags=truncated)], lambda query: [dns_reply(query, API_SERVICE)]
    ) as port:
        assert dns_client.ask(LOOPBACK, port, QUESTION, Deadline(30)).addresses == (API_SERVICE,)


def test_a_tcp_connection_without_an_answer_fails() -> None:
    with (
        dns_server(lambda query: [dns_reply(query)], lambda _query: []) as port,
        pytest.raises(
            CheckFailedError, match="but no DNS answer arrived: the connection was closed after 0 of 2 bytes"
        ),
    ):
        dns_client.ask_by_tcp(LOOPBACK, port, QUESTION, Deadline(30))


def test_a_question_that_points_at_itself_is_malformed() -> None:
    query = dns_client.encode(QUESTION, 7)
    looping = query[:2] + b"\x81\x80" + query[4:12] + b"\xc0\x0c" + query[-4:]
    with pytest.raises(MalformedError, match="a name without an end"):
        dns_client.decode(looping, QUESTION, 7)


class Counted(bytes):
    """Counts how many single bytes are read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:  # noqa: ANN401  as of bytes
        Counted.reads += isinstance(at, int)
        return super().__getitem__(at)


def test_names_of_records_are_not_followed() -> None:
    """Answers of 64 KiB whose names are chains of pointers kept a worker busy for all of its time."""
    query = dns_client.encode(QUESTION, 7)
    chain_at, records = len(query) + 11, 5_000
    chain = b"".join(b"\x01a" + struct.pack("!H", 0xC000 | chain_at + 4 * (link + 1)) for link in range(60)) + b"\0"
    first = b"\0" + struct.pack("!HHIH", 16, 1, 0, len(chain)) + chain
    others = (struct.pack("!HHHIH", 0xC000 | chain_at, 16, 1, 0, 0)) * records
    answer = query[:2] + struct.pack("!5H", 0x8180, 1, records + 1, 0, 0) + query[12:] + first + others
    assert dns_client.decode(Counted(answer), QUESTION, 7).addresses == ()
    assert Counted.reads < 2 * records + 200


class TestTheClustersServer:
    def test_it_resolves_the_api_services_address(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with dns_server(lambda query: [dns_reply(query, API_SERVICE)]) as port:
            monkeypatch.setattr(dns_client, "PORT", port)
            proof = dns.resolves_cluster_name(LOOPBACK, NAME, API_SERVICE, SAMPLING, Deadline(30))
        assert proof.details == {"addresses": [API_SERVICE], "queries": SAMPLING.samples}

    def test_another_address_fails_and_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with dns_server(lambda query: [dns_reply(query, "192.0.2.9")]) as port:
            monkeypatch.setattr(dns_client, "PORT", port)
            with pytest.raises(
                CheckFailedError, match=r"resolves to 192\.0\.2\.9, and the API Service is 10\.96\.0\.1"
            ):
                dns.resolves_cluster_name(LOOPBACK, NAME, API_SERVICE, SAMPLING, Deadline(30))

    def test_no_address_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with dns_server(lambda query: [dns_reply(query, code=3)]) as port:
            monkeypatch.setattr(dns_client, "PORT", port)
            with pytest.raises(CheckFailedError, match=f"returned no address for {NAME}"):
                dns.resolves_cluster_name(LOOPBACK, NAME, API_SERVICE, SAMPLING, Deadline(30))


class TestThePodsResolver:
    def test_a_name_that_resolves_passes(self) -> None:
        assert dns.resolves("localhost", "")

    def test_a_name_that_does_not_resolve_fails_and_names_the_servers_asked(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_host: str) -> list[str]:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

        monkeypatch.setattr(transport, "addresses_of", fail)
        with pytest.raises(CheckFailedError, match=r"^does not resolve: Temporary failure .* \(queried "):
            dns.resolves("example.com", "")

    @pytest.mark.parametrize(
        "name", ["kubernetes.default", "kubernetes.default.svc.", f"{NAME}.", "KUBERNETES.default"]
    )
    def test_the_api_services_name_must_resolve_to_the_api_service(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transport, "addresses_of", lambda _host: ["192.0.2.9"])
        with pytest.raises(CheckFailedError, match=r"resolves to 192\.0\.2\.9, and the API Service is 10\.96\.0\.1"):
            dns.resolves(name, API_SERVICE)

    def test_two_spellings_of_an_ipv6_address_are_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transport, "addresses_of", lambda _host: ["fd00::1"])
        assert dns.resolves(NAME, "FD00:0:0::0001")

    def test_any_other_name_can_have_any_address(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transport, "addresses_of", lambda _host: ["192.0.2.9"])
        assert dns.resolves("kubernetes.example.com", API_SERVICE)
