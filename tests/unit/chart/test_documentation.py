"""The chart's README, the comments of its values, and the example for Karpenter."""

import re
import runpy

import yaml

from kube_node_ready.settings import controller
from tests.support.chart import CHART, ROOT


def test_the_readme_is_up_to_date() -> None:
    script = runpy.run_path(str(CHART.parent / "readme.py"))
    assert (CHART / "README.md").read_text() == script["page"](), script["__doc__"]


def comments() -> dict[str, str]:
    """What values.yaml says above each value."""
    script = runpy.run_path(str(CHART.parent / "readme.py"))
    return {value.path: value.about for value in script["values"]((CHART / "values.yaml").read_text())}


def test_the_values_explain_the_missing_cpu_limit() -> None:
    limits = {path: about for path, about in comments().items() if path.endswith("resources.limits")}
    del limits["responder.resources.limits"]  # it measures nothing
    assert len(limits) == 3
    assert all("No CPU limit: throttling looks like a slow network." in about for about in limits.values())


def test_the_values_refer_to_related_values() -> None:
    about = comments()
    assert "`networkTargets`" in about["daemonset.config"]
    assert "`connectivitySample`" in about["daemonset.config"]
    assert "`worker.config`" in about["daemonset.config"]
    assert "`connectivitySelector`" in about["controller.config.worker.connectivityMatrix"]
    assert "`helm template`" in about["admissionPolicy.enabled"]
    assert "two releases share a workers' namespace" in about["admissionPolicy.additionalWorkerCreators"]


def test_the_readme_names_the_command_that_frees_nodes() -> None:
    command = "kubectl taint nodes --all node-ready/unverified:NoSchedule-"
    assert command in (CHART / "README.md").read_text()


def test_links_of_the_readme_resolve() -> None:
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
