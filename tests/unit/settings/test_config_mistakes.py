"""The controller's configuration: what is said about mistakes."""

from pathlib import Path

import pytest

from kube_node_ready import config
from kube_node_ready.config import ConfigError
from kube_node_ready.configuration import rules
from tests.configs import complaint, load


def test_all_mistakes_are_found_in_one_go() -> None:
    said = complaint(
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
    assert said.splitlines() == [
        "7 mistakes in the configuration:",
        "  - KUBE_NODE_READY_METRIC_PORT: unknown variable (did you mean KUBE_NODE_READY_METRICS_PORT?)",
        "  - reconciliation.maxRetrys: unknown key (did you mean maxRetries?) [config.yaml line 3]",
        ("  - reconciliation.intervalSeconds: is 0, and must be a number from 1 to 31536000 [config.yaml line 4]"),
        (
            "  - nodeManagement.taints[0].key: is 'a b', and must be a Kubernetes key such as example.com/name, "
            "the name with at most 63 characters [config.yaml line 6]"
        ),
        (
            "  - nodeManagement.taints[0].effect: is Never, and must be NoExecute, NoSchedule or PreferNoSchedule "
            "[config.yaml line 6]"
        ),
        "  - metrics.port: is many, and must be a whole number from 0 to 65535 [KUBE_NODE_READY_METRICS_PORT]",
        "  - logging.level: is loud, and must be debug, error, info or warn [--log-level]",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("reconciliation: {max_retries: 1}", "reconciliation.max_retries: unknown key (did you mean maxRetries?)"),
        ("worker: {dnsTestDomain: []}", "worker.dnsTestDomain: unknown key (did you mean dnsTestDomains?)"),
        ("maxRetries: 1", "maxRetries: unknown key (did you mean reconciliation.maxRetries?)"),
        ("worker: {checks: {}}", "worker.checks: unknown key"),
        ("notes: []", "notes: unknown key"),
        ("zzz: 1", "zzz: unknown key (there are dryRun, health, "),
        ("worker: 5", "worker: is 5, and must be a mapping"),
        ("worker: [a]", "worker: is a list, and must be a mapping"),
        ("worker: {command: /x}", "worker.command: is /x, and must be a list"),
        ("worker: {command: [[]]}", "worker.command[0]: is a list, and must be text"),
        ("worker: {tolerations: [null]}", "worker.tolerations[0]: is null, and must be a mapping"),
        ("worker: {podLabels: {a: null}}", "worker.podLabels.a: is null, and must be a label value"),
        ("worker: {podLabels: {a b: c}}", "worker.podLabels.a b': the key must be a Kubernetes key"),
        ("worker: {resources: {limits: {memory: 5 MB}}}", "is '5 MB', and must be a quantity such as 50m"),
        (
            "worker: {image: {repository: a/b:1}}",
            "worker.image.repository: is a/b:1, and must be an image's name without tag",
        ),
        ("worker: {dnsTestDomains: ['a b']}", "worker.dnsTestDomains: is ['a b'], and must be a list, each a DNS name"),
        ("worker: {checkTimeoutSeconds: 0}", "worker.checkTimeoutSeconds: is 0, and must be seconds above 0"),
        ("reconciliation: {maxRetries: 2.5}", "is 2.5, and must be a whole number from 1 to 1000"),
        ("reconciliation: {maxRetries: 010}", "is 010, and must be a whole number"),
        ("reconciliation: {maxRetries: 0x10}", "is 0x10, and must be a whole number"),
        ("reconciliation: {maxRetries: true}", "is true, and must be a whole number"),
        ("reconciliation: {intervalSeconds: .inf}", "is .inf, and must be a number"),
        ("reconciliation: {intervalSeconds: 1e99}", "is 1e99, and must be a number"),
        ("leaderElection: {leaseDuration: 15 s}", "is '15 s', and must be a duration such as 15s"),
        ("leaderElection: {leaseDuration: s}", "is s, and must be a duration"),
        ("leaderElection: {retryPeriod: 0}", "leaderElection.retryPeriod: is 0, and must be a duration"),
        (
            "nodeManagement: {taints: }",
            "nodeManagement.taints: is null, which is ambiguous: `[]` means every unlabelled node",
        ),
        ("nodeManagement: {taints: [{key: a}]}", "nodeManagement.taints[0].effect: is missing, and must be NoExecute"),
        ("metrics: {port: 65536}", "metrics.port: is 65536, and must be a whole number from 0 to 65535"),
        ("metrics: {enabled: maybe}", "metrics.enabled: is maybe, and must be true or false"),
        (
            "metrics: {port: 1}\nmetrics: {port: 2}",
            "metrics: given twice, first at config.yaml line 1 [config.yaml line 2]",
        ),
        ("controller: {config: {}, replicas: 2}", "controller.replicas: is for the Helm chart"),
        ("controller: {config: {}}\nworker: {}", "worker: stands beside `controller:`; move it into controller.config"),
        ("controller: {config: 5}", "controller.config: must be a mapping"),
        ("config: {taintKey: my/gate}", "config.taintKey: is now nodeManagement.taints[0].key: write my/gate there"),
        ("config: {initialTimeout: 600s}", "config.initialTimeout: is now worker.timeoutSeconds: write 600 there"),
        ("config: {dnsTestDomains: [a]}", "config.dnsTestDomains: is now worker.dnsTestDomains [config.yaml line 1]"),
        ("config: {maxRetry: 1}", "config.maxRetry: unknown key (did you mean maxRetries?)"),
    ],
)
def test_a_mistake_names_the_field_the_value_and_what_would_be_right(text: str, expected: str) -> None:
    assert expected in complaint(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "- a\n",
            "the file must hold sections such as `worker:` and `reconciliation:`, not a list [config.yaml line 1]",
        ),
        ("hello", "not the text hello"),
        ("worker:\n\timage: x\n", "not YAML: a tab cannot indent, use spaces [config.yaml line 2]"),
        ("worker: {\n", "not YAML: "),
        ("worker: a: b", "not YAML: mapping values are not allowed here [config.yaml line 1]"),
        ("a: 1\nworker: '\x00'", "not YAML: a character that no text has [config.yaml line 2]"),
        ('worker: "\\U00110000"', "not YAML: "),
        ('worker: "\\uD800"', "half of a surrogate pair is not a character [config.yaml line 1]"),
        (
            "---\na: 1\n---\nb: 1\n",
            "a second document starts here; one file holds one configuration [config.yaml line 3]",
        ),
        ("worker: !!python/object:os.system {}", "the tag tag:yaml.org,2002:python/object:os.system is not understood"),
        ("worker: !!binary aGVsbG8=", "is not understood here"),
        ("worker: &a [*a]", "the alias *a contains itself"),
        ("worker: *b", "the alias *b was never defined"),
        ("worker: {[a]: b}", "a key must be a plain word"),
        ("worker:\n  <<: 5", "`<<` takes the alias of a mapping"),
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
        (b"worker: \xff", "is not UTF-8 text: byte 9 is 0xff"),
        ("é".encode("utf-16"), "is not UTF-8 text: byte 1"),
        ("a" * 300_000, "has more than 256 KiB: not a configuration"),
    ],
)
def test_what_is_no_configuration_at_all_gets_one_sentence(text: str | bytes, expected: str) -> None:
    said = complaint(text)
    assert expected in said
    assert len(said.splitlines()) == 1


