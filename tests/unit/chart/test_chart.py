"""The Helm chart: what it makes of its values, and which values it refuses."""

import itertools
import json
import re
import runpy
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kube_node_ready import __version__
from kube_node_ready.api.contract import CONDITION, RECORD_ANNOTATION, WORKER_SELECTOR
from kube_node_ready.controller import resources
from kube_node_ready.settings import agent as daemonset_settings
from kube_node_ready.settings import controller, worker
from kube_node_ready.settings import policy as settings
from kube_node_ready.settings.compat import RENAMED_KEYS
from kube_node_ready.settings.controller import CONFIG
from kube_node_ready.settings.engine import REQUIRED, Entries, Field, Items, Table
from kube_node_ready.settings.readers import Boolean, Choice, Duration, Number, Pattern
from kube_node_ready.settings.worker_pod import CHECKS
from kube_node_ready.verification.model import Node
from kube_node_ready.verification.worker_pod import worker_pod
from kubekit.diagnostics import DiagnosticsError
from tests.support import chart, configs
from tests.support.chart import A_CLUSTER, CHART, EXAMPLES, POLICIES, ROOT, Object, Rendered, refusal, render
from tests.support.chart_sets import SETS
from tools.docs import metrics as metrics_page

CONTROLLER, WORKER, DAEMONSET = "kube-node-ready-controller", "kube-node-ready-worker", "kube-node-ready"
ONCE: Mapping[str, Any] = {"deploymentMode": "daemonset"}
CONTINUOUS: Mapping[str, Any] = {"deploymentMode": "daemonset", "daemonset": {"mode": "continuous"}}
DIGEST = f"sha256:{'0' * 64}"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
GATE = {"key": "node-ready/unverified", "operator": "Exists"}


def nested(path: str, value: object) -> dict[str, Any]:
    """`nested("a.b", 1)` -> {"a": {"b": 1}}"""
    for word in reversed(path.split(".")):
        value = {word: value}
    assert isinstance(value, dict)
    return value


def on(path: str) -> dict[str, Any]:
    return nested(path, value=True)


def off(path: str) -> dict[str, Any]:
    return nested(path, value=False)


def of_config(path: str, value: object) -> dict[str, Any]:
    return nested(f"controller.config.{path}", value)


# The chart as a whole


@pytest.mark.parametrize("values", [None, *EXAMPLES], ids=lambda file: file.stem if file else "defaults")
def test_lint_has_nothing_to_say(values: Path | None) -> None:
    done = chart.run("lint", CHART, "--strict", *([f"--values={values}"] if values else []))
    assert done.returncode == 0, done.stdout
    assert "[" not in done.stdout


def switches() -> Iterator[dict[str, Any]]:
    """Everything that can be on or off, the other way round, in the mode that it is for."""
    for path, value in walk(VALUES):
        if isinstance(value, bool) and path != "daemonset.config.deleteFailedNode":  # which is refused
            mode = "daemonset" if path.startswith("daemonset.") else "controller"
            yield {"deploymentMode": mode} | nested(path, not value)
    yield dict(CONTINUOUS)
    for wish in (True, False):
        yield {**ONCE, "admissionPolicy": {"enabled": wish}}


def test_lint_has_nothing_to_say_of_any_switch(tmp_path: Path) -> None:
    """One after the other it would take long: most of what Helm does is to start."""

    def words(number: int, values: Mapping[str, Any]) -> str:
        file = tmp_path / f"{number}.yaml"
        file.write_text(json.dumps(values))
        done = chart.run("lint", CHART, "--strict", f"--values={file}")
        return "" if done.returncode == 0 and "[" not in done.stdout else f"{values}: {done.stdout}"

    flipped = list(switches())
    assert len(flipped) > 20
    with ThreadPoolExecutor() as pool:
        assert not [said for said in pool.map(words, itertools.count(), flipped) if said]


def test_the_version_is_the_operators() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["appVersion"] == __version__
    assert render().container["image"] == f"kube-node-ready:{__version__}"


def test_the_readme_is_up_to_date() -> None:
    script = runpy.run_path(str(CHART.parent / "readme.py"))
    assert (CHART / "README.md").read_text() == script["page"](), script["__doc__"]


def test_by_default_there_is_a_controller_and_what_it_needs() -> None:
    made = [(one["kind"], one["metadata"]["name"], one["metadata"].get("namespace", "")) for one in render()]
    assert sorted(made) == [
        ("ClusterRole", CONTROLLER, ""),
        ("ClusterRoleBinding", CONTROLLER, ""),
        ("ConfigMap", CONTROLLER, "kube-system"),
        ("Deployment", CONTROLLER, "kube-system"),
        ("Role", CONTROLLER, "kube-system"),
        ("Role", f"{CONTROLLER}-events", "default"),
        ("Role", f"{CONTROLLER}-leader-election", "kube-system"),
        ("Role", WORKER, "default"),
        ("Role", WORKER, "kube-system"),
        ("RoleBinding", CONTROLLER, "kube-system"),
        ("RoleBinding", f"{CONTROLLER}-events", "default"),
        ("RoleBinding", f"{CONTROLLER}-leader-election", "kube-system"),
        ("RoleBinding", WORKER, "default"),
        ("RoleBinding", WORKER, "kube-system"),
        ("Service", f"{CONTROLLER}-metrics", "kube-system"),
        ("ServiceAccount", CONTROLLER, "kube-system"),
        ("ServiceAccount", WORKER, "kube-system"),
    ]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (on("controller.metrics.serviceMonitor.enabled"), {"ServiceMonitor"}),
        (on("controller.metrics.podMonitor.enabled"), {"PodMonitor"}),
        (on("controller.metrics.prometheusRule.enabled"), {"PrometheusRule"}),
        (on("networkPolicy.enabled"), {"NetworkPolicy"}),
        (nested("controller.replicas", 2), {"PodDisruptionBudget"}),
        ({**ONCE, **on("daemonset.metrics.podMonitor.enabled")}, {"PodMonitor"}),
        ({**ONCE, **on("daemonset.metrics.prometheusRule.enabled")}, {"PrometheusRule"}),
    ],
    ids=lambda what: next(iter(what)) if isinstance(what, set) else "",
)
def test_what_is_off_by_default_comes_when_wanted(values: dict[str, Any], wanted: set[str]) -> None:
    mode = {"deploymentMode": values.get("deploymentMode", "controller")}
    assert render(values).kinds - render(mode).kinds == wanted


@pytest.mark.parametrize(
    ("mode", "key"), [("controller", "kube-node-ready.json"), ("daemonset", "kube-node-ready-daemonset.json")]
)
def test_the_dashboard_comes_when_wanted_with_the_label_that_grafana_looks_for(mode: str, key: str) -> None:
    wish = nested(f"{mode}.metrics.grafanaDashboard", {"enabled": True, "namespace": "monitoring"})
    dashboard = render({"deploymentMode": mode} | wish).one("ConfigMap", "kube-node-ready-dashboard", "monitoring")
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert dashboard["metadata"]["labels"]["app.kubernetes.io/component"] == mode
    assert json.loads(dashboard["data"][key])["panels"] == panels(mode)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_rendering_twice_gives_the_same_bytes(example: Path) -> None:
    flags = ("--namespace=kube-system", f"--api-versions={A_CLUSTER}", f"--values={example}")
    again = chart.run("template", DAEMONSET, CHART, *flags).stdout
    assert again == chart.written(files=[example]) != ""


@pytest.mark.parametrize("mode", [{}, ONCE], ids=["controller", "daemonset"])
def test_a_new_version_of_the_chart_alone_restarts_nothing(mode: Mapping[str, Any], tmp_path: Path) -> None:
    newer = tmp_path / "chart"
    shutil.copytree(CHART, newer)
    about = (newer / "Chart.yaml").read_text()
    (newer / "Chart.yaml").write_text(re.sub(r"(?m)^version: .*$", "version: 9.9.9", about))
    before, after = render(mode), render(mode, chart=newer)
    assert before != after
    assert before.pod == after.pod
    assert before.workload["spec"] == after.workload["spec"]


@pytest.mark.parametrize("values", [{}, ONCE, {"fullnameOverride": "a" * 63}, {**ONCE, "nameOverride": "b" * 63}])
def test_names_fit_and_are_unique(values: Mapping[str, Any]) -> None:
    name = "a-release-with-quite-a-long-name-that-says-too-much"
    made = render({**values, "networkPolicy": {"enabled": True}}, name=name, apis=[POLICIES])
    names = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in made]
    assert len(set(names)) == len(names)
    for *_, one in names:
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", one), one
    labels = itertools.chain.from_iterable(one["metadata"]["labels"].values() for one in made)
    assert all(len(label) <= 63 for label in labels)


def test_a_name_that_looks_like_a_number_stays_a_name() -> None:
    made = render(name="123", namespace="456")
    assert made.workload["metadata"]["namespace"] == "456"
    assert made.pod["metadata"]["labels"]["app.kubernetes.io/instance"] == "123"


def test_common_labels_and_annotations_are_everywhere_and_override_nothing() -> None:
    ours = {"commonLabels": {"team": "a", "app.kubernetes.io/name": "other"}, "commonAnnotations": {"owner": "b"}}
    made = render(ours)
    assert all(one["metadata"]["labels"]["team"] == "a" for one in made)
    assert all(one["metadata"]["labels"]["app.kubernetes.io/name"] == "kube-node-ready" for one in made)
    assert all(one["metadata"]["annotations"] == {"owner": "b"} for one in made)
    assert made.pod["metadata"]["labels"]["team"] == "a"


# Values that are refused


MISTAKES: Mapping[str, Any] = {
    "controler": {},
    "deploymentMode": "both",
    "image": {"tag": 1.1, "digest": "sha256:short"},
    "admissionPolicy": {
        "enabled": "maybe",
        "restrictController": "auto",
        "additionalWorkerCreators": ["", "a\nb", 1, "c", "c"],
        "additionalWorkerImages": ["*", "a*b", "a b"],
    },
    "config": {"taintKye": "a", "initialTimeout": "soon"},
    "daemonset": {
        "mode": "twice",
        "config": {"metricsPort": None},
        "nodeAffinity": [],
        "metrics": {
            "prometheusRule": {"enabled": "yes", "disabled": "KubeNodeReadyDown", "labels": {"a": 1}},
            "grafanaDashboard": {"enabled": None, "folder": "a"},
        },
    },
    "worker": {"namespace": "Not_A_Name", "createNamespace": "yes", "config": {"configMapName": "a"}},
    "controller": {
        "replicas": None,
        "extraEnv": {"A": "b"},
        "config": {
            "reconciliation": {"maxRetrys": 7, "maxRetries": "five", "workers": 0},
            "logging": {"level": "loud"},
            "nodeManagement": {"taints": [{"key": "a/b"}]},
            "worker": {
                "namespace": "Not_A_Name",
                "services": ["kubernetes"],
                "initContainers": [
                    {"name": "a", "image": "b:1", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}
                ],
            },
            "health": {"port": 0},
        },
    },
}


