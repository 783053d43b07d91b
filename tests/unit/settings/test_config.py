"""The controller's configuration: what it means, and where it comes from."""

import argparse
from datetime import timedelta
from operator import attrgetter
from pathlib import Path

import msgspec
import pytest
import yaml
from msgspec.structs import replace

from kube_node_ready import __version__
from kube_node_ready.settings import config, images, worker
from kube_node_ready.settings.controller import CONFIG, Taint
from kube_node_ready.settings.flags import parse
from kube_node_ready.settings.structs import Section, leaves, table
from kube_node_ready.settings.worker_pod import CHECKS, Image
from tests import specification
from tests.support.configs import NOWHERE, OWN_IMAGE, complaint, load

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "controller-config.yaml"


@pytest.mark.parametrize(
    "text", ["", "\n", "# nothing\n", "---\n", "{}", "null", "worker:\nreconciliation: {}\n", "\ufeff"]
)
def test_unset_values_have_their_defaults(text: str) -> None:
    assert load(text) == config.load(None, OWN_IMAGE, {}, account=NOWHERE)


def test_the_defaults_are_the_documented_ones() -> None:
    loaded = config.load(None, OWN_IMAGE, {}, account=NOWHERE)
    assert loaded.worker.image.reference == OWN_IMAGE["POD_IMAGE"]
    assert loaded.worker.namespace == loaded.leader_election.namespace == "kube-system"
    assert loaded.node_management.taints == (Taint(key="node-ready/unverified", value="true", effect="NoSchedule"),)
    assert not loaded.node_management.delete_failed_nodes
    assert loaded.reconciliation.first_backoff_seconds == 1
    assert loaded.leader_election.lease_duration == timedelta(seconds=15)
    assert loaded.warnings == ()


class TestTheWorkersImage:
    def test_without_a_name_it_is_the_controllers_own(self) -> None:
        own = "registry.example:5000/team/kube-node-ready"
        for tail in (":1.2.3", f"@sha256:{'0' * 64}"):
            assert load("", {"POD_IMAGE": own + tail}).worker.image.reference == own + tail

    def test_a_configured_tag_takes_precedence_over_the_digest_of_the_controllers_image(self) -> None:
        own = {"POD_IMAGE": f"registry.example/a@sha256:{'0' * 64}"}
        assert load("worker: {image: {tag: v2}}", own).worker.image.reference == "registry.example/a:v2"

    def test_it_is_required_where_the_controllers_own_is_not_known(self) -> None:
        message = complaint("", {"POD_IMAGE": ""})
        assert "worker.image.repository: is missing; expected the image that the controller runs, such as " in message

    def test_without_a_tag_it_has_the_controllers_version(self) -> None:
        image = load("worker: {image: {repository: registry.example/a}}", {"POD_IMAGE": ""}).worker.image
        assert image.reference == f"registry.example/a:{__version__}"

    @pytest.mark.parametrize(
        ("repository", "own", "message"),
        [
            ("registry.example/a", "registry.example/a:1", []),
            ("localhost/a", "", []),
            ("registry.example/a", "", []),
            (
                "registry.example/a",
                "registry.example/b:1",
                ['differs from the controller\'s image, "registry.example/b:1"'],
            ),
            ("a", "a:1", ["a has no registry"]),
            ("team/a", "", ["team/a has no registry"]),
            ("registry.example/a", "b\x1b[31m\n", ['differs from the controller\'s image, "b\\x1b[31m\\n": ']),
            ("a", "registry.example/a:1", ["differs from the controller's image", "a has no registry"]),
            (images.GO_VERSION, f"{images.GO_VERSION}:1", ["exits with code 3 here, and no node passes"]),
            (images.GO_VERSION, "", ["exits with code 3 here, and no node passes"]),
        ],
    )
    def test_an_image_that_might_not_work_is_warned_of(self, repository: str, own: str, message: list[str]) -> None:
        found = list(images.warnings(Image(repository=repository), own))
        assert len(found) == len(message)
        assert all(part in text for part, text in zip(message, found, strict=True))


def test_the_values_of_the_readme_load_and_are_the_defaults() -> None:
    loaded = load(specification.text("operator/values-controller.yaml"))
    assert loaded.worker.checks["dnsTestDomains"] == ["kubernetes.default.svc.cluster.local", "google.com"]
    assert loaded.worker.image.reference == "ghcr.io/imunhatep/kube-node-ready:latest"
    assert replace(loaded, worker=replace(loaded.worker, checks={}, image=load().worker.image)) == load()


