"""The kubernetes-daemonset command on real nodes: what is seen when a rollout goes well, gets stuck, and heals."""

import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from lightkube.resources.core_v1 import Pod

import lab
from lab import images
from tests.e2e.conftest import Probed
from tests.support.component_tool import Json, Tool
from tests.support.manifests.texts import FLUENTD, LOGS, NODE_EXPORTER

NAMESPACE = "agents"


@pytest.fixture
def tool(plane: lab.Plane, two_nodes: tuple[Probed, Probed], tmp_path: Path) -> Tool:
    assert two_nodes
    return Tool(plane, tmp_path, plane.kubeconfig())


def an_agent(**app: object) -> Json:
    """Serves on port 8080, ready when it answers there."""
    body = {
        "image": images.TOOLBOX,
        "command": ["/toolbox", "serve", ":8080"],
        "ports": [{"name": "web", "container_port": 8080}],
        "readiness_probe": {"http_get": {"path": "/", "port": "web"}, "period_seconds": 1},
        "volume_mounts": [{"name": "logs", "mount_path": "/var/log", "host_path": "/var/log", "read_only": True}],
    }
    spec = {"namespace": NAMESPACE, "create_namespace": True, "container": {"app": body | app}}
    spec |= {"tolerations": [{"operator": "Exists"}], "termination_grace_period_seconds": 0}
    return {
        "apiVersion": "kubernetes.project-planton.org/v1",
        "kind": "KubernetesDaemonSet",
        "metadata": {"name": "agent"},
        "spec": spec,
    }


def test_an_agent_recovers_from_a_stuck_rollout(tool: Tool) -> None:
    """Runs on every node; a version that cannot be pulled stops at one node and is named; the next one goes through."""
    file = tool.write("agent.yaml", an_agent())
    nodes = len(tool.plane.nodes)

    deployed = tool.run("apply", "-f", file)
    assert deployed.code == 0, deployed.err
    assert f"{nodes} of {nodes} nodes updated, {nodes} available" in deployed.err

    tool.write("agent.yaml", an_agent(image="lab.local/toolbox:2", command=["/toolbox", "serve", ":8080"]))
    stuck = tool.run("apply", "-f", file, "--timeout", "25")
    assert stuck.code == 4
    assert f"1 of {nodes} nodes updated, {nodes - 1} available" in stuck.err.splitlines()[-1]
    assert (
        "1 pod: agent is waiting: ErrImagePull" in stuck.err or "1 pod: agent is waiting: ImagePullBackOff" in stuck.err
    )
    outputs = tool.does("outputs", "-f", file, "-o", "json")
    assert f'"number_ready": "{nodes - 1}"' in outputs

    tool.write("agent.yaml", an_agent(env={"variables": {"ROUND": 3}}))
    healed = tool.run("apply", "-f", file)
    assert healed.code == 0, healed.err
    assert {pod.spec.containers[0].image for pod in _pods(tool, NAMESPACE)} == {images.TOOLBOX}  # type: ignore[union-attr]

    tool.does("delete", "-f", file, "--delete-namespace")
    assert not _pods(tool, NAMESPACE)


def test_a_rollout_is_over_when_every_pod_was_ready_long_enough(tool: Tool) -> None:
    manifest = an_agent()
    manifest["metadata"]["name"] = "slow"
    manifest["spec"] |= {"namespace": "slow-agents", "min_ready_seconds": 3}
    file = tool.write("slow.yaml", manifest)

    tool.does("apply", "-f", file)

    live = tool.live("daemonset", "slow", "slow-agents")
    assert live
    assert live["status"]["numberAvailable"] == live["status"]["desiredNumberScheduled"] == len(tool.plane.nodes)
    tool.does("delete", "-f", file, "--delete-namespace")
    assert not _pods(tool, "slow-agents")


@pytest.mark.parametrize("text", [FLUENTD, NODE_EXPORTER], ids=["fluentd", "node-exporter"])
def test_the_first_examples_run_as_they_were_written(tool: Tool, text: str) -> None:
    manifest = yaml.safe_load(text)
    image, namespace = manifest["spec"]["container"]["app"]["image"], manifest["spec"]["namespace"]["value"]
    # The kubelet puts the default registry in front of such names; an image of that name stands in for the real one.
    name = f"docker{'.'}io/{image['repo']}:{image['tag']}"
    stand_in = tool.plane.run.folder / f"{manifest['metadata']['name']}.tar"
    path = tool.plane.programs.path("toolbox")
    tool.plane.import_image(images.write(stand_in, name, {"/toolbox": path}, ["/toolbox", "pause"]))
    if not manifest["spec"].get("create_namespace"):
        tool.plane.kubectl("create", "namespace", namespace)
    file = tool.folder / "manifest.yaml"
    file.write_text(text)

    deployed = tool.run("apply", "-f", file, "--timeout", "60")

    assert deployed.code == 0, deployed.err
    pods = _pods(tool, namespace)
    live = tool.live("daemonset", manifest["metadata"]["name"], namespace)
    assert live
    assert len(pods) == live["status"]["desiredNumberScheduled"] >= 2  # other tests' nodes might be gated
    assert all(pod.status and pod.status.phase == "Running" for pod in pods)
    # The stand-in logs nothing, so what kubectl reports is whether it found pods and could read their logs.
    read_logs = LOGS.replace("<namespace>", namespace).strip()
    assert _complaint(tool, read_logs) == ""
    assert "No resources found" in _complaint(tool, read_logs.replace("app=daemonset", "app=other"))
    tool.does("delete", "-f", file)
    tool.plane.kubectl("delete", "namespace", namespace)


def _complaint(tool: Tool, command: str) -> str:
    """What a command of the specification prints to stderr; it succeeds."""
    program, *words = shlex.split(command)
    done = subprocess.run(
        [tool.plane.programs.path(program), *words],
        env=tool.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def _pods(tool: Tool, namespace: str) -> list[Pod]:
    return list(tool.plane.client.list(Pod, namespace=namespace))