@pytest.mark.parametrize(
    "said",
    [
        "additional properties 'controler' not allowed",
        "at '/deploymentMode': value must be one of 'controller', 'daemonset'",
        "at '/image/tag': got number, want string",
        "at '/image/digest': 'sha256:short' does not match pattern",
        "at '/admissionPolicy/enabled': value must be one of 'auto', true, false",
        "at '/admissionPolicy/restrictController': got string, want boolean",
        "at '/admissionPolicy/additionalWorkerImages/0': '*' does not match pattern",
        "at '/admissionPolicy/additionalWorkerImages/1': 'a*b' does not match pattern",
        "at '/admissionPolicy/additionalWorkerImages/2': 'a b' does not match pattern",
        "at '/admissionPolicy/additionalWorkerCreators/0': '' does not match pattern",
        "at '/admissionPolicy/additionalWorkerCreators/1': 'a\\nb' does not match pattern",
        "at '/admissionPolicy/additionalWorkerCreators/2': got number, want string",
        "at '/admissionPolicy/additionalWorkerCreators': items at 3 and 4 are equal",
        "at '/config': additional properties 'taintKye' not allowed",
        "at '/config/initialTimeout': 'soon' does not match pattern",
        "at '/daemonset/mode': value must be one of 'once', 'continuous'",
        "at '/daemonset/config': missing property 'metricsPort'",
        "at '/daemonset/nodeAffinity': got array, want object",
        "at '/daemonset/metrics/prometheusRule/enabled': got string, want boolean",
        "at '/daemonset/metrics/prometheusRule/disabled': got string, want array",
        "at '/daemonset/metrics/prometheusRule/labels/a': got number, want string",
        "at '/daemonset/metrics/grafanaDashboard': missing property 'enabled'",
        "at '/daemonset/metrics/grafanaDashboard': additional properties 'folder' not allowed",
        "at '/worker/namespace': 'Not_A_Name' does not match pattern",
        "at '/worker/createNamespace': got string, want boolean",
        "at '/worker/config': additional properties 'configMapName' not allowed",
        "at '/controller': missing property 'replicas'",
        "at '/controller/extraEnv': got object, want array",
        "at '/controller/config/reconciliation': additional properties 'maxRetrys' not allowed",
        "at '/controller/config/reconciliation/maxRetries': got string, want integer",
        "at '/controller/config/reconciliation/workers': minimum: got 0, want 1",
        "at '/controller/config/logging/level': value must be one of 'debug', 'error', 'info', 'warn'",
        "at '/controller/config/nodeManagement/taints/0': missing property 'effect'",
        "at '/controller/config/worker/namespace': 'Not_A_Name' does not match pattern",
        "/initContainers/0/securityContext/capabilities': additional properties 'add' not allowed",
        "at '/controller/config/worker/services/0': 'kubernetes' does not match pattern",
        "at '/controller/config/health/port': minimum: got 0, want 1",
    ],
)
def test_every_mistake_is_refused_with_its_place_at_the_first_try(said: str) -> None:
    assert said in refusal(MISTAKES)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"controller": {"replicas": 2, "leaderElection": {"enabled": False}}},
            "controller.replicas is more than 1, which requires leader election",
        ),
        (
            {"controller": {"metrics": {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}}},
            "serviceMonitor and podMonitor together would scrape every series twice",
        ),
        (
            {"controller": {"metrics": {"enabled": False, "serviceMonitor": {"enabled": True}}}},
            "a monitor is enabled, but metrics are not",
        ),
        (
            {**ONCE, "config": {"enableMetrics": False}, "daemonset": {"metrics": {"podMonitor": {"enabled": True}}}},
            "daemonset.config.enableMetrics is false",
        ),
        (
            {"controller": {"metrics": {"prometheusRule": {"enabled": True, "disabled": ["Nothing"]}}}},
            '"Nothing" is invalid; expected one of KubeNodeReadyDown, ',
        ),
        (
            {**ONCE, "daemonset": {"metrics": {"prometheusRule": {"enabled": True, "disabled": ["Nothing"]}}}},
            'daemonset.metrics.prometheusRule.disabled: "Nothing" is invalid; expected one of KubeNodeReadyDown, ',
        ),
        (
            {"controller": {"metrics": {"enabled": False, "prometheusRule": {"enabled": True}}}},
            "controller.metrics.prometheusRule is enabled, but metrics are not",
        ),
        (
            {**ONCE, **off("config.enableMetrics"), **on("daemonset.metrics.prometheusRule.enabled")},
            "daemonset.metrics.prometheusRule is enabled, but metrics are not",
        ),
        (
            {**ONCE, "daemonset": {"nodeAffinity": {"a": []}, "affinity": {"nodeAffinity": {"b": []}}}},
            "daemonset.nodeAffinity cannot be combined with daemonset.affinity.nodeAffinity; set one of them",
        ),
        (
            {**ONCE, "config": {"checkInterval": "2h"}},
            "checkInterval: 2h is invalid; expected a duration from 1s to 1h",
        ),
        (
            {**ONCE, "config": {"initialTimeout": "61m"}},
            "initialTimeout: 61m is invalid; expected a duration from 1s to 1h",
        ),
        (
            {**ONCE, "config": {"initialTimeout": "5s"}},
            "checkTimeout: 10s is invalid; expected at most initialTimeout, 5s",
        ),
        (
            {**ONCE, "config": {"initialTimeout": "12s"}, "worker": {"config": {"checkTimeoutSeconds": 12.5}}},
            "checkTimeout: 12.5s is invalid; expected at most initialTimeout, 12s",
        ),
        (
            {"config": {"initialTimeout": "5s"}},
            "config.initialTimeout: 5s is invalid; expected a duration from 10s to 1h",
        ),
        (
            {"config": {"initialTimeout": "2h"}},
            "config.initialTimeout: 2h is invalid; expected a duration from 10s to 1h",
        ),
        ({"config": {"checkTimeout": "2h"}}, "config.checkTimeout: 2h is invalid; expected a duration from 1s to 1h"),
        (
            {"config": {"checkInterval": "9s"}},
            "config.checkInterval: 9s is invalid; expected a duration from 10s to 1h",
        ),
        (
            {"config": {"maxRetries": 0}},
            "config.maxRetries: 0 is invalid with deploymentMode=controller; expected 1 or more",
        ),
        (
            {**ONCE, "config": {"deleteFailedNode": True}},
            "deleteFailedNode: true is invalid with deploymentMode=daemonset; expected false",
        ),
        (
            {**ONCE, "daemonset": {"metrics": {"serviceMonitor": {"enabled": True}}}},
            "daemonset.metrics.serviceMonitor.enabled: true is invalid; expected daemonset.metrics.podMonitor, because",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(values: dict[str, Any], said: str) -> None:
    assert said in refusal(values)


TOLERATION = "controller.config.worker.tolerations"
CHECK = {"name": "a", "image": "b:1"}
REFUSED_BY_THE_PROGRAM: list[tuple[str, object]] = [
    ("controller.config.reconciliation.reverifyIntervalSeconds", 1),
    ("controller.config.reconciliation.exhaustedRetrySeconds", 0.5),
    ("controller.config.leaderElection.leaseDuration", "1.2.3s"),
    ("controller.config.leaderElection.retryPeriod", "0s"),
    ("controller.config.leaderElection.retryPeriod", ""),
    ("controller.leaderElection.leaseDuration", "1.2.3s"),
    ("controller.leaderElection.retryPeriod", "0s"),
    ("controller.leaderElection.leaseDuration", 31_536_001),
    ("controller.config.kubernetes", {"burst": 0}),
    ("controller.config.nodeManagement.taints", [{"key": "a/b", "effect": "NoSchedule"}] * 2),
    ("controller.config.worker.initContainers", [{**CHECK, "name": "worker"}]),
    (
        "controller.config.worker.initContainers",
        [{**CHECK, "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a/../../b"}]}],
    ),
    (TOLERATION, [{"key": "a", "value": "b"}]),
    (TOLERATION, [{"key": "a", "operator": "Exists", "value": "b"}]),
    (TOLERATION, [{"operator": "Equal"}]),
    (TOLERATION, [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3}]),
]


@pytest.mark.parametrize(("path", "wrong"), REFUSED_BY_THE_PROGRAM)
def test_what_the_controller_would_refuse_is_refused_before(path: str, wrong: object) -> None:
    assert f"at '/{path.replace('.', '/')}" in refusal(nested(path, wrong))
    volumes = {"worker": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    text = {**volumes, **nested(path.removeprefix("controller.").removeprefix("config."), wrong)}
    with pytest.raises(DiagnosticsError):
        configs.load(json.dumps(text))


@pytest.mark.parametrize(
    ("key", "wrong", "variable"),
    [
        ("checkInterval", "0s", "CHECK_INTERVAL"),
        ("initialTimeout", "0m0s", "INITIAL_TIMEOUT"),
        ("failureThreshold", 101, "FAILURE_THRESHOLD"),
        ("maxRetries", 1001, "MAX_RETRIES"),
    ],
)
def test_what_the_daemonset_would_refuse_is_refused_before(key: str, wrong: object, variable: str) -> None:
    assert f"at '/config/{key}': " in refusal({**ONCE, "config": {key: wrong}})
    assert f"at '/daemonset/config/{key}': " in refusal({**ONCE, "daemonset": {"config": {key: wrong}}})
    with pytest.raises(DiagnosticsError):
        daemonset_settings.load({}, {"NODE_NAME": "a", variable: str(wrong)})


@pytest.mark.parametrize(
    "right",
    [
        of_config("reconciliation", {"reverifyIntervalSeconds": 10, "exhaustedRetrySeconds": 0}),
        of_config("leaderElection", {"leaseDuration": "1m0.5s", "renewDeadline": "30.5s", "retryPeriod": "500ms"}),
        of_config("kubernetes", {"qps": 0, "burst": 0}),
        of_config(
            "worker.tolerations",
            [
                {"operator": "Exists"},
                {"key": "a", "operator": "Equal", "value": "b"},
                {"key": "a", "effect": "NoExecute", "tolerationSeconds": 3},
                {"key": "a", "tolerationSeconds": None},
            ],
        ),
        of_config(
            "worker",
            {
                "volumes": [{"name": "v", "emptyDir": {}}],
                "initContainers": [{**CHECK, "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a/..b/c"}]}],
            },
        ),
        {"config": {"initialTimeout": "1h", "checkTimeout": "1m30s"}},
    ],
)
def test_what_the_controller_takes_is_not_refused(right: dict[str, Any]) -> None:
    assert configs.load(render(right).file).warnings == ()


@pytest.mark.parametrize(
    "right",
    [
        {"maxRetries": 0, "failureThreshold": 100},
        {"initialTimeout": "1h", "checkInterval": "1h", "checkTimeout": "10m"},
        {"initialTimeout": "1m90s", "checkTimeout": "150s", "checkInterval": "1s"},
    ],
)
def test_what_the_daemonset_takes_is_not_refused(right: dict[str, Any]) -> None:
    told = render({**CONTINUOUS, "config": right}).variables
    daemonset_settings.load({}, {**told, "NODE_NAME": "a"})


