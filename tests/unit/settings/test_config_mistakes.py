"""The controller's configuration: what is said about mistakes."""

from pathlib import Path

import pytest

from kube_node_ready.settings import config
from kubekit.diagnostics import DiagnosticsError
from tests.support.configs import complaint, load


def test_all_errors_are_found_together() -> None:
    message = complaint(
        """
reconciliation:
  maxRetrys: 7
  intervalSeconds: 0
nodeManagement:
  taints: [{key: a b, effect: Never}]
""",
        {"KUBE_NODE_READY_METRICS_PORT": "many", "KUBE_NODE_READY_METRIC_PORT": "1"},
        log_level="loud",
    )
    assert message.splitlines() == [
        "7 errors in the configuration:",
        "  - KUBE_NODE_READY_METRIC_PORT: unknown variable; did you mean KUBE_NODE_READY_METRICS_PORT?",
        "  - config.yaml:3: reconciliation.maxRetrys: unknown key; did you mean maxRetries?",
        "  - config.yaml:4: reconciliation.intervalSeconds: 0 is invalid; expected a number from 1 to 31536000",
        (
            '  - config.yaml:6: nodeManagement.taints[0].key: "a b" is invalid; expected a Kubernetes key such as '
            "example.com/name, the name with at most 63 characters"
        ),
        (
            '  - config.yaml:6: nodeManagement.taints[0].effect: "Never" is invalid; expected NoSchedule, '
            "PreferNoSchedule or NoExecute"
        ),
        ('  - KUBE_NODE_READY_METRICS_PORT: metrics.port: "many" is invalid; expected a whole number from 0 to 65535'),
        '  - --log-level: logging.level: "loud" is invalid; expected debug, info, warn or error',
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("reconciliation: {max_retries: 1}", "reconciliation.max_retries: unknown key; did you mean maxRetries?"),
        ("worker: {dnsTestDomain: []}", "worker.dnsTestDomain: unknown key; did you mean dnsTestDomains?"),
        ("maxRetries: 1", "maxRetries: unknown key; did you mean reconciliation.maxRetries?"),
        ("worker: {checks: {}}", "worker.checks: unknown key"),
        ("notes: []", "notes: unknown key"),
        ("zzz: 1", "zzz: unknown key; known keys: dryRun, health, "),
        ("worker: 5", "worker: 5 is invalid; expected a mapping"),
        ("worker: [a]", 'worker: ["a"] is invalid; expected a mapping'),
        ("worker: {command: /x}", 'worker.command: "/x" is invalid; expected a list'),
        ("worker: {command: [[]]}", "worker.command[0]: [] is invalid; expected text"),
        ("worker: {tolerations: [null]}", "worker.tolerations[0]: null is invalid; expected a mapping"),
        ("worker: {podLabels: {a: null}}", "worker.podLabels.a: null is invalid; expected a label value"),
        ("worker: {podLabels: {a b: c}}", "worker.podLabels.a b: the key is invalid; expected a Kubernetes key"),
        ("worker: {resources: {limits: {memory: 5 MB}}}", '"5 MB" is invalid; expected a quantity such as 50m'),
        (
            "worker: {image: {repository: a/b:1}}",
            'worker.image.repository: "a/b:1" is invalid; expected an image\'s name without tag',
        ),
        (
            "worker: {dnsTestDomains: ['a b']}",
            'worker.dnsTestDomains: "a b" is invalid; expected a DNS name',
        ),
        ("worker: {checkTimeoutSeconds: 0}", "worker.checkTimeoutSeconds: 0 is invalid; expected seconds above 0"),
        ("reconciliation: {maxRetries: 2.5}", "2.5 is invalid; expected a whole number from 1 to 1000"),
        ("reconciliation: {maxRetries: 010}", "010 is invalid; expected a whole number"),
        ("reconciliation: {maxRetries: 0x10}", '"0x10" is invalid; expected a whole number'),
        ("reconciliation: {maxRetries: true}", "true is invalid; expected a whole number"),
        ("reconciliation: {intervalSeconds: .inf}", '".inf" is invalid; expected a number'),
        ("reconciliation: {intervalSeconds: 1e99}", "1e99 is invalid; expected a number"),
        ("leaderElection: {leaseDuration: 15 s}", '"15 s" is invalid; expected a duration such as 15s'),
        ("leaderElection: {leaseDuration: s}", '"s" is invalid; expected a duration'),
        ("leaderElection: {retryPeriod: 0}", "leaderElection.retryPeriod: 0 is invalid; expected a duration"),
        (
            "nodeManagement: {taints: }",
            "nodeManagement.taints: null is invalid; expected a list; `[]` means every node without the label",
        ),
        (
            "nodeManagement: {taints: [{key: a}]}",
            "nodeManagement.taints[0].effect: is missing; expected NoSchedule",
        ),
        ("metrics: {port: 65536}", "metrics.port: 65536 is invalid; expected a whole number from 0 to 65535"),
        ("metrics: {enabled: maybe}", 'metrics.enabled: "maybe" is invalid; expected true or false'),
        (
            "metrics: {port: 1}\nmetrics: {port: 2}",
            "config.yaml:2: metrics: is repeated; first at config.yaml:1",
        ),
        ("controller: {config: {}, replicas: 2}", "controller.replicas: unknown key; it is a value of the Helm chart"),
        (
            "controller: {config: {}}\nworker: {}",
            "worker: unknown key beside `controller:`; move it into controller.config",
        ),
        ("controller: {config: 5}", "controller.config: 5 is invalid; expected a mapping"),
        (
            "config: {taintKey: my/gate}",
            'config.taintKey: is renamed; set nodeManagement.taints[0].key to "my/gate" instead',
        ),
        (
            "config: {initialTimeout: 600s}",
            "config.initialTimeout: is renamed; set worker.timeoutSeconds to 600 instead",
        ),
        ("config: {dnsTestDomains: [a]}", "config.dnsTestDomains: is renamed; set worker.dnsTestDomains instead"),
        ("config: {maxRetry: 1}", "config.maxRetry: unknown key; did you mean maxRetries?"),
    ],
)
def test_an_error_names_the_field_the_value_and_the_expectation(text: str, expected: str) -> None:
    assert expected in complaint(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "- a\n",
            "config.yaml:1: the file has a list; expected sections such as `worker:` and `reconciliation:`",
        ),
        ("hello", "the file has text; expected sections"),
        ("worker:\n\timage: x\n", "config.yaml:2: not YAML: tabs cannot indent; use spaces"),
        ("worker: {\n", "not YAML: "),
        ("worker: a: b", "config.yaml:1: not YAML: mapping values are not allowed here"),
        ("a: 1\nworker: '\x00'", "config.yaml:2: not YAML: a character that YAML does not allow"),
        ('worker: "\\U00110000"', "not YAML: "),
        ('worker: "\\uD800"', "config.yaml:1: half of a surrogate pair is not a character"),
        (
            "---\na: 1\n---\nb: 1\n",
            "config.yaml:3: a second document starts here; expected one per file",
        ),
        ("worker: !!python/object:os.system {}", "the tag tag:yaml.org,2002:python/object:os.system is not supported"),
        ("worker: !!binary aGVsbG8=", "is not supported; remove it"),
        ("worker: &a [*a]", "the alias *a contains itself"),
        ("worker: *b", "the alias *b is not defined"),
        ("worker: {[a]: b}", "a key is not text"),
        ("worker:\n  <<: 5", "`<<` is invalid; expected the alias of a mapping"),
        ("worker: " + "[" * 500 + "]" * 500, "nested more than 32 levels deep"),
        ("worker: " + "[" * 100_000, "nested more than 32 levels deep"),
        (
            "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)),
            "more than 20000 values",
        ),
        (
            "a0: &a0 [[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]\n"
            + "".join(f"a{n}: &a{n} [[[[[[[[[[[[[[[*a{n - 1}]]]]]]]]]]]]]]]\n" for n in range(1, 9)),
            "levels deep",
        ),
        (b"worker: \xff", "is not UTF-8 text, byte 9 is 0xff"),
        ("é".encode("utf-16"), "is not UTF-8 text, byte 1"),
        ("a" * 300_000, "cannot read the file: it has more than 256 KiB"),
    ],
)
def test_input_that_is_not_a_configuration_has_one_error(text: str | bytes, expected: str) -> None:
    message = complaint(text)
    assert expected in message
    assert len(message.splitlines()) == 1


