"""The chart's policy that adds the gate to new Nodes. What it does is in tests/cluster/test_gate_at_birth.py."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.chart import A_CLUSTER, Object, render
from tests.support.chart_values import ONCE

KIND = "MutatingAdmissionPolicy"
MUTATING = f"admissionregistration.k8s.io/v1/{KIND}"
TAINT = {"key": "a/b", "value": "c", "effect": "NoExecute"}
EXPRESSION = {"key": "pool", "operator": "In", "values": ["gpu"]}
AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [EXPRESSION]}]}
}
ON = {"gate": {"atBirth": {"enabled": True}}}


def policy(values: Mapping[str, Any]) -> Object:
    return render({**ON, **values}, apis=[A_CLUSTER, MUTATING]).one(KIND)


def added(values: Mapping[str, Any]) -> str:
    """Return the expression that adds the taint."""
    (mutation,) = policy(values)["spec"]["mutations"]
    return str(mutation["jsonPatch"]["expression"])


@pytest.mark.parametrize("apis", [[], [A_CLUSTER, MUTATING]], ids=["without a cluster", "1.36"])
def test_it_is_rendered_on_request_only(apis: list[str]) -> None:
    kinds = {KIND, f"{KIND}Binding"}
    assert render(ON, apis=apis).kinds >= kinds
    assert not render({}, apis=apis).kinds & kinds


def test_a_cluster_that_does_not_serve_it_is_rejected_with_the_alternatives() -> None:
    with pytest.raises(AssertionError, match=r"does not serve MutatingAdmissionPolicy.*startupTaints") as error:
        render(ON, apis=[A_CLUSTER])
    assert "gate.atBirth.enabled: true is invalid here; expected false" in str(error.value)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"controller": {"config": {"dryRun": True}}}, "with controller.config.dryRun; .* a dry run opens no gate"),
        ({"config": {"dryRun": True}}, "with controller.config.dryRun"),
        ({**ONCE, "daemonset": {"config": {"dryRun": True}}}, "with daemonset.config.dryRun"),
        ({"controller": {"config": {"nodeManagement": {"taints": []}}}}, "without a gate"),
        ({**ONCE, "daemonset": {"nodeAffinity": AFFINITY}}, "expected daemonset.nodeSelector instead"),
        ({**ONCE, "daemonset": {"affinity": {"nodeAffinity": AFFINITY}}}, "expected daemonset.nodeSelector instead"),
        ({"config": {"taintKey": f"{'a.' * 127}a/b"}}, "expected a prefix of at most 253 characters"),
        ({"gate": {"atBirth": {"enabled": "yes"}}}, "enabled"),
        ({"gate": {"atBirth": {"nodeSelector": {"pool": "gpu"}}}}, "pool"),
    ],
)
def test_a_gate_that_nothing_would_open_is_rejected(values: Mapping[str, Any], reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        policy(values)


@pytest.mark.parametrize(
    "values",
    [
        {"controller": {"config": {"nodeManagement": {"taints": [TAINT]}}}},
        {"config": {"taintKey": "a/b", "taintValue": "c", "taintEffect": "NoExecute"}},
        {**ONCE, "config": {"taintKey": "a/b", "taintValue": "c", "taintEffect": "NoExecute"}},
    ],
    ids=["controller", "short form", "daemonset"],
)
def test_it_adds_the_gate_that_is_configured(values: Mapping[str, Any]) -> None:
    assert 'key: "a/b", value: "c", effect: "NoExecute"' in added(values)


@pytest.mark.parametrize(
    "values",
    [
        {"controller": {"config": {"nodeManagement": {"nodeSelector": {"pool": "gpu"}}}}},
        {**ONCE, "daemonset": {"nodeSelector": {"pool": "gpu"}}},
    ],
    ids=["controller", "daemonset"],
)
def test_it_gates_only_nodes_that_this_release_verifies(values: Mapping[str, Any]) -> None:
    conditions = {one["name"]: one["expression"] for one in policy(values)["spec"]["matchConditions"]}
    assert '"pool":"gpu"' in conditions["verified-by-this-release"]


def test_a_gate_without_a_value_is_added_without_one() -> None:
    taint = {"key": "a/b", "effect": "NoExecute"}
    values = {"controller": {"config": {"nodeManagement": {"taints": [taint]}}}}
    assert 'key: "a/b", value: "", effect: "NoExecute"' in added(values)


def test_nodes_join_if_the_policy_cannot_be_evaluated() -> None:
    assert policy({})["spec"]["failurePolicy"] == "Ignore"
