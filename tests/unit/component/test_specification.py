"""What the component's specification shows works as it is written there, as far as that needs no cluster."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetSpec
from kubernetes_daemonset.validation import validate
from tests.support.component_tool import COMMAND
from tests.support.manifests import examples
from tests.support.manifests.builders import Changes, Json, daemon_set, objects_of, only, pod, read, warnings
from tests.support.manifests.texts import DOCUMENTATION, FLUENTD, LOGS, NODE_EXPORTER, PROTO_FILES, SPEC_PROTO
from tests.support.shell import ROOT

EXAMPLES = pytest.mark.parametrize("text", [FLUENTD, NODE_EXPORTER], ids=["fluentd", "node-exporter"])


def selected_by_logs() -> dict[str, str]:
    """The labels that the specification's command for reading logs selects pods by."""
    words = shlex.split(re.sub(r"<\w+>", "logging", LOGS))
    key, _, value = words[words.index("-l") + 1].partition("=")
    return {key: value}


@EXAMPLES
def test_the_command_that_reads_logs_selects_the_pods(text: str) -> None:
    template: Json = only("DaemonSet", objects_of(read(text)))["spec"]["template"]
    assert selected_by_logs().items() <= template["metadata"]["labels"].items()


def test_the_guide_has_the_command() -> None:
    assert LOGS.replace("<namespace>", "monitoring") in (ROOT / "docs" / "daemonset" / "README.md").read_text()


def test_the_label_that_all_components_share_selects_no_pods_for_a_daemon_set() -> None:
    """A selector cannot be changed, and one that all components share would make them adopt each other's pods."""
    rendered = daemon_set()
    assert selected_by_logs().keys().isdisjoint(rendered["spec"]["selector"]["matchLabels"])
    assert selected_by_logs().keys().isdisjoint(rendered["metadata"]["labels"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"metadata.labels": {"app": "exporter"}}, "exporter"),
        ({"spec.pod_labels": {"app": "exporter"}}, "exporter"),
        ({"metadata.labels": {"app": "all"}, "spec.pod_labels": {"app": "pods"}}, "pods"),
        ({"spec.pod_labels": {"app": ""}}, ""),
    ],
    ids=["of all objects", "of pods", "of both", "empty"],
)
def test_a_label_of_the_manifest_takes_precedence_over_the_shared_one(changes: Changes, expected: str) -> None:
    """Services and network policies of the manifest's author select by it."""
    assert pod(changes)["metadata"]["labels"]["app"] == expected


# --- target_cluster ---


def test_every_field_of_the_spec_is_there_and_no_field_is_ignored_silently() -> None:
    fields = re.findall(r"^  (?:repeated )?(\S+(?: string>)?) (\w+) = (\d+);$", SPEC_PROTO, re.MULTILINE)
    assert len(fields) == 8
    for _, name, number in fields:
        assert KubernetesDaemonSetSpec.DESCRIPTOR.fields_by_number[int(number)].name == name
    ((kind, name, _),) = (field for field in fields if field[1].startswith("target"))
    assert KubernetesDaemonSetSpec.DESCRIPTOR.fields_by_name[name].message_type.name == kind
    (warning,) = warnings({f"spec.{name}": {"cluster_kind": "GcpGkeCluster", "cluster_name": "production"}})
    assert "does not choose the cluster" in warning.message


# --- status ---


def test_the_manifest_has_the_three_parts_of_the_resource_model_and_a_tool_that_writes_the_last() -> None:
    (parts,) = re.findall(r"KRM wiring \((.+)\)", PROTO_FILES)
    assert set(parts.split("/")) <= set(KubernetesDaemonSet.DESCRIPTOR.fields_by_name)
    done = subprocess.run([*COMMAND, "outputs", "--help"], capture_output=True, text=True, check=True)
    assert "manifest: print the manifest with the outputs in its status" in " ".join(done.stdout.split())


# --- examples.md ---

PAGE_WARNS = {"audit-agent.yaml": ["spec.target_cluster.cluster_name"]}
"""The manifest that shows what the warning is about."""
OFFLINE = ("validate", "render", "explain", "init")


def test_the_documentation_has_the_files_that_the_specification_names() -> None:
    named = re.findall(r"[├└]── (\w+\.md)", DOCUMENTATION)
    assert named == ["README.md", "examples.md"]
    for name in named:
        assert (ROOT / "docs" / "daemonset" / name).is_file()
    assert "(examples.md)" in (ROOT / "docs" / "daemonset" / "README.md").read_text()


@EXAMPLES
def test_the_page_has_the_examples_of_the_specification(text: str) -> None:
    assert text in examples.manifests().values()


def test_every_manifest_of_the_page_has_a_name_and_every_name_is_used() -> None:
    assert sorted(examples.manifests().values()) == sorted(examples.blocks("yaml"))
    commands = "".join(examples.blocks("sh"))
    assert [name for name in examples.files() if name not in commands] == []


@pytest.mark.parametrize("name", examples.manifests())
def test_every_manifest_of_the_page_is_valid(name: str) -> None:
    loaded = read(examples.manifests()[name])
    assert [one.path for one in validate.validate(loaded)] == PAGE_WARNS.get(name, [])
    assert name == f"{loaded.manifest.metadata.name}.yaml"
    assert only("DaemonSet", objects_of(loaded))["metadata"]["name"] == loaded.manifest.metadata.name


def test_the_pages_commands_that_need_no_cluster_succeed(tmp_path: Path) -> None:
    examples.save(tmp_path)
    lines = [line for block in examples.blocks("sh") for line in block.splitlines()]
    offline = [line for line in lines if line.split()[1:2] and line.split()[1] in OFFLINE]
    assert len(offline) >= len(OFFLINE)
    command = 'kubernetes-daemonset() { "$PYTHON" -c "from kubernetes_daemonset.cli.main import main; main()" "$@"; }'
    script = "\n".join(["set -euxo pipefail", command, *offline])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "log-shipper-terraform" / "main.tf.json").is_file()
    assert (tmp_path / "log-shipper-pulumi" / "Pulumi.yaml").is_file()
    assert "kind: DaemonSet" in (tmp_path / "log-shipper.rendered").read_text()
