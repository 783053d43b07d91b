"""What the component's specification shows, and the page of examples, in front of a real API server."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import lab
from lab import waiting
from lab.audit import Calls
from tests.support.component_tool import Tool
from tests.support.manifests import examples
from tests.support.manifests.builders import read
from tests.support.manifests.texts import FLUENTD

pytestmark = pytest.mark.timeout(600)
NODES = 2
CURRENT, OTHER = "staging", "production"
GPU = {"nvidia.com/gpu.present": "true"}
WRITES = ("create", "update", "patch", "delete")
# `diff` ends with 1 if it finds differences, as the page's readers see it do.
SHELL = """
set -euo pipefail
kubernetes-daemonset() {
    local code=0
    command kubernetes-daemonset "$@" || code=$?
    [ "$1:$code" = diff:1 ] || return $code
}
"""


@pytest.fixture(scope="module")
def plane_of_ours() -> Iterator[lab.Plane]:
    with lab.plane() as plane:
        plane.simulated_nodes(NODES, prefix="agents", labels=GPU)
        yield plane


@pytest.fixture
def tool(plane_of_ours: lab.Plane, tmp_path: Path) -> Tool:
    """With a kubeconfig of two contexts, which lead to the same server; so a write to the wrong one would succeed."""
    config = yaml.safe_load(plane_of_ours.kubeconfig().read_text())
    (context,) = config["contexts"]
    named = [{"name": name, "context": context["context"]} for name in (CURRENT, OTHER)]
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config | {"contexts": named, "current-context": CURRENT}))
    return Tool(plane_of_ours, tmp_path, file)


def written(calls: Calls) -> int:
    """Everything that the component makes for a small manifest; nothing else in the cluster writes these."""
    return sum(calls.count(verb=verb, resource=kind) for verb in WRITES for kind in ("namespaces", "daemonsets"))


@pytest.mark.parametrize("words", [("apply", "--no-wait"), ("delete",), ("diff",), ("outputs",)], ids=lambda it: it[0])
def test_nothing_is_written_to_another_cluster_than_the_target(tool: Tool, words: tuple[str, ...]) -> None:
    manifest = yaml.safe_load(FLUENTD)
    manifest["metadata"]["name"] = words[0]
    manifest["spec"] |= {
        "namespace": {"value": f"target-{words[0]}"},
        "target_cluster": {"cluster_kind": "AwsEksCluster", "cluster_name": OTHER},
    }
    file = tool.write("agent.yaml", manifest)

    with tool.plane.audit.window() as calls:
        ran = tool.run(*words, "-f", file)

    assert ran.code == 2, ran.err
    assert f'"{OTHER}" is not allowed, because it is another context of the kubeconfig' in ran.err
    assert written(calls) == 0
    assert tool.live("namespace", f"target-{words[0]}") is None

    with tool.plane.audit.window() as calls:
        tool.does("apply", "--no-wait", "-f", file, "--kube-context", OTHER)
    assert written(calls) > 0


def test_an_upgrade_to_the_shared_label_is_one_rollout(tool: Tool) -> None:
    """A DaemonSet of a version that did not set the label: its pods are replaced once, its selector stays."""
    text = FLUENTD.replace("value: logging", "value: upgrade")
    file = tool.folder / "fluentd.yaml"
    file.write_text(text)
    tool.does("apply", "-f", file)
    without = '[{"op": "remove", "path": "/spec/template/metadata/labels/app"}]'
    words = ("--namespace", "upgrade", "--type", "json", "--patch", without)
    tool.plane.kubectl("patch", "daemonset", "fluentd-logger", *words)
    tool.plane.kubectl("rollout", "status", "daemonset/fluentd-logger", "--namespace", "upgrade", "--timeout", "60s")
    before = tool.live("daemonset", "fluentd-logger", "upgrade")
    assert before
    assert _names(tool, "upgrade", "app=daemonset") == set()

    shown = tool.run("diff", "-f", file)
    assert [line for line in shown.out.splitlines() if line.startswith("+ ")] == ["+        app: daemonset"]
    tool.does("apply", "-f", file)

    after = tool.live("daemonset", "fluentd-logger", "upgrade")
    assert after
    assert after["spec"]["selector"] == before["spec"]["selector"]
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert len(_names(tool, "upgrade", "app=daemonset")) == NODES
    assert tool.does("diff", "-f", file) == ""


def _names(tool: Tool, namespace: str, selector: str) -> set[str]:
    words = ("--namespace", namespace, "--selector", selector, "--output", "name")
    return set(tool.plane.kubectl("get", "pods", *words).split())


def test_outputs_fill_in_the_status_of_the_first_example(tool: Tool) -> None:
    """The manifest with its status is as good as the one without: applying it changes nothing."""
    text = FLUENTD.replace("value: logging", "value: outputs")
    file = tool.folder / "fluentd.yaml"
    file.write_text(text)
    tool.does("apply", "-f", file)

    printed = tool.does("outputs", "-f", file, "-o", "manifest")

    assert yaml.safe_load(printed)["status"]["outputs"] == {
        "namespace": "outputs",
        "daemonset_name": "fluentd-logger",
        "desired_number_scheduled": str(NODES),
        "current_number_scheduled": str(NODES),
        "number_ready": str(NODES),
    }
    assert read(printed).manifest.spec == read(text).manifest.spec
    filled = tool.folder / "filled.yaml"
    filled.write_text(printed)
    assert tool.does("validate", "-f", filled) == "1 manifest valid\n"
    assert tool.does("diff", "-f", filled) == ""
    assert tool.does("outputs", "-f", filled, "-o", "manifest") == printed


def test_the_pages_commands_succeed(tool: Tool) -> None:
    """In their order, as a reader types them."""
    examples.save(tool.folder)
    folders = [Path(sys.executable).parent, tool.plane.programs.path("kubectl").parent]
    environment = tool.environment | {"PATH": f"{':'.join(map(str, folders))}:{os.environ['PATH']}"}
    output = []
    for block in examples.blocks("sh"):
        done = subprocess.run(
            ["bash", "-c", SHELL + block],
            cwd=tool.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        output.append(done.stdout)

    def of(command: str) -> str:
        return next(out for block, out in zip(examples.blocks("sh"), output, strict=True) if command in block)

    assert of("kubectl get pods").count("fluentd-logger-") == NODES
    assert f'number_ready: "{NODES}"' in of("-o manifest")
    assert of("kubectl auth can-i") == "yes\n"
    assert "network-agent-image-pull-secret" in of("--docker-config")
    audit = tool.live("daemonset", "audit-agent", "audit")
    assert audit
    exporter = tool.live("daemonset", "node-exporter", "monitoring")
    assert exporter
    assert exporter["spec"]["template"]["spec"]["containers"][0]["image"] == "prom/node-exporter:v1.8.2"
    waiting.until("the deleted namespace to go", lambda: tool.live("namespace", "logging") is None, 60)