def test_a_file_of_the_original_loads_with_warnings_for_ineffective_keys() -> None:
    loaded = load("""
worker:
  image: {repository: ghcr.io/imunhatep/kube-node-ready, tag: v0.4.5, pullPolicy: Always}
  namespace: node-ready
  serviceAccountName: kube-node-ready-worker
  priorityClassName: system-node-critical
  resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {cpu: 1, memory: 64Mi}}
  configMapName: kube-node-ready-worker
  job: {activeDeadlineSeconds: 120, backoffLimit: 0, completions: 1, ttlSecondsAfterFinished: 600}
  tolerations: [{key: example.com/gpu, operator: Equal, value: "true", effect: NoExecute, tolerationSeconds: 60}]
  initContainers:
    - name: disk
      image: registry.example/check:1
      command: [/check]
      args: ["--fast"]
      env: [{name: A, value: 1}]
      volumeMounts: [{name: worker-config, mountPath: /etc/check, readOnly: true, subPath: check}]
      resources: {limits: {memory: 32Mi}}
      securityContext: {privileged: false, readOnlyRootFilesystem: true, runAsNonRoot: true, runAsUser: 1000,
                        runAsGroup: 1000, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]},
                        seccompProfile: {type: RuntimeDefault}}
      workingDir: /work
reconciliation: {intervalSeconds: 10, maxRetries: 3, retryBackoff: linear}
nodeManagement: {deleteFailedNodes: true, taints: [{key: a, effect: NoExecute}], verifiedLabel: {key: a/b, value: c}}
leaderElection: {enabled: true, id: kube-node-ready-controller, namespace: kube-system}
metrics: {enabled: true, port: 8080}
health: {port: 8081}
logging: {level: info, format: json}
kubernetes: {kubeconfigPath: "", qps: 50, burst: 100}
""")
    assert loaded.worker.timeout_seconds == 120
    assert loaded.reconciliation.first_backoff_seconds == 5
    assert loaded.node_management.taints == (Taint(key="a", value=None, effect="NoExecute"),)
    assert [note.split()[0] for note in loaded.warnings] == [
        "worker.job.backoffLimit",
        "worker.job.completions",
        "worker.job.ttlSecondsAfterFinished",
    ]
    (check,) = loaded.worker.init_containers
    assert config.manifest(check)["env"] == [{"name": "A", "value": "1"}]
    context = config.manifest(check)["securityContext"]
    assert context["privileged"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "imagePullPolicy" not in config.manifest(check)


def test_a_security_context_is_rendered_unmodified() -> None:
    (check,) = load(
        "worker: {initContainers: [{name: a, image: b, securityContext: {privileged: false}}]}"
    ).worker.init_containers
    assert config.manifest(check)["securityContext"] == {"privileged": False}


def test_the_example_has_every_key_with_its_default() -> None:
    loaded = load(EXAMPLE.read_text())
    assert loaded.worker.image.reference == f"registry.example/team/kube-node-ready:{__version__}"
    assert replace(loaded, worker=replace(loaded.worker, checks={}, image=load().worker.image)) == load()
    defaults = {
        key: list(field.default) if isinstance(field.default, tuple) else field.default for key, field in CHECKS.items()
    }
    assert loaded.worker.checks == {name: value for name, value in defaults.items() if value is not None}
    written = yaml.safe_load(EXAMPLE.read_text())
    for path, _, _ in leaves(CONFIG):
        inner = written
        for key in path.split("."):
            assert key in inner, path
            inner = inner[key]


def test_the_example_has_every_key_of_list_items() -> None:
    text = EXAMPLE.read_text()
    missing = {
        f"{section.__name__}.{key}"
        for section in Section.__subclasses__()
        for key in table(section).fields
        if f"{key}:" not in text
    }
    assert missing <= {"Toleration.tolerationSeconds"}, "goes only with NoExecute, which the example has not"


def test_every_setting_of_the_worker_has_a_place() -> None:
    elsewhere = {"timeoutSeconds", "logging", "dryRun"}
    controllers = {"maxRetries", "retryBackoff", "initialCheckTimeoutSeconds"}
    assert worker.TABLE.fields.keys() - elsewhere - controllers == CHECKS.keys()


def test_a_part_of_a_section_leaves_the_rest_at_its_default() -> None:
    resources = load("worker: {resources: {limits: {memory: 256Mi}}}").worker.resources
    assert resources.limits == {"memory": "256Mi"}
    assert resources.requests == {"cpu": "50m", "memory": "64Mi"}


def test_an_empty_list_of_taints_is_not_the_default_gate() -> None:
    assert load("nodeManagement: {taints: []}").node_management.taints == ()


def test_pull_secrets_are_names_however_they_are_written() -> None:
    assert load("worker: {imagePullSecrets: [a, {name: b}]}").worker.image_pull_secrets == ("a", "b")


def test_a_digest_replaces_the_tag() -> None:
    digest = f"sha256:{'0' * 64}"
    assert load(f"worker: {{image: {{repository: host:5000/a/b, digest: '{digest}'}}}}").worker.image.reference == (
        f"host:5000/a/b@{digest}"
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("15s", 15),
        ("1m30s", 90),
        ("1500ms", 1.5),
        ("1h", 3600),
        ("12", 12),
        ("11.5", 11.5),
        ('"15s"', 15),
        ("1.5m", 90),
    ],
)
def test_durations(written: str, meant: float) -> None:
    loaded = load(f"leaderElection: {{leaseDuration: {written}, renewDeadline: 1s, retryPeriod: 100ms}}")
    assert loaded.leader_election.lease_duration == timedelta(seconds=meant)


