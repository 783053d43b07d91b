"""The KubernetesDaemonSet component as its specification has it: files, messages, fragments, rules and features.

What the specification's tools and pages do is in test_component_specification.py.
"""

import re
from typing import Final

import pytest

from kubernetes_daemonset.api.shared import kinds_pb2
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetSpec
from tests import specification
from tests.support.manifests.builders import (
    Changes,
    Json,
    a_mount,
    a_port,
    a_sidecar,
    a_stack_input,
    app,
    as_yaml,
    objects_of,
    only,
    pod,
    problems,
    read,
    rendered,
)
from tests.support.shell import ROOT

API: Final = ROOT / "src" / "kubernetes_daemonset" / "api"

# --- files and messages ---

PROTO_FILES: Final = re.findall(r"── (\w+\.proto) ", specification.text("component/files.txt"))


@pytest.mark.parametrize("name", PROTO_FILES)
def test_the_proto_file_exists(name: str) -> None:
    package = "org.project_planton.provider.kubernetes.kubernetesdaemonset.v1"
    assert f"\npackage {package};\n" in (API / "v1" / name).read_text()


def test_four_proto_files_are_named_twice() -> None:
    (listed,) = re.findall(r"4 files \((spec.+)\)", specification.text("component/files-created.md"))
    assert [f"{name}.proto" for name in listed.split(", ")] == PROTO_FILES


FIELDS: Final = re.findall(
    r"^  (repeated )?(.+) (\w+) = (\d+);$", specification.text("component/spec.txt"), re.MULTILINE
)


@pytest.mark.parametrize(("repeated", "kind", "name", "number"), FIELDS, ids=[name for _, _, name, _ in FIELDS])
def test_the_field_has_its_number_and_type(repeated: str, kind: str, name: str, number: str) -> None:
    field = KubernetesDaemonSetSpec.DESCRIPTOR.fields_by_name[name]
    assert field.number == int(number)
    (declared,) = re.findall(rf"^  (.+) {name} = {number}\b", (API / "v1" / "spec.proto").read_text(), re.MULTILINE)
    assert declared.startswith("repeated ") == bool(repeated)
    assert re.fullmatch(rf"(repeated )?([\w.]+\.)?{re.escape(kind)}", declared)


def test_the_kind_is_registered() -> None:
    text = specification.text("component/kind.txt")
    ((name, number),) = re.findall(r"(\w+) = (\d+)", text)
    value = kinds_pb2.CloudResourceKind.DESCRIPTOR.values_by_name[name]
    meta = value.GetOptions().Extensions[kinds_pb2.kind_meta]
    assert value.number == int(number)
    assert f'id_prefix: "{meta.id_prefix}"' in text
    assert f"provider: {kinds_pb2.CloudResourceProvider.Name(meta.provider)}\n" in text
    assert f"version: {kinds_pb2.CloudResourceKindVersion.Name(meta.version)}\n" in text
    assert text in re.sub(r"^  ", "", (API / "shared" / "kinds.proto").read_text(), flags=re.MULTILINE)


# --- fragments ---


def test_the_mounts_are_rendered() -> None:
    (mount,) = specification.tree("component/volume-mounts.yaml")["volume_mounts"]
    made = pod({"app.volume_mounts": [mount]})["spec"]
    assert made["volumes"] == [
        {"name": mount["name"], "hostPath": {"path": mount["host_path"], "type": mount["host_path_type"]}}
    ]
    assert made["containers"][0]["volumeMounts"] == [
        {"name": mount["name"], "mountPath": mount["mount_path"], "readOnly": mount["read_only"]}
    ]


TYPES: Final = re.findall(r"^- `(\w+)`", specification.text("component/host-path-types.md"), re.MULTILINE)


@pytest.mark.parametrize("kind", TYPES)
def test_the_type_of_host_path_is_rendered(kind: str) -> None:
    (mount,) = specification.tree("component/volume-mounts.yaml")["volume_mounts"]
    (volume,) = pod({"app.volume_mounts": [mount | {"host_path_type": kind}]})["spec"]["volumes"]
    assert volume["hostPath"]["type"] == kind


def test_seven_types_are_specified_and_no_other_is_accepted() -> None:
    assert len(TYPES) == 7
    (mount,) = specification.tree("component/volume-mounts.yaml")["volume_mounts"]
    assert problems({"app.volume_mounts": [mount | {"host_path_type": "Folder"}]})


def test_the_tolerations_are_rendered() -> None:
    given = specification.tree("component/tolerations.yaml")["tolerations"]
    assert pod({"spec.tolerations": given})["spec"]["tolerations"] == given


def test_the_security_context_is_rendered() -> None:
    given = specification.tree("component/security-context.yaml")["security_context"]
    made = app({"app.security_context": given})["securityContext"]
    assert made["privileged"] is given["privileged"]
    assert made["runAsUser"] == given["run_as_user"]
    assert made["capabilities"] == given["capabilities"]


EXAMPLES: Final = ("component/fluentd.yaml", "component/node-exporter.yaml")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_renders_all_that_it_names(name: str) -> None:
    given = specification.tree(name)
    made = objects_of(read(specification.text(name)))
    agent = only("DaemonSet", made)
    assert agent["metadata"]["name"] == given["metadata"]["name"]
    assert agent["metadata"]["namespace"] == given["spec"]["namespace"]["value"]
    assert ("Namespace" in {one["kind"] for one in made}) is given["spec"].get("create_namespace", False)
    (container,) = agent["spec"]["template"]["spec"]["containers"]
    image = given["spec"]["container"]["app"]["image"]
    assert container["image"] == f"{image['repo']}:{image['tag']}"
    assert container.get("args") == given["spec"]["container"]["app"].get("args")
    assert agent["spec"]["template"]["spec"]["tolerations"] == given["spec"]["tolerations"]


