"""Alerts, dashboards and monitors."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from kube_node_ready.settings import controller
from kube_node_ready.settings import policy as settings
from tests.support import configs
from tests.support.chart import CHART, Rendered, render
from tests.support.chart_values import CONTINUOUS, CONTROLLER, ONCE, controller_config, nested, on
from tools.docs import metrics as metrics_page

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


@pytest.mark.parametrize(
    ("mode", "key"), [("controller", "kube-node-ready.json"), ("daemonset", "kube-node-ready-daemonset.json")]
)
def test_the_dashboard_is_optional_and_has_the_label_of_grafana(mode: str, key: str) -> None:
    wish = nested(f"{mode}.metrics.grafanaDashboard", {"enabled": True, "namespace": "monitoring"})
    dashboard = render({"deploymentMode": mode} | wish).one("ConfigMap", "kube-node-ready-dashboard", "monitoring")
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert dashboard["metadata"]["labels"]["app.kubernetes.io/component"] == mode
    assert json.loads(dashboard["data"][key])["panels"] == panels(mode)


@in_each_mode
def test_alerts_and_dashboards_query_existing_series_and_labels(mode: str) -> None:
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
def test_annotations_name_existing_series(mode: str) -> None:
    known = series(mode)
    for rule in alerts(mode):
        for name in names_in(" ".join(rule["annotations"].values())):
            assert name in known or f"{name}_bucket" in known, rule["alert"]


@in_each_mode
def test_every_alert_has_a_remedy(mode: str) -> None:
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
        reported = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        assert reported <= set(re.findall(r"\w+", " ".join(re.findall(r"by \((.*?)\)", rule["expr"])))), rule["alert"]


@in_each_mode
def test_alerts_can_be_disabled_and_rerouted(mode: str) -> None:
    own = {"alert": "Mine", "expr": "vector(1)"}
    left_out = "KubeNodeReadyManyNodesFailing"
    assert left_out in [rule["alert"] for rule in alerts(mode)]
    labels = {"team": "a", "severity": "page"}
    rules = alerts(mode, disabled=[left_out], alertLabels=labels, additionalRules=[own])
    assert left_out not in [rule["alert"] for rule in rules]
    assert rules[-1] == own
    assert rules[0]["labels"] == {"severity": "critical", "team": "a"}


@in_each_mode
def test_panels_use_existing_labels_and_do_not_overlap(mode: str) -> None:
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


def test_dashboards_of_both_modes_can_coexist() -> None:
    boards = [json.loads((CHART / file).read_text()) for _, file in MODES.values()]
    assert len({board["uid"] for board in boards}) == len({board["title"] for board in boards}) == 2
    for mode, board in zip(MODES, boards, strict=True):
        assert set(names_in(board["templating"]["list"][1]["query"]["query"])) <= series(mode).keys()


def test_mode_once_has_no_alert_for_missing_pods() -> None:
    """The absence of all pods is what one hopes for in `once` mode."""
    made = render({**ONCE, **on("daemonset.metrics.prometheusRule.enabled")})
    (group,) = made.one("PrometheusRule")["spec"]["groups"]
    assert "absent" in str(alerts("daemonset"))
    assert "absent" not in str(group)
    assert {rule["alert"] for rule in alerts("daemonset")} - {rule["alert"] for rule in group["rules"]} == {
        "KubeNodeReadyDown"
    }


def test_a_down_pod_is_found_by_its_container() -> None:
    made = render({**ONCE, **on("daemonset.metrics.prometheusRule.enabled")})
    assert f'container="{made.container["name"]}"' in alert("KubeNodeReadyPodDown", made)["expr"]


def seconds(minutes: str) -> int:
    return 60 * int(minutes.removesuffix("m"))


@pytest.mark.parametrize("name", ["KubeNodeReadyNodesFailing", "KubeNodeReadyManyNodesFailing"])
def test_a_retried_node_still_counts_as_failing(name: str) -> None:
    """While its worker runs it is reported as verifying. But one moment of failure must not be enough."""
    made = render(on("controller.metrics.prometheusRule.enabled"))
    rule = alert(name, made)
    compared = rule["expr"].partition("100 *")[0]
    windows = re.findall(r"max_over_time\(\w+nodes_failed{[^}]*}\[(\d+m)\]\)", compared)
    assert len(windows) == compared.count("nodes_failed")
    attempt = settings.policy(configs.load(made.file)).deadline.total_seconds()
    assert all(attempt < seconds(window) < seconds(rule["for"]) for window in windows)


def test_the_alert_threshold_is_the_removal_limit() -> None:
    limits = controller_config("nodeManagement.removal", {"maxFailingCount": 7, "maxFailingPercent": 12.5})
    limits["controller"]["metrics"] = {"prometheusRule": {"enabled": True}}
    expression = alert("KubeNodeReadyManyNodesFailing", render(limits))["expr"]
    assert "> 7 and" in expression
    assert "> 12.5 / 100 *" in expression
    default = alert("KubeNodeReadyManyNodesFailing", render(on("controller.metrics.prometheusRule.enabled")))["expr"]
    removal = controller.RemovalConfig()
    assert f"> {removal.max_failing_count} and" in default
    assert f"> {removal.max_failing_percent} / 100 *" in default


def test_the_removal_alert_mentions_the_dry_run() -> None:
    made = render(on("controller.metrics.prometheusRule.enabled"))
    assert "removal.dryRun" in alert("KubeNodeReadyRemovalBlocked", made)["annotations"]["description"]


def test_the_dashboard_distinguishes_failing_and_waiting() -> None:
    assert "next attempt" not in panel("Waiting")
    assert "wait for their next attempt" in panel("Failing")
    assert "retried" in panel("Failing")
    assert "retried" in panel("Verifying")


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor"])
def test_a_monitor_selects_its_target(kind: str) -> None:
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
