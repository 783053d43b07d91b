"""The API server as a check sees it: sound, foreign, slow, cut off, forbidding, or in another time."""

import itertools
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from kube_node_ready.api import report as reading
from kube_node_ready.checks import access, api_server, network, sampling, services, settings, transport
from kube_node_ready.checks import report as encoding
from kube_node_ready.checks.check import (
    Check,
    CheckFailedError,
    Deadline,
    ElsewhereError,
    Evidence,
    InconclusiveError,
    PodIdentity,
)
from kube_node_ready.checks.dns_client import Question
from kube_node_ready.checks.runner import Limits, Observer, Runner
from kube_node_ready.checks.settings import PAYLOAD_PATH, Settings
from kube_node_ready.checks.transport import NoAnswerError, UnreachableError
from lab import pki, waiting
from tests.support.check_servers import LOOPBACK, FakeApi, dns_reply, dns_server, http, http_json, slices, tcp_server

SAMPLING = Settings().sampling
HERE = PodIdentity("this-node", "kube-system")
SERVICE = "kube-system/kube-dns"
SERVICE_PATH = "/api/v1/namespaces/kube-system/services/kube-dns"
ENDPOINTS_PATH = "/api/v1/namespaces/kube-system/endpoints/kube-dns"
SLICES_PATH = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeApi]:
    with FakeApi(tmp_path / "pki").running() as running:
        yield running


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port without a listener, which no other process can bind."""
    with socket.socket() as silent:
        silent.bind((LOOPBACK, 0))
        yield silent.getsockname()[1]


def failure_elsewhere(run: Callable[[Deadline], Evidence], *, is_judged: bool = True) -> str:
    """Run one check, which must fail without blaming the node. Return the reason as the controller reads it."""
    results = Runner(Limits(30, 30), Observer()).run([Check("services", SERVICE, run)])
    found = reading.read(encoding.encode("this-node", results).decode())
    assert found
    assert found.failed
    assert not found.blames_node
    assert ("not judged" in found.reason) is not is_judged
    return found.reason


class TestApi:
    def test_it_authenticates_with_the_token(self, fake: FakeApi) -> None:
        api_server.authenticates(api_server.api_root(fake.access), Deadline(30))
        ((path, headers),) = fake.asked
        assert path == "/api"
        assert headers["authorization"] == "Bearer the-token"

    @pytest.mark.parametrize(("status", "words"), [(401, "rejects the credentials"), (403, "forbids GET /api")])
    def test_a_rejection_fails_with_the_reason_and_does_not_blame_the_node(
        self, fake: FakeApi, status: int, words: str
    ) -> None:
        fake.answers["/api"] = http_json({"message": "no"}, status)
        root = api_server.api_root(fake.access)
        assert words in failure_elsewhere(lambda deadline: api_server.authenticates(root, deadline))

    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_an_overloaded_server_does_not_blame_the_node(self, fake: FakeApi, status: int) -> None:
        fake.answers["/api"] = http_json({"message": "later"}, status)
        with pytest.raises(InconclusiveError, match=f"returned HTTP {status} to GET /api: later"):
            api_server.authenticates(api_server.api_root(fake.access), Deadline(30))

    def test_a_server_of_another_authority_is_not_trusted(self, fake: FakeApi, tmp_path: Path) -> None:
        foreign = access.trusting(pki.Authority(tmp_path / "foreign").certificate.read_text(), "ca.crt")
        with pytest.raises(UnreachableError, match="certificate is not trusted"):
            api_server.authenticates(api_server.api_root(fake.access._replace(context=foreign)), Deadline(30))
        assert not fake.asked

    def test_a_certificate_for_another_name_is_not_trusted(self, fake: FakeApi) -> None:
        with pytest.raises(UnreachableError, match=r"is not trusted: .*other\.example"):
            fake.access._replace(name_in_certificate="other.example").connect(Deadline(30))

    def test_a_handshake_without_an_answer_hints_at_the_mtu(self, fake: FakeApi) -> None:
        def listen(connection: socket.socket) -> None:
            while connection.recv(4096):
                pass

        with tcp_server(listen) as port, pytest.raises(UnreachableError, match="MTU"):
            api_server.authenticates(api_server.api_root(fake.access._replace(port=port)), Deadline(1))

    def test_a_server_that_does_not_speak_tls_fails(self, fake: FakeApi) -> None:
        with (
            tcp_server(lambda connection: connection.sendall(http())) as port,
            pytest.raises(UnreachableError, match="TCP connects, but TLS fails: WRONG_VERSION_NUMBER"),
        ):
            fake.access._replace(port=port).connect(Deadline(30))

    def test_a_closed_port_is_named(self, fake: FakeApi, closed_port: int) -> None:
        with pytest.raises(UnreachableError, match=f"no TCP connection to 127.0.0.1:{closed_port}: Connection refused"):
            fake.access._replace(port=closed_port).connect(Deadline(30))


class TestPayload:
    def test_a_large_answer_that_arrives_whole_passes(self, fake: FakeApi) -> None:
        proof = api_server.large_messages_arrive(fake.access, PAYLOAD_PATH, Deadline(30))
        assert proof.details == {"bytes": 100_000}
        assert fake.asked[0][1]["accept-encoding"] == "identity"

    def test_only_the_needed_amount_is_requested(self, fake: FakeApi) -> None:
        fake.answers[PAYLOAD_PATH] = http(b"x" * 131_072, 206)
        assert api_server.large_messages_arrive(fake.access, PAYLOAD_PATH, Deadline(30)).details == {"bytes": 131_072}
        assert fake.asked[0][1]["range"] == "bytes=0-131071"

    def test_large_packets_that_are_lost_on_the_way_to_the_server_fail(self, fake: FakeApi) -> None:
        fake.longest_head = 1400
        api_server.authenticates(api_server.api_root(fake.access), Deadline(30))
        with pytest.raises(CheckFailedError, match=r"no response to GET .* within 1 s: large packets .*MTU"):
            api_server.large_messages_arrive(fake.access, PAYLOAD_PATH, Deadline(1))

    def test_the_request_is_larger_than_two_packets_and_smaller_than_the_limits_of_proxies(self, fake: FakeApi) -> None:
        api_server.large_messages_arrive(fake.access._replace(token="t" * 2000), PAYLOAD_PATH, Deadline(30))
        ((_, headers),) = fake.asked
        assert len(headers["x-padding"]) == 3000
        assert sum(len(name) + len(value) + 4 for name, value in headers.items()) < 6 * 1024

    def test_an_answer_in_chunks_passes(self, fake: FakeApi) -> None:
        chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
        fake.answers[PAYLOAD_PATH] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 3 + b"0\r\n\r\n"
        assert api_server.large_messages_arrive(fake.access, PAYLOAD_PATH, Deadline(30)).details == {
            "bytes": 3 * 0x8000
        }

    def test_less_than_64_kb_fails_and_does_not_blame_the_node(self, fake: FakeApi) -> None:
        fake.answers[PAYLOAD_PATH] = http(b"x" * 65_535)
        reason = failure_elsewhere(partial(api_server.large_messages_arrive, fake.access, PAYLOAD_PATH))
        assert "65535 bytes, expected at least 65536" in reason

    def test_a_stalled_response_hints_at_the_mtu_with_the_received_size(self, fake: FakeApi) -> None:
        fake.answers[PAYLOAD_PATH] = http(b"x" * 50_000, length=100_000)
        with pytest.raises(CheckFailedError, match=r"50000 bytes of the response .* within 2 s: large packets .*MTU"):
            api_server.large_messages_arrive(fake.access, PAYLOAD_PATH, Deadline(2))

    def test_an_answer_that_is_cut_off_fails(self, fake: FakeApi) -> None:
        fake.answers[PAYLOAD_PATH] = http(b"x" * 70_000, length=100_000)
        fake.cut = True
        with pytest.raises(NoAnswerError, match="cut off"):
            api_server.large_messages_arrive(fake.access, PAYLOAD_PATH, Deadline(30))

    def test_an_answer_without_a_length_that_is_cut_off_fails(self, fake: FakeApi) -> None:
        """Without a TLS close_notify the end cannot be distinguished from a truncation."""
        fake.answers[PAYLOAD_PATH] = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 70_000
        fake.cut = True
        with pytest.raises(NoAnswerError, match="cut off"):
            api_server.large_messages_arrive(fake.access, PAYLOAD_PATH, Deadline(30))

    def test_a_missing_path_fails_and_does_not_blame_the_node(self, fake: FakeApi) -> None:
        fake.answers[PAYLOAD_PATH] = http(status=404)
        reason = failure_elsewhere(partial(api_server.large_messages_arrive, fake.access, PAYLOAD_PATH))
        assert reason.endswith("set payloadPath to another")

    @pytest.mark.parametrize("status", [401, 403])
    def test_a_rejected_payload_does_not_blame_the_node(self, fake: FakeApi, status: int) -> None:
        fake.answers[PAYLOAD_PATH] = http(status=status)
        assert f"{status}" in failure_elsewhere(
            partial(api_server.large_messages_arrive, fake.access, PAYLOAD_PATH), is_judged=False
        )

    @pytest.mark.parametrize(
        "nonsense", [b"SSH-2.0-OpenSSH_9\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"]
    )
    def test_what_is_not_http_fails(self, fake: FakeApi, nonsense: bytes) -> None:
        fake.answers[PAYLOAD_PATH] = nonsense
        with pytest.raises(CheckFailedError, match="is not HTTP"):
            api_server.large_messages_arrive(fake.access, PAYLOAD_PATH, Deadline(30))

    def test_without_a_connection_the_payload_is_inconclusive(self, fake: FakeApi, closed_port: int) -> None:
        with pytest.raises(InconclusiveError, match=r"^cannot connect to the API server: no TCP connection"):
            api_server.large_messages_arrive(fake.access._replace(port=closed_port), PAYLOAD_PATH, Deadline(30))


class TestClock:
    def test_a_clock_that_agrees_passes(self, fake: FakeApi) -> None:
        api_server.clock_in_sync(api_server.api_root(fake.access), 1, Deadline(30))

    @pytest.mark.parametrize(("seconds", "side"), [(-100, "ahead of"), (100, "behind")])
    def test_a_clock_that_differs_fails_with_both_times(self, fake: FakeApi, seconds: float, side: str) -> None:
        theirs = time.time() + seconds
        fake.answers["/api"] = http(date=theirs)
        with pytest.raises(CheckFailedError, match=rf"UTC\) is (9\d|10\d) s {side}") as why:
            api_server.clock_in_sync(api_server.api_root(fake.access), 30, Deadline(30))
        assert time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(theirs)) in str(why.value)

    def test_the_clock_is_checked_even_if_the_token_is_rejected(self, fake: FakeApi) -> None:
        fake.answers["/api"] = http(status=401)
        api_server.clock_in_sync(api_server.api_root(fake.access), 1, Deadline(30))

    @pytest.mark.parametrize(
        ("asked", "answered", "skew"),
        [(1000.0, 1000.2, 0), (1000.9, 1000.95, 0), (999.0, 1000.0, 0), (1001.5, 1002, 0.5), (990, 998, -2)],
    )
    def test_rounding_and_latency_are_not_skew(self, asked: float, answered: float, skew: float) -> None:
        assert api_server.minimum_skew(1000, asked, answered) == pytest.approx(skew)

    def test_an_invalid_date_is_inconclusive(self, fake: FakeApi) -> None:
        fake.answers["/api"] = b"HTTP/1.1 200 OK\r\nDate: Sun, 99 Foo\r\nContent-Length: 0\r\n\r\n"
        with pytest.raises(InconclusiveError, match="Date header is invalid: 'Sun, 99 Foo'"):
            api_server.clock_in_sync(api_server.api_root(fake.access), 1, Deadline(30))


class TestServices:
    def test_a_service_with_ready_endpoints_passes_and_others_do_not_count(self, fake: FakeApi) -> None:
        fake.answers[SLICES_PATH] = http_json(slices(["192.0.2.1", "192.0.2.2"], ["192.0.2.3"]))
        lookup = services.endpoints_of(fake.access, SERVICE)
        assert services.has_ready_endpoints(lookup, Deadline(30)).details == {"endpoints": 2}
        assert [endpoint.address for endpoint in lookup(Deadline(30))] == ["192.0.2.1", "192.0.2.2"]

    def test_shared_requests_are_sent_once(self, fake: FakeApi) -> None:
        lookup = services.endpoints_of(fake.access, SERVICE)
        assert lookup(Deadline(30)) == lookup(Deadline(5))
        assert len(fake.asked) == 2

    def test_ports_other_than_dns_are_ignored(self, fake: FakeApi) -> None:
        (endpoint,) = services.endpoints_of(fake.access, SERVICE)(Deadline(30))
        assert (endpoint.udp, endpoint.tcp) == ((53,), (53,))

    def test_a_missing_service_fails(self, fake: FakeApi) -> None:
        fake.answers[SERVICE_PATH] = http(status=404)
        with pytest.raises(ElsewhereError, match=r"^the Service kube-system/kube-dns does not exist$"):
            services.endpoints_of(fake.access, SERVICE)(Deadline(30))

    @pytest.mark.parametrize("ready", [[], ["192.0.2.3"]])
    def test_a_service_without_a_ready_endpoint_fails(self, fake: FakeApi, ready: list[str]) -> None:
        fake.answers[SLICES_PATH] = http_json(slices([], ready))
        with pytest.raises(ElsewhereError, match="none of its endpoints is ready"):
            services.has_ready_endpoints(services.endpoints_of(fake.access, SERVICE), Deadline(30))

    @pytest.mark.parametrize("answer", [(SERVICE_PATH, http(status=404)), (SLICES_PATH, http_json(slices([], [])))])
    def test_a_stopped_service_is_not_counted_against_the_node(self, fake: FakeApi, answer: tuple[str, bytes]) -> None:
        fake.answers |= [answer]
        lookup = services.endpoints_of(fake.access, SERVICE)
        assert "the Service " in failure_elsewhere(partial(services.has_ready_endpoints, lookup))

    @pytest.mark.parametrize(
        ("path", "right", "rule"),
        [
            (
                SERVICE_PATH,
                "get services in namespace kube-system",
                'apiGroups: [""], resources: ["services"], verbs: ["get"]',
            ),
            (
                SLICES_PATH,
                "list endpointslices in namespace kube-system",
                'apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list"]',
            ),
        ],
    )
    def test_a_missing_right_is_named_with_the_rule_that_grants_it_and_does_not_blame_the_node(
        self, fake: FakeApi, path: str, right: str, rule: str
    ) -> None:
        fake.answers[path] = fake.answers[ENDPOINTS_PATH] = http_json({"message": "User x cannot"}, 403)
        lookup = services.endpoints_of(fake.access, SERVICE)
        reason = failure_elsewhere(partial(services.has_ready_endpoints, lookup))
        assert reason.endswith(f"permission to {right} is missing: User x cannot; add the RBAC rule {rule}")

    def test_without_the_right_to_slices_endpoints_are_read(self, fake: FakeApi) -> None:
        fake.answers[SLICES_PATH] = http(status=403)
        ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "metrics", "port": 9153, "protocol": "TCP"}]
        subset = {"addresses": [{"ip": "192.0.2.1"}], "notReadyAddresses": [{"ip": "192.0.2.2"}], "ports": ports}
        fake.answers[ENDPOINTS_PATH] = http_json({"subsets": [subset]})
        assert services.endpoints_of(fake.access, SERVICE)(Deadline(30)) == (services.Endpoint("192.0.2.1", (53,), ()),)

    @pytest.mark.parametrize("subsets", [None, [], [{"notReadyAddresses": [{"ip": "192.0.2.2"}]}]])
    def test_endpoints_without_a_ready_address_fail(self, fake: FakeApi, subsets: object) -> None:
        fake.answers[SLICES_PATH] = http(status=403)
        fake.answers[ENDPOINTS_PATH] = http_json({"subsets": subsets})
        with pytest.raises(ElsewhereError, match="none of its endpoints is ready"):
            services.has_ready_endpoints(services.endpoints_of(fake.access, SERVICE), Deadline(30))

    @pytest.mark.parametrize("status", [401, 429, 500])
    def test_other_errors_for_slices_do_not_cause_a_read_of_endpoints(self, fake: FakeApi, status: int) -> None:
        fake.answers[SLICES_PATH] = http(status=status)
        fake.answers[ENDPOINTS_PATH] = http_json({"subsets": [{"addresses": [{"ip": "192.0.2.1"}]}]})
        with pytest.raises(InconclusiveError):
            services.endpoints_of(fake.access, SERVICE)(Deadline(30))

    def test_a_service_without_endpoints_names_the_missing_right(self, fake: FakeApi) -> None:
        fake.answers[SLICES_PATH] = http(status=403)
        fake.answers[ENDPOINTS_PATH] = http(status=404)
        lookup = services.endpoints_of(fake.access, SERVICE)
        reason = failure_elsewhere(partial(services.has_ready_endpoints, lookup))
        assert re.search(r"has no Endpoints, and permission to list .* is missing", reason)

    @pytest.mark.parametrize("body", ['{"subsets": 5}', '{"subsets": [5]}', '{"subsets": [{"addresses": [{}]}]}', "[]"])
    def test_malformed_endpoints_are_inconclusive(self, fake: FakeApi, body: str) -> None:
        fake.answers[SLICES_PATH] = http(status=403)
        fake.answers[ENDPOINTS_PATH] = http(body.encode())
        with pytest.raises(InconclusiveError):
            services.endpoints_of(fake.access, SERVICE)(Deadline(30))

    @pytest.mark.parametrize("status", [401, 500])
    def test_other_status_codes_are_inconclusive(self, fake: FakeApi, status: int) -> None:
        fake.answers[SERVICE_PATH] = http(status=status)
        with pytest.raises(InconclusiveError):
            services.endpoints_of(fake.access, SERVICE)(Deadline(30))

    @pytest.mark.parametrize(
        "wrong",
        [
            {"endpoints": [{"addresses": []}]},
            {"endpoints": [{"addresses": ["host.example"]}]},
            {"endpoints": [{"addresses": ["192.0.2.٣"]}]},
            {"ports": [{"name": "dns", "port": 10**30, "protocol": "UDP"}]},
            {"ports": [{"name": "dns", "port": -53, "protocol": "TCP"}]},
        ],
        ids=["no address", "a name", "not ASCII", "port too large", "negative port"],
    )
    def test_an_invalid_endpoint_is_inconclusive(self, fake: FakeApi, wrong: dict[str, object]) -> None:
        whole = {"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}], **wrong}
        fake.answers[SLICES_PATH] = http_json({"items": [whole]})
        with pytest.raises(InconclusiveError, match="is malformed"):
            services.endpoints_of(fake.access, SERVICE)(Deadline(30))

    @pytest.mark.parametrize("body", ["[]", "{}", '{"items": 5}', '{"items": [5]}', '{"items": [{}]}', "garbage", ""])
    def test_a_malformed_list_is_inconclusive(self, fake: FakeApi, body: str) -> None:
        fake.answers[SLICES_PATH] = http(body.encode())
        with pytest.raises(InconclusiveError):
            services.endpoints_of(fake.access, SERVICE)(Deadline(30))


class TestNetwork:
    def test_every_ready_dns_server_becomes_a_job(self, fake: FakeApi) -> None:
        fake.answers[SLICES_PATH] = http_json(slices(["192.0.2.1", "192.0.2.2"], ["192.0.2.3"]))
        lookup = services.endpoints_of(fake.access, SERVICE)
        jobs = network.each_dns_server(lookup, SERVICE, "name", SAMPLING, HERE, Deadline(30)).follow_ups
        assert [(job.name, job.target) for job in jobs] == [("network", "192.0.2.1:53"), ("network", "192.0.2.2:53")]

    @pytest.mark.parametrize("source", [SLICES_PATH, ENDPOINTS_PATH])
    def test_a_dns_server_on_another_node_is_a_peer(self, fake: FakeApi, source: str) -> None:
        nodes = {"192.0.2.1": "other", "192.0.2.2": HERE.node, "192.0.2.3": None}
        if source == SLICES_PATH:
            endpoints = [{"addresses": [address], "nodeName": node} for address, node in nodes.items()]
            fake.answers[source] = http_json({"items": [{"addressType": "IPv4", "endpoints": endpoints}]})
        else:
            addresses = [{"ip": address, "nodeName": node} for address, node in nodes.items()]
            fake.answers[SLICES_PATH] = http_json({}, 403)
            fake.answers[source] = http_json({"subsets": [{"addresses": addresses}]})
        lookup = services.endpoints_of(fake.access, SERVICE)
        jobs = network.each_dns_server(lookup, SERVICE, "name", SAMPLING, HERE, Deadline(30)).follow_ups
        assert [job.peer for job in jobs] == ["other", "", ""]

    def test_of_many_dns_servers_a_sample_is_asked_and_few_of_one_node(self) -> None:
        forged = [services.Endpoint(f"192.0.2.{last}", (53,), (), "forger") for last in range(200)]
        honest = [services.Endpoint(f"198.51.100.{last}", (53,), (), f"node-{last}") for last in range(50)]

        def asked(endpoints: list[services.Endpoint]) -> list[str]:
            lookup = lambda _deadline: tuple(endpoints)  # noqa: E731
            return [
                job.peer
                for job in network.each_dns_server(lookup, SERVICE, "name", SAMPLING, HERE, Deadline(30)).follow_ups
            ]

        peers = asked(forged + honest)
        assert peers.count("forger") == 4
        assert set(peers) == {"forger", *(f"node-{last}" for last in range(50))}
        unknown = [endpoint._replace(node="") for endpoint in forged]
        assert len(asked(unknown)) == 64

    def test_a_dns_server_is_asked_by_udp_and_by_tcp(self, fake: FakeApi) -> None:
        with dns_server(lambda query: [dns_reply(query)], lambda query: [dns_reply(query)]) as port:
            fake.answers[SLICES_PATH] = http_json(slices([LOOPBACK], port=port))
            lookup = services.endpoints_of(fake.access, SERVICE)
            (job,) = network.each_dns_server(lookup, SERVICE, "name", SAMPLING, HERE, Deadline(30)).follow_ups
            job.run(Deadline(30))

    def test_a_dns_server_that_fails_by_udp_and_tcp_reports_both(self, fake: FakeApi) -> None:
        with dns_server(lambda query: [dns_reply(query, code=5)]) as port:
            fake.answers[SLICES_PATH] = http_json(slices([LOOPBACK], port=port))
            lookup = services.endpoints_of(fake.access, SERVICE)
            (job,) = network.each_dns_server(lookup, SERVICE, "name", SAMPLING, HERE, Deadline(30)).follow_ups
            with pytest.raises(CheckFailedError, match=r"no TCP connection to .*; the DNS server returned REFUSED"):
                job.run(Deadline(30))

    def test_a_dns_server_that_responds_by_one_protocol_fails(self) -> None:
        with dns_server(lambda query: [dns_reply(query)]) as port:
            endpoint = services.Endpoint(LOOPBACK, (port,), (port,))
            with pytest.raises(
                CheckFailedError, match=rf"^no TCP connection to {LOOPBACK}:{port}: Connection refused$"
            ):
                network.serves_dns(endpoint, Question("name"), SAMPLING, Deadline(30))

    def test_a_dns_server_that_answers_only_some_queries_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sampling, "_PATIENCE_SECONDS", 0.2)
        monkeypatch.setattr(sampling, "_PATIENCE_FACTOR", 0)
        numbers = itertools.count()
        with dns_server(lambda query: [] if next(numbers) % 3 == 1 else [dns_reply(query)]) as port:
            endpoint = services.Endpoint(LOOPBACK, (port,), ())
            with pytest.raises(CheckFailedError, match=r"^8 of 24 queries lost by UDP$"):
                network.serves_dns(endpoint, Question("name"), SAMPLING, Deadline(30))

    def test_many_dns_servers_share_the_first_samples(self, fake: FakeApi) -> None:
        asked = itertools.count()

        def answer(query: bytes) -> list[bytes]:
            next(asked)
            return [dns_reply(query)]

        with dns_server(answer, lambda query: [dns_reply(query)]) as port:
            # The same server under several addresses: each becomes a job.
            fake.answers[SLICES_PATH] = http_json(slices([f"127.0.0.{last}" for last in range(1, 5)], port=port))
            lookup = services.endpoints_of(fake.access, SERVICE)
            (first, *others) = network.each_dns_server(lookup, SERVICE, "name", SAMPLING, HERE, Deadline(30)).follow_ups
            assert len(others) == 3
            first.run(Deadline(30))
        assert next(asked) == 1 + SAMPLING.samples / 4

    def test_unknown_endpoints_are_inconclusive_with_the_cause(self, fake: FakeApi) -> None:
        fake.answers[SLICES_PATH] = fake.answers[ENDPOINTS_PATH] = http_json({"message": "User x cannot"}, 403)
        lookup = services.endpoints_of(fake.access, SERVICE)
        with pytest.raises(InconclusiveError, match=f"endpoints of {SERVICE} are not known: permission to list"):
            network.each_dns_server(lookup, SERVICE, "name", SAMPLING, HERE, Deadline(30))

    @pytest.mark.parametrize(("status", "passes"), [(200, True), (302, True), (404, False), (500, False)])
    def test_a_url_must_answer_2xx_or_3xx(self, status: int, passes: bool) -> None:  # noqa: FBT001
        with tcp_server(lambda connection: connection.sendall(http(status=status))) as port:
            url = settings.url(f"http://{LOOPBACK}:{port}/healthz?full=1")
            assert url
            if passes:
                assert network.answers(url, Deadline(30)).details == {"status": status}
            else:
                with pytest.raises(CheckFailedError, match=f"returned HTTP {status}, expected 2xx or 3xx"):
                    network.answers(url, Deadline(30))

    def test_a_final_dot_is_for_the_resolver_and_not_for_tls(
        self, fake: FakeApi, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With it, no search domain is tried. No certificate has it, and no server expects it in `Host`."""
        fake.answers["/"] = http_json({})
        monkeypatch.setattr(ssl, "create_default_context", lambda: fake.access.context)
        monkeypatch.setattr(transport, "addresses_of", lambda _: [LOOPBACK])
        url = settings.url(f"https://localhost.:{fake.port}/")
        assert url
        assert network.answers(url, Deadline(30)).details == {"status": 200}
        ((_, headers),) = fake.asked
        assert headers["host"] == f"localhost:{fake.port}"

    def test_a_url_with_a_certificate_that_the_system_does_not_trust_fails(self, fake: FakeApi) -> None:
        url = settings.url(f"https://{LOOPBACK}:{fake.port}/")
        assert url
        with pytest.raises(UnreachableError, match="not trusted"):
            network.answers(url, Deadline(30))