# --- what is created ---

CREATED: Final = re.findall(r"\*\*(\w+)\*\*(?: \(([\w-]+)\))?", specification.text("component/created.md"))
TABLE: Final = re.findall(r"^\| (\w+)(?: \(([\w-]+)\))? \|", specification.text("component/resources.md"), re.MULTILINE)


@pytest.mark.parametrize(("kind", "part"), CREATED, ids=[" ".join(one).strip() for one in CREATED])
def test_the_object_is_created(kind: str, part: str) -> None:
    target: Changes = {"spec.create_namespace": True, "app.env": {"secrets": {"TOKEN": {"value": "x"}}}}
    made = objects_of(read(as_yaml(a_stack_input(target, docker_config_json='{"auths": {}}'))))
    names = {"": ("agent", "monitoring"), "optional": ("agent", "monitoring")}.get(part, (f"agent-{part}",))
    assert any(one["kind"] == kind and one["metadata"]["name"].startswith(names) for one in made)


def test_the_table_names_the_same_objects() -> None:
    plain = {(kind, part.replace("optional", "")) for kind, part in CREATED}
    assert {one for one in TABLE if one[0] != "Resource"} == plain
    assert len(plain) == 4


# --- rules ---

RULES: Final[dict[str, tuple[list[Changes], list[Changes]]]] = {
    "Image repo/tag required": (
        [{"app.image": {"repo": "a", "tag": "1"}}],
        [{"app.image": {"repo": "", "tag": "1"}}, {"app.image": {"repo": "a", "tag": ""}}],
    ),
    "Port names: lowercase alphanumeric with hyphens": (
        [{"app.ports": [a_port(name="metrics-1")]}],
        [{"app.ports": [a_port(name="Metrics")]}, {"app.ports": [a_port(name="a_b")]}],
    ),
    "Network protocol: must be TCP, UDP, or SCTP": (
        [{"app.ports": [a_port(network_protocol=name)]} for name in ("TCP", "UDP", "SCTP")],
        [{"app.ports": [a_port(network_protocol="HTTP")]}],
    ),
    "Toleration operators: Exists or Equal": (
        [{"spec.tolerations": [{"key": "a", "operator": name}]} for name in ("Exists", "Equal")],
        [{"spec.tolerations": [{"key": "a", "operator": "In"}]}],
    ),
    "Toleration effects: NoSchedule, PreferNoSchedule, or NoExecute": (
        [
            {"spec.tolerations": [{"key": "a", "operator": "Exists", "effect": name}]}
            for name in ("NoSchedule", "PreferNoSchedule", "NoExecute")
        ],
        [{"spec.tolerations": [{"key": "a", "operator": "Exists", "effect": "NoRun"}]}],
    ),
    "Update strategy types: RollingUpdate or OnDelete": (
        [{"spec.update_strategy": {"type": name}} for name in ("RollingUpdate", "OnDelete")],
        [{"spec.update_strategy": {"type": "Recreate"}}],
    ),
}
"""What each accepts, and what it rejects."""


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_holds(rule: str) -> None:
    accepted, rejected = RULES[rule]
    assert [changes for changes in accepted if problems(changes)] == []
    assert [changes for changes in rejected if not problems(changes)] == []


def test_every_rule_is_tested() -> None:
    assert [f"- {rule}" for rule in RULES] == specification.text("component/validation.md").splitlines()


# --- what was future ---


TERM: Final = {"topology_key": "kubernetes.io/hostname", "label_selector": {"match_labels": {"a": "b"}}}
REQUIRED: Final = {"required_during_scheduling_ignored_during_execution": [TERM]}
GET_NODES: Final = {"cluster_rules": [{"api_groups": [""], "resources": ["nodes"], "verbs": ["get"]}]}
FUTURE: Final[dict[str, tuple[Changes, str]]] = {
    "Pod Anti-Affinity": ({"spec.affinity": {"pod_anti_affinity": REQUIRED}}, "podAntiAffinity: {"),
    "Priority Classes": ({"spec.priority_class_name": "critical"}, "priorityClassName: critical"),
    "Service Account": ({"spec.create_service_account": True, "spec.rbac": GET_NODES}, "kind: ClusterRoleBinding"),
    "ConfigMaps": ({"app.volume_mounts": [a_mount(config_map={"name": "settings"})]}, "configMap: {"),
    "Init Containers": ({"spec.init_containers": [a_sidecar()]}, "initContainers: ["),
}
"""A manifest that uses it, and what is rendered for it."""


@pytest.mark.parametrize("feature", FUTURE)
def test_future_enhancements_are_implemented(feature: str) -> None:
    changes, expected = FUTURE[feature]
    key, _, value = expected.partition(": ")
    found = [one for one in everything(rendered(changes)) if key in one]
    assert found
    assert value in "[{" or value in [one[key] for one in found]


def everything(tree: object) -> list[Json]:
    """Every mapping in it."""
    if isinstance(tree, dict):
        return [tree, *(one for value in tree.values() for one in everything(value))]
    return [one for item in tree for one in everything(item)] if isinstance(tree, list) else []


def test_terraform_is_a_backend_and_every_enhancement_is_tested() -> None:
    listed = re.findall(r"\*\*(.+)\*\*", specification.text("component/future.md"))
    assert listed == [*FUTURE, "Terraform Module"]
    assert (ROOT / "src" / "kubernetes_daemonset" / "deploy" / "terraform.py").is_file()
