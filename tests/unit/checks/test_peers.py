"""Failures that one other node can cause: they hold this node, and are not counted against it."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kube_node_ready.api import report as reading
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks import dns, plan, services
from kube_node_ready.checks import report as encoding
from kube_node_ready.checks.check import (
    ANY_PEER,
    Check,
    CheckFailedError,
    Deadline,
    Evidence,
    PodIdentity,
    Result,
    without_fault_of_one_peer,
)
from kube_node_ready.checks.runner import Limits, Observer, Runner
from kube_node_ready.checks.settings import Settings
from tests.support.check_servers import FakeApi, http, http_json, slices

SLICES_PATH = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"
FAILED, INCONCLUSIVE, PASSED = Verdict.FAILED, Verdict.INCONCLUSIVE, Verdict.PASSED


def verdicts(*results: tuple[str, Verdict]) -> list[Verdict]:
    """What becomes of failed and passed DNS servers, each with the node it runs on; "" is this node."""
    before = [
        Result("network", f"{number}:53", verdict, 1, "lost", peer) for number, (peer, verdict) in enumerate(results)
    ]
    return [result.verdict for result in without_fault_of_one_peer(before)]


def test_a_fault_that_one_peer_can_explain_is_inconclusive() -> None:
    assert verdicts(("a", FAILED), ("b", PASSED)) == [INCONCLUSIVE, PASSED]


def test_all_failures_of_one_peer_are_inconclusive() -> None:
    assert verdicts(("a", FAILED), ("a", FAILED), ("b", PASSED)) == [
        INCONCLUSIVE,
        INCONCLUSIVE,
        PASSED,
    ]


@pytest.mark.parametrize(
    "results",
    [
        [("a", FAILED)],
        [("a", FAILED), ("b", FAILED)],
        [("a", FAILED), ("b", FAILED), ("c", PASSED)],
        [("", FAILED), ("b", PASSED)],
        # Packets to other nodes can be lost while those on this node arrive.
        [("a", FAILED), ("", PASSED)],
        # One that answers on the same node shows nothing about the way to any other.
        [("a", FAILED), ("a", PASSED)],
    ],
)
def test_otherwise_this_node_is_blamed(results: list[tuple[str, Verdict]]) -> None:
    assert verdicts(*results) == [verdict for _, verdict in results]


def test_other_failures_still_count() -> None:
    assert verdicts(("", FAILED), ("a", FAILED), ("b", PASSED)) == [
        FAILED,
        INCONCLUSIVE,
        PASSED,
    ]


def test_queries_through_the_service_to_that_peer_are_inconclusive() -> None:
    peers = [
        Result("network", "1:53", FAILED, 1, "lost", "a"),
        Result("network", "2:53", PASSED, 1, "", "b"),
    ]
    dns = Result("dns", "a.example", FAILED, 1, "9 of 20 queries lost", ANY_PEER)
    assert without_fault_of_one_peer([dns, *peers])[0].verdict == INCONCLUSIVE
    assert without_fault_of_one_peer([dns, *peers[1:]])[0].verdict == FAILED


@pytest.mark.parametrize(
    ("nodes", "verdict"),
    [
        (["a", "b"], INCONCLUSIVE),
        (["a", "b", ""], INCONCLUSIVE),
        (["a", "a"], FAILED),
        ([""], FAILED),
    ],
)
def test_a_server_with_only_direct_responses_does_not_blame_other_nodes(nodes: list[str], verdict: Verdict) -> None:
    """All of them answer, and one of them, asked by the Service, denies a name or keeps silent."""
    asked = [Result("network", f"{number}:53", PASSED, 1, "", node) for number, node in enumerate(nodes)]
    dns = Result("dns", "a.example", FAILED, 1, "9 of 20 queries answered NXDOMAIN", ANY_PEER)
    outside = Result("dns", "192.0.2.53", FAILED, 1, "20 of 20 queries lost")
    api = Result("api", "10.96.0.1:443", FAILED, 1, "timed out")
    found = without_fault_of_one_peer([dns, outside, api, *asked])
    assert [result.verdict for result in found[:3]] == [verdict, FAILED, FAILED]


def test_names_are_resolved_by_any_server_of_the_cluster_and_addresses_are_servers_of_their_own(tmp_path: Path) -> None:
    settings = Settings(dns_test_domains=("a.example", "192.0.2.53"), cluster_dns_ip="10.96.0.10")
    with FakeApi(tmp_path).running() as api:
        jobs = plan.in_pod(settings, api.access, PodIdentity("this-node", "default"))
    assert [job.peer for job in jobs if job.name == "dns"] == [ANY_PEER, "", ANY_PEER]


def fails(_deadline: Deadline) -> Evidence:
    raise CheckFailedError("20 of 20 queries lost")


def test_the_runner_reports_it_with_the_peers_name() -> None:
    jobs = [Check("network", "192.0.2.1:53", fails, "a"), Check("network", "192.0.2.2:53", lambda _: Evidence(), "b")]
    results = Runner(Limits(5, 5), Observer()).run(jobs)
    assert results[0].verdict == INCONCLUSIVE
    assert results[0].error == (
        "not judged: 20 of 20 queries lost; node a might be at fault, since DNS servers on other nodes answer"
    )
    sent = encoding.encode("this-node", results)
    assert json.loads(sent)["checks"][0]["notJudged"] is True
    report = reading.read(sent.decode())
    assert report
    assert report.failed
    assert not report.blames_node


def test_a_report_with_any_failure_of_its_own_blames_the_node() -> None:
    results = [
        Result("network", "x", INCONCLUSIVE, 1, "not judged: y", "a"),
        Result("api", "z", FAILED, 1, "timed out"),
    ]
    report = reading.read(encoding.encode("this-node", results).decode())
    assert report
    assert report.blames_node
    assert report.reason.startswith("api: ")


def test_a_report_too_long_for_every_target_still_shows_whether_the_node_is_at_fault() -> None:
    unjudged = [
        Result("network", f"{number}" * 40, INCONCLUSIVE, 1, "not judged: " + "e" * 900, "a") for number in range(99)
    ]
    own = Result("network", "own", FAILED, 1, "f" * 900)
    for results, blames in ((unjudged, False), ([own, *unjudged], True)):
        report = reading.read(encoding.encode("this-node", results).decode())
        assert report
        assert report.blames_node is blames


class TestManyEndpoints:
    """A kubelet can make any number of addresses endpoints of cluster DNS, with mirror pods."""

    SERVICE = "kube-system/kube-dns"

    @pytest.fixture
    def fake(self, tmp_path: Path) -> Iterator[FakeApi]:
        with FakeApi(tmp_path / "pki").running() as running:
            yield running

    @pytest.fixture
    def no_name_resolves(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The endpoints of that kubelet get the queries that the Service distributes, and nothing answers there."""
        monkeypatch.setattr(dns, "always_resolves", lambda *_: fails(Deadline(1)))

    def reported(self, fake: FakeApi, seconds: float) -> tuple[dict[str, Result], reading.Report]:
        """All results by name, of a node whose names do not resolve, and the report as the controller reads it."""
        settings = Settings()._replace(
            services=(self.SERVICE,), dns_service=self.SERVICE, dns_test_domains=("a.example",)
        )
        jobs = plan.in_pod(settings, fake.access, PodIdentity("here", "ns"))
        results = Runner(Limits(seconds, 60), Observer()).run(jobs)
        report = reading.read(encoding.encode("here", results).decode())
        assert report
        return {result.target if result.name == "network" else result.name: result for result in results}, report

    @pytest.mark.usefixtures("no_name_resolves")
    def test_names_that_do_not_resolve_are_not_judged_if_the_list_is_too_large(self, fake: FakeApi) -> None:
        """No DNS server can be asked directly, so it is unknown whether one of them is at fault."""
        fake.answers[SLICES_PATH] = http_json(slices(["127.0.0.1"] * 400_000))
        found, report = self.reported(fake, 30)
        assert found["dns"].verdict == INCONCLUSIVE
        assert found["dns"].error == (
            f"not judged: 20 of 20 queries lost; the DNS servers of {self.SERVICE} could not be queried directly, "
            "and one might be at fault"
        )
        assert not report.blames_node

    @pytest.mark.usefixtures("no_name_resolves")
    def test_names_that_do_not_resolve_are_not_judged_if_the_list_is_late(
        self, fake: FakeApi, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(services, "_parsed", lambda *_: time.sleep(3))
        found, report = self.reported(fake, 1)
        assert found["dns"].verdict == INCONCLUSIVE
        assert not report.blames_node

    @pytest.mark.usefixtures("no_name_resolves")
    @pytest.mark.parametrize(
        "answer",
        [http_json({"message": "later"}, 503), http(b"<html>"), http_json({"items": 5}), http_json(slices([]))],
        ids=["overloaded", "not JSON", "malformed", "no endpoint"],
    )
    def test_names_that_do_not_resolve_are_not_judged_if_the_list_has_no_endpoints(
        self, fake: FakeApi, answer: bytes
    ) -> None:
        fake.answers[SLICES_PATH] = answer
        found, report = self.reported(fake, 30)
        assert found["dns"].verdict == INCONCLUSIVE
        assert not report.blames_node

    @pytest.mark.usefixtures("no_name_resolves")
    @pytest.mark.parametrize(
        ("path", "name", "answer"),
        [
            ("/api", "api", lambda: http(status=404)),
            (Settings().payload_path, "payload", lambda: b"SSH-2.0-OpenSSH_9\r\n\r\n"),
        ],
        ids=["api", "payload"],
    )
    def test_failures_that_do_not_depend_on_dns_servers_still_count(
        self, fake: FakeApi, path: str, name: str, answer: Callable[[], bytes]
    ) -> None:
        fake.answers[SLICES_PATH] = http_json(slices(["127.0.0.1"] * 400_000))
        fake.answers[path] = answer()  # now, since the clock is checked against its date
        found, report = self.reported(fake, 30)
        assert {key for key, result in found.items() if result.verdict is FAILED} == {name}
        assert report.blames_node

    def judged(self, fake: FakeApi, seconds: float) -> dict[str, Result]:
        settings = Settings()._replace(
            services=(self.SERVICE,), dns_service=self.SERVICE, dns_test_domains=(), payload=False, clock=False
        )
        jobs = [
            job for job in plan.in_pod(settings, fake.access, PodIdentity("here", "ns")) if job.target == self.SERVICE
        ]
        results = Runner(Limits(seconds, 60), Observer()).run(jobs)
        return {result.name: result for result in results}

    def test_a_list_that_is_too_large_is_not_judged(self, fake: FakeApi) -> None:
        """To read all of it takes seconds and more memory than the pod has."""
        fake.answers[SLICES_PATH] = http_json(slices(["127.0.0.1"] * 400_000))
        found = self.judged(fake, 30)
        assert {name: result.verdict for name, result in found.items()} == {
            "network": INCONCLUSIVE,
            "services": INCONCLUSIVE,
        }
        assert "is too large" in found["network"].error

    def test_a_list_that_takes_too_long_to_read_is_not_judged(
        self, fake: FakeApi, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def slow(*_: object) -> services.Endpoints:
            time.sleep(2)
            return ()

        monkeypatch.setattr(services, "_parsed", slow)
        found = self.judged(fake, 0.5)
        assert {name: result.verdict for name, result in found.items()} == {
            "network": INCONCLUSIVE,
            "services": INCONCLUSIVE,
        }
        assert all(result.error.startswith("not judged: ") for result in found.values())