# The schema, the values and the controller's own configuration


def resolved(schema: Mapping[str, Any]) -> dict[str, Any]:
    """With references followed."""
    while "$ref" in schema:
        found: Any = SCHEMA
        for word in schema["$ref"].removeprefix("#/").split("/"):
            found = found[word]
        schema = found
    return dict(schema)


def schema_paths(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key that the schema knows, `[]` standing for the items of a list."""
    schema = resolved(schema)
    for key, inner in schema.get("properties", {}).items():
        at = f"{path}.{key}" if path else key
        yield at, resolved(inner)
        yield from schema_paths(inner, at)
    if "items" in schema:
        yield from schema_paths(schema["items"], f"{path}[]")


def code_paths(table: Table, path: str = "") -> Iterator[tuple[str, Field]]:
    """Every key that the code reads, with its field."""
    for field in table.fields.values():
        at = f"{path}.{field.key}" if path else field.key
        yield at, field
        if isinstance(field.reader, Table):
            yield from code_paths(field.reader, at)
        elif isinstance(field.reader, Items) and isinstance(field.reader.item, Table):
            yield from code_paths(field.reader.item, f"{at}[]")


def check_default(name: str) -> object:
    default = CHECKS[name].default
    return list(default) if isinstance(default, tuple) else default


def own_schema() -> dict[str, dict[str, Any]]:
    config = SCHEMA["properties"]["controller"]["properties"]["config"]
    in_a_mapping = "worker.imagePullSecrets[].name"  # as in a pod, where the code also takes plain names
    return {path: schema for path, schema in schema_paths(config) if path != in_a_mapping}


def test_the_schema_knows_every_key_of_the_configuration_and_no_other() -> None:
    assert own_schema().keys() == {path for path, _ in code_paths(CONFIG)}


OWN_FIELDS = {path: field for path, field in code_paths(CONFIG) if path.removeprefix("worker.") not in CHECKS}


@pytest.mark.parametrize("path", OWN_FIELDS)
def test_the_schema_allows_what_the_code_allows(path: str) -> None:
    schema, field = own_schema()[path], OWN_FIELDS[path]
    types = schema.get("type", [])
    allowed = {types} if isinstance(types, str) else set(types)
    assert ("null" in allowed or None in schema.get("enum", [])) == (field.default is None)
    match field.reader:
        case Boolean():
            assert "boolean" in allowed
        case Number() as number:
            assert ("integer" if number.whole else "number") in allowed
            least = 1 if path in ("metrics.port", "health.port") else number.least  # 0 is any port; probes must know it
            assert (schema.get("minimum"), schema.get("exclusiveMinimum")) == (
                (None, least) if number.above else (least, None)
            )
            assert schema.get("maximum") == number.most
        case Choice(words=words):
            assert set(schema["enum"]) - {None} == set(words)
        case Pattern(pattern=pattern):
            assert "string" in allowed
            assert schema.get("pattern") in patterns(pattern, field.default)
        case Items():
            assert types == "array"
        case Entries() | Table():
            assert types == "object"
        case Duration():
            assert allowed == {"string", "number"}
        case other:
            pytest.fail(f"nothing is known about {other}")


def test_the_schema_demands_what_the_code_demands() -> None:
    lists = {path: field.reader.item for path, field in code_paths(CONFIG) if isinstance(field.reader, Items)}
    for path, item in lists.items():
        if isinstance(item, Table):
            demanded = [field.key for field in item.fields.values() if field.default is REQUIRED]
            assert own_schema()[path]["items"].get("required", []) == demanded, path


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_the_schema_of_the_checks_is_that_of_their_settings(name: str) -> None:
    schema, default = own_schema()[f"worker.{name}"], check_default(name)
    number = "number" if name.endswith(("Seconds", "Percent")) else "integer"
    kind = {bool: "boolean", str: "string", list: "array"}.get(type(default), number)
    assert schema["type"] == ([kind, "null"] if default is None else kind)
    assert schema["description"] == CHECKS[name].description
    if name.endswith("Seconds"):
        assert (schema["exclusiveMinimum"], schema["maximum"]) == (0, 3600)
    if name.endswith("Percent"):
        assert (schema["minimum"], schema["exclusiveMaximum"]) == (0, 100)


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("dnsTestDomains", ["example.com.", "_srv.example.com", "10.96.0.10", "fd00::a"]),
        ("networkTargets", ["example.com:443", "[fd00::a]:53", "https://example.com/a?b=c", "http://10.0.0.1:8080"]),
        ("services", ["default/kubernetes", "a-1/b-2"]),
    ],
)
def test_the_schema_refuses_nothing_that_a_worker_accepts(name: str, right: list[str]) -> None:
    worker.parse({name: right}, "here")
    for value in right:
        assert re.search(own_schema()[f"worker.{name}"]["items"]["pattern"], value), value


def patterns(pattern: str, default: object) -> list[str | None]:
    """How Helm's regular expressions, which cannot look ahead, say the same; those of paths leave more to the code."""
    plain = re.sub(r"\(\?[=!](?:[^()]|\([^()]*\))*\)", "", pattern).replace(r"\Z", "$")
    if r"\0" in plain:
        return [None, "^/[^:]*$", "^(/[^:]*)?$", "^([^/].*)?$", r"^\S{1,512}$"]
    is_filled_in = default in ("", REQUIRED) or "kube-node-ready" in str(default) or default == "latest"
    return [f"^{plain}$", f"^({plain})?$"] if is_filled_in else [f"^{plain}$"]


def test_the_defaults_are_the_codes() -> None:
    """As far as the chart does not know better: images, names and namespaces."""
    given = render().config
    assert given.pop("leaderElection")["namespace"] == given["worker"].pop("namespace") == "kube-system"
    given["worker"] = {key: value for key, value in given["worker"].items() if key not in ("image", "job")}
    loaded, plain = configs.load(render().file), configs.load("")
    filled_in = {"connectivityPort"}
    assert {name: value for name, value in given["worker"].items() if name in CHECKS} == {
        name: check_default(name) for name in CHECKS.keys() - filled_in
    }
    worker = msgspec.structs.replace(loaded.worker, checks={}, image=plain.worker.image)
    assert msgspec.structs.replace(loaded, worker=worker) == plain


def test_every_key_with_a_default_is_shown_in_the_values() -> None:
    shown = {path for path, *_ in walk(VALUES["controller"]["config"])}
    elsewhere = {"image", "job", "leaderElection", "health", "metrics.enabled", "metrics.port"}  # commented on there
    for path, field in code_paths(CONFIG):
        hidden = field.default is None or "[]" in path or any(word in path for word in elsewhere)
        assert hidden or isinstance(field.reader, Table) or path in shown, path


def walk(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        at = f"{path}.{key}" if path else key
        yield at, value
        if isinstance(value, dict):
            yield from walk(value, at)


def test_every_closed_part_of_the_schema_is_closed() -> None:
    """What Kubernetes defines is open; what is ours is not."""
    for path, schema in schema_paths(SCHEMA):
        if schema.get("type") == "object" and "properties" in schema:
            assert schema["additionalProperties"] is False, path


CONFIGURATIONS: list[Mapping[str, Any]] = [
    {},
    {"config": {"taintKey": "my-custom/unverified", "taintValue": "true", "taintEffect": "NoExecute"}},
    {"worker": {"config": {"networkTargets": ["example.com:443"], "dnsService": ""}}},
    {"imagePullSecrets": ["a", {"name": "b"}], "image": {"digest": DIGEST}},
    of_config("kubernetes", {"qps": 1_000_000, "burst": 1_000_000}),
    of_config("worker.resources.limits", {"cpu": 1, "memory": "1Gi"}),
    of_config("reconciliation.backoffSeconds", None),
    of_config("nodeManagement.taints", []),
    of_config("leaderElection", {"enabled": False, "leaseDuration": 30, "namespace": "other"}),
    of_config("worker.initContainers", [{"name": "a", "image": "b:1", "env": [{"name": "C", "value": "d"}]}]),
]


def test_the_matrix_needs_a_right_that_workers_have_not_otherwise() -> None:
    def rights(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
        roles = [(role["metadata"]["name"], role["rules"]) for role in render(values).of("Role")]
        return [(name, rules) for name, rules in roles if name.endswith("peers")]

    assert rights({}) == []
    (role,) = rights({"worker": {"config": {"connectivityMatrix": True}}})
    assert role == ("kube-node-ready-worker-peers", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])


@pytest.mark.parametrize("values", CONFIGURATIONS)
def test_the_rendered_configuration_loads_without_a_word(values: Mapping[str, Any]) -> None:
    assert configs.load(render(values).file).warnings == ()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_the_configuration_of_every_example_loads(example: Path) -> None:
    made = render(files=[example])
    if made.workload["kind"] == "Deployment":
        assert configs.load(made.file).warnings == ()
    else:
        assert worker.load(made.variables).timeout_seconds


def test_all_of_the_example_configuration_can_stand_in_the_values() -> None:
    """With its nulls, which mean the same as nothing."""
    whole = yaml.safe_load((ROOT / "examples" / "controller-config.yaml").read_text())
    made = render({"controller": {"config": whole}})
    assert configs.load(made.file).warnings == ()


# The short form, and where else the same can be said


SHORT: Mapping[str, tuple[object, object]] = {
    "checkInterval": ("2m", 120),
    "checkTimeout": ("1m5s", 65),
    "clusterDNSIP": ("10.0.0.10", "10.0.0.10"),
    "deleteFailedNode": (True, True),
    "dnsTestDomains": (["a.b"], ["a.b"]),
    "enableConnectivityMatrix": (True, True),
    "enableMetrics": (False, False),
    "failureThreshold": (2, 2),
    "initialTimeout": ("600s", 600),
    "logFormat": ("console", "console"),
    "logLevel": ("warn", "warn"),
    "maxRetries": (9, 9),
    "metricsPort": (9090, 9090),
    "retryBackoff": ("linear", "linear"),
    "taintEffect": ("NoExecute", "NoExecute"),
    "taintKey": ("a/b", "a/b"),
    "taintValue": ("c", "c"),
    "verifiedLabel": ("d/e", "d/e"),
    "verifiedLabelValue": ("f", "f"),
}


@pytest.mark.parametrize("key", RENAMED_KEYS)
def test_the_short_form_goes_to_its_place(key: str) -> None:
    """The table of the code's own refusals says where that is."""
    found = render({"config": {key: given for key, (given, _) in SHORT.items()}}).config
    for word in re.split(r"[.\[\]]+", RENAMED_KEYS[key]):
        found = found[int(word) if word.isdecimal() else word]
    assert found == SHORT[key][1]


def test_every_key_of_the_short_form_has_a_place_in_controller_mode() -> None:
    """The template ignores keys that it has no place for."""
    assert SCHEMA["definitions"]["flat"]["properties"].keys() == {*RENAMED_KEYS, "dryRun"}
    assert render(on("config.dryRun")).config["dryRun"] is True


def test_the_short_form_wins_in_both_modes() -> None:
    values = {
        "config": {"maxRetries": 10},
        "controller": {"config": {"reconciliation": {"maxRetries": 3}}},
        "daemonset": {"config": {"maxRetries": 4}},
    }
    assert render(values).config["reconciliation"]["maxRetries"] == 10
    assert render({**values, **ONCE, "daemonset": values["daemonset"]}).variables["MAX_RETRIES"] == "10"


def test_a_false_is_not_taken_for_nothing() -> None:
    config = render(off("controller.config.metrics.enabled") | off("config.deleteFailedNode")).config
    assert config["metrics"]["enabled"] is False
    assert config["nodeManagement"]["deleteFailedNodes"] is False


def test_checks_can_be_said_in_one_place_for_both_modes() -> None:
    values = {"worker": {"config": {"dnsService": "dns/resolver", "dnsTestDomains": ["a.b"], "payload": False}}}
    assert render(values).config["worker"]["dnsService"] == "dns/resolver"
    made = render({**values, **ONCE})
    read = worker.load(made.variables)
    assert (read.dns_service, read.dns_test_domains, read.payload) == ("dns/resolver", ("a.b",), False)
    assert made.rights(DAEMONSET)["dns services resolver"] == "get"


def test_the_matrix_can_be_switched_on_for_both_modes_too() -> None:
    """With the right it needs."""
    values = {"worker": {"config": {"connectivityMatrix": True, "connectivitySample": 7}}}
    made = render({**values, **ONCE})
    checks = daemonset_settings.load({}, {**made.variables, "NODE_NAME": "a"}).checks
    assert (checks.connectivity_matrix, checks.connectivity_sample, checks.connectivity_port) == (True, 7, 8080)
    assert made.rights(DAEMONSET)["kube-system pods"] == "list"
    others = {"connectivityMatrix": True, "connectivitySelector": "app=agent", "connectivityPort": 9999}
    told = daemonset_settings.load(
        {}, {**render({**ONCE, "worker": {"config": others}}).variables, "NODE_NAME": "a"}
    ).checks
    assert (told.connectivity_selector, told.connectivity_port) == ("app=agent", 9999)
    overruled = render({**values, **ONCE, "config": {"enableConnectivityMatrix": False}})
    assert overruled.variables["ENABLE_CONNECTIVITY_MATRIX"] == "false"


def peers_of(made: Rendered) -> tuple[str, int]:
    """The selector and the port of the peers, as the program reads them."""
    if made.of("Deployment"):
        found = settings.template(configs.load(made.file)).settings
        return found["connectivitySelector"], found["connectivityPort"]
    checks = daemonset_settings.load({}, {**made.variables, "NODE_NAME": "a"}).checks
    return checks.connectivity_selector, checks.connectivity_port or 0


MATRIX: Mapping[str, Any] = {"config": {"enableConnectivityMatrix": True}}


@pytest.mark.parametrize(
    ("values", "component", "port"),
    [
        ({}, "responder", 8081),
        (of_config("worker.namespace", "workers"), "responder", 8081),
        ({"controller": {"health": {"port": 8888}}}, "responder", 8888),
        ({"worker": {"config": {"connectivityPort": 9999}}}, "responder", 9999),
        (ONCE, "responder", 8080),
        ({**ONCE, "worker": {"config": {"connectivityPort": 9999}}}, "responder", 9999),
        (CONTINUOUS, "daemonset", 8080),
        ({**ONCE, "responder": {"enabled": False}}, "daemonset", 8080),
    ],
    ids=str,
)
def test_the_peers_of_the_matrix_exist_and_listen(values: Mapping[str, Any], component: str, port: int) -> None:
    """By default, whatever the mode: pods that have the labels, in the namespace that is listed, on the port."""
    made = render({**values, **MATRIX})
    selector, found = peers_of(made)
    (peers,) = (one for one in made.of("DaemonSet") if one["metadata"]["labels"][chart.COMPONENT] == component)
    template = peers["spec"]["template"]
    assert {word.partition("=")[::2] for word in selector.split(",")} <= template["metadata"]["labels"].items()
    (container,) = template["spec"]["containers"]
    assert found == port
    assert [one["containerPort"] for one in container["ports"]] == [port]
    (role,) = (one for one in made.of("Role") if one["metadata"]["name"].endswith("-peers"))
    assert role["metadata"]["namespace"] == peers["metadata"]["namespace"]
    gate = made.config["nodeManagement"]["taints"] if made.of("Deployment") else []
    tolerated = {one.get("key") for one in template["spec"].get("tolerations", [])}
    assert component == "daemonset" or tolerated.isdisjoint(one["key"] for one in gate)


@pytest.mark.parametrize(
    "values",
    [
        {},
        ONCE,
        {**MATRIX, **CONTINUOUS},
        {**MATRIX, "responder": {"enabled": False}},
        {**MATRIX, **ONCE, "responder": {"enabled": False}},
        {**MATRIX, "worker": {"config": {"connectivitySelector": "app=agent"}}},
        {**MATRIX, **ONCE, "worker": {"config": {"connectivitySelector": "app=agent"}}},
    ],
    ids=str,
)
def test_there_is_no_responder_that_is_not_a_peer(values: Mapping[str, Any]) -> None:
    assert not [one for one in render(values) if one["metadata"]["name"].endswith("-responder")]


def test_a_responder_has_no_token_and_no_right() -> None:
    for mode in ({}, ONCE):
        made = render({**mode, **MATRIX})
        spec = made.one("DaemonSet", "kube-node-ready-responder")["spec"]["template"]["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert "serviceAccountName" not in spec
        assert "hostNetwork" not in spec


def test_a_config_map_of_ones_own_has_the_say_about_the_checks() -> None:
    made = render(of_config("worker.configMapName", "mine") | {"worker": {"config": {"services": ["a/b"]}}})
    loaded = configs.load(made.file)
    assert loaded.worker.config_map_name == "mine"
    assert loaded.worker.checks == {}
    assert made.rights(WORKER)["a services b"] == "get"


@pytest.mark.parametrize(
    ("top", "own", "image"),
    [
        ({}, {}, f"kube-node-ready:{__version__}"),
        ({"repository": "registry.example/a", "tag": "1"}, {}, "registry.example/a:1"),
        ({"digest": DIGEST}, {}, f"kube-node-ready@{DIGEST}"),
        ({"digest": DIGEST}, {"tag": "2"}, "kube-node-ready:2"),
        ({"digest": DIGEST}, {"repository": "other"}, f"other:{__version__}"),
        ({"tag": "1"}, {"digest": DIGEST}, f"kube-node-ready@{DIGEST}"),
    ],
)
def test_each_role_has_its_image(top: dict[str, str], own: dict[str, str], image: str) -> None:
    made = render({"image": top, "controller": {"image": own, "config": {"worker": {"image": own}}}})
    assert made.container["image"] == configs.load(made.file).worker.image.reference == image
    assert render({**ONCE, "image": top, "daemonset": {"image": own}}).container["image"] == image


def test_pull_secrets_and_priority_are_for_all_pods() -> None:
    values = {"imagePullSecrets": ["a", {"name": "b"}], "priorityClassName": "high"}
    for made in (render(values), render({**values, **ONCE})):
        assert made.pod["spec"]["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
        assert made.pod["spec"]["priorityClassName"] == "high"
    worker = configs.load(render(values).file).worker
    assert (worker.image_pull_secrets, worker.priority_class_name) == (("a", "b"), "high")


# Restarts


def checksum(made: Rendered) -> str:
    return str(made.pod["metadata"]["annotations"]["checksum/config"])


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, of_config("reconciliation.maxRetries", 6)), (ONCE, {**ONCE, "config": {"maxRetries": 6}})],
    ids=["controller", "daemonset"],
)
def test_a_new_configuration_is_a_new_pod(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert checksum(render(before)) != checksum(render(after))


@pytest.mark.parametrize("mode", [{}, ONCE], ids=["controller", "daemonset"])
def test_nothing_else_is(mode: dict[str, Any]) -> None:
    other = {
        "commonAnnotations": {"a": "b"},
        "networkPolicy": {"enabled": True},
        "controller": {"service": {"annotations": {"a": "b"}}, "serviceAccount": {"annotations": {"a": "b"}}},
        "daemonset": {"serviceAccount": {"annotations": {"a": "b"}}},
    }
    assert render(mode).pod == render({**mode, **other}).pod


def test_the_checksum_cannot_be_overridden() -> None:
    made = render({"controller": {"podAnnotations": {"checksum/config": "mine", "a": "b"}}})
    assert made.pod["metadata"]["annotations"] == {"checksum/config": checksum(render()), "a": "b"}


# Pods


def passes_restricted(pod: Object) -> None:
    """The `restricted` Pod Security Standard, and a root file system that cannot be written to."""
    assert not any(pod.get(field) for field in ("hostNetwork", "hostPID", "hostIPC"))
    assert {source for volume in pod.get("volumes", []) for source in volume.keys() - {"name"}} <= {"configMap"}
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 1000
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"] + pod.get("initContainers", []):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["readOnlyRootFilesystem"] is True
        assert context.keys() <= {"allowPrivilegeEscalation", "capabilities", "readOnlyRootFilesystem"}
        assert not any("hostPort" in port for port in container.get("ports", []))


@pytest.mark.parametrize("example", [None, *EXAMPLES], ids=lambda file: file.stem if file else "defaults")
def test_every_pod_passes_the_restricted_standard(example: Path | None) -> None:
    made = render(files=[example] if example else [])
    passes_restricted(made.pod["spec"])
    assert made.pod["spec"]["automountServiceAccountToken"] is True
    assert made.pod["spec"]["enableServiceLinks"] is False
    if made.workload["kind"] == "Deployment":
        passes_restricted(worker_pod(Node("a", "uid"), 1, settings.template(configs.load(made.file)))["spec"])


@pytest.mark.parametrize("mode", [{}, ONCE], ids=["controller", "daemonset"])
def test_tokens_are_for_the_pods_of_the_chart(mode: dict[str, Any]) -> None:
    """But a worker's pod is made by the controller, and needs one."""
    tokens = {one["metadata"]["name"]: one["automountServiceAccountToken"] for one in render(mode).of("ServiceAccount")}
    assert tokens == ({DAEMONSET: False} if mode else {CONTROLLER: False, WORKER: True})


def test_the_controller_is_started_with_its_file_and_probed() -> None:
    container = render().container
    assert container["command"] == ["/kube-node-ready-controller"]
    (mount,) = container["volumeMounts"]
    assert container["args"] == [f"--config={mount['mountPath']}/config.yaml"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": 8081}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": 8081}
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == {"metrics": 8080, "health": 8081}


@pytest.mark.parametrize("values", [nested("controller.health.port", 8080), of_config("health.port", 8080)])
def test_metrics_and_probes_may_share_a_port(values: dict[str, Any]) -> None:
    container = render(values).container
    assert [port["name"] for port in container["ports"]] == ["metrics"]
    assert container["livenessProbe"]["httpGet"]["port"] == 8080


def test_the_ports_of_the_values_are_those_of_the_configuration() -> None:
    made = render({"controller": {"metrics": {"port": 9090}, "health": {"port": 9091}}})
    loaded = configs.load(made.file)
    assert (loaded.metrics.port, loaded.health.port) == (9090, 9091)
    (port,) = made.one("Service")["spec"]["ports"]
    assert port["port"] == 9090
    assert port["targetPort"] in [one["name"] for one in made.container["ports"]]


def test_without_metrics_there_is_no_service() -> None:
    assert "Service" not in render(off("controller.metrics.enabled")).kinds


def test_a_cold_cluster_cannot_deadlock() -> None:
    """Where every node is gated and not ready, the controller must be able to run."""
    gates = [{"key": "a/b", "effect": "NoExecute"}, {"key": "c/d", "effect": "NoSchedule"}]
    tolerated = render(of_config("nodeManagement.taints", gates)).pod["spec"]["tolerations"]
    assert {"key": "a/b", "operator": "Exists"} in tolerated
    assert {"key": "c/d", "operator": "Exists"} in tolerated
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        assert {"key": key, "operator": "Exists", "effect": "NoSchedule"} in tolerated


@pytest.mark.parametrize("mode", ["controller", "daemonset"])
def test_more_tolerations_are_added(mode: str) -> None:
    more = {"key": "gpu", "operator": "Exists"}
    tolerated = render({"deploymentMode": mode, mode: {"tolerations": [more]}}).pod["spec"]["tolerations"]
    assert GATE in tolerated
    assert more in tolerated


def test_several_replicas_keep_apart_and_survive_a_drain() -> None:
    one, two = render(), render(nested("controller.replicas", 2))
    assert "podAntiAffinity" not in one.pod["spec"]["affinity"]
    assert "topologySpreadConstraints" not in one.pod["spec"]
    labels = two.workload["spec"]["selector"]["matchLabels"]
    (apart,) = two.pod["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert apart["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert apart["podAffinityTerm"]["labelSelector"]["matchLabels"] == labels
    (spread,) = two.pod["spec"]["topologySpreadConstraints"]
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    budget = two.one("PodDisruptionBudget")["spec"]
    assert (budget["maxUnavailable"], budget["selector"]["matchLabels"]) == (1, labels)


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_controller_prefers_verified_nodes_and_needs_none(replicas: int) -> None:
    """From a broken node it could not verify the others."""
    config = {"nodeManagement": {"verifiedLabel": {"key": "a/label"}}}
    node = render({"controller": {"replicas": replicas, "config": config}}).pod["spec"]["affinity"]["nodeAffinity"]
    assert node.keys() == {"preferredDuringSchedulingIgnoredDuringExecution"}
    (preferred,) = node["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["preference"] == {"matchExpressions": [{"key": "a/label", "operator": "Exists"}]}


def test_an_affinity_of_ones_own_takes_the_place_of_ours() -> None:
    own: dict[str, Any] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    assert render(nested("controller.affinity", own)).pod["spec"]["affinity"] == own


@pytest.mark.parametrize(
    ("election", "strategy"), [(True, {"maxSurge": 1, "maxUnavailable": 0}), (False, None)], ids=["elected", "alone"]
)
def test_two_controllers_work_at_a_time_only_if_they_can_agree(*, election: bool, strategy: object) -> None:
    made = render(nested("controller.leaderElection.enabled", election)).workload["spec"]["strategy"]
    assert made["type"] == ("RollingUpdate" if election else "Recreate")
    assert made.get("rollingUpdate") == strategy


def test_selectors_find_the_pods_and_not_the_workers() -> None:
    for made in (render({"networkPolicy": {"enabled": True}}), render({**ONCE, "networkPolicy": {"enabled": True}})):
        labels = made.pod["metadata"]["labels"]
        workers = dict(part.split("=") for part in WORKER_SELECTOR.split(","))
        assert not workers.items() <= labels.items()
        assert made.workload["spec"]["selector"]["matchLabels"].items() <= labels.items()
        for service in made.of("Service"):
            assert service["spec"]["selector"].items() <= labels.items()


def test_pods_can_be_given_more() -> None:
    more: dict[str, Any] = {
        "extraEnv": [{"name": "A", "value": "b"}],
        "extraVolumes": [{"name": "tmp", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        "extraArgs": ["--dry-run"],
        "podLabels": {"c": "d"},
        "podAnnotations": {"e": "f"},
        "nodeSelector": {"g": "h"},
        "priorityClassName": "high",
    }
    for mode in ("controller", "daemonset"):
        made = render({"deploymentMode": mode, mode: more})
        pod, container = made.pod, made.container
        assert more["extraEnv"][0] in container["env"]
        assert more["extraVolumes"][0] in pod["spec"]["volumes"]
        assert more["extraVolumeMounts"][0] in container["volumeMounts"]
        assert "--dry-run" in container["args"]
        assert pod["metadata"]["labels"]["c"] == "d"
        assert pod["metadata"]["annotations"]["e"] == "f"
        assert pod["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux", "g": "h"}
        assert pod["spec"]["priorityClassName"] == "high"


# Rights, verb by verb

OF_THE_CONTROLLER = {
    "* nodes": "list patch watch",
    "* nodes/status": "patch",
    "kube-system pods": "create delete get list watch",
    "kube-system leases": "create",
    f"kube-system leases {CONTROLLER}": "get update",
    "default events": "create",
}
OF_THE_LEDGER = {"kube-system configmaps": "create", f"kube-system configmaps {resources.LEDGER}": "list patch watch"}
OF_WORKERS = {
    "default services kubernetes": "get",
    "default endpointslices": "list",
    "kube-system services kube-dns": "get",
    "kube-system endpointslices": "list",
}
OF_THE_DAEMONSET = {
    "* nodes": "get patch",
    "* nodes/status": "patch",
    "default events": "create",
    **OF_WORKERS,
}
REMOVING = {"deleteFailedNodes": True}


@pytest.mark.parametrize(
    ("config", "rights"),
    [
        ({}, OF_THE_CONTROLLER),
        (
            {"nodeManagement": REMOVING},
            OF_THE_CONTROLLER
            | OF_THE_LEDGER
            | {"* nodes": "delete list patch watch", "* nodeclaims": "delete get list"},
        ),
        (
            {"nodeManagement": {**REMOVING, "removal": {"dryRun": True}}},
            OF_THE_CONTROLLER
            | OF_THE_LEDGER
            | {"* nodeclaims": "get list", f"kube-system configmaps {resources.LEDGER}": "list watch"},
        ),
        ({"dryRun": True}, {"* nodes": "list watch", "kube-system pods": "list watch"}),
        (
            {"dryRun": True, "nodeManagement": REMOVING},
            {
                "* nodes": "list watch",
                "kube-system pods": "list watch",
                f"kube-system configmaps {resources.LEDGER}": "list watch",
            },
        ),
        (
            {"leaderElection": {"enabled": False}},
            {what: verbs for what, verbs in OF_THE_CONTROLLER.items() if "leases" not in what},
        ),
        (
            {"worker": {"namespace": "workers"}, "leaderElection": {"id": "mine", "namespace": "locks"}},
            {
                "* nodes": "list patch watch",
                "* nodes/status": "patch",
                "workers pods": "create delete get list watch",
                "locks leases": "create",
                "locks leases mine": "get update",
                "default events": "create",
            },
        ),
    ],
    ids=["verifies", "removes", "would remove", "dry run", "dry run of removal", "alone", "elsewhere"],
)
def test_the_controller_may_do_this_and_no_more(config: dict[str, Any], rights: dict[str, str]) -> None:
    assert render({"controller": {"config": config}}).rights(CONTROLLER) == rights


@pytest.mark.parametrize(
    ("worker", "rights"),
    [
        ({}, OF_WORKERS),
        ({"dnsService": ""}, OF_WORKERS),
        ({"services": [], "dnsService": ""}, {}),
        (
            {"services": ["a/b", "a/c"], "dnsService": "d/e"},
            {
                "a services b": "get",
                "a services c": "get",
                "a endpointslices": "list",
                "d services e": "get",
                "d endpointslices": "list",
            },
        ),
    ],
)
def test_workers_may_read_what_they_check_and_no_more(worker: dict[str, Any], rights: dict[str, str]) -> None:
    assert render(of_config("worker", worker)).rights(WORKER) == rights


@pytest.mark.parametrize(
    ("config", "rights"),
    [
        ({}, OF_THE_DAEMONSET),
        ({"enableConnectivityMatrix": True}, OF_THE_DAEMONSET | {"kube-system pods": "list"}),
        ({"dryRun": True}, OF_WORKERS),
    ],
    ids=["verifies", "matrix", "dry run"],
)
def test_the_daemonset_may_do_this_and_no_more(config: dict[str, Any], rights: dict[str, str]) -> None:
    assert render({**ONCE, "config": config}).rights(DAEMONSET) == rights


@pytest.mark.parametrize(("kubernetes", "verbs"), [("1.29.9", ["get"]), ("1.30.0", None), ("1.36.3", None)])
def test_the_daemonset_may_read_its_pod_only_where_tokens_do_not_name_a_node(
    kubernetes: str, verbs: list[str] | None
) -> None:
    cluster = (f"--api-versions={chart.A_CLUSTER}", f"--kube-version={kubernetes}")
    done = chart.run("template", "x", CHART, "--set=deploymentMode=daemonset", *cluster)
    assert done.returncode == 0, done.stderr
    roles = [one for one in yaml.safe_load_all(done.stdout) if one and one["kind"] == "Role"]
    granted = [rule["verbs"] for role in roles for rule in role["rules"] if rule["resources"] == ["pods"]]
    assert granted == ([verbs] if verbs else [])


def test_rights_are_the_only_thing_that_rbac_switches_off() -> None:
    without = render(off("rbac.create"))
    assert render().kinds - without.kinds == {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}


def test_accounts_of_ones_own_get_the_rights() -> None:
    own = {"serviceAccount": {"create": False, "name": "mine"}}
    made = render({"controller": own})
    assert made.rights("mine") == OF_THE_CONTROLLER
    assert made.pod["spec"]["serviceAccountName"] == "mine"
    made = render({"worker": own})
    assert made.rights("mine") == OF_WORKERS
    assert configs.load(made.file).worker.service_account_name == "mine"
    made = render({**ONCE, "daemonset": own})
    assert made.rights("mine") == OF_THE_DAEMONSET
    for values in ({"controller": own}, {"worker": own}, {**ONCE, "daemonset": own}):
        assert "mine" not in [account["metadata"]["name"] for account in render(values).of("ServiceAccount")]


def test_subjects_are_in_the_namespace_of_their_pods() -> None:
    made = render(of_config("worker.namespace", "workers"), namespace="operators")
    for binding in made.of("RoleBinding") + made.of("ClusterRoleBinding"):
        (subject,) = binding["subjects"]
        assert subject["namespace"] == ("workers" if subject["name"] == WORKER else "operators")
    assert made.one("ServiceAccount", WORKER)["metadata"]["namespace"] == "workers"


# The DaemonSet

VARIABLES = {
    "INITIAL_TIMEOUT": "300s",
    "CHECK_TIMEOUT": "10s",
    "MAX_RETRIES": "5",
    "RETRY_BACKOFF": "exponential",
    "DNS_TEST_DOMAINS": "kubernetes.default.svc.cluster.local",
    "CLUSTER_DNS_IP": "",
    "TAINT_KEY": "node-ready/unverified",
    "TAINT_VALUE": "true",
    "TAINT_EFFECT": "NoSchedule",
    "VERIFIED_LABEL": "node-ready/verified",
    "VERIFIED_LABEL_VALUE": "true",
    "DELETE_FAILED_NODE": "false",
    "ENABLE_CONNECTIVITY_MATRIX": "false",
    "ENABLE_METRICS": "true",
    "METRICS_PORT": "8080",
    "LOG_LEVEL": "info",
    "LOG_FORMAT": "json",
    "DRY_RUN": "false",
}
UNVERIFIED = {"key": "node-ready/verified", "operator": "NotIn", "values": ["true"]}


def test_the_daemonset_has_the_names_that_its_settings_always_had() -> None:
    made = render(ONCE)
    assert made.variables == VARIABLES | {"MODE": "once"}
    assert made.one("ConfigMap")["metadata"]["name"] == "kube-node-ready-config"
    assert [variable["name"] for variable in made.container["env"]] == ["NODE_NAME", "POD_NAME", "POD_NAMESPACE"]


@pytest.mark.parametrize(
    "values",
    [
        ONCE,
        CONTINUOUS,
        {**ONCE, "config": {"dryRun": True}},
        *(values for values in SETS.values() if "daemonset" in values.get("deploymentMode", "")),
    ],
)
def test_the_daemonset_understands_its_variables_without_a_word(values: Mapping[str, Any]) -> None:
    told = render(values).variables
    assert daemonset_settings.load({}, {**told, "NODE_NAME": "a"}).warnings == ()


def test_the_daemonset_that_stays_is_told_when_to_check_again() -> None:
    made = render(CONTINUOUS)
    told = {"MODE": "continuous", "CHECK_INTERVAL": "60s", "FAILURE_THRESHOLD": "3"}
    assert made.variables == VARIABLES | told
    assert "affinity" not in made.pod["spec"]


def test_the_daemonset_leaves_a_verified_node() -> None:
    affinity = render(ONCE).pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [UNVERIFIED]}
    assert GATE in render(ONCE).pod["spec"]["tolerations"]


def test_it_does_so_whatever_else_its_affinity_asks_for() -> None:
    """Terms are alternatives: one without the label would keep the pod."""
    pools = [{"key": "pool", "operator": "In", "values": [name]} for name in ("a", "b")]
    terms = [{"matchExpressions": [pools[0]]}, {"matchExpressions": [pools[1]]}]
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    made = render({**ONCE, "config": {"verifiedLabel": "x/y"}, "daemonset": {"affinity": {"nodeAffinity": node}}})
    found = made.pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    unverified = {"key": "x/y", "operator": "NotIn", "values": ["true"]}
    assert found == {"nodeSelectorTerms": [{"matchExpressions": [pool, unverified]} for pool in pools]}


@pytest.mark.parametrize("label", ["node-ready/verified", "other"])
def test_its_node_affinity_may_stand_under_its_older_name(label: str) -> None:
    """Which had to rule the label out itself."""
    out = {"key": label, "operator": "DoesNotExist"}
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [out]}]}}
    older, newer = {"nodeAffinity": node}, {"affinity": {"nodeAffinity": node}}
    for mode in (ONCE, CONTINUOUS):
        found, same = (render({**mode, "daemonset": {**mode.get("daemonset", {}), **one}}) for one in (older, newer))
        assert found.pod == same.pod
    (term,) = render({**ONCE, "daemonset": older}).pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term["matchExpressions"] == ([out] if out == UNVERIFIED else [out, UNVERIFIED])


def test_the_daemonset_is_probed_on_the_port_of_its_metrics() -> None:
    container = render({**ONCE, "config": {"metricsPort": 9090}}).container
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": 9090}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": 9090}


