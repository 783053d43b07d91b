"""The settings of DaemonSet mode, by flag and by variable, and its errors."""

from datetime import timedelta

import pytest

from kube_node_ready.agent import flags
from kube_node_ready.agent.settings import rules
from kube_node_ready.checks.settings import Settings as CheckSettings
from kube_node_ready.settings.agent import FIELDS, Settings, load
from kubekit.diagnostics import DiagnosticsError

EVERYTHING = {
    "node-name": ("ip-10-0-0-1.ec2.internal", "node_name", "ip-10-0-0-1.ec2.internal"),
    "namespace": ("gates", "namespace", "gates"),
    "mode": ("continuous", "mode", "continuous"),
    "initial-timeout": ("2m", "checks.timeout_seconds", 120),
    "check-timeout": ("1m1.5s", "checks.check_timeout_seconds", 61.5),
    "max-retries": ("7", "max_retries", 7),
    "retry-backoff": ("linear", "retry_backoff", "linear"),
    "check-interval": ("90s", "check_interval", 90),
    "failure-threshold": ("2", "failure_threshold", 2),
    "dns-test-domains": ("a.example, 10.0.0.1", "checks.dns_test_domains", ("a.example", "10.0.0.1")),
    "cluster-dns-ip": ("10.96.0.10", "checks.cluster_dns_ip", "10.96.0.10"),
    "network-targets": ("a.example:443,http://b/", "checks.network_targets", ("a.example:443", "http://b/")),
    "enable-connectivity-matrix": ("true", "checks.connectivity_matrix", True),
    "connectivity-sample": ("9", "checks.connectivity_sample", 9),
    "taint-key": ("example.com/gate", "taint_key", "example.com/gate"),
    "taint-value": ("yes", "taint_value", "yes"),
    "taint-effect": ("NoExecute", "taint_effect", "NoExecute"),
    "verified-label": ("example.com/ok", "verified_label", "example.com/ok"),
    "verified-label-value": ("yes", "verified_label_value", "yes"),
    "enable-metrics": ("false", "enable_metrics", False),
    "metrics-port": ("9090", "metrics_port", 9090),
    "log-level": ("DEBUG", "checks.log_level", "debug"),
    "log-format": ("console", "checks.log_format", "console"),
    "klog-verbosity": ("4", "", None),
    "dry-run": ("true", "dry_run", True),
    "kubeconfig": ("/tmp/kubeconfig", "kubeconfig", "/tmp/kubeconfig"),
    "k8s-service-host": ("[fd00::1]", "service_host", "fd00::1"),
    "k8s-service-port": ("6443", "service_port", 6443),
    "delete-failed-node": ("false", "", None),
}
"""Flag -> what is said, which setting it becomes, and what it means."""
VARIABLES = {field.flag: field.variable for field in FIELDS}
NAMED = {"NODE_NAME": "node-1"}


def loaded(*words: str, **environ: str) -> Settings:
    arguments = flags.parse(words)
    return load(arguments.flags, NAMED | environ, known=arguments.diagnostics)


def found(settings: Settings, path: str) -> object:
    value: object = settings
    for name in filter(None, path.split(".")):
        value = getattr(value, name)
    return value


def errors(*words: str, **environ: str) -> tuple[str, ...]:
    with pytest.raises(DiagnosticsError) as error:
        loaded(*words, **environ)
    return tuple(map(str, error.value.diagnostics))


def test_every_setting_is_tested() -> None:
    assert EVERYTHING.keys() == VARIABLES.keys()


@pytest.mark.parametrize("flag", EVERYTHING)
@pytest.mark.parametrize("way", ["--flag=value", "--flag value", "variable"])
def test_every_setting_has_a_flag_and_a_variable(flag: str, way: str) -> None:
    message, path, meant = EVERYTHING[flag]
    if way == "variable":
        settings = loaded(**{VARIABLES[flag]: message})
    else:
        settings = loaded(*([f"--{flag}={message}"] if "=" in way else [f"--{flag}", message]))
    if path:
        assert found(settings, path) == meant


@pytest.mark.parametrize("flag", [flag for flag, (_, path, _) in EVERYTHING.items() if path])
def test_a_flag_takes_precedence_over_its_variable(flag: str) -> None:
    message, path, meant = EVERYTHING[flag]
    assert found(loaded(f"--{flag}={message}", **{VARIABLES[flag]: "!"}), path) == meant


def test_the_defaults_are_the_originals() -> None:
    settings = loaded()
    assert settings.node_name == "node-1"
    assert (settings.checks.timeout_seconds, settings.checks.check_timeout_seconds) == (300, 3)
    assert (settings.max_retries, settings.retry_backoff, settings.mode) == (5, "exponential", "once")
    assert (settings.taint_key, settings.taint_value, settings.taint_effect) == (
        "node-ready/unverified",
        "true",
        "NoSchedule",
    )
    assert (settings.verified_label, settings.verified_label_value) == ("node-ready/verified", "true")
    assert (settings.enable_metrics, settings.metrics_port, settings.namespace) == (True, 8080, "kube-system")
    assert (settings.check_interval, settings.failure_threshold) == (60, 3)
    assert (settings.checks.connectivity_matrix, settings.checks.connectivity_sample) == (False, 5)
    assert not settings.dry_run
    assert not settings.warnings


