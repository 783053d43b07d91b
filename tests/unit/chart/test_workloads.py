"""The pods of the controller and of both modes: security, scheduling, probes and restarts."""

from pathlib import Path
from typing import Any

import pytest

from kube_node_ready.api.contract import WORKER_SELECTOR
from kube_node_ready.settings import policy as settings
from kube_node_ready.verification.model import Node
from kube_node_ready.verification.worker_pod import worker_pod
from tests.support import configs
from tests.support.chart import EXAMPLES, Object, Rendered, render
from tests.support.chart_values import CONTROLLER, DAEMONSET, GATE, ONCE, WORKER, controller_config, nested, off


def checksum(made: Rendered) -> str:
    return str(made.pod["metadata"]["annotations"]["checksum/config"])


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, controller_config("reconciliation.maxRetries", 6)), (ONCE, {**ONCE, "config": {"maxRetries": 6}})],
    ids=["controller", "daemonset"],
)
def test_a_changed_configuration_restarts_pods(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert checksum(render(before)) != checksum(render(after))


@pytest.mark.parametrize("mode", [{}, ONCE], ids=["controller", "daemonset"])
def test_other_changes_restart_no_pod(mode: dict[str, Any]) -> None:
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
def test_only_the_worker_account_mounts_tokens(mode: dict[str, Any]) -> None:
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


@pytest.mark.parametrize("values", [nested("controller.health.port", 8080), controller_config("health.port", 8080)])
def test_metrics_and_probes_can_share_a_port(values: dict[str, Any]) -> None:
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


def test_the_controller_can_run_on_gated_and_unready_nodes() -> None:
    """Where every node is gated and not ready, the controller must be able to run."""
    gates = [{"key": "a/b", "effect": "NoExecute"}, {"key": "c/d", "effect": "NoSchedule"}]
    tolerated = render(controller_config("nodeManagement.taints", gates)).pod["spec"]["tolerations"]
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


def test_replicas_are_spread_and_survive_a_drain() -> None:
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
def test_a_controller_prefers_verified_nodes(replicas: int) -> None:
    """From a broken node it could not verify the others."""
    config = {"nodeManagement": {"verifiedLabel": {"key": "a/label"}}}
    node = render({"controller": {"replicas": replicas, "config": config}}).pod["spec"]["affinity"]["nodeAffinity"]
    assert node.keys() == {"preferredDuringSchedulingIgnoredDuringExecution"}
    (preferred,) = node["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["preference"] == {"matchExpressions": [{"key": "a/label", "operator": "Exists"}]}


def test_a_custom_affinity_replaces_the_default() -> None:
    own: dict[str, Any] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    assert render(nested("controller.affinity", own)).pod["spec"]["affinity"] == own


@pytest.mark.parametrize(
    ("election", "strategy"), [(True, {"maxSurge": 1, "maxUnavailable": 0}), (False, None)], ids=["elected", "alone"]
)
def test_rolling_updates_require_leader_election(*, election: bool, strategy: object) -> None:
    made = render(nested("controller.leaderElection.enabled", election)).workload["spec"]["strategy"]
    assert made["type"] == ("RollingUpdate" if election else "Recreate")
    assert made.get("rollingUpdate") == strategy


def test_selectors_match_the_pods_and_not_the_workers() -> None:
    for made in (render({"networkPolicy": {"enabled": True}}), render({**ONCE, "networkPolicy": {"enabled": True}})):
        labels = made.pod["metadata"]["labels"]
        workers = dict(part.split("=") for part in WORKER_SELECTOR.split(","))
        assert not workers.items() <= labels.items()
        assert made.workload["spec"]["selector"]["matchLabels"].items() <= labels.items()
        for service in made.of("Service"):
            assert service["spec"]["selector"].items() <= labels.items()


def test_pods_can_be_extended() -> None:
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