@pytest.mark.parametrize("mode", [{}, ONCE], ids=["controller", "daemonset"])
@pytest.mark.parametrize(
    ("wish", "apis", "is_there"),
    [
        ("auto", [POLICIES], True),
        ("auto", [A_CLUSTER], False),
        ("auto", [], True),
        (True, [], True),
        (True, [POLICIES], True),
        (False, [POLICIES], False),
    ],
)
def test_the_admission_policy_is_there_where_the_cluster_knows_it(
    *, mode: Mapping[str, Any], wish: object, apis: list[str], is_there: bool
) -> None:
    made = render({**mode, "admissionPolicy": {"enabled": wish}}, apis=apis)
    kinds = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert made.kinds & kinds == (kinds if is_there else set())


@pytest.mark.parametrize("mode", [{}, ONCE], ids=["controller", "daemonset"])
def test_without_a_cluster_to_ask_only_a_choice_leaves_the_policies_out(mode: Mapping[str, Any]) -> None:
    """A GitOps tool that runs `helm template` must not leave them out silently."""
    assert render(mode, apis=[]).of("ValidatingAdmissionPolicy")
    assert not render({**mode, "admissionPolicy": {"enabled": False}}, apis=[]).of("ValidatingAdmissionPolicy")


def test_a_pod_of_the_daemonset_may_write_to_its_own_node_only() -> None:
    values = {**ONCE, "config": {"taintKey": "a/gate", "verifiedLabel": "a/label"}}
    made = render(values, apis=[POLICIES], namespace="ns")
    policy, binding = made.one("ValidatingAdmissionPolicy"), made.one("ValidatingAdmissionPolicyBinding")
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    spec = policy["spec"]
    assert spec["failurePolicy"] == "Fail"
    assert [one["expression"] for one in spec["matchConditions"]] == [
        'request.userInfo.username == "system:serviceaccount:ns:kube-node-ready"'
    ]
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert (rule["resources"], rule["operations"]) == (["nodes", "nodes/status"], ["UPDATE"])
    own, *rest = (one["expression"] for one in spec["validations"])
    assert own == "variables.home != '' && request.name == variables.home"
    may = " ".join(rest)
    for word in ("a/gate", "a/label", RECORD_ANNOTATION, CONDITION):
        assert f'"{word}"' in may
    known = {one["name"] for one in spec["variables"]}
    assert set(re.findall(r"variables\.(\w+)", may)) <= known


