"""DaemonSet mode as the specification has it: manifests, settings, rights, the node before and after, and metrics."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kube_node_ready.agent.metrics import Metrics
from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import Outcome, VerificationRecord
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks import plan
from kube_node_ready.checks.check import CHECKS, PodIdentity
from kube_node_ready.checks.runner import Limits, Observer, Runner
from kube_node_ready.settings import agent as settings
from kube_node_ready.settings.agent import Settings
from kube_node_ready.verification import patches
from kube_node_ready.verification.model import Node
from kube_node_ready.verification.schedule import _failure_backoff
from kubekit.diagnostics import DiagnosticsError
from tests import specification
from tests.specification import DIFFERENT, objects
from tests.specification.objects import has, leaves, page, sorted_labels
from tests.support.chart import Rendered
from tests.support.check_servers import FakeApi, http_json
from tests.support.model_cluster import POLICY, json_patched
from tests.support.shell import ROOT

# --- manifests ---

MANIFESTS: Final = ("daemonset/daemonset.yaml", "daemonset/configmap.yaml", "daemonset/rbac.yaml")


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_example_is_the_manifest(name: str) -> None:
    example = ROOT / "examples" / "manifests" / name.partition("/")[2]
    assert example.read_bytes() == (specification.FOLDER / name).read_bytes()


def test_there_are_no_other_manifests() -> None:
    names = sorted(file.name for file in (ROOT / "examples" / "manifests").glob("*.yaml"))
    assert names == sorted(name.partition("/")[2] for name in MANIFESTS)


def test_the_image_starts_what_the_manifest_starts() -> None:
    """The manifest has no `command`."""
    (container,) = specification.tree("daemonset/daemonset.yaml")["spec"]["template"]["spec"]["containers"]
    assert "command" not in container
    assert 'ENTRYPOINT ["/kube-node-ready"]' in (ROOT / "Dockerfile").read_text()
    assert objects.daemonset().container["command"] == ["/kube-node-ready"]


FIELDS: Final = leaves(specification.tree("daemonset/daemonset.yaml"))
TOLERATIONS: Final = "spec.template.spec.tolerations"
EXCUSED: Final = {
    "spec.selector.matchLabels.app": "selector",
    "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms": (
        "affinity"
    ),
    "spec.template.spec.containers.image": "image tag",
    "spec.template.spec.containers.resources.limits.cpu": "cpu limit",
}


@pytest.mark.parametrize("path", sorted(FIELDS.keys() - EXCUSED.keys() - {TOLERATIONS}))
def test_the_chart_renders_the_field(path: str) -> None:
    assert has(leaves(objects.daemonset().workload)[path], FIELDS[path])


@pytest.mark.parametrize("path", EXCUSED)
def test_only_different_fields_are_excepted(path: str) -> None:
    assert EXCUSED[path] in DIFFERENT
    assert not has(leaves(objects.daemonset().workload).get(path), FIELDS[path])


@pytest.mark.parametrize(
    "toleration",
    FIELDS[TOLERATIONS],
    ids=lambda toleration: toleration["key"],
)
def test_the_chart_tolerates_the_taint(toleration: Mapping[str, str]) -> None:
    """A toleration without an effect is one of all effects."""
    tolerated = objects.daemonset().pod["spec"]["tolerations"]
    assert toleration in [{"effect": toleration["effect"], **one} for one in tolerated]


def test_all_fields_of_the_manifest_are_compared() -> None:
    assert len(FIELDS) == 35
    assert EXCUSED.keys() < FIELDS.keys()


RIGHTS: Final = [
    (one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(specification.text("daemonset/rbac.yaml"))
]


@pytest.mark.parametrize(("kind", "name"), RIGHTS, ids=[kind for kind, _ in RIGHTS])
def test_the_chart_has_the_object_of_the_rights(kind: str, name: str) -> None:
    objects.daemonset().one(kind, name)


def test_the_diagram_names_the_same_account_and_role() -> None:
    text = specification.text("architecture/rights.txt")
    named = dict(re.findall(r"(ServiceAccount|ClusterRole): ([a-z-]+)", text))
    assert named == {kind: name for kind, name in RIGHTS if kind in named}
    assert len(named) == 2
    _, role, _ = yaml.safe_load_all(specification.text("daemonset/rbac.yaml"))
    granted = {what: rule["verbs"] for rule in role["rules"] for what in rule["resources"]}
    drawn = re.findall(r"- (nodes|services|endpoints): ([a-z, ]+?) *│", text)
    assert {what: verbs.split(", ") for what, verbs in drawn} == granted


@pytest.mark.parametrize("verb", ["get", "patch"])
def test_the_chart_grants_the_right_on_nodes(verb: str) -> None:
    assert verb in objects.daemonset().rights("kube-node-ready")["* nodes"].split()


# --- settings ---

READ: Final[dict[str, Callable[[Settings], object]]] = {
    "INITIAL_TIMEOUT": lambda read: f"{read.checks.timeout_seconds:g}s",
    "MAX_RETRIES": lambda read: read.max_retries,
    "RETRY_BACKOFF": lambda read: read.retry_backoff,
    "DNS_TEST_DOMAINS": lambda read: ",".join(read.checks.dns_test_domains),
    "TAINT_KEY": lambda read: read.taint_key,
    "TAINT_VALUE": lambda read: read.taint_value,
    "TAINT_EFFECT": lambda read: read.taint_effect,
    "VERIFIED_LABEL": lambda read: read.verified_label,
    "VERIFIED_LABEL_VALUE": lambda read: read.verified_label_value,
    "ENABLE_METRICS": lambda read: str(read.enable_metrics).lower(),
    "METRICS_PORT": lambda read: read.metrics_port,
    "LOG_LEVEL": lambda read: read.checks.log_level,
    "LOG_FORMAT": lambda read: read.checks.log_format,
    "ENABLE_CONNECTIVITY_MATRIX": lambda read: str(read.checks.connectivity_matrix).lower(),
}
VARIABLES: Final = {
    "default": specification.tree("daemonset/configmap.yaml")["data"],
    "fast": specification.tree("daemonset/settings-fast.yaml"),
    "thorough": specification.tree("daemonset/settings-thorough.yaml"),
}
EACH: Final = [(name, variable) for name, data in VARIABLES.items() for variable in data]


def load(variables: Mapping[str, str]) -> Settings:
    return settings.load({}, {"NODE_NAME": "node-1", **variables}, files=False)


@pytest.mark.parametrize(("name", "variable"), EACH, ids=[f"{name} {variable}" for name, variable in EACH])
def test_the_variable_is_read(name: str, variable: str) -> None:
    loaded = load(VARIABLES[name])
    assert str(READ[variable](loaded)) == VARIABLES[name][variable]
    assert loaded.warnings == ()


def test_the_connectivity_matrix_does_not_hold_nodes_with_the_specified_rights(tmp_path: Path) -> None:
    """The rights do not include pods, and in these manifests no pod stays on a verified node."""
    _, role, _ = yaml.safe_load_all(specification.text("daemonset/rbac.yaml"))
    assert not [rule for rule in role["rules"] if "pods" in rule["resources"]]
    checks = load(VARIABLES["default"] | VARIABLES["thorough"]).checks
    with FakeApi(tmp_path).running() as api:
        api.answers["/api/v1/namespaces/kube-system/pods"] = http_json({"message": "pods is forbidden"}, 403)
        (matrix,) = (
            check
            for check in plan.in_pod(checks, api.access, PodIdentity("node-1", "kube-system"))
            if check.name == "matrix"
        )
        (result,) = Runner(Limits(5, 5), Observer()).run([matrix])
    assert result.verdict is Verdict.NOT_APPLICABLE
    assert 'add the RBAC rule apiGroups: [""], resources: ["pods"], verbs: ["list"]' in result.error


@pytest.mark.parametrize("variable", READ)
def test_a_wrong_value_of_the_variable_is_rejected(variable: str) -> None:
    """Most values of the specification are defaults, with which it could not be seen whether they are read."""
    with pytest.raises(DiagnosticsError, match=f"^{variable}: "):
        load({variable: "not / valid!"})


@pytest.mark.parametrize("variable", sorted(VARIABLES["default"].keys() - {"DNS_TEST_DOMAINS"}))
def test_the_chart_sets_the_variable(variable: str) -> None:
    assert objects.daemonset().variables[variable] == VARIABLES["default"][variable]


def test_the_chart_reads_the_specifications_config_map() -> None:
    name = specification.tree("daemonset/configmap.yaml")["metadata"]["name"]
    assert FIELDS["spec.template.spec.containers.envFrom"] == [{"configMapRef": {"name": name}}]
    assert objects.daemonset().one("ConfigMap", name)


# --- the node ---


def node_of(tree: Any) -> Node:  # noqa: ANN401  YAML
    taints = tuple(Taint(taint["key"], taint["effect"], taint["value"]) for taint in tree["spec"]["taints"])
    return Node(tree["metadata"]["name"], "uid-1", taints=taints, has_annotations=False)


def test_a_release_makes_the_verified_node_of_the_new_one() -> None:
    new, verified = (specification.tree(f"daemonset/{name}.yaml") for name in ("node-new", "node-verified"))
    before = new | {"metadata": new["metadata"] | {"uid": "uid-1"}}
    after = json_patched(before, patches.open_gate(node_of(new), VerificationRecord(1, outcome=Outcome.PASSED), POLICY))
    assert after["metadata"]["labels"] == verified["metadata"]["labels"]
    assert after["spec"] == verified["spec"]


NODES: Final = ("daemonset/node-new.yaml", "daemonset/node-verified.yaml")


@pytest.mark.parametrize("name", NODES)
def test_the_new_node_is_gated_and_the_verified_one_is_not(name: str) -> None:
    assert POLICY.is_gated(node_of(specification.tree(name))) is name.endswith("new.yaml")


def test_the_patch_sets_the_label_as_specified() -> None:
    text = specification.text("daemonset/patch.txt")
    ((path, value),) = re.findall(r'"op": "add",\s+"path": "(.+)",\s+"value": "(.+)"', text)
    gated = node_of(specification.tree("daemonset/node-new.yaml"))
    assert {"op": "add", "path": path, "value": value} in patches.open_gate(gated, VerificationRecord(1), POLICY)


def test_the_affinity_of_the_summary_is_that_of_the_manifest() -> None:
    affinity = specification.tree("daemonset/daemonset.yaml")["spec"]["template"]["spec"]["affinity"]
    assert affinity == specification.tree("daemonset/node-affinity.yaml")


# --- checks, failures, timing ---

TITLES: Final = {
    "DNS Resolution Check": "dns",
    "Kubernetes API Check": "api",
    "Cluster Network Check": "network",
    "Service Discovery Check": "services",
}


def test_every_specified_check_is_listed() -> None:
    assert re.findall(r"\d\. ([\w ]+ Check) ", specification.text("architecture/checks.txt")) == [*TITLES]


@pytest.mark.parametrize("title", TITLES)
def test_the_check_exists(title: str) -> None:
    assert TITLES[title] in CHECKS


def test_a_check_has_the_specified_time_by_default() -> None:
    text = specification.text("architecture/checks.txt")
    (default,) = set(re.findall(r"Timeout: configurable \(default (\w+)\)", text))
    (field,) = (field for field in settings.FIELDS if field.variable == "CHECK_TIMEOUT")
    assert settings.default_text(field) == default


def test_retries_wait_as_specified() -> None:
    text = specification.text("architecture/failure.txt")
    (listed,) = re.findall(r"exponential backoff \((.+)\)", text)
    waits = [_failure_backoff(VerificationRecord(failures=count), POLICY).total_seconds() for count in range(1, 6)]
    assert ", ".join(f"{wait:g}s" for wait in waits) == listed
    assert f"Max retries ({Settings().max_retries})" in text


def test_a_failure_counts_in_the_specified_series() -> None:
    (series,) = re.findall(r"Emit metric: (\w+)\{", specification.text("architecture/failure.txt"))
    assert f'{series}{{check="dns",node="node-1"}}' in page(Metrics("node-1").registry)


def continuous() -> Rendered:
    return objects.daemonset(daemonset={"mode": "continuous"})


def test_the_specified_number_of_failures_closes_the_gate() -> None:
    (count,) = re.findall(r"If (\d+) consecutive failures", specification.text("architecture/transient-failure.txt"))
    assert Settings().failure_threshold == int(count)
    assert continuous().variables["FAILURE_THRESHOLD"] == count


def test_a_node_is_checked_at_the_specified_interval() -> None:
    text = specification.text("architecture/timing.txt")
    (interval,) = re.findall(r"Periodic Check Interval: (\d+s) \(configurable\)", text)
    assert f"{Settings().check_interval:g}s" == continuous().variables["CHECK_INTERVAL"] == interval


def test_the_specified_load_is_two_calls_per_interval() -> None:
    """Tests on real API servers hold continuous mode to it."""
    text = specification.text("architecture/api-load.txt")
    nodes, most = re.search(r"(\d+) Nodes:\n  - ~\d+-(\d+) API calls/second", text).groups()  # type: ignore[union-attr]
    assert specification.most_calls_per_round() == 2
    assert int(nodes) * specification.most_calls_per_round() // int(Settings().check_interval) == int(most)


def test_a_pod_has_the_specified_grace_period() -> None:
    (seconds,) = re.findall(r"Graceful shutdown \((\d+)s", specification.text("architecture/node-removal.txt"))
    assert objects.daemonset().pod["spec"]["terminationGracePeriodSeconds"] == int(seconds)


# --- metrics ---

SAMPLES: Final = dict(line.rsplit(" ", 1) for line in specification.text("operator/metrics-daemonset.txt").splitlines())


def shown() -> dict[str, float]:
    """The page of a node like the one in the samples."""
    metrics = Metrics("node-1")
    metrics.status.set(1)
    metrics.dns_seconds.set(0.123)
    metrics.api_seconds.set(0.456)
    metrics.completed.set(1234567890)
    return page(metrics.registry)


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_series_exists(sample: str) -> None:
    assert shown()[sorted_labels(sample)] == float(SAMPLES[sample])


def test_the_specified_things_serve_and_read_the_metrics() -> None:
    text = specification.text("architecture/metrics.txt")
    assert "/metrics endpoint exposed" in text
    assert "Grafana dashboards" in text
    pod = objects.daemonset(daemonset={"metrics": {"grafanaDashboard": {"enabled": True}}})
    assert pod.container["ports"] == [{"name": "metrics", "containerPort": 8080, "protocol": "TCP"}]
    assert any("dashboard" in one["metadata"]["name"] for one in pod.of("ConfigMap"))