@pytest.mark.parametrize(
    ("text", "path", "meant"),
    [
        ("worker: {image: {tag: 1.10}}", "worker.image.tag", "1.10"),
        ("worker: {image: {tag: 010}}", "worker.image.tag", "010"),
        ("nodeManagement: {verifiedLabel: {value: yes}}", "node_management.verified_label.value", "yes"),
        ("nodeManagement: {verifiedLabel: {value: true}}", "node_management.verified_label.value", "true"),
        ("nodeManagement: {verifiedLabel: {value: ''}}", "node_management.verified_label.value", ""),
        ("nodeManagement: {verifiedLabel: {value: ~}}", "node_management.verified_label.value", "true"),
        ("dryRun: yes", "dry_run", True),
        ('dryRun: "true"', "dry_run", True),
        ('reconciliation: {maxRetries: "7"}', "reconciliation.max_retries", 7),
        ("reconciliation: {maxRetries: 7.0}", "reconciliation.max_retries", 7),
        ("reconciliation: {maxRetries: 1e+02}", "reconciliation.max_retries", 100),
        ("reconciliation: {maxRetries: !!str 7}", "reconciliation.max_retries", 7),
        ("reconciliation: {intervalSeconds: 1.5}", "reconciliation.interval_seconds", 1.5),
        ("worker: {resources: {requests: {cpu: 0.5}}}", "worker.resources.requests", {"cpu": "0.5"}),
        ("metrics: &same {port: 9}\nhealth: *same", "health.port", 9),
        ("metrics: &same {port: 9}\nhealth: {<<: *same}", "health.port", 9),
        ("metrics: &same {port: 9}\nhealth: {<<: [*same], port: 2}", "health.port", 2),
        (
            "worker: {volumes: [{name: a, emptyDir: {sizeLimit: 1}}]}",
            "worker.volumes",
            ({"name": "a", "emptyDir": {"sizeLimit": 1}},),
        ),
    ],
)
def test_text_is_parsed_by_its_field(text: str, path: str, meant: object) -> None:
    value = attrgetter(path)(load(text))
    assert value == meant
    assert type(value) is type(meant)


def test_flags_override_the_environment_and_the_environment_overrides_the_file() -> None:
    file, variables = "logging: {level: error}", {"KUBE_NODE_READY_LOGGING_LEVEL": "warn"}
    assert load().logging.level == "info"
    assert load(file).logging.level == "error"
    assert load(file, variables).logging.level == "warn"
    assert load(file, {"LOG_LEVEL": "debug", **variables}).logging.level == "warn"
    assert load(file, variables, log_level="debug").logging.level == "debug"


def test_every_single_value_has_its_variable() -> None:
    names = config.variables()
    assert names["KUBE_NODE_READY_RECONCILIATION_MAX_RETRIES"] == "reconciliation.maxRetries"
    assert names["KUBE_NODE_READY_NODE_MANAGEMENT_VERIFIED_LABEL_KEY"] == "nodeManagement.verifiedLabel.key"
    assert names["KUBE_NODE_READY_DRY_RUN"] == "dryRun"
    assert names["KUBE_NODE_READY_WORKER_DNS_TEST_DOMAINS"] == "worker.dnsTestDomains"
    assert len(names) == len(set(names.values()))


def test_variables_are_typed_as_their_fields_are() -> None:
    loaded = load(
        "reconciliation: {maxRetries: 3}",
        {
            "KUBE_NODE_READY_RECONCILIATION_MAX_RETRIES": "7",
            "KUBE_NODE_READY_METRICS_ENABLED": "false",
            "KUBE_NODE_READY_LEADER_ELECTION_LEASE_DURATION": "1m",
            "KUBE_NODE_READY_WORKER_DNS_TEST_DOMAINS": "a.example,b.example",
            "KUBE_NODE_READY_HEALTH_PORT": "",
            "DRY_RUN": "1",
            "KUBECONFIG": "/home/me/.kube/config",
        },
    )
    assert loaded.reconciliation.max_retries == 7
    assert not loaded.metrics.enabled
    assert loaded.leader_election.lease_duration == timedelta(minutes=1)
    assert loaded.worker.checks == {"dnsTestDomains": ["a.example", "b.example"]}
    assert loaded.dry_run
    assert loaded.kubernetes.kubeconfig_path == "/home/me/.kube/config"


