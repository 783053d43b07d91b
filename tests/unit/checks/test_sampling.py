"""Many samples of one answer: what is counted as lost, how many are taken, and how many can fail."""

import itertools
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bench import samples
from kube_node_ready.checks import dns, dns_client, resolver, sampling, transport
from kube_node_ready.checks.check import CheckFailedError, Deadline
from kube_node_ready.checks.dns_client import Question
from kube_node_ready.checks.resolver import Resolver
from kube_node_ready.checks.sampling import LOST, Sampling
from kube_node_ready.checks.settings import Settings
from tests.support.check_servers import API_SERVICE, LOOPBACK, dns_reply, dns_server
from tests.support.shell import ROOT

NAME = "kubernetes.default.svc.cluster.local"
CLUSTER = ("kube-system.svc.cluster.local", "svc.cluster.local", "cluster.local")
DEFAULTS = Settings().sampling


class Faults:
    """Answers samples with the faults of a list, and remembers how many were asked for at a time."""

    def __init__(self, faults: Sequence[str]) -> None:
        self._faults = iter(faults)
        self.series: list[int] = []

    def __call__(self, count: int, _patience: float) -> list[str]:
        self.series.append(count)
        return list(itertools.islice(self._faults, count))


class TestSampleCounts:
    def test_a_healthy_node_answers_the_first_samples_and_no_more_are_taken(self) -> None:
        ask = Faults([""] * 100)
        assert sampling.take(ask, DEFAULTS, Deadline(10)) == {"queries": 24}
        assert ask.series == [24]

    @pytest.mark.parametrize("lost", [1, 2, 3])
    def test_a_few_lost_packets_are_followed_by_more_samples_and_tolerated(self, lost: int) -> None:
        ask = Faults([LOST] * lost + [""] * 100)
        facts = sampling.take(ask, DEFAULTS, Deadline(10))
        assert facts == {"queries": 72, "loss": f"{lost} of 72 queries lost"}
        assert ask.series == [24, 48]

    def test_more_than_five_percent_fail_the_check(self) -> None:
        with pytest.raises(CheckFailedError, match=r"^4 of 72 queries lost$"):
            sampling.take(Faults([LOST] + [""] * 60 + [LOST] * 3 + [""] * 100), DEFAULTS, Deadline(10))

    def test_no_more_samples_are_taken_when_too_many_are_lost_already(self) -> None:
        ask = Faults([LOST] * 4 + [""] * 100)
        with pytest.raises(CheckFailedError, match=r"^4 of 24 queries lost$"):
            sampling.take(ask, DEFAULTS, Deadline(10))
        assert ask.series == [24]

    def test_every_kind_of_fault_is_counted_and_the_most_frequent_comes_first(self) -> None:
        faults = ["", LOST, *["answered NXDOMAIN"] * 6, *[""] * 100]
        with pytest.raises(CheckFailedError, match=r"^6 of 24 queries answered NXDOMAIN, 1 of 24 queries lost$"):
            sampling.take(Faults(faults), DEFAULTS, Deadline(10))

    def test_without_tolerance_one_lost_packet_fails_the_check(self) -> None:
        with pytest.raises(CheckFailedError, match=r"^1 of 12 queries lost$"):
            sampling.take(Faults([LOST] + [""] * 100), Sampling(12, 0), Deadline(10))

    def test_after_a_loss_even_one_sample_is_extended(self) -> None:
        assert sampling.take(Faults([LOST] + [""] * 100), Sampling(1, 5), Deadline(10))["queries"] == 60

    @pytest.mark.parametrize(("targets", "first"), [(1, 24), (2, 12), (5, 5), (24, 3), (1000, 3)])
    def test_targets_share_the_first_samples(self, targets: int, first: int) -> None:
        spread = DEFAULTS.spread_over(targets)
        assert (spread.first, spread.most, spread.allowed) == (first, DEFAULTS.most, DEFAULTS.allowed)

    def test_fewer_samples_than_the_least_share_stay_as_few(self) -> None:
        assert Sampling(1, 5).spread_over(1).first == 1

    def test_the_wait_for_lost_answers_leaves_time_for_a_second_series(self) -> None:
        waits = []

        def ask(count: int, patience: float) -> list[str]:
            waits.append(patience)
            return [LOST] + [""] * (count - 1) if len(waits) == 1 else [""] * count

        sampling.take(ask, DEFAULTS, Deadline(3))
        assert all(wait <= 1.35 for wait in waits)

    def test_a_slow_server_gets_more_time(self) -> None:
        waits = []

        def ask(count: int, patience: float) -> list[str]:
            waits.append(patience)
            return [""] * count

        sampling.take(ask, DEFAULTS, Deadline(60), first_answer=0.8)
        sampling.take(ask, DEFAULTS, Deadline(60), first_answer=3)
        assert waits == [pytest.approx(2.4), *[9] * 5]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited between series, without waiting."""
    found: list[float] = []
    monkeypatch.setattr("kube_node_ready.checks.sampling.time.sleep", found.append)
    return found


class TestOverTime:
    """A server that answers only now and then can answer all samples of one moment."""

    def test_a_first_answer_that_came_late_spreads_the_samples(self, pauses: list[float]) -> None:
        """Its first queries were lost: it answers for a while, and then no more."""
        ask = Faults([""] * 5 + [LOST] * 48)
        with pytest.raises(CheckFailedError, match=r"^5 of 10 queries lost$"):
            sampling.take(ask, DEFAULTS, Deadline(10), first_answer=3)
        assert len(pauses) == 1

    def test_an_earlier_failure_spreads_the_samples(self, pauses: list[float]) -> None:
        ask = Faults([""] * 20 + [LOST] * 4)
        with pytest.raises(CheckFailedError, match=r"^4 of 24 queries lost$"):
            sampling.take(ask, DEFAULTS._replace(over_time=True), Deadline(10))
        assert len(pauses) == 4

    def test_a_slow_server_that_loses_nothing_passes(self, pauses: list[float]) -> None:
        ask = Faults([""] * 100)
        assert sampling.take(ask, DEFAULTS, Deadline(10), first_answer=3) == {"queries": 24}
        assert ask.series == [5, 5, 5, 5, 4]
        assert sum(pauses) == pytest.approx(2, rel=0.05)

    def test_a_few_lost_packets_are_tolerated(self, pauses: list[float]) -> None:
        ask = Faults([""] * 12 + [LOST] * 3 + [""] * 100)
        facts = sampling.take(ask, DEFAULTS, Deadline(10), first_answer=1)
        assert facts == {"queries": 72, "loss": "3 of 72 queries lost"}
        assert ask.series == [5, 5, 5, 5, 4, 48]
        assert len(pauses) == 4

    def test_a_target_with_few_samples_gets_them_one_by_one(self, pauses: list[float]) -> None:
        ask = Faults([""] * 100)
        sampling.take(ask, Sampling(24, 5, first=3, over_time=True), Deadline(10))
        assert ask.series == [1, 1, 1]
        assert len(pauses) == 2

    def test_little_time_is_shared(self, pauses: list[float]) -> None:
        sampling.take(Faults([""] * 100), DEFAULTS._replace(over_time=True), Deadline(1))
        assert all(pause <= 0.1 for pause in pauses)

    def test_only_attempts_after_a_failure_take_their_time(self) -> None:
        assert not Settings().sampling.over_time
        assert Settings().after_failure().sampling.over_time


class TestQueries:
    def test_every_query_is_sent_once_from_a_port_of_its_own(self) -> None:
        numbers = itertools.count()
        with dns_server(lambda query: [] if next(numbers) % 2 else [dns_reply(query)]) as port:
            found = dns_client.sample_by_udp(LOOPBACK, port, Question(NAME))(10, 0.2)
        assert sorted(found) == [""] * 5 + [LOST] * 5
        assert next(numbers) == 10

    def test_lost_answers_are_awaited_together(self) -> None:
        begun = time.monotonic()
        with dns_server(lambda _query: []) as port:
            assert dns_client.sample_by_udp(LOOPBACK, port, Question(NAME))(24, 0.5) == [LOST] * 24
        assert time.monotonic() - begun < 5

    def test_answers_to_other_queries_do_not_count(self) -> None:
        with dns_server(lambda query: [b"nonsense", dns_reply(query, number=0)]) as port:
            assert set(dns_client.sample_by_udp(LOOPBACK, port, Question(NAME))(5, 0.2)) <= {LOST, ""}

    def test_a_closed_port_is_named(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
            unused.bind((LOOPBACK, 0))
            port = unused.getsockname()[1]
        assert dns_client.sample_by_udp(LOOPBACK, port, Question(NAME))(3, 5) == ["failed (Connection refused)"] * 3

    @pytest.mark.parametrize(
        ("code", "addresses", "fault"),
        [
            (0, [API_SERVICE], ""),
            (0, [], "answered without an address"),
            (2, [], "answered SERVFAIL"),
            (3, [], "answered NXDOMAIN"),
            (9, [], "answered code 9"),
        ],
    )
    def test_an_answer_without_an_address_is_a_fault(self, code: int, addresses: list[str], fault: str) -> None:
        with dns_server(lambda query: [dns_reply(query, *addresses, code=code)]) as port:
            ask = dns_client.sample_by_udp(LOOPBACK, port, Question(NAME), dns_client.with_address)
            assert ask(2, 5) == [fault] * 2

    def test_resolvers_that_ask_by_tcp_are_sampled_by_tcp(self) -> None:
        with dns_server(lambda _query: [], lambda query: [dns_reply(query, API_SERVICE)]) as port:
            assert dns_client.sample_by_tcp(LOOPBACK, port, Question(NAME))(5, 5) == [""] * 5
        assert set(dns_client.sample_by_tcp(LOOPBACK, port, Question(NAME))(5, 0.2)) == {LOST}


class TestNames:
    """The pod's own resolver, read as libc reads it. libc itself is played: it resolves every name."""

    @pytest.fixture(autouse=True)
    def _files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "resolv.conf").write_text(
            f"nameserver {LOOPBACK}\nsearch {' '.join(CLUSTER)}\noptions ndots:5 trust-ad\n"
        )
        (tmp_path / "hosts").write_text("127.0.0.1 localhost # comment\n::1 in-hosts.example\n")
        monkeypatch.setattr(resolver, "RESOLV_CONF", str(tmp_path / "resolv.conf"))
        monkeypatch.setattr(resolver, "HOSTS", str(tmp_path / "hosts"))
        monkeypatch.setattr(transport, "addresses_of", lambda _name: [API_SERVICE])
        monkeypatch.setattr(sampling, "_PATIENCE_SECONDS", 0.2)
        monkeypatch.setattr(sampling, "_PATIENCE_FACTOR", 0)

    @staticmethod
    def knowing(*names: str) -> Callable[[bytes], list[bytes]]:
        """A server that knows these names and no others."""
        known = {dns_client.encode(Question(name), 0)[12:] for name in names}

        def answer(query: bytes) -> list[bytes]:
            return [dns_reply(query, API_SERVICE) if query[12:] in known else dns_reply(query, code=3)]

        return answer

    @pytest.mark.parametrize(
        ("name", "full_name"),
        [
            (NAME, NAME),
            (f"{NAME}.", NAME),
            ("kubernetes.default", NAME),
            ("example.com", "example.com"),
        ],
    )
    def test_a_name_is_resolved_as_by_libc_and_queried_many_times(
        self, name: str, full_name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with dns_server(self.knowing(full_name)) as port:
            monkeypatch.setattr(dns_client, "PORT", port)
            proof = dns.always_resolves(name, API_SERVICE, DEFAULTS, Deadline(10))
        assert proof.details == {"addresses": [API_SERVICE], "queries": 24}

    def test_a_name_with_intermittent_nxdomain_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        numbers = itertools.count()
        with dns_server(
            lambda query: [dns_reply(query, code=3) if next(numbers) % 2 else dns_reply(query, API_SERVICE)]
        ) as port:
            monkeypatch.setattr(dns_client, "PORT", port)
            with pytest.raises(CheckFailedError, match=rf"^12 of 24 queries answered NXDOMAIN \(queried {LOOPBACK}\)$"):
                dns.always_resolves(NAME, API_SERVICE, DEFAULTS, Deadline(10))

    def test_a_name_that_only_libc_resolves_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with dns_server(self.knowing()) as port:
            monkeypatch.setattr(dns_client, "PORT", port)
            with pytest.raises(CheckFailedError, match=r"^resolves only sometimes: 127\.0\.0\.1 returned no address"):
                dns.always_resolves(NAME, API_SERVICE, DEFAULTS, Deadline(10))

    def test_a_wrong_address_of_the_api_service_is_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        numbers = itertools.count()
        with dns_server(lambda query: [dns_reply(query, "192.0.2.9" if next(numbers) % 2 else API_SERVICE)]) as port:
            monkeypatch.setattr(dns_client, "PORT", port)
            with pytest.raises(CheckFailedError, match=r"^12 of 24 queries answered with another address "):
                dns.always_resolves(NAME, API_SERVICE, DEFAULTS, Deadline(10))

    def test_a_search_domain_with_a_server_error_is_skipped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def answer(query: bytes) -> list[bytes]:
            is_known = query[12:] == dns_client.encode(Question("example.com"), 0)[12:]
            return [dns_reply(query, API_SERVICE) if is_known else dns_reply(query, code=2)]

        with dns_server(answer) as port:
            monkeypatch.setattr(dns_client, "PORT", port)
            assert dns.always_resolves("example.com", API_SERVICE, DEFAULTS, Deadline(10)).details["queries"] == 24

    @pytest.mark.parametrize("name", ["localhost", "In-Hosts.example"])
    def test_a_name_in_the_hosts_file_is_not_queried(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dns_client, "ask", None)
        assert dns.always_resolves(name, "", DEFAULTS, Deadline(10)).details == {"addresses": [API_SERVICE]}


class TestResolver:
    def read(self, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Resolver:
        (tmp_path / "resolv.conf").write_text(text)
        monkeypatch.setattr(resolver, "RESOLV_CONF", str(tmp_path / "resolv.conf"))
        return resolver.read()

    def test_the_file_of_a_pod(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = f"search {' '.join(CLUSTER)} ec2.internal .\nnameserver 10.96.0.10\noptions ndots:5\n"
        assert self.read(text, tmp_path, monkeypatch) == Resolver(("10.96.0.10",), (*CLUSTER, "ec2.internal"))

    def test_unknown_lines_are_ignored(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = (
            "nameserver\nsearch a..b ä.example\noptions ndots:many use-vc\noptions\n; comment\n"
            + "nameserver ::1\n" * 9
        )
        found = self.read(text, tmp_path, monkeypatch)
        assert found == Resolver(("::1",) * 3, (), by_tcp=True)

    def test_without_the_file_localhost_is_queried(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(resolver, "RESOLV_CONF", "/nonexistent")
        assert resolver.servers(resolver.read()) == ("127.0.0.1",)
        assert resolver.read().shown == "no server: /nonexistent lists none"

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("a.b.", ("a.b.",)),
            (NAME, (NAME, *(f"{NAME}.{domain}" for domain in CLUSTER))),
            ("db", (*(f"db.{domain}" for domain in CLUSTER), "db")),
            ("registry.prod", ("registry.prod", *(f"registry.prod.{domain}" for domain in CLUSTER))),
            ("a.b.c.d.e.f", ("a.b.c.d.e.f", *(f"a.b.c.d.e.f.{domain}" for domain in CLUSTER))),
        ],
    )
    def test_a_name_with_a_dot_is_first_taken_as_complete(self, name: str, expected: tuple[str, ...]) -> None:
        assert Resolver(search=CLUSTER).candidates(name) == expected

    def test_a_name_that_would_be_too_long_is_not_queried(self) -> None:
        name = ".".join(["a" * 60] * 4)
        assert Resolver(search=CLUSTER).candidates(name) == (name,)


class TestProbabilities:
    """Of a release within 20 attempts, by arithmetic. `python -m bench.samples` measures them."""

    @pytest.mark.parametrize("loss", [0.2, 0.3, 0.5, 0.8])
    def test_a_node_that_loses_a_fifth_of_its_queries_or_more_is_held(self, loss: float) -> None:
        assert samples.release_probability(loss, Settings()) < 0.01

    def test_a_healthy_node_passes_its_first_attempt(self) -> None:
        assert samples.pass_probability(0.001, DEFAULTS) > 0.9999
        assert samples.pass_probability(0.01, DEFAULTS) > 0.99

    def test_the_numbers_of_the_issue_would_often_release_it(self) -> None:
        """3 samples at first and 12 later: the first attempt alone passes with 12.5 % at 50 % NXDOMAIN."""
        few = Settings(dns_samples=3, dns_samples_after_failure=12)
        assert samples.release_probability(0.5, few) > 0.12
        assert samples.release_probability(0.3, few) > 0.4

    def test_the_documentation_shows_the_probabilities_of_the_defaults(self) -> None:
        assert samples.table(Settings()) in (ROOT / "docs" / "reference" / "operator.md").read_text()

    @pytest.mark.parametrize(("share", "denies"), [(0.5, True), (0.3, False)])
    def test_a_small_campaign_with_the_real_check_releases_no_node(self, share: float, denies: bool) -> None:  # noqa: FBT001
        done = samples.campaign(Settings(), samples.Server(share, 15, denies=denies), runs=2, patience=0.05)
        assert done.released == ()

    def test_a_campaign_releases_healthy_nodes_by_their_first_attempt(self) -> None:
        done = samples.campaign(Settings(), samples.Server(0, 15, denies=False), runs=5, patience=2)
        assert done.released == (1,) * 5

    def test_the_bound_of_a_campaign_is_the_rule_of_three(self) -> None:
        assert samples.Campaign(300, (), 0).bound == pytest.approx(0.01, rel=0.01)
