"""The objects that the chart renders: which there are, what they are called, and how they are labeled."""

import itertools
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kube_node_ready import __version__
from tests.support import chart
from tests.support.chart import A_CLUSTER, CHART, EXAMPLES, POLICIES, render
from tests.support.chart_values import CONTINUOUS, CONTROLLER, DAEMONSET, ONCE, VALUES, WORKER, nested, on, walk


@pytest.mark.parametrize("values", [None, *EXAMPLES], ids=lambda file: file.stem if file else "defaults")
def test_lint_passes(values: Path | None) -> None:
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


def test_lint_passes_with_every_switch(tmp_path: Path) -> None:
    """One after the other it would take long: most of what Helm does is to start."""

    def words(number: int, values: Mapping[str, Any]) -> str:
        file = tmp_path / f"{number}.yaml"
        file.write_text(json.dumps(values))
        done = chart.run("lint", CHART, "--strict", f"--values={file}")
        return "" if done.returncode == 0 and "[" not in done.stdout else f"{values}: {done.stdout}"

    flipped = list(switches())
    assert len(flipped) > 20
    with ThreadPoolExecutor() as pool:
        assert not [problem for problem in pool.map(words, itertools.count(), flipped) if problem]


def test_the_default_image_has_the_operators_version() -> None:
    assert render().container["image"] == f"kube-node-ready:{__version__}"


def test_the_default_objects() -> None:
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
    ("values", "expected"),
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
def test_optional_objects_are_rendered_when_enabled(values: dict[str, Any], expected: set[str]) -> None:
    mode = {"deploymentMode": values.get("deploymentMode", "controller")}
    assert render(values).kinds - render(mode).kinds == expected


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_rendering_is_reproducible(example: Path) -> None:
    flags = ("--namespace=kube-system", f"--api-versions={A_CLUSTER}", f"--values={example}")
    again = chart.run("template", DAEMONSET, CHART, *flags).stdout
    assert again == chart.written(files=[example]) != ""


@pytest.mark.parametrize("mode", [{}, ONCE], ids=["controller", "daemonset"])
def test_a_new_chart_version_restarts_no_pod(mode: Mapping[str, Any], tmp_path: Path) -> None:
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


def test_a_numeric_name_stays_a_string() -> None:
    made = render(name="123", namespace="456")
    assert made.workload["metadata"]["namespace"] == "456"
    assert made.pod["metadata"]["labels"]["app.kubernetes.io/instance"] == "123"


def test_common_labels_and_annotations_are_on_all_objects_and_override_none() -> None:
    ours = {"commonLabels": {"team": "a", "app.kubernetes.io/name": "other"}, "commonAnnotations": {"owner": "b"}}
    made = render(ours)
    assert all(one["metadata"]["labels"]["team"] == "a" for one in made)
    assert all(one["metadata"]["labels"]["app.kubernetes.io/name"] == "kube-node-ready" for one in made)
    assert all(one["metadata"]["annotations"] == {"owner": "b"} for one in made)
    assert made.pod["metadata"]["labels"]["team"] == "a"