def test_a_thousand_errors_are_counted_and_a_hundred_shown() -> None:
    lines = complaint("dryRun: true\n" * 1001).splitlines()
    assert lines[0] == "1000 errors in the configuration:"
    assert len(lines) == 102


@pytest.mark.parametrize(("name", "expected"), [("missing.yaml", "No such file"), (".", "Is a directory")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, expected: str) -> None:
    with pytest.raises(DiagnosticsError, match=f"{tmp_path / name}: cannot read the file: {expected}"):
        config.load(tmp_path / name, {}, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "worker: {timeoutSeconds: 20, checkTimeoutSeconds: 30}",
            "worker.checkTimeoutSeconds: 30 is invalid; expected at most worker.timeoutSeconds",
        ),
        (
            "worker: {job: {activeDeadlineSeconds: 20}, checkTimeoutSeconds: 30}",
            "worker.timeoutSeconds, which all checks have together: 20",
        ),
        (
            "reconciliation: {backoffSeconds: 60}",
            "reconciliation.maxBackoffSeconds: 30 is invalid; expected at least the first wait, 60",
        ),
        (
            "reconciliation: {retryBackoff: linear, maxBackoffSeconds: 2}",
            "2 is invalid; expected at least the first wait, 5",
        ),
        (
            "leaderElection: {leaseDuration: 10s}",
            "leaseDuration: 10s is invalid; expected more than renewDeadline, 10s",
        ),
        (
            "leaderElection: {retryPeriod: 10s}",
            "renewDeadline: 10s is invalid; expected more than retryPeriod, 10s",
        ),
        (
            "leaderElection: {leaseDuration: 900ms, renewDeadline: 500ms, retryPeriod: 100ms}",
            "0.9s is invalid; expected at least 1s",
        ),
        (
            "kubernetes: {burst: 0}",
            "kubernetes.burst: 0 is invalid; expected at least 1 (with 0, no request can be sent)",
        ),
        (
            "nodeManagement: {deleteFailedNodes: true, removal: {maxCount: 0}}",
            "nodeManagement.removal.maxCount: 0 is invalid; expected more than 0 (with 0, no node can be removed)",
        ),
        (
            "nodeManagement: {deleteFailedNodes: true, removal: {maxPercent: 0}}",
            "nodeManagement.removal.maxPercent: 0 is invalid; expected more than 0",
        ),
        (
            "nodeManagement: {taints: [{key: a, effect: NoSchedule, value: b}, {key: a, effect: NoSchedule}]}",
            "nodeManagement.taints[1]: a:NoSchedule is invalid; expected each taint once",
        ),
        (
            "worker: {tolerations: [{key: a, value: b}]}",
            'worker.tolerations[0]: value "b" is invalid with `operator: Exists`; expected `operator: Equal`',
        ),
        ("worker: {tolerations: [{operator: Equal}]}", "`operator: Equal` is invalid without a key"),
        (
            "worker: {tolerations: [{key: a, tolerationSeconds: 1}]}",
            "tolerationSeconds is invalid without `effect: NoExecute`",
        ),
        ("worker: {volumes: [{emptyDir: {}}]}", "worker.volumes[0].name: is missing"),
        (
            "worker: {volumes: [{name: A, emptyDir: {}}]}",
            'worker.volumes[0].name: "A" is invalid; expected a name of at most',
        ),
        ("worker: {volumes: [{name: a}]}", "worker.volumes[0]: {…} is invalid; expected a name and one type of volume"),
        (
            "worker: {volumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]}",
            'worker.volumes[1].name: "a" is invalid; expected a name that no other volume has',
        ),
        (
            "worker: {initContainers: [{name: worker, image: a}]}",
            'worker.initContainers[0].name: "worker" is invalid; expected a name that no other',
        ),
        (
            "worker: {initContainers: [{name: a, image: a}, {name: a, image: a}]}",
            'worker.initContainers[1].name: "a" is invalid; expected a name that no other',
        ),
        (
            "worker: {initContainers: [{name: a, image: a, volumeMounts: [{name: v, mountPath: /v}]}]}",
            'worker.initContainers[0].volumeMounts[0].name: "v" is invalid; expected the name of a volume in worker.',
        ),
        (
            "worker: {initContainers: [{name: a, image: a, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}",
            "worker.initContainers[0].securityContext.capabilities.add: unknown key",
        ),
        (
            "worker: {initContainers: [{name: a, image: a, securityContext: {capabilities: {drop: [all]}}}]}",
            'securityContext.capabilities.drop[0]: "all" is invalid; expected a capability in capital letters',
        ),
        (
            "worker: {initContainers: [{name: a, image: a, securityContext: {seccompProfile: {type: Unconfined}}}]}",
            'securityContext.seccompProfile.type: "Unconfined" is invalid; expected RuntimeDefault',
        ),
        (
            "worker: {resources: {requests: {memory: 1Gi}}}",
            "worker.resources.requests.memory: 1Gi is invalid; expected at most the limit, 128Mi",
        ),
    ],
)
def test_impossible_values_are_rejected(text: str, expected: str) -> None:
    message = complaint(text)
    assert expected in message
    assert message.startswith("config.yaml:1: ")
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "kubernetes: {qps: 0, burst: 0}",
        "metrics: {port: 8080}\nhealth: {port: 8080}",
        "nodeManagement: {removal: {maxCount: 0}}",
        "nodeManagement: {verifiedLabel: {key: node-ready/unverified}}",
        "nodeManagement: {taints: [{key: a, effect: NoSchedule, value: b}, {key: a, effect: NoSchedule, value: c}]}",
        "nodeManagement: {taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]}",
        (
            "worker: {volumes: [{name: v, emptyDir: {}}], "
            "initContainers: [{name: a, image: a, volumeMounts: [{name: v, mountPath: /v}]}]}"
        ),
    ],
)
def test_unusual_but_valid_values_are_accepted(text: str) -> None:
    load(text)


