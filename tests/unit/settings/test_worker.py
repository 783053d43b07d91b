"""What may be said to the worker, and what it answers to mistakes."""

import json
from pathlib import Path

import pytest

from kube_node_ready.checks import settings, sources
from kube_node_ready.checks.settings import Settings, SettingsError, load


def mistakes(**mapping: object) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as why:
        load(mapping, "here")
    return why.value.mistakes


def test_nothing_said_means_the_defaults() -> None:
    found = load({}, "here")
    assert found == Settings()
    assert found.dns_test_domains == ("kubernetes.default.svc.cluster.local",)
    assert (found.check_timeout_seconds, found.timeout_seconds, found.max_clock_skew_seconds) == (10, 300, 30)
    assert found.services == ("default/kubernetes", "kube-system/kube-dns")
    assert found.payload
    assert found.clock
    assert not found.network_targets


def test_everything_can_be_said() -> None:
    said = {
        "dnsTestDomains": ["example.com", "8.8.8.8"],
        "clusterDnsIp": "10.96.0.10",
        "checkTimeoutSeconds": 5,
        "timeoutSeconds": "2m",
        "networkTargets": ["registry.example:5000", "https://example.com/v2/", "[fd00::1]:53"],
        "services": [],
        "dnsService": "",
        "payload": False,
        "payloadPath": "/openapi/v2",
        "clock": False,
        "maxClockSkewSeconds": 1.5,
        "logging": {"level": "debug", "format": "console"},
        "dryRun": True,
        "connectivityMatrix": True,
        "connectivitySelector": "app=node-agent",
        "connectivitySample": 3,
        "connectivityPort": 9090,
        "dnsSamples": 5,
        "dnsSamplesAfterFailure": "10",
        "maxDnsLossPercent": 2.5,
        "maxRetries": 3,
        "retryBackoff": "linear",
        "initialCheckTimeoutSeconds": 300,
    }
    assert set(said) == settings.NAMES
    found = load(said, "here")
    assert found.dns_test_domains == ("example.com", "8.8.8.8")
    assert (found.check_timeout_seconds, found.timeout_seconds) == (5, 120)
    assert (found.log_level, found.log_format, found.dry_run) == ("debug", "console", True)
    assert (found.connectivity_matrix, found.connectivity_sample, found.connectivity_port) == (True, 3, 9090)
    assert (found.dns_samples, found.dns_samples_after_failure, found.max_dns_loss_percent) == (5, 10, 2.5)


def test_the_originals_worker_file_is_understood() -> None:
    said = {"dnsTestDomains": ["google.com"], "checkTimeoutSeconds": 5, "maxRetries": 1, "retryBackoff": "linear"}
    found = load(said | {"logging": {"level": "info", "format": "json"}, "dryRun": False}, "here")
    assert found == Settings()._replace(dns_test_domains=("google.com",), check_timeout_seconds=5)


def test_all_mistakes_are_told_at_once() -> None:
    told = mistakes(checkTimeoutSeconds="soon", dnsTestDomain=["a"], logging={"level": "loud"}, payload=3)
    assert len(told) == 4


