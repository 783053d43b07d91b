"""Rounds of checks in DaemonSet mode: after a failed one, DNS is asked more often."""

import ssl
from datetime import UTC, datetime

import pytest

from kube_node_ready.agent.check_runs import CheckRunner
from kube_node_ready.agent.cluster_access import InCluster
from kube_node_ready.agent.model import RunChecks
from kube_node_ready.checks.access import Access
from kube_node_ready.checks.check import Check, CheckFailedError, Deadline, Evidence, PodIdentity
from kube_node_ready.checks.plan import Found, Known
from kube_node_ready.checks.services import Endpoint
from kube_node_ready.checks.settings import Settings
from kube_node_ready.checks.transport import Response


class Scripted(InCluster):
    """A way to the cluster where each round passes or fails as given; it records how often DNS was to be queried."""

    def __init__(self, *passes: bool) -> None:
        super().__init__({}, "")
        self._passes = iter(passes)
        self.samples: list[int] = []

    def checks(self, settings: Settings, here: PodIdentity, found: Found | None = None) -> tuple[Check, ...]:  # noqa: ARG002  as the others'
        self.samples.append(settings.dns_samples)
        return (Check("dns", "example.com", self._prove),)

    def _prove(self, _deadline: Deadline) -> Evidence:
        if not next(self._passes):
            raise CheckFailedError("9 of 24 queries lost")
        return Evidence()


@pytest.mark.parametrize(
    ("attempts", "passes", "samples"),
    [
        ((1, 2, 3), (False, False, True), [24, 48, 48]),
        ((5,), (True,), [48]),
        ((0, 0, 0, 0), (True, False, True, True), [24, 24, 48, 24]),
        ((1, 0), (False, True), [24, 48]),
    ],
    ids=["attempts", "an attempt after a restart", "rounds over a verified node", "a round after a failed attempt"],
)
def test_after_a_failure_dns_is_sampled_more_often(
    attempts: tuple[int, ...], passes: tuple[bool, ...], samples: list[int]
) -> None:
    script = Scripted(*passes)
    rounds = CheckRunner(Settings(), PodIdentity("node-1", "kube-system"), script, lambda: datetime.now(UTC))
    done = [rounds.run(RunChecks(attempt)) for attempt in attempts]
    assert [round_ is not None and round_.passed for round_ in done] == list(passes)
    assert script.samples == samples


ANSWER = Response(200, {"date": "Thu, 01 Jan 2026 00:00:00 GMT"}, b"{}", 1767225600.0, 1767225600.25)


class Cluster(InCluster):
    """A way to the cluster that records which jobs are made, and replaces all of them with jobs that pass."""

    def __init__(self) -> None:
        super().__init__({}, "")
        self.made: list[set[str]] = []
        self.known = Settings().services

    def access(self) -> Access:
        return Access("192.0.2.1", 443, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def checks(self, settings: Settings, here: PodIdentity, found: Found | None = None) -> tuple[Check, ...]:
        jobs = super().checks(settings, here, found)
        if found is not None:
            found |= dict.fromkeys(self.known, (Endpoint("192.0.2.53", (53,), ()),))
        return self._harmless(jobs)

    def later_checks(self, settings: Settings, here: PodIdentity, known: Known) -> tuple[Check, ...]:
        jobs = super().later_checks(settings, here, known)
        (servers,) = [job for job in jobs if job.target == settings.dns_service]
        assert [job.target for job in servers.run(Deadline(1)).follow_ups] == ["192.0.2.53:53"]
        (clock,) = [job for job in jobs if job.name == "clock"]
        assert clock.run(Deadline(1)).details == {"skew": "0.0s"}
        return self._harmless(jobs)

    def _harmless(self, jobs: tuple[Check, ...]) -> tuple[Check, ...]:
        self.made.append({job.name for job in jobs})
        return tuple(Check(job.name, job.target, lambda _deadline: Evidence()) for job in jobs)


OMIT = ("services", "payload")
ALL = {"dns", "api", "network", "services", "payload", "clock"}


class TestLaterRounds:
    @pytest.fixture
    def cluster(self) -> Cluster:
        return Cluster()

    @pytest.fixture
    def rounds(self, cluster: Cluster) -> CheckRunner:
        return CheckRunner(Settings(), PodIdentity("node-1", "kube-system"), cluster, lambda: datetime.now(UTC))

    def test_later_rounds_skip_checks_and_reuse_known_endpoints(self, rounds: CheckRunner, cluster: Cluster) -> None:
        rounds.run(RunChecks())
        done = rounds.run(RunChecks(omit=OMIT), ANSWER)
        assert done
        assert cluster.made == [ALL, ALL - set(OMIT)]
        assert done.omitted == OMIT
        assert done.clean
        assert not done.passed
        assert [check.ms for check in done.report.by_check if check.name == "api"] == [250], "as the Node's read took"

    @pytest.mark.parametrize(
        ("expected", "answer"),
        [
            (RunChecks(attempt=2, omit=OMIT), ANSWER),
            (RunChecks(api_reachable=False, omit=OMIT), ANSWER),
            (RunChecks(omit=OMIT), None),
            (RunChecks(), ANSWER),
        ],
        ids=["an attempt", "the Node could not be read", "the read had no answer", "nothing to omit"],
    )
    def test_otherwise_no_check_is_skipped(
        self, rounds: CheckRunner, cluster: Cluster, expected: RunChecks, answer: Response | None
    ) -> None:
        rounds.run(RunChecks())
        done = rounds.run(expected, answer)
        assert done
        assert cluster.made == [ALL, ALL]
        assert not done.omitted

    @pytest.mark.parametrize("known", [(), ("default/kubernetes",), ("kube-system/kube-dns",)])
    def test_no_check_is_skipped_while_endpoints_are_unknown(
        self, rounds: CheckRunner, cluster: Cluster, known: tuple[str, ...]
    ) -> None:
        cluster.known = known
        rounds.run(RunChecks())
        done = rounds.run(RunChecks(omit=OMIT), ANSWER)
        assert done
        assert cluster.made == [ALL, ALL]
        assert done.passed