def test_an_invalid_value_does_not_invalidate_others() -> None:
    message = complaint("worker: {timeoutSeconds: soon, checkTimeoutSeconds: 400}")
    assert message.startswith('config.yaml:1: worker.timeoutSeconds: "soon" is invalid; expected a whole number')


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"KUBE_NODE_READY_NODE_MANAGEMENT_TAINTS": "a"}, "nodeManagement.taints is not a single value"),
        ({"KUBE_NODE_READY_RECONCILATION_WORKERS": "1"}, "did you mean KUBE_NODE_READY_RECONCILIATION_WORKERS?"),
        ({"DRY_RUN": "perhaps"}, 'DRY_RUN: dryRun: "perhaps" is invalid; expected true or false'),
        ({"POD_NAMESPACE": "A B"}, 'worker.namespace: "A B" is invalid; expected a name'),
        (
            {"KUBE_NODE_READY_WORKER_CHECK_TIMEOUT_SECONDS": "x"},
            "KUBE_NODE_READY_WORKER_CHECK_TIMEOUT_SECONDS: worker.checkTimeoutSeconds: ",
        ),
    ],
)
def test_an_error_in_a_variable_names_the_variable(variables: dict[str, str], expected: str) -> None:
    assert expected in complaint("", variables)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"metrics_bind_address": "127.0.0.1:8080"},
            '--metrics-bind-address: "127.0.0.1:8080" is invalid; expected a port of every',
        ),
        ({"health_probe_bind_address": "0"}, '--health-probe-bind-address: "0" is invalid; expected a port'),
        (
            {"metrics_bind_address": ":99999"},
            '--metrics-bind-address: metrics.port: "99999" is invalid; expected a whole number from 0 to 65535',
        ),
        (
            {"leader_elect": "maybe"},
            '--leader-elect: leaderElection.enabled: "maybe" is invalid; expected true or false',
        ),
        (
            {"zap_log_level": "loud"},
            '--zap-log-level: logging.level: "loud" is invalid; expected debug, info, warn or error',
        ),
        ({"zap_devel": "maybe"}, '--zap-devel: "maybe" is invalid; expected true or false'),
    ],
)
def test_an_error_in_a_flag_names_the_flag(given: dict[str, object], expected: str) -> None:
    assert expected in complaint("", None, **given)
