"""The control plane: up, seen, broken, gone."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from lightkube import Client, KubeConfig
from lightkube.core.exceptions import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.authentication_v1 import SelfSubjectReview
from lightkube.resources.core_v1 import ConfigMap, Namespace, Node, ServiceAccount

import lab
from lab import build, waiting
from lab.process import Process
from tests.support.builders import a_pod, is_ready, wait_running

Fresh = Callable[..., lab.Plane]


def a_config_map(name: str, namespace: str = "default") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace))


def name_of(item: ConfigMap | Namespace) -> str | None:
    return item.metadata.name if item.metadata else None


def uid(plane: lab.Plane) -> str:
    """A value that differs between clusters."""
    metadata = plane.client.get(Namespace, "kube-system").metadata
    assert metadata
    assert metadata.uid
    return metadata.uid


def test_a_service_account_acts_with_its_own_rights(plane: lab.Plane, namespace: str) -> None:
    """A kubeconfig for a ServiceAccount authenticates as it, and has no other rights."""
    plane.client.create(ServiceAccount(metadata=ObjectMeta(name="someone", namespace=namespace)))
    with Client(KubeConfig.from_file(plane.kubeconfig(f"{namespace}/someone"))) as client:
        who = client.create(SelfSubjectReview())
        assert who.status
        assert who.status.userInfo
        assert who.status.userInfo.username == f"system:serviceaccount:{namespace}:someone"
        with pytest.raises(ApiError, match="cannot list resource"):
            list(client.list(Node))


@pytest.mark.parametrize("odd", ["someone", "/someone", "here/"])
def test_a_service_account_without_its_namespace_is_rejected(plane: lab.Plane, odd: str) -> None:
    with pytest.raises(lab.LabError, match=f"'{odd}' is invalid; expected a ServiceAccount as namespace/name"):
        plane.kubeconfig(odd)


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("odd", ["Bad_Name", "", "../there", "-a"])
def test_an_invalid_node_name_is_rejected_immediately(plane: lab.Plane, odd: str) -> None:
    with pytest.raises(lab.LabError, match="expected a node name"):
        plane.node(odd)


def test_a_token_bound_to_a_pod_carries_the_pods_node(plane: lab.Plane, namespace: str, prefix: str) -> None:
    nodes = plane.simulated_nodes(1, prefix=prefix, verdict=lab.HANGS)
    wait_running(plane, plane.client.create(a_pod("bound", namespace, node=nodes.names[0])))
    with Client(KubeConfig.from_file(plane.kubeconfig(f"{namespace}/default", pod="bound"))) as client:
        who = client.create(SelfSubjectReview()).status
        assert who
        assert who.userInfo
        assert who.userInfo.extra
        assert who.userInfo.extra["authentication.kubernetes.io/node-name"] == [nodes.names[0]]
    nodes.delete()


def test_programs_from_the_environment_run_a_plane(
    fresh_plane: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KUBEBUILDER_ASSETS with everything in one folder, and no Go on the machine."""
    for folder in build.programs().folders:
        for program in folder.iterdir():
            (tmp_path / program.name).unlink(missing_ok=True)
            (tmp_path / program.name).symlink_to(program.resolve())
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: None)
    plane = fresh_plane()
    assert plane.programs.folders == (tmp_path,)
    assert plane.kubectl("get", "--raw", "/readyz") == "ok"


