"""The notes that Helm prints after an installation."""

from collections.abc import Mapping
from typing import Any

import pytest

from kube_node_ready import __version__
from kube_node_ready.controller import resources
from kube_node_ready.settings import images
from kube_node_ready.settings.worker_pod import CHECKS
from tests import specification
from tests.support import chart, configs
from tests.support.chart import render
from tests.support.chart_values import ONCE, VALUES, controller_config, off, on


def test_the_notes_explain_first_steps_status_and_cleanup() -> None:
    notes = chart.notes()
    assert "node-ready/unverified=true:NoSchedule" in notes
    assert "startupTaints of the NodePool (not taints)" in notes
    assert "kubectl get nodes -L node-ready/verified" in notes
    assert "kubectl taint nodes --all node-ready/unverified:NoSchedule-" in notes
    assert "REMOVED" not in notes
    assert "<" not in notes


@pytest.mark.parametrize("mode", [{}, ONCE])
def test_the_notes_warn_of_an_image_without_a_registry(mode: Mapping[str, Any]) -> None:
    """As `helm install` without further values asks for it; with the two commands that help."""
    notes = chart.notes(mode)
    assert f"THE IMAGE kube-node-ready:{__version__} HAS NO REGISTRY" in notes
    archive = f"oci-archive:dist/kube-node-ready-{__version__}.tar"
    assert f"  make image && skopeo copy --all {archive} docker://REGISTRY/kube-node-ready:{__version__}\n" in notes
    assert "--reset-then-reuse-values --set image.repository=REGISTRY/kube-node-ready\n" in notes
    for repository in ("localhost/a", "registry.example/team/a", "registry:5000/a"):
        assert "REGISTRY" not in chart.notes({**mode, "image": {"repository": repository}})


def test_the_notes_warn_of_workers_with_another_image() -> None:
    """With the specification's values."""
    notes = chart.notes(
        {**specification.tree("operator/values-controller.yaml"), "image": {"repository": "a.example/b"}}
    )
    assert f"THE CONTROLLER: {images.GO_VERSION}, not a.example/b.\n" in notes
    assert GO not in notes
    assert "ANOTHER IMAGE" not in chart.notes()


GO = f"IS THE GO VERSION'S: {images.GO_VERSION}"


@pytest.mark.parametrize(
    "values",
    [
        {"image": {"repository": images.GO_VERSION, "tag": "latest"}},
        {"image": {"repository": images.GO_VERSION}, **specification.tree("operator/values-controller.yaml")},
        {"controller": {"image": {"repository": images.GO_VERSION}}},
        {"image": {"repository": images.GO_VERSION}, **ONCE},
        {"deploymentMode": "daemonset", "daemonset": {"image": {"repository": images.GO_VERSION}}},
    ],
    ids=["image", "image and worker's image", "controller.image", "daemonset", "daemonset.image"],
)
def test_the_notes_warn_of_the_go_versions_image(values: Mapping[str, Any]) -> None:
    """As in values that were written for its chart."""
    assert GO in chart.notes(values)
    assert GO not in chart.notes({**values, "image": {"repository": "a.example/b"}, "controller": {}, "daemonset": {}})


def test_the_notes_list_the_configured_gates() -> None:
    notes = chart.notes({"config": {"taintKey": "a/gate", "verifiedLabel": "a/label"}, **ONCE})
    assert "kubectl taint nodes --all a/gate:NoSchedule-" in notes
    assert "There is no gate" in chart.notes(controller_config("nodeManagement.taints", []))
    notes = chart.notes(controller_config("nodeManagement.taints", [{"key": "a/b", "effect": "NoExecute"}]))
    assert "       a/b:NoExecute\n" in notes