def test_variables_of_kubernetes_and_the_lab_are_ignored() -> None:
    injected = {
        "KUBE_NODE_READY_LAB_DIR": "the-lab's-own",
        "KUBE_NODE_READY_SERVICE_HOST": "10.0.0.1",
        "KUBE_NODE_READY_SERVICE_PORT": "8080",
        "KUBE_NODE_READY_SERVICE_PORT_METRICS": "8080",
        "KUBE_NODE_READY_PORT": "tcp://10.0.0.1:8080",
        "KUBE_NODE_READY_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "KUBE_NODE_READY_PORT_8080_TCP_ADDR": "10.0.0.1",
        "KUBE_NODE_READY_PORT_8080_TCP_PROTO": "tcp",
        "KUBE_NODE_READY_CONTROLLER_SERVICE_HOST": "10.0.0.1",
        "KUBE_NODE_READY_CONTROLLER_PORT": "tcp://10.0.0.1:8080",
        "KUBE_NODE_READY_METRICS_PORT": "tcp://10.0.0.1:8080",
        "KUBE_NODE_READY_WORKER_CONFIG": "{}",
    }
    assert load("", injected) == load()
    assert load("", {"KUBE_NODE_READY_METRICS_PORT": "9090"}).metrics.port == 9090


def test_the_namespace_is_the_files_the_pods_the_accounts_or_kube_system(tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("of-the-account\n")
    pod = {"POD_NAMESPACE": "of-the-pod"}
    assert load("worker: {namespace: of-the-file}", pod).worker.namespace == "of-the-file"
    assert load("worker: {namespace: ''}", pod).worker.namespace == "of-the-pod"
    assert load("", pod).leader_election.namespace == "of-the-pod"
    assert config.load(None, OWN_IMAGE, {}, account=tmp_path).worker.namespace == "of-the-account"
    assert load().worker.namespace == "kube-system"


def flags(*words: str) -> dict[str, str]:
    arguments = parse(argparse.ArgumentParser(), words, config.flags())
    assert not arguments.diagnostics
    return arguments.flags


@pytest.mark.parametrize(
    ("words", "path", "meant"),
    [
        (["--metrics-bind-address=:9090"], "metrics.port", 9090),
        (["--metrics-bind-address", "0"], "metrics.enabled", False),
        (["--health-probe-bind-address=0.0.0.0:9091"], "health.port", 9091),
        (["--leader-elect=false"], "leader_election.enabled", False),
        (["--leader-elect"], "leader_election.enabled", True),
        (["--leader-election-id=x"], "leader_election.id", "x"),
        (["--leader-election-namespace=y"], "leader_election.namespace", "y"),
        (["--kubeconfig=/k"], "kubernetes.kubeconfig_path", "/k"),
        (["--log-format=console"], "logging.format", "console"),
        (["--dry-run"], "dry_run", True),
        (["--zap-log-level=error"], "logging.level", "error"),
        (["--zap-log-level=3"], "logging.level", "debug"),
        (["--zap-encoder=console"], "logging.format", "console"),
        (["--zap-devel"], "logging.format", "console"),
        (["--zap-devel", "--log-level=warn"], "logging.level", "warn"),
        (["--zap-devel=false"], "logging.level", "info"),
        (["-v=4"], "logging.level", "debug"),
        (["-v", "4"], "logging.level", "debug"),
        (["-v4"], "logging.level", "debug"),
        (["--dry-run", "false"], "dry_run", False),
        (["--dry-run", "--log-level=warn"], "dry_run", True),
        (["--v=2"], "logging.level", "info"),
        (["--zap-time-encoding=iso8601"], "warnings", ("--zap-time-encoding has no effect",)),
    ],
)
def test_flags_set_their_fields(words: list[str], path: str, meant: object) -> None:
    assert attrgetter(path)(config.load(None, OWN_IMAGE, flags(*words), account=NOWHERE)) == meant


def test_unset_flags_have_no_effect() -> None:
    assert flags() == {}


def test_a_configuration_is_immutable() -> None:
    loaded = config.load(None, OWN_IMAGE, {}, account=NOWHERE)
    with pytest.raises(AttributeError):
        loaded.dry_run = True  # type: ignore[misc]


def test_the_workers_settings_round_trip_as_json() -> None:
    given = load("worker: {dnsTestDomains: [a.example], checkTimeoutSeconds: 5s, payload: no}").worker.checks
    assert msgspec.json.decode(msgspec.json.encode(given)) == {
        "dnsTestDomains": ["a.example"],
        "checkTimeoutSeconds": 5,
        "payload": False,
    }