def test_a_proxy_of_the_environment_is_not_used_for_a_plane(
    fresh_plane: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    plane = fresh_plane()
    nodes = plane.simulated_nodes(1)
    waiting.until("the node is Ready", lambda: is_ready(plane, nodes.names[0]), 180)
    assert nodes.names[0] in plane.kubectl("get", "nodes")


def test_the_audit_log_counts_by_agent_verb_and_resource(plane: lab.Plane, namespace: str) -> None:
    with plane.audit.window() as calls:
        for number in range(3):
            plane.client.create(a_config_map(f"counted-{number}", namespace))
        plane.kubectl("get", "configmaps", f"--namespace={namespace}")
    assert calls.count(agent="python-httpx2", verb="create", resource="configmaps", code=201) == 3
    assert calls.count(agent="kubectl", verb="list", resource="configmaps") == 1
    assert calls.count(agent="kubectl", verb="create") == 0


def test_requests_before_the_window_do_not_count(plane: lab.Plane, namespace: str) -> None:
    plane.client.create(a_config_map("before", namespace))
    with plane.audit.window() as calls:
        plane.client.get(ConfigMap, "before", namespace=namespace)
    assert calls.count(agent="python-httpx2", resource="configmaps", verb="create") == 0
    assert calls.count(agent="python-httpx2", resource="configmaps", verb="get") == 1


def test_the_api_server_keeps_its_data_across_a_restart(fresh_plane: Fresh) -> None:
    """Stopped it refuses, started it knows what it knew: its memory is etcd."""
    plane = fresh_plane()
    plane.client.create(a_config_map("kept"))
    plane.apiserver.stop()
    with pytest.raises(httpx2.ConnectError):
        plane.client.get(ConfigMap, "kept", namespace="default")
    plane.apiserver.start()
    plane.wait_for_api()
    assert name_of(plane.client.get(ConfigMap, "kept", namespace="default")) == "kept"


def test_a_paused_api_server_accepts_and_does_not_answer(fresh_plane: Fresh) -> None:
    plane = fresh_plane()
    with Client(KubeConfig.from_file(plane.kubeconfig()), timeout=httpx2.Timeout(5)) as impatient:
        impatient.get(Namespace, "default")
        plane.apiserver.pause()
        with pytest.raises(httpx2.ReadTimeout):
            impatient.get(Namespace, "default")
        plane.apiserver.resume()
        assert name_of(impatient.get(Namespace, "default")) == "default"


def test_flags_reach_the_api_server(fresh_plane: Fresh) -> None:
    plane = fresh_plane(apiserver_flags=["--feature-gates=WatchList=false"])
    assert 'kubernetes_feature_enabled{name="WatchList",stage="BETA"} 0' in plane.kubectl("get", "--raw", "/metrics")


def test_a_component_that_cannot_start_is_reported_with_its_last_log_lines(fresh_plane: Fresh) -> None:
    with pytest.raises(
        lab.ComponentDiedError, match=r"kube-apiserver died \(exit code 1\)(.|\n)*unknown flag: --no-such-flag"
    ):
        fresh_plane(apiserver_flags=["--no-such-flag"])


def kill(process: Process) -> None:
    os.kill(process.pid, signal.SIGKILL)
    waiting.until(f"{process.name} is dead", lambda: not process.running, 180)


def test_a_component_that_dies_later_is_named_when_the_plane_ends() -> None:
    """A test cannot pass on a plane that lost its scheduler on the way."""
    with pytest.raises(lab.ComponentDiedError, match=r"kube-scheduler died \(signal 9\)"), lab.plane() as plane:
        kill(plane.scheduler)


def test_a_component_that_died_is_noted_on_the_error_it_caused() -> None:
    # By a new connection or by an old one: they fail in different ways.
    with pytest.raises(httpx2.TransportError) as caught, lab.plane() as plane:
        kill(plane.apiserver)
        plane.client.get(Namespace, "default")
    assert any("kube-apiserver died (signal 9)" in note for note in caught.value.__notes__)


def test_two_concurrent_planes_are_independent(plane: lab.Plane, fresh_plane: Fresh, prefix: str) -> None:
    other = fresh_plane()
    assert uid(plane) != uid(other)
    other.simulated_nodes(1, prefix=prefix)
    waiting.until("the node is there", lambda: other.client.get(Node, f"{prefix}-0"), 180)
    with pytest.raises(ApiError, match="not found"):
        plane.client.get(Node, f"{prefix}-0")


def test_credentials_of_one_plane_are_rejected_by_another(plane: lab.Plane, fresh_plane: Fresh) -> None:
    other = fresh_plane()
    borrowed = other.run.folder / "borrowed.kubeconfig"
    borrowed.write_text(plane.kubeconfig().read_text().replace(plane.url, other.url))
    with Client(KubeConfig.from_file(borrowed)) as stranger, pytest.raises(httpx2.ConnectError, match="certificate"):
        stranger.get(Namespace, "default")