WORKERS = "kube-node-ready-workers"


def worker_policy(values: Mapping[str, Any] | None = None, **how: Any) -> Object:  # noqa: ANN401  as for render
    """The spec of the policy that protects worker pods."""
    return chart.policy("-workers", values, **how)


def test_only_the_controller_creates_worker_pods() -> None:
    spec = worker_policy()
    create = spec["validations"][0]
    user = f"system:serviceaccount:kube-system:{CONTROLLER}"
    assert create == {
        "expression": f"request.operation != 'CREATE' || request.userInfo.username in [\"{user}\"]",
        "message": f"only {user} can create worker pods in namespace kube-system",
        "reason": "Forbidden",
    }
    assert spec["failurePolicy"] == "Fail"
    assert all(one["reason"] == "Forbidden" and one["message"] for one in spec["validations"])


def test_the_worker_policy_covers_writes_to_pods_but_not_to_their_status() -> None:
    rules = worker_policy()["matchConstraints"]["resourceRules"]
    assert [(rule["resources"], rule["operations"]) for rule in rules] == [
        (["pods"], ["CREATE", "UPDATE"]),
        (["pods/ephemeralcontainers", "pods/resize"], ["UPDATE"]),
    ]


def test_the_worker_policy_recognizes_workers_as_the_controller_does() -> None:
    """By the name and the labels that the controller gives them, both before and after an update."""
    (condition,) = worker_policy()["matchConditions"]
    pod = worker_pod(Node("a", "uid"), 1, settings.template(configs.load(render().file)))["metadata"]
    for of in ("object", "oldObject"):
        (prefix,) = re.findall(rf"\b{of}\.metadata\.name\.startsWith\('(.+?)'\)", condition["expression"])
        assert pod["name"].startswith(prefix)
        labels = re.findall(
            rf"\b{of}\.metadata\.\?labels\['(.+?)'\]\.orValue\(''\) == '(.+?)'", condition["expression"]
        )
        assert labels == [tuple(part.split("=")) for part in WORKER_SELECTOR.split(",")]
        assert dict(labels).items() <= pod["labels"].items()