def test_peers_are_expected_unless_the_daemonsets_own_pods_leave() -> None:
    assert not loaded().checks.are_peers_expected
    assert loaded(MODE="continuous").checks.are_peers_expected
    selected = loaded(KUBE_NODE_READY_WORKER_CONFIG='{"connectivitySelector": "app=node-agent"}')
    assert selected.checks.are_peers_expected
    assert CheckSettings().are_peers_expected, "of the controller's workers"


def test_the_originals_config_map_is_accepted() -> None:
    settings = loaded(
        INITIAL_TIMEOUT="300s",
        MAX_RETRIES="5",
        RETRY_BACKOFF="exponential",
        DNS_TEST_DOMAINS="kubernetes.default.svc.cluster.local,google.com",
        TAINT_KEY="node-ready/unverified",
        TAINT_VALUE="true",
        TAINT_EFFECT="NoSchedule",
        VERIFIED_LABEL="node-ready/verified",
        VERIFIED_LABEL_VALUE="true",
        ENABLE_METRICS="true",
        METRICS_PORT="8080",
        LOG_LEVEL="info",
        LOG_FORMAT="json",
    )
    assert settings.checks.dns_test_domains == ("kubernetes.default.svc.cluster.local", "google.com")


def test_a_switch_needs_no_value() -> None:
    assert loaded("--dry-run", "--log-format=console").dry_run
    assert not loaded("--dry-run=false").dry_run


def test_an_empty_variable_is_unset() -> None:
    assert loaded(MAX_RETRIES="", CLUSTER_DNS_IP="") == loaded()


def test_an_empty_flag_means_none() -> None:
    assert loaded("--dns-test-domains=").checks.dns_test_domains == ()


def test_service_links_of_a_service_named_metrics_are_ignored() -> None:
    assert loaded(METRICS_PORT="tcp://10.96.0.7:80").metrics_port == 8080


def test_other_check_settings_are_those_of_a_worker() -> None:
    settings = loaded(KUBE_NODE_READY_WORKER_CONFIG='{"dnsService": "", "clock": false, "checkTimeoutSeconds": 7}')
    assert (settings.checks.dns_service, settings.checks.clock, settings.checks.check_timeout_seconds) == ("", False, 7)
    reported = errors(KUBE_NODE_READY_WORKER_CONFIG='{"clok": false}')
    assert reported == ("KUBE_NODE_READY_WORKER_CONFIG: clok: unknown key; did you mean clock?",)


def test_the_peers_port_is_ours() -> None:
    assert loaded(METRICS_PORT="9090").checks.connectivity_port == 9090


def test_only_a_dry_run_needs_no_node() -> None:
    assert load({"dry-run": "true"}, {}).node_name == "dry-run-node"
    with pytest.raises(DiagnosticsError, match=r"--node-name \(NODE_NAME\): is missing; expected the node"):
        load({}, {})


@pytest.mark.parametrize(
    ("flag", "value", "right"),
    [
        ("node-name", "../secrets", "a name of lower-case letters"),
        ("namespace", "a.b", "a name of at most 63"),
        ("mode", "twice", "once or continuous"),
        ("initial-timeout", "soon", 'seconds above 0 and up to 3600, such as 10 or "10s"'),
        ("check-timeout", "0s", "seconds above 0"),
        ("check-interval", "-1s", "seconds above 0"),
        ("max-retries", "many", "a whole number from 0 to 1000"),
        ("max-retries", "-1", "a whole number"),
        ("max-retries", "00000000001", "a whole number"),
        ("failure-threshold", "0", "a whole number from 1 to 100"),
        ("connectivity-sample", "1000", "a whole number from 2 to 100"),
        ("retry-backoff", "random", "exponential or linear"),
        ("dns-test-domains", "a b", "a DNS name"),
        ("cluster-dns-ip", "dns", "an IP address"),
        ("network-targets", "a.example", "host:port or"),
        ("taint-key", "a/b/c", "a Kubernetes key"),
        ("taint-value", "no way", "a label value"),
        ("taint-effect", "noschedule", "NoSchedule, PreferNoSchedule or NoExecute"),
        ("verified-label", "", "a Kubernetes key"),
        ("enable-metrics", "maybe", "true or false"),
        ("metrics-port", "65536", "a whole number from 0 to 65535"),
        ("log-level", "loud", "debug, info, warn or error"),
        ("log-format", "xml", "json or console"),
        ("klog-verbosity", "v", "a whole number"),
        ("kubeconfig", "", "a path"),
        ("k8s-service-host", "a b", "a host name"),
        ("k8s-service-port", "0", "a whole number from 1 to 65535"),
    ],
)
def test_an_invalid_value_is_reported_with_the_expected_one(flag: str, value: str, right: str) -> None:
    (reported,) = errors(f"--{flag}={value}")
    assert reported.startswith(f'--{flag}: "{value}" is invalid; expected ')
    assert right in reported
    if value:
        (reported,) = errors(**{VARIABLES[flag]: value})
        assert reported.startswith(f'{VARIABLES[flag]}: "{value}" is invalid; expected ')