def test_the_notes_warn_of_removal_dry_runs_and_what_has_no_effect() -> None:
    notes = chart.notes(on("controller.config.nodeManagement.deleteFailedNodes"))
    assert "At most 1 per pool and 10 % of the pool per 3600 s." in notes
    assert f"kubectl annotate configmap -n ns {resources.LEDGER} node-ready/pause-removal=true" in notes
    assert "DRY RUN" in chart.notes(on("controller.config.dryRun"))
    idle = {"maxRetries": 1, "retryBackoff": "linear", "logging": {"level": "info"}, "dryRun": False}
    values = {"worker": {"config": {**idle, "payload": False}}}
    assert "WITHOUT EFFECT: " + ", ".join(f"worker.config.{key}" for key in sorted(idle)) in chart.notes(values)
    assert configs.load(render(values).file).worker.checks["payload"] is False


def test_the_notes_of_the_daemonset_name_what_has_no_effect_there() -> None:
    idle = {"maxRetries": 1, "logging": {"level": "info"}, "dryRun": True}
    notes = chart.notes({**ONCE, "worker": {"config": {**idle, "payload": False}}})
    assert "WITHOUT EFFECT: " + ", ".join(f"worker.config.{key}" for key in sorted(idle)) + ". The DaemonSet" in notes
    assert "WITHOUT EFFECT" not in chart.notes({**ONCE, "worker": {"config": {"payload": False}}})
    assert "WITHOUT EFFECT" not in chart.notes({"worker": {"config": {"connectivityPort": 9}}})


def test_the_notes_warn_without_a_policy_for_nodes() -> None:
    missing = "NO ADMISSION POLICY"
    assert missing in chart.notes(ONCE)
    assert missing in chart.notes({**ONCE, **off("admissionPolicy.enabled")})
    assert missing not in chart.notes({**ONCE, **on("admissionPolicy.enabled")})
    assert missing not in chart.notes({**ONCE, **on("config.dryRun")})


def test_the_notes_warn_without_limits_on_the_controller() -> None:
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


def test_the_notes_warn_without_a_policy_for_worker_pods() -> None:
    missing = "NO ADMISSION POLICY protects the worker pods"
    assert missing in chart.notes()
    assert "create pods in namespace workers can" in chart.notes(controller_config("worker.namespace", "workers"))
    assert missing not in chart.notes(on("admissionPolicy.enabled"))
    assert missing not in chart.notes(on("controller.config.dryRun"))


def test_the_notes_name_the_peers_of_the_matrix() -> None:
    def notes(*, responder: bool = True, replicas: int = 1, **worker: object) -> str:
        config = {"worker": {"connectivityMatrix": True, **worker}}
        values = {"controller": {"replicas": replicas, "config": config}, "responder": {"enabled": responder}}
        return chart.notes(values).partition("CONNECTIVITY MATRIX: ")[2].partition("\n\n")[0]

    assert VALUES["controller"]["config"]["worker"]["connectivitySelector"] == CHECKS["connectivitySelector"].default
    assert "DaemonSet kube-node-ready-responder" in notes()
    assert '"not enough peers: N of 2"' in notes(replicas=3)
    assert "kubectl get pods -n elsewhere " in notes(namespace="elsewhere")
    assert notes(responder=False).startswith("not enough peers: 1 of 2, so it holds no node")
    assert notes(responder=False, replicas=2).startswith(
        "not enough peers: 1 of 2 on the nodes that run the controller"
    )
    assert notes(responder=False, replicas=3, namespace="elsewhere").startswith("not enough peers: 0 of 2")
    assert not notes(responder=False, replicas=3)
    assert not notes(connectivitySelector="app=node-agent")
    assert not notes(connectivityMatrix=False)


def test_the_notes_name_the_peers_of_the_matrix_in_daemonset_mode() -> None:
    def notes(mode: str, **values: object) -> str:
        given = {"deploymentMode": "daemonset", "daemonset": {"mode": mode}, **on("config.enableConnectivityMatrix")}
        return chart.notes({**given, **values}).partition("CONNECTIVITY MATRIX: ")[2].partition("\n\n")[0]

    assert "DaemonSet kube-node-ready-responder" in notes("once")
    assert '"not enough peers: N of 2"' in notes("once")
    assert notes("once", responder={"enabled": False}).startswith(
        "not enough peers: 0 of 2 once all nodes are verified"
    )
    assert not notes("continuous")
    assert not notes("once", worker={"config": {"connectivitySelector": "app=agent"}})