def test_a_trickling_response_times_out() -> None:
    """Each packet comes in time; the answer does not."""

    def trickle(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(100):
            connection.sendall(b"x")
            time.sleep(0.05)

    with tcp_server(trickle) as port:
        conversation = transport.HttpConnection(transport.connect(LOOPBACK, port, Deadline(30)), "host", {})
        with conversation, pytest.raises(NoAnswerError, match=r"bytes of the response to GET / within 2 s"):
            conversation.get("/", Deadline(2))


@pytest.mark.parametrize(("comes", "end"), [(b"", ConnectionResetError), (http(), None)], ids=["none", "whole"])
def test_the_connection_is_closed_after_a_timeout(comes: bytes, end: type[OSError] | None) -> None:
    """It would keep on sending for a quarter of an hour, and hold whatever it holds meanwhile."""
    ends: list[type[OSError] | None] = []

    def serve(connection: socket.socket) -> None:
        try:
            connection.recv(4096)
            connection.sendall(comes)
            connection.recv(1)
            ends.append(None)
        except OSError as why:
            ends.append(type(why))

    with tcp_server(serve) as port:
        conversation = transport.HttpConnection(transport.connect(LOOPBACK, port, Deadline(30)), "host", {})
        with suppress(NoAnswerError), conversation:
            conversation.get("/", Deadline(30 if comes else 0.3))
        waiting.until("the server saw the end", lambda: ends, 180)
    assert ends == [end]