def test_removal_of_nodes_is_rejected_with_the_reason() -> None:
    (reported,) = errors(DELETE_FAILED_NODE="true")
    assert reported.startswith('DELETE_FAILED_NODE: "true" is invalid; expected false: ')
    assert "only the controller removes nodes" in reported
    assert "budget" in reported


def test_all_errors_are_reported_together() -> None:
    assert len(errors("--max-retries=many", "--log-level=loud", CHECK_TIMEOUT="soon")) == 3


def test_no_error_hides_another() -> None:
    reported = errors(
        "--max-retrys=3",
        "--mode",
        "--log-level=loud",
        NODE_NAME="",
        MAX_RETRIES="many",
        CHECK_TIMEOUT="400s",
        KUBE_NODE_READY_WORKER_CONFIG='{"clok": false}',
        INITIAL_TIMEOUT="5m",
    )
    assert [text.partition(":")[0] for text in reported] == [
        "--max-retrys",
        "--mode",
        "KUBE_NODE_READY_WORKER_CONFIG",
        "MAX_RETRIES",
        "--log-level",
        "--node-name (NODE_NAME)",
        "--check-timeout (CHECK_TIMEOUT)",
    ]


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["--node-name=a/b"], {"NODE_NAME": ""}),
        (["--dry-run=maybe"], {"NODE_NAME": ""}),
        (["--initial-timeout=soon"], {"CHECK_TIMEOUT": "400s"}),
        ([], {"CHECK_TIMEOUT": "400s", "KUBE_NODE_READY_WORKER_CONFIG": '{"timeoutSeconds": "soon"}'}),
        (["--enable-connectivity-matrix", "--metrics-port=0"], {"KUBE_NODE_READY_WORKER_CONFIG": "{"}),
    ],
)
def test_what_only_follows_from_another_error_is_not_reported(words: list[str], variables: dict[str, str]) -> None:
    assert len(errors(*words, **variables)) == 1


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["--max-retrys=3"], "--max-retrys: unknown flag; did you mean --max-retries?"),
        (["--dryrun"], "--dryrun: unknown flag; did you mean --dry-run?"),
        (["--xyzzy"], "--xyzzy: unknown flag; --help lists all of them"),
        (["--max"], "--max: unknown flag; --help lists all of them"),
        (["chek"], 'unknown command "chek"; did you mean check?'),
        (["explian", "node-3", "--mode=often"], 'unknown command "explian"; did you mean explain?'),
        (["--mode"], "--mode: is missing its value; expected once or continuous"),
    ],
)
def test_an_unknown_word_suggests_the_nearest_valid_one(words: list[str], reported: str) -> None:
    assert errors(*words) == (reported,)


def test_a_too_short_interval_is_rejected() -> None:
    (reported,) = errors(CHECK_INTERVAL="500ms")
    assert reported.startswith("--check-interval (CHECK_INTERVAL): 0.5s is invalid; expected at least 1s")


def test_contradictory_durations_are_rejected() -> None:
    (reported,) = errors(CHECK_TIMEOUT="10s", INITIAL_TIMEOUT="5s")
    assert reported == (
        "--check-timeout (CHECK_TIMEOUT): 10s is invalid; expected at most --initial-timeout (INITIAL_TIMEOUT), 5s"
    )


def test_the_matrix_needs_a_fixed_port() -> None:
    (reported,) = errors("--enable-connectivity-matrix", "--metrics-port=0")
    assert reported.startswith("--metrics-port (METRICS_PORT): 0 is invalid; expected ")


def test_a_misspelled_variable_is_reported() -> None:
    environ = {"MAX_RETRYS": "3", "PATH": "/bin", "HOME": "/", "KUBERNETES_SERVICE_PORT_HTTPS": "443", "HOSTNAME": "a"}
    assert loaded(**environ).warnings == ("MAX_RETRYS is not read; did you mean MAX_RETRIES?",)


def test_rules_follow_from_settings() -> None:
    once = rules(loaded("--max-retries=2", "--retry-backoff=linear", "--taint-value=yes"))
    assert (once.policy.max_failures, once.policy.exponential, once.gate.value) == (3, False, "yes")
    assert once.policy.slow_retry == timedelta(minutes=5)
    watching = rules(loaded("--mode=continuous", "--check-interval=10m"))
    assert watching.continuous
    assert watching.policy.slow_retry == timedelta(minutes=10)
    assert watching.poll_interval == timedelta(minutes=1), "another client can remove the label"