def test_a_thousand_mistakes_are_counted_and_a_hundred_shown() -> None:
    lines = complaint("dryRun: true\n" * 1001).splitlines()
    assert lines[0] == "1000 mistakes in the configuration:"
    assert len(lines) == 102


@pytest.mark.parametrize(("name", "expected"), [("missing.yaml", "No such file"), (".", "Is a directory")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"the file {tmp_path / name} cannot be read: {expected}"):
        config.load(tmp_path / name, {}, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "worker: {timeoutSeconds: 20, checkTimeoutSeconds: 30}",
            "worker.checkTimeoutSeconds: is 30, and must not be more than the 20 s",
        ),
        ("worker: {job: {activeDeadlineSeconds: 20}, checkTimeoutSeconds: 30}", "must not be more than the 20 s"),
        ("reconciliation: {backoffSeconds: 60}", "reconciliation.maxBackoffSeconds: is 30, and must not"),
        (
            "reconciliation: {retryBackoff: linear, maxBackoffSeconds: 2}",
            "is 2, and must not be less than the first wait, 5",
        ),
        ("leaderElection: {leaseDuration: 10s}", "leaseDuration: is 10s, and must be longer than renewDeadline, 10s"),
        ("leaderElection: {retryPeriod: 10s}", "renewDeadline: is 10s, and must be longer than retryPeriod, 10s"),
        ("leaderElection: {leaseDuration: 900ms, renewDeadline: 500ms, retryPeriod: 100ms}", "must be at least 1s"),
        ("kubernetes: {burst: 0}", "kubernetes.burst: is 0, so that no request could ever be sent"),
        (
            "nodeManagement: {deleteFailedNodes: true, removal: {maxCount: 0}}",
            "nodeManagement.removal.maxCount: is 0, so that deleteFailedNodes could never remove anything",
        ),
        (
            "nodeManagement: {deleteFailedNodes: true, removal: {maxPercent: 0}}",
            "nodeManagement.removal.maxPercent: is 0",
        ),
        (
            "nodeManagement: {taints: [{key: a, effect: NoSchedule, value: b}, {key: a, effect: NoSchedule}]}",
            "nodeManagement.taints[1]: a:NoSchedule is in the list already",
        ),
        (
            "worker: {tolerations: [{key: a, value: b}]}",
            "worker.tolerations[0]: has the value b, which needs `operator: Equal`",
        ),
        ("worker: {tolerations: [{operator: Equal}]}", "has `operator: Equal`, which needs a key"),
        ("worker: {tolerations: [{key: a, tolerationSeconds: 1}]}", "which needs `effect: NoExecute`"),
        ("worker: {volumes: [{emptyDir: {}}]}", "worker.volumes[0].name: is missing"),
        ("worker: {volumes: [{name: A, emptyDir: {}}]}", "worker.volumes[0].name: is A, and must be a name of at most"),
        ("worker: {volumes: [{name: a}]}", "worker.volumes[0]: must have a name and one kind of volume"),
        (
            "worker: {volumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]}",
            "worker.volumes[1].name: is a, which another",
        ),
        (
            "worker: {initContainers: [{name: worker, image: a}]}",
            "worker.initContainers[0].name: is worker, which another",
        ),
        (
            "worker: {initContainers: [{name: a, image: a}, {name: a, image: a}]}",
            "worker.initContainers[1].name: is a, which",
        ),
        (
            "worker: {initContainers: [{name: a, image: a, volumeMounts: [{name: v, mountPath: /v}]}]}",
            "worker.initContainers[0].volumeMounts[0].name: is v, and must be the name of a volume in worker.volumes",
        ),
        (
            "worker: {initContainers: [{name: a, image: a, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}",
            "worker.initContainers[0].securityContext.capabilities.add: unknown key",
        ),
        (
            "worker: {initContainers: [{name: a, image: a, securityContext: {capabilities: {drop: [all]}}}]}",
            "securityContext.capabilities.drop[0]: is all, and must be a capability in capital letters",
        ),
        (
            "worker: {initContainers: [{name: a, image: a, securityContext: {seccompProfile: {type: Unconfined}}}]}",
            "securityContext.seccompProfile.type: is Unconfined, and must be RuntimeDefault",
        ),
        (
            "worker: {resources: {requests: {memory: 1Gi}}}",
            "worker.resources.requests.memory: is 1Gi, and must not be more",
        ),
    ],
)
def test_what_could_never_work_is_refused(text: str, expected: str) -> None:
    said = complaint(text)
    assert expected in said
    assert said.endswith("[config.yaml line 1]")
    assert len(said.splitlines()) == 1


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
def test_what_is_unusual_but_works_is_accepted(text: str) -> None:
    load(text)


