"""The network policies of the controller, the DaemonSet and the workers."""

from collections.abc import Mapping
from typing import Any

from kube_node_ready.api.contract import WORKER_SELECTOR
from tests.support.chart import render
from tests.support.chart_values import CONTROLLER, DAEMONSET, ONCE, WORKER, controller_config, on


def test_the_controller_can_reach_the_api_server_and_prometheus_can_reach_it() -> None:
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


def test_the_health_port_can_be_restricted_to_nodes() -> None:
    made = render({"networkPolicy": {"enabled": True, "healthFrom": NODES}})
    metrics, probes = made.one("NetworkPolicy", CONTROLLER)["spec"]["ingress"]
    assert (probes["from"], probes["ports"][0]["port"]) == (NODES, 8081)
    assert "from" not in metrics


def test_the_daemonsets_port_can_be_restricted_to_nodes_prometheus_and_its_own_pods() -> None:
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


def test_workers_have_no_ingress_and_unrestricted_egress() -> None:
    values = {**controller_config("worker.namespace", "workers"), "networkPolicy": {"enabled": True}}
    spec = render(values).one("NetworkPolicy", WORKER, "workers")["spec"]
    assert spec["podSelector"]["matchLabels"] == dict(part.split("=") for part in WORKER_SELECTOR.split(","))
    assert (spec["ingress"], spec["egress"]) == ([], [{}])
