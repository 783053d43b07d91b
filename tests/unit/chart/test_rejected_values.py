"""Values that the chart rejects, and that the programs would reject too."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kube_node_ready.settings import agent as daemonset_settings
from kubekit.diagnostics import DiagnosticsError
from tests.support import configs
from tests.support.chart import refusal, render
from tests.support.chart_values import CONTINUOUS, ONCE, controller_config, nested, off, on

INVALID_VALUES: Mapping[str, Any] = {
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
    "error",
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
def test_all_errors_are_reported_together_with_their_paths(error: str) -> None:
    assert error in refusal(INVALID_VALUES)


@pytest.mark.parametrize(
    ("values", "error"),
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
def test_contradictory_values_are_rejected(values: dict[str, Any], error: str) -> None:
    assert error in refusal(values)


TOLERATION = "controller.config.worker.tolerations"
CHECK = {"name": "a", "image": "b:1"}
REJECTED_BY_THE_PROGRAM: list[tuple[str, object]] = [
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


@pytest.mark.parametrize(("path", "wrong"), REJECTED_BY_THE_PROGRAM)
def test_values_that_the_controller_rejects_are_rejected(path: str, wrong: object) -> None:
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
def test_values_that_the_daemonset_rejects_are_rejected(key: str, wrong: object, variable: str) -> None:
    assert f"at '/config/{key}': " in refusal({**ONCE, "config": {key: wrong}})
    assert f"at '/daemonset/config/{key}': " in refusal({**ONCE, "daemonset": {"config": {key: wrong}}})
    with pytest.raises(DiagnosticsError):
        daemonset_settings.load({}, {"NODE_NAME": "a", variable: str(wrong)})


@pytest.mark.parametrize(
    "right",
    [
        controller_config("reconciliation", {"reverifyIntervalSeconds": 10, "exhaustedRetrySeconds": 0}),
        controller_config(
            "leaderElection", {"leaseDuration": "1m0.5s", "renewDeadline": "30.5s", "retryPeriod": "500ms"}
        ),
        controller_config("kubernetes", {"qps": 0, "burst": 0}),
        controller_config(
            "worker.tolerations",
            [
                {"operator": "Exists"},
                {"key": "a", "operator": "Equal", "value": "b"},
                {"key": "a", "effect": "NoExecute", "tolerationSeconds": 3},
                {"key": "a", "tolerationSeconds": None},
            ],
        ),
        controller_config(
            "worker",
            {
                "volumes": [{"name": "v", "emptyDir": {}}],
                "initContainers": [{**CHECK, "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a/..b/c"}]}],
            },
        ),
        {"config": {"initialTimeout": "1h", "checkTimeout": "1m30s"}},
    ],
)
def test_values_that_the_controller_accepts_are_accepted(right: dict[str, Any]) -> None:
    assert configs.load(render(right).file).warnings == ()


@pytest.mark.parametrize(
    "right",
    [
        {"maxRetries": 0, "failureThreshold": 100},
        {"initialTimeout": "1h", "checkInterval": "1h", "checkTimeout": "10m"},
        {"initialTimeout": "1m90s", "checkTimeout": "150s", "checkInterval": "1s"},
    ],
)
def test_values_that_the_daemonset_accepts_are_accepted(right: dict[str, Any]) -> None:
    variables = render({**CONTINUOUS, "config": right}).variables
    daemonset_settings.load({}, {**variables, "NODE_NAME": "a"})