def test_a_doubtful_value_is_not_held_against_others() -> None:
    said = complaint("worker: {timeoutSeconds: soon, checkTimeoutSeconds: 400}")
    assert said.startswith("worker.timeoutSeconds: is soon, and must be a whole number")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"KUBE_NODE_READY_NODE_MANAGEMENT_TAINTS": "a"}, "nodeManagement.taints is not a single value"),
        ({"KUBE_NODE_READY_RECONCILATION_WORKERS": "1"}, "did you mean KUBE_NODE_READY_RECONCILIATION_WORKERS?"),
        ({"DRY_RUN": "perhaps"}, "dryRun: is perhaps, and must be true or false [DRY_RUN]"),
        ({"POD_NAMESPACE": "A B"}, "worker.namespace: is 'A B', and must be a name"),
        ({"KUBE_NODE_READY_WORKER_CHECK_TIMEOUT_SECONDS": "x"}, "[KUBE_NODE_READY_WORKER_CHECK_TIMEOUT_SECONDS]"),
    ],
)
def test_a_mistake_in_a_variable_names_the_variable(variables: dict[str, str], expected: str) -> None:
    assert expected in complaint("", variables)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"metrics_bind_address": "127.0.0.1:8080"},
            "--metrics-bind-address: is 127.0.0.1:8080, and must be a port of every",
        ),
        ({"health_probe_bind_address": "0"}, "--health-probe-bind-address: is 0, and must be a port"),
        (
            {"metrics_bind_address": ":99999"},
            "metrics.port: is 99999, and must be a whole number from 0 to 65535 [--metrics",
        ),
        ({"leader_elect": "maybe"}, "leaderElection.enabled: is maybe, and must be true or false [--leader-elect]"),
        ({"zap_log_level": "loud"}, "logging.level: is loud, and must be debug, error, info or warn [--zap-log-level]"),
        ({"zap_devel": "maybe"}, "--zap-devel: is maybe, and must be true or false"),
        ({"log_levle": "info"}, "--log-levle: unknown flag (did you mean --log-level?)"),
    ],
)
def test_a_mistake_in_a_flag_names_the_flag(given: dict[str, object], expected: str) -> None:
    assert expected in complaint("", None, **given)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [("50m", "1"), ("999M", "1Gi"), ("1Ki", "1.1k"), ("1e3", "1Ki"), ("1E", "1Ei"), ("0.5", "501m")],
)
def test_quantities_are_compared_as_amounts(smaller: str, larger: str) -> None:
    assert rules.amount(smaller) < rules.amount(larger)
