"""The DaemonSet: its variables, node affinity and probes."""

from collections.abc import Mapping
from typing import Any

import pytest

from kube_node_ready.settings import agent as daemonset_settings
from tests.support.chart import render
from tests.support.chart_sets import SETS
from tests.support.chart_values import CONTINUOUS, GATE, ONCE

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


def test_the_variables_of_the_daemonset_keep_their_names() -> None:
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
def test_the_daemonset_loads_its_variables_without_warnings(values: Mapping[str, Any]) -> None:
    variables = render(values).variables
    assert daemonset_settings.load({}, {**variables, "NODE_NAME": "a"}).warnings == ()


def test_continuous_mode_sets_the_check_interval() -> None:
    made = render(CONTINUOUS)
    variables = {"MODE": "continuous", "CHECK_INTERVAL": "60s", "FAILURE_THRESHOLD": "3"}
    assert made.variables == VARIABLES | variables
    assert "affinity" not in made.pod["spec"]


def test_the_daemonset_leaves_a_verified_node() -> None:
    affinity = render(ONCE).pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [UNVERIFIED]}
    assert GATE in render(ONCE).pod["spec"]["tolerations"]


def test_the_daemonset_leaves_a_verified_node_with_any_affinity() -> None:
    """Terms are alternatives: one without the label would keep the pod."""
    pools = [{"key": "pool", "operator": "In", "values": [name]} for name in ("a", "b")]
    terms = [{"matchExpressions": [pools[0]]}, {"matchExpressions": [pools[1]]}]
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    made = render({**ONCE, "config": {"verifiedLabel": "x/y"}, "daemonset": {"affinity": {"nodeAffinity": node}}})
    found = made.pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    unverified = {"key": "x/y", "operator": "NotIn", "values": ["true"]}
    assert found == {"nodeSelectorTerms": [{"matchExpressions": [pool, unverified]} for pool in pools]}


@pytest.mark.parametrize("label", ["node-ready/verified", "other"])
def test_node_affinity_can_have_its_earlier_name(label: str) -> None:
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