@pytest.mark.parametrize(
    ("key", "value", "right"),
    [
        ("checkTimeoutSeconds", 0, "seconds above 0"),
        ("checkTimeoutSeconds", True, "seconds above 0"),
        ("checkTimeoutSeconds", float("nan"), "seconds above 0"),
        ("timeoutSeconds", "1e9", "seconds above 0"),
        ("timeoutSeconds", "", "seconds above 0"),
        ("dnsTestDomains", ["a b"], "a DNS name"),
        ("dnsTestDomains", ["300.1.1.1"], "a DNS name"),
        ("dnsTestDomains", ["x" * 64], "a DNS name"),
        ("dnsTestDomains", 5, "a list"),
        ("dnsTestDomains", [5], "a list"),
        ("dnsTestDomains", [f"n{number}" for number in range(101)], "a list of at most 100"),
        ("clusterDnsIp", "cluster", "an IP address"),
        ("networkTargets", ["example.com"], "host:port or"),
        ("networkTargets", ["example.com:0"], "host:port or"),
        ("networkTargets", ["fd00::1:53"], "host:port or"),
        ("networkTargets", ["ftp://example.com/"], "host:port or"),
        ("networkTargets", ["https://user@example.com/"], "host:port or"),
        ("networkTargets", ["http://example.com/\r\nX: y"], "host:port or"),
        ("services", ["kube-dns"], "namespace/name"),
        ("services", ["../secrets"], "namespace/name"),
        ("dnsService", "kube-dns", "namespace/name"),
        ("payload", "maybe", "true or false"),
        ("payloadPath", "openapi", "a path of the API server"),
        ("payloadPath", "/a b", "a path of the API server"),
        ("maxRetries", -1, "a whole number"),
        ("connectivitySelector", "app=a&limit=1", "a label selector such as app=node-agent"),
        ("connectivitySample", 0, "a whole number from 1 to 100"),
        ("connectivitySample", True, "a whole number"),
        ("connectivityPort", "65536", "a whole number from 1 to 65535"),
        ("dnsSamples", 0, "a whole number from 1 to 100"),
        ("dnsSamples", 101, "a whole number from 1 to 100"),
        ("dnsSamplesAfterFailure", 1.5, "a whole number from 1 to 100"),
        ("maxDnsLossPercent", 100, "a percentage from 0 to below 100, such as 5"),
        ("maxDnsLossPercent", -1, "a percentage from 0 to below 100, such as 5"),
        ("maxDnsLossPercent", "5s", "a percentage from 0 to below 100, such as 5"),
        ("maxDnsLossPercent", float("nan"), "a percentage from 0 to below 100, such as 5"),
        ("maxDnsLossPercent", True, "a percentage from 0 to below 100, such as 5"),
        ("retryBackoff", "random", "exponential or linear"),
        ("logging", "debug", "a mapping with level and format"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(key: str, value: object, right: str) -> None:
    (told,) = mistakes(**{key: value})
    assert told.startswith(f"here: {key} is ")
    assert "must be" in told
    assert right in told


@pytest.mark.parametrize(
    ("key", "near"),
    [("dnsTestDomain", "dnsTestDomains"), ("checktimeoutseconds", "checkTimeoutSeconds"), ("loging", "logging")],
)
def test_an_unknown_key_brings_the_nearest_right_one(key: str, near: str) -> None:
    assert mistakes(**{key: 1}) == (f"here: {key!r} is unknown; did you mean {near}?",)


def test_an_unknown_key_inside_logging_is_a_mistake_too() -> None:
    (told,) = mistakes(logging={"levle": "info"})
    assert told == "here: logging: 'levle' is unknown; did you mean level?"


def test_a_huge_value_does_not_flood_the_message() -> None:
    (told,) = mistakes(clusterDnsIp="x" * 100_000)
    assert len(told) < 250


def test_a_check_cannot_have_more_time_than_all_checks() -> None:
    (told,) = mistakes(checkTimeoutSeconds=20, timeoutSeconds=10)
    assert "checkTimeoutSeconds is 20, which is more than the 10 of timeoutSeconds" in told


def test_the_cluster_name_follows_the_cluster_domain() -> None:
    assert load(
        {"dnsTestDomains": ["kubernetes.default.svc", "kubernetes.default.svc.corp.example"]}, ""
    ).cluster_name == ("kubernetes.default.svc.corp.example")
    assert load({"dnsTestDomains": ["example.com"]}, "").cluster_name == "kubernetes.default.svc.cluster.local"


class TestSources:
    def test_the_environment_is_stronger_than_json_and_json_than_the_file(self, tmp_path: Path) -> None:
        file = tmp_path / "worker.yaml"
        file.write_text("checkTimeoutSeconds: 1\nmaxClockSkewSeconds: 1\ntimeoutSeconds: 100\nlogging: {level: warn}\n")
        found = sources.read(
            {
                "WORKER_CONFIG_PATH": str(file),
                "KUBE_NODE_READY_WORKER_CONFIG": json.dumps({"checkTimeoutSeconds": 2, "maxClockSkewSeconds": 2}),
                "CHECK_TIMEOUT": "3s",
                "LOG_FORMAT": "console",
            }
        )
        assert (found.timeout_seconds, found.max_clock_skew_seconds, found.check_timeout_seconds) == (100, 2, 3)
        assert (found.log_level, found.log_format) == ("warn", "console")

    def test_single_variables_are_read_as_the_original_wrote_them(self) -> None:
        found = sources.read(
            {
                "DNS_TEST_DOMAINS": "example.com, 8.8.8.8,",
                "CLUSTER_DNS_IP": "10.96.0.10",
                "CHECK_TIMEOUT": "1m30s",
                "LOG_LEVEL": "DEBUG",
                "DRY_RUN": "true",
            }
        )
        assert found.dns_test_domains == ("example.com", "8.8.8.8")
        assert found.cluster_dns_ip == "10.96.0.10"
        assert (found.check_timeout_seconds, found.log_level, found.dry_run) == (90, "debug", True)

    def test_an_empty_variable_says_nothing(self) -> None:
        assert sources.read(dict.fromkeys([*sources.VARIABLES, "KUBE_NODE_READY_WORKER_CONFIG"], "")) == Settings()

    def test_mistakes_of_all_sources_are_told_with_their_source(self, tmp_path: Path) -> None:
        file = tmp_path / "worker.json"
        file.write_text('{"payload": "maybe"}')
        with pytest.raises(SettingsError) as why:
            sources.read({"WORKER_CONFIG_PATH": str(file), "CHECK_TIMEOUT": "soon"})
        first, second = why.value.mistakes
        assert first.startswith(f"{file}: payload is 'maybe'")
        assert second.startswith("CHECK_TIMEOUT: checkTimeoutSeconds is 'soon'")

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("a: [", "is not YAML"),
            ("- a", "holds list and must hold a mapping"),
            ("hello", "holds str and must hold a mapping"),
            (b"\xff\xfe\x00", "it is not text in UTF-8"),
        ],
    )
    def test_a_file_that_is_none_of_ours_is_refused(self, tmp_path: Path, content: str | bytes, words: str) -> None:
        file = tmp_path / "worker.yaml"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(SettingsError, match=words) as why:
            sources.read({"WORKER_CONFIG_PATH": str(file)})
        assert str(file) in str(why.value)

    def test_an_empty_file_says_nothing(self, tmp_path: Path) -> None:
        file = tmp_path / "worker.yaml"
        file.write_text("# nothing\n")
        assert sources.read({"WORKER_CONFIG_PATH": str(file)}) == Settings()

    def test_a_file_that_is_asked_for_must_be_there(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match=r"missing\.yaml cannot be read: No such file"):
            sources.read({"WORKER_CONFIG_PATH": str(tmp_path / "missing.yaml")})

    @pytest.mark.parametrize("text", ["{", "[1]", "5"])
    def test_json_that_is_none_is_refused(self, text: str) -> None:
        with pytest.raises(SettingsError, match=r"^KUBE_NODE_READY_WORKER_CONFIG (is not JSON|holds)"):
            sources.read({"KUBE_NODE_READY_WORKER_CONFIG": text})
