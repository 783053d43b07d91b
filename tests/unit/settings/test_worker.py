"""The worker's settings: what is accepted, and what is reported about the rest."""

import itertools
import json
import time
from pathlib import Path

import pytest

from kube_node_ready.checks.settings import Settings
from kube_node_ready.settings import sources, worker
from kube_node_ready.settings.worker import load, parse
from kubekit.diagnostics import DiagnosticsError


def errors(**mapping: object) -> tuple[str, ...]:
    with pytest.raises(DiagnosticsError) as error:
        parse(mapping, "here")
    return tuple(map(str, error.value.diagnostics))


def test_no_settings_mean_the_defaults() -> None:
    found = parse({}, "here")
    assert found == Settings()
    assert found.dns_test_domains == ("kubernetes.default.svc.cluster.local",)
    assert (found.check_timeout_seconds, found.timeout_seconds, found.max_clock_skew_seconds) == (10, 300, 30)
    assert found.services == ("default/kubernetes", "kube-system/kube-dns")
    assert found.payload
    assert found.clock
    assert not found.network_targets


def test_every_setting_can_be_set() -> None:
    given = {
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
    assert given.keys() == worker.TABLE.fields.keys()
    found = parse(given, "here")
    assert found.dns_test_domains == ("example.com", "8.8.8.8")
    assert (found.check_timeout_seconds, found.timeout_seconds) == (5, 120)
    assert (found.log_level, found.log_format, found.dry_run) == ("debug", "console", True)
    assert (found.connectivity_matrix, found.connectivity_sample, found.connectivity_port) == (True, 3, 9090)
    assert (found.dns_samples, found.dns_samples_after_failure, found.max_dns_loss_percent) == (5, 10, 2.5)


def test_the_originals_worker_file_is_accepted() -> None:
    given = {"dnsTestDomains": ["google.com"], "checkTimeoutSeconds": 5, "maxRetries": 1, "retryBackoff": "linear"}
    found = parse(given | {"logging": {"level": "info", "format": "json"}, "dryRun": False}, "here")
    assert found == Settings()._replace(dns_test_domains=("google.com",), check_timeout_seconds=5)


def test_all_errors_are_reported_together() -> None:
    reported = errors(checkTimeoutSeconds="soon", dnsTestDomain=["a"], logging={"level": "loud"}, payload=3)
    assert len(reported) == 4


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
        ("dnsTestDomains", [5], "a DNS name"),
        ("dnsTestDomains", [f"n{number}" for number in range(101)], "a list of at most 100"),
        ("clusterDnsIp", "cluster", "an IP address"),
        ("networkTargets", ["example.com"], "host:port or"),
        ("networkTargets", ["example.com:0"], "host:port or"),
        ("networkTargets", ["example.com:00000165536"], "host:port or"),
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
        ("connectivitySelector", "app=a=b", "a label selector such as app=node-agent"),
        ("connectivitySelector", "(((", "a label selector such as app=node-agent"),
        ("connectivitySelector", "app in a", "a label selector such as app=node-agent"),
        ("connectivitySelector", "app=a,", "a label selector such as app=node-agent"),
        ("connectivitySelector", "app=-a", "a label selector such as app=node-agent"),
        ("connectivitySelector", "a/b/c=d", "a label selector such as app=node-agent"),
        ("connectivitySelector", " ", "a label selector such as app=node-agent"),
        pytest.param("connectivitySample", 10**5000, "a whole number from 2 to 100", id="more digits than are shown"),
        ("connectivitySample", 1, "a whole number from 2 to 100"),
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
def test_an_invalid_value_is_reported_with_the_expected_one(key: str, value: object, right: str) -> None:
    (reported,) = errors(**{key: value})
    assert reported.startswith(f"here: {key}: ")
    assert f" is invalid; expected {right}" in reported


@pytest.mark.parametrize(
    ("key", "near"),
    [("dnsTestDomain", "dnsTestDomains"), ("checktimeoutseconds", "checkTimeoutSeconds"), ("loging", "logging")],
)
def test_an_unknown_key_suggests_the_nearest_valid_one(key: str, near: str) -> None:
    assert errors(**{key: 1}) == (f"here: {key}: unknown key; did you mean {near}?",)


def test_an_unknown_key_inside_logging_is_an_error() -> None:
    (reported,) = errors(logging={"levle": "info"})
    assert reported == "here: logging.levle: unknown key; did you mean level?"


def test_a_huge_value_does_not_flood_the_message() -> None:
    (reported,) = errors(clusterDnsIp="x" * 100_000)
    assert len(reported) < 250


@pytest.mark.parametrize(
    "selector",
    [
        *("app=node-agent", "app==a", "a!=b", "app", "!app", "app in (a,b)", "app notin ( a , b ), tier", "app="),
        *("example.com/part-of=A.b_c-9", "app = a , component != worker", "app in (,a)", "!a,b"),
    ],
)
def test_selectors_of_the_api_server_are_accepted(selector: str) -> None:
    assert parse({"connectivitySelector": selector}, "here").connectivity_selector == selector


@pytest.mark.parametrize(
    "selector", ["a in (" + ", " * 450, "a= ," * 200 + "!!", "a " * 400, "!" * 900, "a" * 900, "a in (" + "a," * 450]
)
def test_a_selector_is_rejected_within_a_second_of_cpu_time(selector: str) -> None:
    """A regular expression that tries every way to split the text would take hours."""
    begun = time.process_time()
    errors(connectivitySelector=selector)
    assert time.process_time() - begun < 1


def test_a_check_cannot_have_more_time_than_all_checks() -> None:
    (reported,) = errors(checkTimeoutSeconds=20, timeoutSeconds=10)
    expected = "at most timeoutSeconds, which all checks have together: 10"
    assert reported == f"checkTimeoutSeconds: 20 is invalid; expected {expected}"


def test_the_cluster_name_follows_the_cluster_domain() -> None:
    assert parse(
        {"dnsTestDomains": ["kubernetes.default.svc", "kubernetes.default.svc.corp.example"]}, ""
    ).cluster_name == ("kubernetes.default.svc.corp.example")
    assert parse({"dnsTestDomains": ["example.com"]}, "").cluster_name == "kubernetes.default.svc.cluster.local"


class TestSources:
    @pytest.mark.parametrize(
        ("content", "error"),
        [
            ("[" * 100_000, "is nested too deeply"),
            ("a: " + "[" * 3_000, "is nested too deeply"),
            ("checkTimeoutSeconds: " + "1" * 5_000, "not YAML: Exceeds the limit"),
            ("checkTimeoutSeconds: 0x" + "1" * 5_000, "a number with too many digits is invalid; expected seconds"),
            ("checkTimeoutSeconds: 2026-13-45", "not YAML: month must be in 1..12"),
            ("payload: !!bool x", "not YAML: "),
            ("payload: !!timestamp x", "not YAML: "),
            ("payload: " + "x" * 300_000, "cannot read the file: it has more than 256 KiB"),
        ],
        ids=lambda text: text[:30],
    )
    def test_a_file_that_cannot_be_used_is_one_error(self, tmp_path: Path, content: str, error: str) -> None:
        file = tmp_path / "worker.yaml"
        file.write_text(content)
        with pytest.raises(DiagnosticsError) as raised:
            worker.read([sources.from_file(str(file))])
        assert error in str(raised.value)
        assert len(str(raised.value)) < 500

    def test_an_endless_file_is_not_read_whole(self) -> None:
        with pytest.raises(DiagnosticsError, match="/dev/zero: cannot read the file: it has more than 256 KiB"):
            sources.from_file("/dev/zero")

    def test_aliases_are_not_expanded_in_an_error(self, tmp_path: Path) -> None:
        """Written out, this value would have nine to the power of nine entries."""
        lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
        for last, name in itertools.pairwise("abcdefghi"):
            lines.append(f"{name}: &{name} [{', '.join([f'*{last}'] * 9)}]")
        file = tmp_path / "worker.yaml"
        file.write_text("\n".join([*lines, "checkTimeoutSeconds: *i", "dnsTestDomains: [*i]"]))
        with pytest.raises(DiagnosticsError) as raised:
            worker.read([sources.from_file(str(file))])
        assert "checkTimeoutSeconds: [[…], […]" in str(raised.value)

    @pytest.mark.parametrize("depth", [1, 9])
    def test_merge_keys_are_limited(self, tmp_path: Path, depth: int) -> None:
        """Merged, the last of these mappings would have ten to the power of ten keys, or 20 million."""
        lines = [f"a: &a {{{', '.join(f'k{number}: 1' for number in range(10 if depth > 1 else 1000))}}}"]
        for last, name in itertools.pairwise("abcdefghij"[: depth + 1]):
            aliases = ", ".join([f"*{last}"] * (10 if depth > 1 else 20_000))
            lines.append(f"{name}: &{name} {{<<: [{aliases}]}}")
        file = tmp_path / "worker.yaml"
        file.write_text("\n".join(lines))
        with pytest.raises(DiagnosticsError, match=r"worker\.yaml: not YAML: it merges more than 1000 keys$"):
            sources.from_file(str(file))

    @pytest.mark.parametrize("end", ["", ".5"])
    def test_a_number_to_the_base_of_60_is_not_calculated_for_seconds(self, tmp_path: Path, end: str) -> None:
        """YAML 1.1 has such numbers, for times: 1:30 is 90."""
        file = tmp_path / "worker.yaml"
        file.write_text(f"checkTimeoutSeconds: 1{':1' * 120_000}{end}\n")
        with pytest.raises(DiagnosticsError, match=r"worker\.yaml: not YAML: a number has more than 100 characters$"):
            sources.from_file(str(file))

    @pytest.mark.parametrize(
        "text",
        [
            "# comment\nlogging:\n  level: loud\npayloads: true\n",
            '{\n "logging": {\n  "level": "loud"},\n "payloads": true}',
        ],
    )
    def test_an_error_in_a_file_has_its_line(self, tmp_path: Path, text: str) -> None:
        file = tmp_path / "worker.yaml"
        file.write_text(text)
        with pytest.raises(DiagnosticsError) as error:
            worker.read([sources.from_file(str(file))])
        assert list(map(str, error.value.diagnostics)) == [
            f'{file}:3: logging.level: "loud" is invalid; expected debug, info, warn or error',
            f"{file}:4: payloads: unknown key; did you mean payload?",
        ]

    def test_merge_keys_work(self, tmp_path: Path) -> None:
        file = tmp_path / "worker.yaml"
        file.write_text("logging: {level: warn}\n<<: [{payload: false, clock: false}]\nclock: true\n")
        assert sources.from_file(str(file))[1] == {"logging": {"level": "warn"}, "payload": False, "clock": True}

    def test_a_variable_that_is_nested_too_deeply_is_an_error(self) -> None:
        with pytest.raises(DiagnosticsError, match=f"{worker.JSON_VARIABLE}: not JSON: it is nested too deeply"):
            load({worker.JSON_VARIABLE: "[" * 100_000})

    def test_the_environment_overrides_json_and_json_overrides_the_file(self, tmp_path: Path) -> None:
        file = tmp_path / "worker.yaml"
        file.write_text("checkTimeoutSeconds: 1\nmaxClockSkewSeconds: 1\ntimeoutSeconds: 100\nlogging: {level: warn}\n")
        found = load(
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
        found = load(
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

    def test_an_empty_variable_has_no_effect(self) -> None:
        assert (
            load(
                dict.fromkeys(
                    [*(field.variable for field, _ in worker.variables()), "KUBE_NODE_READY_WORKER_CONFIG"], ""
                )
            )
            == Settings()
        )

    def test_a_message_names_the_first_errors_only(self) -> None:
        """It is one line of the log, and a file of 256 KiB can hold thousands."""
        with pytest.raises(DiagnosticsError) as raised:
            parse({f"unknown{number}": 1 for number in range(1000)}, "worker.yaml")
        assert len(raised.value.diagnostics) == 1000
        assert "unknown19" in str(raised.value)
        assert "unknown20" not in str(raised.value)
        assert str(raised.value).endswith("; and 980 more")
        assert len(str(raised.value)) < 20_000

    def test_errors_of_all_sources_are_reported_with_their_source(self, tmp_path: Path) -> None:
        file = tmp_path / "worker.json"
        file.write_text('{"payload": "maybe"}')
        with pytest.raises(DiagnosticsError) as error:
            load({"WORKER_CONFIG_PATH": str(file), "CHECK_TIMEOUT": "soon"})
        first, second = map(str, error.value.diagnostics)
        assert first == f'{file}:1: payload: "maybe" is invalid; expected true or false'
        assert second.startswith('CHECK_TIMEOUT: checkTimeoutSeconds: "soon" is invalid; expected seconds above 0')

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("a: [", "not YAML"),
            ("- a", "has a list; expected a mapping"),
            ("hello", "has text; expected a mapping"),
            (b"\xff\xfe\x00", "it is not text in UTF-8"),
        ],
    )
    def test_a_file_of_another_kind_is_rejected(self, tmp_path: Path, content: str | bytes, words: str) -> None:
        file = tmp_path / "worker.yaml"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(DiagnosticsError, match=words) as error:
            load({"WORKER_CONFIG_PATH": str(file)})
        assert str(file) in str(error.value)

    def test_an_empty_file_has_no_effect(self, tmp_path: Path) -> None:
        file = tmp_path / "worker.yaml"
        file.write_text("# nothing\n")
        assert load({"WORKER_CONFIG_PATH": str(file)}) == Settings()

    def test_a_specified_file_must_exist(self, tmp_path: Path) -> None:
        with pytest.raises(DiagnosticsError, match=r"missing\.yaml: cannot read the file: No such file"):
            load({"WORKER_CONFIG_PATH": str(tmp_path / "missing.yaml")})

    @pytest.mark.parametrize("text", ["{", "[1]", "5"])
    def test_invalid_json_is_rejected(self, text: str) -> None:
        with pytest.raises(DiagnosticsError, match=r"^KUBE_NODE_READY_WORKER_CONFIG: (not JSON|has )"):
            load({"KUBE_NODE_READY_WORKER_CONFIG": text})