def test_the_worker_policy_uses_only_variables_that_it_defines() -> None:
    spec = worker_policy()
    used = set(re.findall(r"variables\.(\w+)", " ".join(one["expression"] for one in spec["validations"])))
    assert used == {one["name"] for one in spec["variables"]}


@pytest.mark.parametrize(
    ("values", "namespace", "account"),
    [
        ({}, "ns", CONTROLLER),
        (of_config("worker.namespace", "workers"), "workers", CONTROLLER),
        (nested("controller.serviceAccount", {"create": False, "name": "mine"}), "ns", "mine"),
        ({"fullnameOverride": "other"}, "ns", "other-controller"),
        (on("controller.config.dryRun"), "ns", CONTROLLER),
        (off("rbac.create"), "ns", CONTROLLER),
    ],
)
def test_the_worker_policy_is_about_the_workers_namespace_and_the_controllers_account(
    values: Mapping[str, Any], namespace: str, account: str
) -> None:
    spec = worker_policy(values, namespace="ns")
    selector = spec["matchConstraints"]["namespaceSelector"]
    assert selector == {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    said = f"only system:serviceaccount:ns:{account} can create worker pods in namespace {namespace}"
    assert spec["validations"][0]["message"] == said
    assert render(values, namespace="ns").pod["spec"]["serviceAccountName"] == account


def test_further_users_can_be_allowed_to_create_worker_pods() -> None:
    others = ["system:serviceaccount:b:b-controller", "quotes ' \" and \\, <é>"]
    create = worker_policy({"admissionPolicy": {"additionalWorkerCreators": others}})["validations"][0]
    users = [f"system:serviceaccount:kube-system:{CONTROLLER}", *others]
    assert json.loads(create["expression"].partition(" in ")[2]) == users
    assert create["message"] == f"only {', '.join(users)} can create worker pods in namespace kube-system"


def test_the_policies_of_both_modes_and_of_several_releases_have_different_names() -> None:
    def names(values: Mapping[str, Any], release: str) -> list[str]:
        made = render(values, name=release, apis=[POLICIES])
        return [one["metadata"]["name"] for one in made.of("ValidatingAdmissionPolicy")]

    assert sorted(names({}, "kube-node-ready")) == [
        f"{CONTROLLER}-nodes",
        f"{CONTROLLER}-pods",
        f"{CONTROLLER}-state",
        WORKERS,
        f"{WORKERS}-exec",
    ]
    every = [
        name for values in ({}, ONCE) for release in ("kube-node-ready", "other") for name in names(values, release)
    ]
    assert len(set(every)) == len(every) == 12


# The network


def test_the_controller_talks_to_the_api_server_and_prometheus_to_it() -> None:
    prometheus = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    policy = {"enabled": True, "metricsFrom": prometheus, "apiServer": {"cidrs": ["10.0.0.1/32"]}}
    made = render({"networkPolicy": policy})
    spec = made.one("NetworkPolicy", CONTROLLER)["spec"]
    ports = [{"port": port, "protocol": "TCP"} for port in (443, 6443)]
    assert spec["egress"] == [{"ports": ports, "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}]}]
    metrics, probes = spec["ingress"]
    assert (metrics["from"], metrics["ports"][0]["port"]) == (prometheus, 8080)
    assert probes["ports"][0]["port"] == 8081


NODES = [{"ipBlock": {"cidr": "192.168.0.0/16"}}]


def test_the_health_port_can_be_kept_to_the_nodes() -> None:
    made = render({"networkPolicy": {"enabled": True, "healthFrom": NODES}})
    metrics, probes = made.one("NetworkPolicy", CONTROLLER)["spec"]["ingress"]
    assert (probes["from"], probes["ports"][0]["port"]) == (NODES, 8081)
    assert "from" not in metrics


def test_the_port_of_the_daemonset_can_be_kept_to_the_nodes_prometheus_and_its_own_pods() -> None:
    prometheus = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    policy = {"enabled": True, "healthFrom": NODES, "metricsFrom": prometheus}

    def ingress(values: Mapping[str, Any]) -> Any:  # noqa: ANN401  YAML
        (rule,) = render({**ONCE, **values}).one("NetworkPolicy", DAEMONSET)["spec"]["ingress"]
        return rule.get("from")

    own = {"podSelector": render(ONCE).workload["spec"]["selector"]}
    matrix = on("config.enableConnectivityMatrix")
    assert ingress({"networkPolicy": {"enabled": True}}) is None
    assert ingress({"networkPolicy": {**policy, "healthFrom": []}}) == prometheus
    assert ingress({"networkPolicy": {**policy, "healthFrom": []}, **matrix}) == [*prometheus, own]
    assert ingress({"networkPolicy": policy}) == [*NODES, *prometheus]
    assert ingress({"networkPolicy": policy, **matrix}) == [*NODES, *prometheus, own]


def test_nobody_talks_to_a_worker_and_it_talks_to_everyone() -> None:
    values = {**of_config("worker.namespace", "workers"), "networkPolicy": {"enabled": True}}
    spec = render(values).one("NetworkPolicy", WORKER, "workers")["spec"]
    assert spec["podSelector"]["matchLabels"] == dict(part.split("=") for part in WORKER_SELECTOR.split(","))
    assert (spec["ingress"], spec["egress"]) == ([], [{}])


# Monitoring

MODES: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "controller": ({}, "dashboard.json"),
    "daemonset": (CONTINUOUS, "dashboard-daemonset.json"),
}
in_each_mode = pytest.mark.parametrize("mode", MODES)


def series(mode: str) -> dict[str, set[str]]:
    """Every series of a mode, with its labels, as in docs/reference/metrics.md; and the one that Prometheus adds."""
    pages = dict(zip(MODES, metrics_page.page().split("\n## ")[1:], strict=True))
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", pages[mode], re.MULTILINE)
    known: dict[str, set[str]] = {"up": {"pod"}}
    for name, kind, labels in rows:
        words = set(re.findall(r"`(\w+)`", labels))
        known |= {f"{name}_bucket": words | {"le"}} if kind == "histogram" else {name: words}
    return known


def names_in(text: str) -> list[str]:
    """The series that a text is about."""
    return re.findall(r"\b(?:kube_node_ready_|node_check_)\w+|\bup(?={)", text)


def alerts(mode: str, **rule: object) -> list[dict[str, Any]]:
    values, _ = MODES[mode]
    own = {**values.get(mode, {}), "metrics": {"prometheusRule": {"enabled": True, **rule}}}
    (group,) = render({**values, mode: own}).one("PrometheusRule")["spec"]["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def alert(name: str, made: Rendered) -> dict[str, Any]:
    (group,) = made.one("PrometheusRule")["spec"]["groups"]
    (found,) = (rule for rule in group["rules"] if rule["alert"] == name)
    assert isinstance(found, dict)
    return found


def panels(mode: str) -> list[dict[str, Any]]:
    _, file = MODES[mode]
    found: list[dict[str, Any]] = json.loads((CHART / file).read_text())["panels"]
    return found


def panel(title: str) -> str:
    """What the controller's dashboard says about one of its panels."""
    (found,) = (one["description"] for one in panels("controller") if one["title"] == title)
    return str(found)


def expressions(mode: str) -> list[str]:
    shown = [one["expr"] for panel in panels(mode) for one in panel["targets"]]
    return [rule["expr"] for rule in alerts(mode)] + shown


@in_each_mode
def test_alerts_and_dashboard_ask_for_series_that_exist_by_labels_they_have(mode: str) -> None:
    known = series(mode)
    for expression in expressions(mode):
        names = names_in(expression)
        assert names
        assert set(re.findall(r"(\w+){", expression)) <= set(names)
        for name in names:
            assert name in known, expression
        labels = set(re.findall(r"\w+", " ".join(re.findall(r"by \((.*?)\)", expression)))) - {"namespace"}
        assert labels <= set().union(*(known[name] for name in names)), expression


@in_each_mode
def test_words_about_series_name_series_that_exist(mode: str) -> None:
    known = series(mode)
    for rule in alerts(mode):
        for name in names_in(" ".join(rule["annotations"].values())):
            assert name in known or f"{name}_bucket" in known, rule["alert"]


@in_each_mode
def test_every_alert_says_what_to_do(mode: str) -> None:
    rules = alerts(mode)
    assert len({rule["alert"] for rule in rules}) == len(rules) >= 5
    for rule in rules:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "description"}
        assert len(rule["annotations"]["description"]) > 100
        assert "%" not in rule["annotations"]["description"].replace("%.0f", "")
        assert "%" not in rule["expr"]
        assert rule["expr"].count('namespace="kube-system"') == len(names_in(rule["expr"]))
        assert rule["expr"].count("(") == rule["expr"].count(")")
        told = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        assert told <= set(re.findall(r"\w+", " ".join(re.findall(r"by \((.*?)\)", rule["expr"])))), rule["alert"]


@in_each_mode
def test_alerts_can_be_left_out_and_sent_elsewhere(mode: str) -> None:
    own = {"alert": "Mine", "expr": "vector(1)"}
    left_out = "KubeNodeReadyManyNodesFailing"
    assert left_out in [rule["alert"] for rule in alerts(mode)]
    labels = {"team": "a", "severity": "page"}
    rules = alerts(mode, disabled=[left_out], alertLabels=labels, additionalRules=[own])
    assert left_out not in [rule["alert"] for rule in rules]
    assert rules[-1] == own
    assert rules[0]["labels"] == {"severity": "critical", "team": "a"}


@in_each_mode
def test_the_dashboard_shows_labels_that_its_series_have_and_no_panel_covers_another(mode: str) -> None:
    known = series(mode)
    places: set[tuple[int, int]] = set()
    for panel in panels(mode):
        for target in panel["targets"]:
            names = names_in(target["expr"])
            shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert shown <= set().union(*(known[name] for name in names)), panel["title"]
        at = panel["gridPos"]
        mine = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not mine & places
        places |= mine
    assert max(x for x, _ in places) == 23


def test_the_dashboards_of_the_modes_can_stand_beside_each_other() -> None:
    boards = [json.loads((CHART / file).read_text()) for _, file in MODES.values()]
    assert len({board["uid"] for board in boards}) == len({board["title"] for board in boards}) == 2
    for mode, board in zip(MODES, boards, strict=True):
        assert set(names_in(board["templating"]["list"][1]["query"]["query"])) <= series(mode).keys()


def test_where_pods_leave_verified_nodes_none_is_missed() -> None:
    """The absence of all pods is what one hopes for in `once` mode."""
    made = render({**ONCE, **on("daemonset.metrics.prometheusRule.enabled")})
    (group,) = made.one("PrometheusRule")["spec"]["groups"]
    assert "absent" in str(alerts("daemonset"))
    assert "absent" not in str(group)
    assert {rule["alert"] for rule in alerts("daemonset")} - {rule["alert"] for rule in group["rules"]} == {
        "KubeNodeReadyDown"
    }


def test_a_pod_that_is_down_is_found_by_its_container() -> None:
    made = render({**ONCE, **on("daemonset.metrics.prometheusRule.enabled")})
    assert f'container="{made.container["name"]}"' in alert("KubeNodeReadyPodDown", made)["expr"]


def seconds(minutes: str) -> int:
    return 60 * int(minutes.removesuffix("m"))


@pytest.mark.parametrize("name", ["KubeNodeReadyNodesFailing", "KubeNodeReadyManyNodesFailing"])
def test_a_node_that_is_tried_again_still_counts_as_failing(name: str) -> None:
    """While its worker runs it is told as verifying. But one moment of failure must not be enough."""
    made = render(on("controller.metrics.prometheusRule.enabled"))
    rule = alert(name, made)
    compared = rule["expr"].partition("100 *")[0]
    windows = re.findall(r"max_over_time\(\w+nodes_failed{[^}]*}\[(\d+m)\]\)", compared)
    assert len(windows) == compared.count("nodes_failed")
    attempt = settings.policy(configs.load(made.file)).deadline.total_seconds()
    assert all(attempt < seconds(window) < seconds(rule["for"]) for window in windows)


def test_many_are_as_many_as_stop_removals() -> None:
    limits = of_config("nodeManagement.removal", {"maxFailingCount": 7, "maxFailingPercent": 12.5})
    limits["controller"]["metrics"] = {"prometheusRule": {"enabled": True}}
    expression = alert("KubeNodeReadyManyNodesFailing", render(limits))["expr"]
    assert "> 7 and" in expression
    assert "> 12.5 / 100 *" in expression
    default = alert("KubeNodeReadyManyNodesFailing", render(on("controller.metrics.prometheusRule.enabled")))["expr"]
    removal = controller.Removal()
    assert f"> {removal.max_failing_count} and" in default
    assert f"> {removal.max_failing_percent} / 100 *" in default


def test_a_dry_run_of_removal_is_among_the_reasons_that_nothing_is_removed() -> None:
    made = render(on("controller.metrics.prometheusRule.enabled"))
    assert "removal.dryRun" in alert("KubeNodeReadyRemovalBlocked", made)["annotations"]["description"]


def test_the_dashboard_tells_failing_from_waiting_as_the_metrics_do() -> None:
    assert "next attempt" not in panel("Waiting")
    assert "wait for their next attempt" in panel("Failing")
    assert "tried again" in panel("Failing")
    assert "tried again" in panel("Verifying")


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor"])
def test_a_monitor_finds_what_it_is_to_scrape(kind: str) -> None:
    wish = {"enabled": True, "namespace": "monitoring", "interval": "30s", "labels": {"release": "prometheus"}}
    made = render(nested(f"controller.metrics.{kind[0].lower()}{kind[1:]}", wish))
    monitor = made.one(kind, CONTROLLER, "monitoring")
    target = made.one("Service")["metadata"] if kind == "ServiceMonitor" else made.pod["metadata"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= target["labels"].items()
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["kube-system"]}
    (endpoint,) = monitor["spec"].get("endpoints") or monitor["spec"]["podMetricsEndpoints"]
    assert endpoint == {"port": "metrics", "path": "/metrics", "interval": "30s"}


def test_the_daemonset_is_scraped_pod_by_pod() -> None:
    made = render({**ONCE, "daemonset": {"metrics": {"podMonitor": {"enabled": True}}}})
    selector = made.one("PodMonitor")["spec"]["selector"]["matchLabels"]
    assert selector.items() <= made.pod["metadata"]["labels"].items()


# Words


def test_the_notes_tell_how_to_begin_what_to_watch_and_how_to_end() -> None:
    said = chart.notes()
    assert "node-ready/unverified=true:NoSchedule" in said
    assert "startupTaints of the NodePool (not taints)" in said
    assert "kubectl get nodes -L node-ready/verified" in said
    assert "kubectl taint nodes --all node-ready/unverified:NoSchedule-" in said
    assert "REMOVED" not in said
    assert "<" not in said


@pytest.mark.parametrize("mode", [{}, ONCE])
def test_the_notes_warn_of_an_image_that_no_registry_has(mode: Mapping[str, Any]) -> None:
    """As `helm install` without further values asks for it; with the two commands that help."""
    said = chart.notes(mode)
    assert f"THE IMAGE kube-node-ready:{__version__} HAS NO REGISTRY" in said
    archive = f"oci-archive:dist/kube-node-ready-{__version__}.tar"
    assert f"  make image && skopeo copy --all {archive} docker://REGISTRY/kube-node-ready:{__version__}\n" in said
    assert "--reset-then-reuse-values --set image.repository=REGISTRY/kube-node-ready\n" in said
    for repository in ("localhost/a", "registry.example/team/a", "registry:5000/a"):
        assert "REGISTRY" not in chart.notes({**mode, "image": {"repository": repository}})


def test_the_notes_warn_of_workers_with_another_image() -> None:
    other = of_config("worker.image", {"repository": "ghcr.io/imunhatep/kube-node-ready", "tag": "latest"})
    said = chart.notes({**other, "image": {"repository": "registry.example/a"}})
    assert "THE CONTROLLER: ghcr.io/imunhatep/kube-node-ready, not registry.example/a.\n" in said
    assert "ANOTHER IMAGE" not in chart.notes()


def test_the_controller_knows_its_own_image() -> None:
    made = render({"image": {"repository": "registry.example/a"}, "controller": {"image": {"tag": "b"}}})
    assert {"name": "POD_IMAGE", "value": "registry.example/a:b"} in made.container["env"]
    assert made.container["image"] == "registry.example/a:b"


def test_the_notes_know_the_gates_there_are() -> None:
    said = chart.notes({"config": {"taintKey": "a/gate", "verifiedLabel": "a/label"}, **ONCE})
    assert "kubectl taint nodes --all a/gate:NoSchedule-" in said
    assert "There is no gate" in chart.notes(of_config("nodeManagement.taints", []))
    said = chart.notes(of_config("nodeManagement.taints", [{"key": "a/b", "effect": "NoExecute"}]))
    assert "       a/b:NoExecute\n" in said


def test_the_notes_warn_of_removal_dry_runs_and_what_has_no_effect() -> None:
    said = chart.notes(on("controller.config.nodeManagement.deleteFailedNodes"))
    assert "At most 1 per pool and 10 % of the pool per 3600 s." in said
    assert f"kubectl annotate configmap -n ns {resources.LEDGER} node-ready/pause-removal=true" in said
    assert "DRY RUN" in chart.notes(on("controller.config.dryRun"))
    idle = {"maxRetries": 1, "retryBackoff": "linear", "logging": {"level": "info"}, "dryRun": False}
    values = {"worker": {"config": {**idle, "payload": False}}}
    assert "WITHOUT EFFECT: " + ", ".join(f"worker.config.{key}" for key in sorted(idle)) in chart.notes(values)
    assert configs.load(render(values).file).worker.checks["payload"] is False


def test_the_notes_of_the_daemonset_name_what_has_no_effect_there() -> None:
    idle = {"maxRetries": 1, "logging": {"level": "info"}, "dryRun": True}
    said = chart.notes({**ONCE, "worker": {"config": {**idle, "payload": False}}})
    assert "WITHOUT EFFECT: " + ", ".join(f"worker.config.{key}" for key in sorted(idle)) + ". The DaemonSet" in said
    assert "WITHOUT EFFECT" not in chart.notes({**ONCE, "worker": {"config": {"payload": False}}})
    assert "WITHOUT EFFECT" not in chart.notes({"worker": {"config": {"connectivityPort": 9}}})


def test_the_notes_warn_where_nothing_holds_pods_to_their_own_nodes() -> None:
    missing = "NO ADMISSION POLICY"
    assert missing in chart.notes(ONCE)
    assert missing in chart.notes({**ONCE, **off("admissionPolicy.enabled")})
    assert missing not in chart.notes({**ONCE, **on("admissionPolicy.enabled")})
    assert missing not in chart.notes({**ONCE, **on("config.dryRun")})


def test_the_notes_warn_where_nothing_limits_the_controller() -> None:
    missing = "THE CONTROLLER IS NOT LIMITED"
    both = {"admissionPolicy": {"enabled": True, "restrictController": False}}
    assert missing in chart.notes(both)
    assert missing not in chart.notes({**both, **on("controller.config.dryRun")})
    assert missing not in chart.notes(on("admissionPolicy.enabled"))
    assert "with its token" in chart.notes(), "no policy at all"


def test_the_notes_name_the_namespace_that_helm_keeps() -> None:
    values = {"worker": {"namespace": "workers", "createNamespace": True}}
    assert "kubectl delete namespace workers" in chart.notes(values)
    assert "kubectl delete namespace" not in chart.notes()


def test_the_notes_warn_where_no_policy_protects_worker_pods() -> None:
    missing = "NO ADMISSION POLICY protects the worker pods"
    assert missing in chart.notes()
    assert "create pods in namespace workers can" in chart.notes(of_config("worker.namespace", "workers"))
    assert missing not in chart.notes(on("admissionPolicy.enabled"))
    assert missing not in chart.notes(on("controller.config.dryRun"))


def test_the_notes_name_the_peers_of_the_matrix() -> None:
    def said(*, responder: bool = True, replicas: int = 1, **worker: object) -> str:
        config = {"worker": {"connectivityMatrix": True, **worker}}
        values = {"controller": {"replicas": replicas, "config": config}, "responder": {"enabled": responder}}
        return chart.notes(values).partition("CONNECTIVITY MATRIX: ")[2].partition("\n\n")[0]

    assert VALUES["controller"]["config"]["worker"]["connectivitySelector"] == CHECKS["connectivitySelector"].default
    assert "DaemonSet kube-node-ready-responder" in said()
    assert '"not enough peers: N of 2"' in said(replicas=3)
    assert "kubectl get pods -n elsewhere " in said(namespace="elsewhere")
    assert said(responder=False).startswith("not enough peers: 1 of 2, so it holds no node")
    assert said(responder=False, replicas=2).startswith("not enough peers: 1 of 2 on the nodes that run the controller")
    assert said(responder=False, replicas=3, namespace="elsewhere").startswith("not enough peers: 0 of 2")
    assert not said(responder=False, replicas=3)
    assert not said(connectivitySelector="app=node-agent")
    assert not said(connectivityMatrix=False)


def test_the_notes_name_the_peers_of_the_matrix_in_daemonset_mode() -> None:
    def said(mode: str, **values: object) -> str:
        given = {"deploymentMode": "daemonset", "daemonset": {"mode": mode}, **on("config.enableConnectivityMatrix")}
        return chart.notes({**given, **values}).partition("CONNECTIVITY MATRIX: ")[2].partition("\n\n")[0]

    assert "DaemonSet kube-node-ready-responder" in said("once")
    assert '"not enough peers: N of 2"' in said("once")
    assert said("once", responder={"enabled": False}).startswith("not enough peers: 0 of 2 once all nodes are verified")
    assert not said("continuous")
    assert not said("once", worker={"config": {"connectivitySelector": "app=agent"}})


def comments() -> dict[str, str]:
    """What values.yaml says above each value."""
    script = runpy.run_path(str(CHART.parent / "readme.py"))
    return {value.path: value.about for value in script["values"]((CHART / "values.yaml").read_text())}


def test_the_values_say_why_there_is_no_cpu_limit() -> None:
    limits = {path: about for path, about in comments().items() if path.endswith("resources.limits")}
    del limits["responder.resources.limits"]  # it measures nothing
    assert len(limits) == 3
    assert all("No CPU limit: throttling looks like a slow network." in about for about in limits.values())


def test_the_values_say_what_is_to_be_said_elsewhere() -> None:
    said = comments()
    assert "`networkTargets`" in said["daemonset.config"]
    assert "`connectivitySample`" in said["daemonset.config"]
    assert "`worker.config`" in said["daemonset.config"]
    assert "`connectivitySelector`" in said["controller.config.worker.connectivityMatrix"]
    assert "`helm template`" in said["admissionPolicy.enabled"]
    assert "two releases share a workers' namespace" in said["admissionPolicy.additionalWorkerCreators"]


def test_the_readme_names_the_command_that_frees_nodes() -> None:
    command = "kubectl taint nodes --all node-ready/unverified:NoSchedule-"
    assert command in (CHART / "README.md").read_text()


def test_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"^\[\w+\]: (\S+)$", (CHART / "README.md").read_text(), re.MULTILINE)
    assert len(links) > 5
    for link in links:
        assert (CHART / link).exists(), link


def test_the_karpenter_example_gates_by_a_startup_taint() -> None:
    (pool,) = yaml.safe_load_all((ROOT / "examples" / "karpenter-example.yaml").read_text())
    assert pool["apiVersion"] == "karpenter.sh/v1"
    spec = pool["spec"]["template"]["spec"]
    assert "taints" not in spec
    (taint,) = spec["startupTaints"]
    (gate,) = controller.NodeManagement().taints
    assert taint == {"key": gate.key, "value": gate.value, "effect": gate.effect}
