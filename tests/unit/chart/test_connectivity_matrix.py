"""The connectivity matrix: its peers, the responders, and the right to list them."""

from collections.abc import Mapping
from typing import Any

import pytest

from kube_node_ready.settings import agent as daemonset_settings
from kube_node_ready.settings import policy as settings
from tests.support import chart, configs
from tests.support.chart import Rendered, render
from tests.support.chart_values import CONTINUOUS, DAEMONSET, MATRIX, ONCE, controller_config


def test_the_matrix_adds_the_right_to_list_pods() -> None:
    def rights(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
        roles = [(role["metadata"]["name"], role["rules"]) for role in render(values).of("Role")]
        return [(name, rules) for name, rules in roles if name.endswith("peers")]

    assert rights({}) == []
    (role,) = rights({"worker": {"config": {"connectivityMatrix": True}}})
    assert role == ("kube-node-ready-worker-peers", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])


def test_the_matrix_can_be_enabled_for_both_modes() -> None:
    """With the right it needs."""
    values = {"worker": {"config": {"connectivityMatrix": True, "connectivitySample": 7}}}
    made = render({**values, **ONCE})
    checks = daemonset_settings.load({}, {**made.variables, "NODE_NAME": "a"}).checks
    assert (checks.connectivity_matrix, checks.connectivity_sample, checks.connectivity_port) == (True, 7, 8080)
    assert made.rights(DAEMONSET)["kube-system pods"] == "list"
    others = {"connectivityMatrix": True, "connectivitySelector": "app=agent", "connectivityPort": 9999}
    loaded = daemonset_settings.load(
        {}, {**render({**ONCE, "worker": {"config": others}}).variables, "NODE_NAME": "a"}
    ).checks
    assert (loaded.connectivity_selector, loaded.connectivity_port) == ("app=agent", 9999)
    overruled = render({**values, **ONCE, "config": {"enableConnectivityMatrix": False}})
    assert overruled.variables["ENABLE_CONNECTIVITY_MATRIX"] == "false"


def peers_of(made: Rendered) -> tuple[str, int]:
    """The selector and the port of the peers, as the program reads them."""
    if made.of("Deployment"):
        found = settings.template(configs.load(made.file)).settings
        return found["connectivitySelector"], found["connectivityPort"]
    checks = daemonset_settings.load({}, {**made.variables, "NODE_NAME": "a"}).checks
    return checks.connectivity_selector, checks.connectivity_port or 0


@pytest.mark.parametrize(
    ("values", "component", "port"),
    [
        ({}, "responder", 8081),
        (controller_config("worker.namespace", "workers"), "responder", 8081),
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
def test_responders_exist_only_as_peers(values: Mapping[str, Any]) -> None:
    assert not [one for one in render(values) if one["metadata"]["name"].endswith("-responder")]


def test_a_responder_has_no_token_and_no_right() -> None:
    for mode in ({}, ONCE):
        made = render({**mode, **MATRIX})
        spec = made.one("DaemonSet", "kube-node-ready-responder")["spec"]["template"]["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert "serviceAccountName" not in spec
        assert "hostNetwork" not in spec
