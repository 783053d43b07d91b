"""Reading manifests: every dialect in the wild means the same, and every mistake is named with its place."""

import codecs
import json
import textwrap
from typing import Final

import pytest
import yaml

from kubekit.diagnostics import Diagnostic, Location
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest import reader as manifest
from kubernetes_daemonset.manifest import yamltree
from kubernetes_daemonset.validation import validate
from tests.support.manifests.builders import (
    DIGEST,
    GONE,
    SOURCE,
    Changes,
    a_manifest,
    a_mount,
    a_port,
    a_sidecar,
    a_stack_input,
    as_yaml,
    loaded,
    read,
    refusal,
)
from tests.support.manifests.texts import FLUENTD, NODE_EXPORTER


def message(changes: Changes | None = None) -> KubernetesDaemonSet:
    return loaded(changes).manifest


def indented(text: str) -> str:
    """The smallest manifest with these lines in its spec."""
    return as_yaml(a_manifest()) + textwrap.indent(textwrap.dedent(text), "  ")


# --- what manifests look like ---


@pytest.mark.parametrize("text", [FLUENTD, NODE_EXPORTER], ids=["fluentd", "node-exporter"])
def test_the_originals_examples_are_valid(text: str) -> None:
    assert validate.validate(read(text)) == []


def test_the_originals_example_is_read_completely() -> None:
    spec = read(NODE_EXPORTER).manifest.spec
    app = spec.container.app
    assert (spec.namespace.value, app.image.repo, app.image.tag) == ("monitoring", "prom/node-exporter", "v1.7.0")
    assert list(app.args) == ["--path.procfs=/host/proc", "--path.sysfs=/host/sys"]
    (mount,) = app.volume_mounts
    assert (mount.name, mount.mount_path, mount.host_path.path, mount.read_only) == (
        "proc",
        "/host/proc",
        "/proc",
        True,
    )
    (port,) = app.ports
    assert (port.name, port.container_port, port.network_protocol) == ("metrics", 9100, "TCP")
    assert [one.operator for one in spec.tolerations] == ["Exists"]


OF_ALL_DATES: Final = {
    "2025-12-20": """
        namespace: {value: logging}
        container:
          app:
            image: {repo: agent, tag: "1"}
            env:
              variables: {LEVEL: info}
              secrets: {PASSWORD: geheim}
            volume_mounts:
            - {name: log, mount_path: /var/log, host_path: /var/log, host_path_type: Directory, read_only: true}
    """,
    "2025-12-21": """
        namespace: {value: logging}
        container:
          app:
            image: {repo: agent, tag: "1"}
            env:
              variables: {LEVEL: info}
              secrets: {PASSWORD: geheim}
            volume_mounts:
            - {name: log, mount_path: /var/log, host_path: {path: /var/log, type: Directory}, read_only: true}
    """,
    "2026-01-10": """
        namespace: {value: logging}
        container:
          app:
            image: {repo: agent, tag: "1"}
            env:
              variables: {LEVEL: {value: info}}
              secrets: {PASSWORD: {value: geheim}}
            volumeMounts:
            - {name: log, mountPath: /var/log, hostPath: {path: /var/log, type: Directory}, readOnly: true}
    """,
    "2026-06": """
        namespace: logging
        container:
          app:
            image: {repo: agent, tag: "1"}
            env:
              variables: [{name: LEVEL, value: info}]
              secrets: [{name: PASSWORD, value: geheim}]
            volume_mounts:
            - {name: log, mount_path: /var/log, host_path: {path: /var/log, type: Directory}, read_only: true}
    """,
}


@pytest.mark.parametrize("date", OF_ALL_DATES)
def test_manifests_of_all_four_dialects_are_equivalent(date: str) -> None:
    def of(one: str) -> KubernetesDaemonSet:
        head = (
            "apiVersion: kubernetes.project-planton.org/v1\nkind: KubernetesDaemonSet\nmetadata: {name: agent}\nspec:\n"
        )
        return read(head + textwrap.indent(textwrap.dedent(OF_ALL_DATES[one]), "  ")).manifest

    assert of(date) == of("2025-12-21")
    app = of(date).spec.container.app
    assert app.env.variables["LEVEL"].value == "info"
    assert app.env.secrets["PASSWORD"].value == "geheim"
    (mount,) = app.volume_mounts
    assert (mount.host_path.path, mount.host_path.type, mount.read_only) == ("/var/log", "Directory", True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"apiVersion": "kubernetes.planton.dev/v1"}, {}),
        ({"apiVersion": GONE, "api_version": "kubernetes.project-planton.org/v1"}, {}),
        ({"spec.namespace": "logging"}, {"spec.namespace": {"value": "logging"}}),
        ({"spec.minReadySeconds": 5, "spec.hostPid": True}, {"spec.min_ready_seconds": 5, "spec.host_pid": True}),
        ({"app.image": "registry.example.com/agent:1.4.2"}, {}),
        ({"app.image": {"repository": "registry.example.com/agent", "tag": "1.4.2"}}, {}),
        (
            {"app.image": f"registry.example.com:5000/agent:1@{DIGEST}"},
            {"app.image": {"repo": "registry.example.com:5000/agent", "tag": "1", "digest": DIGEST}},
        ),
        ({"app.image": "localhost:5000/agent"}, {"app.image": {"repo": "localhost:5000/agent"}}),
        (
            {"spec.container.sidecars": [a_sidecar(image={"repo": "a/b", "tag": 1})]},
            {"spec.container.sidecars": [a_sidecar(image="a/b:1")]},
        ),
        (
            {"spec.container.sidecars": [a_sidecar(image={"repo": "a", "tag": "1", "digest": DIGEST})]},
            {"spec.container.sidecars": [a_sidecar(image=f"a:1@{DIGEST}")]},
        ),
        (
            {"spec.container.sidecars": [a_sidecar(image={"repo": "a/b", "tag": None})]},
            {"spec.container.sidecars": [a_sidecar(image="a/b")]},
        ),
        ({"app.env.variables": {"A": "b"}}, {"app.env.variables": {"A": {"string_value": "b"}}}),
        ({"app.env.variables": {"A": "b"}}, {"app.env.variables": {"A": {"stringValue": "b"}}}),
        ({"app.env.variables": {"A": "b"}}, {"app.env.variables": [{"name": "A", "value": "b"}]}),
        ({"app.env.variables": {"A": ""}}, {"app.env.variables": [{"name": "A", "value": ""}]}),
        ({"app.env.secrets": {"A": "b"}}, {"app.env.secrets": [{"name": "A", "stringValue": "b"}]}),
        (
            {"app.env.secrets": {"A": {"secret_ref": {"name": "b", "key": "c"}}}},
            {"app.env.secrets": [{"name": "A", "secretRef": {"name": "b", "key": "c"}}]},
        ),
        (
            {"app.env.secrets": {"A": {"secret_ref": {"name": "b", "key": "c"}}}},
            {"app.env.secrets": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "b", "key": "c"}}}]},
        ),
        (
            {"app.env.variables": {"A": {"secret_ref": {"name": "b", "key": "c", "optional": True}}}},
            {"app.env.variables": {"A": {"valueFrom": {"secretKeyRef": {"name": "b", "key": "c", "optional": True}}}}},
        ),
        (
            {"app.env.variables": {"A": {"config_map_key_ref": {"name": "b", "key": "c"}}}},
            {"app.env.variables": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "b", "key": "c"}}}]},
        ),
        (
            {"app.env.variables": {"A": {"field_ref": {"field_path": "spec.nodeName"}}}},
            {"app.env.variables": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]},
        ),
        (
            {"app.env.variables": {"A": {"field_ref": {"field_path": "spec.nodeName"}}}},
            {"app.env.variables": {"A": {"value_from": {"field_ref": {"field_path": "spec.nodeName"}}}}},
        ),
        (
            {"app.env.variables": {"A": {"resource_field_ref": {"resource": "limits.cpu"}}}},
            {"app.env.variables": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]},
        ),
        (
            {"spec.init_containers": [a_sidecar(env=[{"name": "A", "field_ref": {"field_path": "spec.nodeName"}}])]},
            {
                "spec.initContainers": [
                    a_sidecar(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}])
                ]
            },
        ),
        (
            {"app.volume_mounts": [a_mount(host_path={"path": "/log", "type": "Socket"})]},
            {"app.volumeMounts": [a_mount(hostPath="/log", hostPathType="Socket", empty_dir=None)]},
        ),
        (
            {"app.volume_mounts": [a_mount(host_path={"path": "/log", "type": "Socket"})]},
            {"app.volume_mounts": [a_mount(host_path={"path": "/log"}, host_path_type="Socket")]},
        ),
        ({"app.volume_mounts": [a_mount(config_map={"name": "a"})]}, {"app.volume_mounts": [a_mount(config_map="a")]}),
        (
            {"app.volume_mounts": [a_mount(secret={"name": "a"})]},
            {"app.volume_mounts": [a_mount(secret="a")]},  # noqa: S106  a name
        ),
        (
            {"app.volume_mounts": [a_mount(secret={"name": "a", "default_mode": 256})]},
            {"app.volume_mounts": [a_mount(secret={"secretName": "a", "defaultMode": 256})]},
        ),
        (
            {"app.liveness_probe": {"http_get": {"port_number": 8080}}},
            {"app.livenessProbe": {"httpGet": {"port": 8080}}},
        ),
        (
            {"app.liveness_probe": {"http_get": {"port_name": "web"}}},
            {"app.liveness_probe": {"httpGet": {"port": "web"}}},
        ),
        (
            {"app.liveness_probe": {"tcp_socket": {"port_number": 80}}},
            {"app.liveness_probe": {"tcpSocket": {"port": 80}}},
        ),
        (
            {"app.lifecycle.pre_stop.http_get.port_number": 80},
            {"app.lifecycle.preStop.httpGet.port": 80},
        ),
        (
            {"app.resources.limits": {"cpu": "2", "ephemeral_storage": "1Gi", "other": {"nvidia.com/gpu": "1"}}},
            {"app.resources.limits": {"cpu": 2, "ephemeral-storage": "1Gi", "nvidia.com/gpu": 1}},
        ),
        (
            {"app.resources.limits": {"other": {"hugepages-2Mi": "4Mi"}}},
            {"app.resources.limits": {"hugepages-2Mi": "4Mi"}},
        ),
        (
            {"spec.update_strategy.rolling_update.max_unavailable": 1},
            {"spec.updateStrategy.rollingUpdate.maxUnavailable": "1"},
        ),
        ({"spec.target_cluster.cluster_kind": "AwsEksCluster"}, {"spec.target_cluster.cluster_kind": 207}),
        ({"spec.create_namespace": True}, {"spec.create_namespace": "Yes"}),
        ({"spec.create_namespace": False}, {"spec.create_namespace": "off"}),
        ({"spec.min_ready_seconds": 10}, {"spec.min_ready_seconds": "10"}),
        ({"spec.affinity": None, "spec.tolerations": None}, {}),
    ],
)
def test_alternative_spellings_are_equivalent(one: Changes, other: Changes) -> None:
    assert message(one) == message(other)
    assert message(one) != message({"metadata.name": "other"})


def test_camel_case_and_snake_case_are_equivalent() -> None:
    snake = indented("""
        min_ready_seconds: 5
        update_strategy: {rolling_update: {max_surge: 1}}
        termination_grace_period_seconds: 0
        node_selector: {disk_type: ssd}
        create_service_account: true
    """)
    camel = indented("""
        minReadySeconds: 5
        updateStrategy: {rollingUpdate: {maxSurge: 1}}
        terminationGracePeriodSeconds: 0
        nodeSelector: {disk_type: ssd}
        createServiceAccount: true
    """)
    assert read(snake).manifest == read(camel).manifest


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("9200", "9200"),
        ("true", "true"),
        ("yes", "yes"),
        ("1.20", "1.20"),
        ("0x1F", "0x1F"),
        ("1e3", "1e3"),
        ("2025-12-20", "2025-12-20"),
        ("0644", "0644"),
        ("12:30", "12:30"),
        ("'null'", "null"),
        ("''", ""),
        ('"é🙂\\t"', "é🙂\t"),
        (f"|-\n{' ' * 14}two\n{' ' * 14}lines", "two\nlines"),
    ],
)
def test_a_text_keeps_the_form_in_which_it_was_written(written: str, value: str) -> None:
    text = indented(f"config_maps:\n  agent.conf: {written}\n")
    assert dict(read(text).manifest.spec.config_maps) == {"agent.conf": value}
    variable = as_yaml(a_manifest({"app.env": {}})).replace(
        "env: {}", f"env:\n        variables:\n          A: {written}"
    )
    assert read(variable).manifest.spec.container.app.env.variables["A"].value == value


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ("420", 420),
        ("0644", 420),
        ("0o644", 420),
        ("0x1a4", 420),
        ("+420", 420),
        ("4_20", 420),
        ("'0400'", 256),
        ("0", 0),
    ],
)
def test_a_mode_can_be_octal(written: str, mode: int) -> None:
    mounts = f"volume_mounts: [{{name: a, mount_path: /a, config_map: {{name: a, default_mode: {written}}}}}]"
    source = read(as_yaml(a_manifest()) + f"      {mounts}\n").manifest.spec.container.app.volume_mounts[0].config_map
    assert source.HasField("default_mode")
    assert source.default_mode == mode


def test_explicit_zero_and_false_differ_from_unset() -> None:
    context = {"privileged": False, "run_as_user": 0, "run_as_group": 0, "run_as_non_root": False}
    written = message({"app.security_context": context}).spec.container.app.security_context
    assert all(written.HasField(name) for name in context)
    assert not message({"app.security_context": {}}).spec.container.app.security_context.HasField("run_as_user")


# --- YAML ---


def test_anchors_and_merge_keys_are_resolved_and_a_mappings_own_fields_win() -> None:
    text = indented("""
        tolerations:
        - &all {key: a, operator: Exists, effect: NoSchedule}
        - *all
        - {<<: *all, key: b}
        - <<: [{effect: NoExecute}, *all]
          key: c
        - <<: {<<: *all, key: d}
    """)
    found = [(one.key, one.operator, one.effect) for one in read(text).manifest.spec.tolerations]
    assert found == [
        ("a", "Exists", "NoSchedule"),
        ("a", "Exists", "NoSchedule"),
        ("b", "Exists", "NoSchedule"),
        ("c", "Exists", "NoExecute"),
        ("d", "Exists", "NoSchedule"),
    ]


def test_a_file_can_contain_several_manifests_and_empty_documents() -> None:
    text = as_yaml(a_manifest(), a_manifest({"metadata.name": "other"}))
    found = manifest.load(f"---\n---\n# nothing\n---\n{text}---\n".encode(), SOURCE)
    assert [one.manifest.metadata.name for one in found] == ["agent", "other"]


def test_errors_of_all_documents_are_reported_together() -> None:
    text = as_yaml(a_manifest({"spec.replicas": 3}), a_manifest(), a_manifest({"spec.image": "a"}))
    diagnostics = [diagnostic for one in manifest.load(text.encode(), SOURCE) for diagnostic in one.diagnostics]
    assert [one.path for one in diagnostics] == ["spec", "spec"]
    first, second = (one.location.line for one in diagnostics)
    assert "replicas" in text.splitlines()[first - 1]
    assert "image" in text.splitlines()[second - 1]


def test_json_is_yaml() -> None:
    assert read(json.dumps(a_manifest())).manifest == message()


def test_a_stack_input_has_credentials_besides_the_manifest() -> None:
    tree = a_stack_input(
        {"metadata.name": "other"},
        provider_config={"provider": "digital_ocean_doks", "digitalOceanDoks": {"kubeConfig": "e30="}},
        docker_config_json='{"auths": {}}',
    )
    one = read(as_yaml(tree))
    assert one.manifest.metadata.name == "other"
    assert one.input.docker_config_json == '{"auths": {}}'
    assert one.input.provider_config.digital_ocean_doks.kube_config == "e30="


def test_one_file_can_contain_a_stack_input_and_a_manifest() -> None:
    first, second = manifest.load(as_yaml(a_stack_input(docker_config_json="{}"), a_manifest()).encode(), SOURCE)
    assert first.manifest == second.manifest
    assert (first.input.docker_config_json, second.input.docker_config_json) == ("{}", "")


@pytest.mark.parametrize(
    "content",
    [
        codecs.BOM_UTF8 + FLUENTD.encode(),
        codecs.BOM_UTF16_LE + FLUENTD.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + FLUENTD.encode("utf-16-be"),
        FLUENTD.replace("\n", "\r\n").encode(),
    ],
    ids=["UTF-8 with a mark", "UTF-16, low byte first", "UTF-16, high byte first", "lines of Windows"],
)
def test_byte_order_marks_and_crlf_are_accepted(content: bytes) -> None:
    assert read(content).manifest == read(FLUENTD).manifest


def test_a_fields_location_is_its_key_or_its_parent() -> None:
    one = read(FLUENTD)
    assert one.location("spec.container.app.image.tag") == Location(SOURCE, 13, 9)
    assert one.location("spec.tolerations[0].effect") == Location(SOURCE, 22, 7)
    assert one.location("spec.tolerations[0].value") == Location(SOURCE, 20, 7)
    assert one.location('metadata.labels["a.b/c"]') == Location(SOURCE, 3, 1)
    assert one.location("status") == Location(SOURCE, 1, 1)
    assert one.location("") == Location(SOURCE, 1, 1)


# --- mistakes ---

SPEC_FIELDS: Final = (
    "target_cluster, namespace, create_namespace, container, node_selector, tolerations, update_strategy, "
    "min_ready_seconds, create_service_account, service_account_name, config_maps, rbac, …"
)


@pytest.mark.parametrize(
    ("text", "diagnostic"),
    [
        ("tolerationz: []", '13:3: spec: unknown field "tolerationz"; did you mean tolerations?'),
        ("minReadySecond: 1", '13:3: spec: unknown field "minReadySecond"; did you mean minReadySeconds?'),
        (
            "update_strategy: {rolling: {}}",
            '13:21: spec.update_strategy: unknown field "rolling"; did you mean rollingUpdate?',
        ),
        ("zzz: 1", f'13:3: spec: unknown field "zzz"; expected {SPEC_FIELDS}'),
        ("? [a]\n: b", "13:5: spec: unknown field a list; expected"),
        ("? {a: b}\n: c", "13:5: spec: unknown field a mapping; expected"),
        (
            "tolerations:\n- key: a\n  operater: Exists",
            '15:5: spec.tolerations[0]: unknown field "operater"; did you mean operator?',
        ),
        ("min_ready_seconds: 1\nmin_ready_seconds: 2", "14:3: spec.min_ready_seconds: is defined twice; remove one"),
        (
            "min_ready_seconds: 1\nminReadySeconds: 2",
            "14:3: spec.min_ready_seconds: is defined twice (also as min_ready_seconds); remove one",
        ),
        (
            "node_selector:\n  a: b\n  a: c",
            "15:5: spec.node_selector.a: is defined twice; remove one",
        ),
        ("min_ready_seconds: soon", 'expected a whole number from 0 to 2147483647, found "soon"'),
        ("tolerations: [{toleration_seconds: soon}]", 'expected a whole number, found "soon"'),
        ("min_ready_seconds: 2147483648", 'to 2147483647, found "2147483648"'),
        ("min_ready_seconds: -2147483649", 'found "-2147483649"'),
        ("min_ready_seconds: 1.5", "spec.min_ready_seconds: expected a whole number"),
        ("min_ready_seconds: 1e3", 'found "1e3"'),
        ("min_ready_seconds: 08", 'found "08"'),
        ("min_ready_seconds: '--5'", 'found "--5"'),
        ("min_ready_seconds: ' '", 'found " "'),
        ("min_ready_seconds: ''", 'found ""'),
        ("min_ready_seconds: true", 'found "true"'),
        ("min_ready_seconds: []", "found a list"),
        ("min_ready_seconds: {}", "found a mapping"),
        (f"min_ready_seconds: {'9' * 5000}", f'found "{"9" * 59}…"'),
        ("termination_grace_period_seconds: 9223372036854775808", "to 9223372036854775807, found"),
        ("create_namespace: maybe", 'spec.create_namespace: expected true or false, found "maybe"'),
        ("create_namespace: 1", 'expected true or false, found "1"'),
        ("create_namespace: [true]", "expected true or false, found a list"),
        ("service_account_name: [a]", "spec.service_account_name: expected a text, found a list"),
        ("service_account_name: {a: b}", "expected a text, found a mapping"),
        ("tolerations: a", '13:16: spec.tolerations: expected a list, found "a"'),
        ("tolerations: {key: a}", "spec.tolerations: expected a list, found a mapping"),
        ("tolerations: [a]", "spec.tolerations[0]: expected a mapping with key, operator, value, effect, tolera"),
        ("tolerations: [[]]", "spec.tolerations[0]: expected a mapping with key"),
        ("node_selector: [a]", "spec.node_selector: expected a mapping of names to values, found a list"),
        ("node_selector: {? [a] : b}", "spec.node_selector: expected a name, found a list"),
        ("node_selector: {~: a}", "13:19: spec.node_selector: expected a name, found nothing"),
        ("node_selector: {a: [b]}", "spec.node_selector.a: expected a text, found a list"),
        *(
            (
                f"{field}: {{a: {nothing}}}",
                f"spec.{field}.a: found nothing; set a value, or '' for an empty text",
            )
            for field in ("node_selector", "config_maps", "pod_labels", "pod_annotations")
            for nothing in ("", "null", "~")
        ),
        (
            "image_pull_secrets: [a, null]",
            "13:27: spec.image_pull_secrets[1]: expected a text, found nothing; set a value or remove it",
        ),
        ("image_pull_secrets: [~]", "spec.image_pull_secrets[0]: expected a text, found nothing"),
        ("image_pull_secrets:\n- a\n-\n- b", "15:4: spec.image_pull_secrets[1]: expected a text, found nothing"),
        ("pod_security_context: {supplemental_groups: [null]}", "expected a whole number from 0 to 2147483647"),
        ("image_pull_secrets: [[a]]", "spec.image_pull_secrets[0]: expected a text, found a list"),
        (
            "affinity: a",
            'spec.affinity: expected a mapping with node_affinity, pod_affinity, pod_anti_affinity, found "a"',
        ),
        (
            "target_cluster: {cluster_kind: AwsEksClusters}",
            'cluster_kind: expected a CloudResourceKind, found "AwsEksClusters"; did you mean AwsEksCluster?',
        ),
        ("target_cluster: {cluster_kind: 9999}", 'expected a CloudResourceKind, found "9999"'),
        ("config_maps: {a: !!binary aGVsbG8=, b: [c]}", "spec.config_maps.b: expected a text, found a list"),
    ],
)
def test_an_error_names_the_location_the_field_and_the_expected_value(text: str, diagnostic: str) -> None:
    (error,) = refusal(indented(text))
    assert error.startswith(f"{SOURCE}:1")
    assert diagnostic in error


@pytest.mark.parametrize(
    ("changes", "diagnostic"),
    [
        (
            {"app.liveness_probe": {"exec": {"command": ["a"]}, "http_get": {"port": 80}}},
            "spec.container.app.liveness_probe.http_get: cannot be combined with exec; remove one of them",
        ),
        (
            {"app.liveness_probe.http_get": {"port": 80, "port_name": "web"}},
            "http_get.port_name: cannot be combined with port_number; remove one of them",
        ),
        (
            {"app.env.variables": {"A": {"value": "b", "secret_ref": {"name": "c", "key": "d"}}}},
            "spec.container.app.env.variables.A.secret_ref: cannot be combined with value; remove one of them",
        ),
        (
            {"spec.namespace": {"value": "a", "value_from": {"name": "b"}}},
            "spec.namespace.value_from: cannot be combined with value; remove one of them",
        ),
        (
            {"app.lifecycle.pre_stop": {"sleep_seconds": 5, "exec": {"command": ["a"]}}},
            "pre_stop.exec: cannot be combined with sleep_seconds",
        ),
        (
            {"app.image": {"repo": "a", "repository": "b", "tag": "c"}},
            "spec.container.app.image.repo: is defined twice",
        ),
        (
            {"app.env.variables": [{"name": "A", "value": "b"}, {"name": "A", "value": "c"}]},
            "spec.container.app.env.variables.A: is defined twice; remove one",
        ),
        (
            {"app.env.variables": [{"value": "b"}]},
            "spec.container.app.env.variables: expected a mapping of names to values, found a list",
        ),
        (
            {"app.env.variables": [{"name": None, "value": "b"}]},
            "spec.container.app.env.variables: expected a name, found nothing",
        ),
        (
            {"app.env": [{"name": "A", "value": "b"}]},
            "spec.container.app.env: expected a mapping with variables, secrets, env_from, found a list",
        ),
        (
            {"app.volume_mounts": [a_mount(host_path=["/a"])]},
            "volume_mounts[0].host_path: expected a mapping with path, type, found a list",
        ),
        (
            {"app.volume_mounts": [a_mount(host_path_type="File")]},
            'volume_mounts[0]: unknown field "host_path_type"; did you mean host_path?',
        ),
        (
            {"app.ports": [a_port(container_port=80.5)]},
            'app.ports[0].container_port: expected a whole number from 1 to 65535, found "80.5"',
        ),
        ({"app.env.variables": {"A": None}}, "env.variables.A: found nothing; set a value, or '' for an empty"),
        ({"app.env.secrets": {"A": None}}, "env.secrets.A: found nothing; set a value, or '' for an empty"),
        ({"metadata.labels": {"a": None}}, "metadata.labels.a: found nothing"),
        ({"metadata.annotations": {"a": None}}, "metadata.annotations.a: found nothing"),
        ({"app.image": ["a"]}, "spec.container.app.image: expected a mapping with repo, tag, pull_secret_name, digest"),
        (
            {"spec.container.sidecars": [a_sidecar(image={"tag": "1"})]},
            "spec.container.sidecars[0].image: expected a text, found a mapping",
        ),
        ({"spec.restart_policy": "Never"}, 'spec: unknown field "restart_policy"'),
        ({"app.args": ["a", None]}, "spec.container.app.args[1]: expected a text, found nothing"),
        ({"app.command": [None]}, "spec.container.app.command[0]: expected a text, found nothing"),
        (
            {"app.liveness_probe.exec.command": ["a", None]},
            "liveness_probe.exec.command[1]: expected a text, found nothing",
        ),
        ({"status.phase": "Ready"}, 'status: unknown field "phase"; expected outputs'),
    ],
)
def test_contradictory_fields_are_rejected(changes: Changes, diagnostic: str) -> None:
    (error,) = refusal(as_yaml(a_manifest(changes)))
    assert diagnostic in error


def test_all_errors_are_reported_together() -> None:
    text = indented("""
        replicas: 3
        min_ready_seconds: soon
        create_namespace: maybe
        tolerations: [{key: a, effekt: NoSchedule}, a]
        node_selector: {a: [b]}
    """)
    with pytest.raises(ManifestError) as refused:
        read(text)
    paths = [one.path for one in refused.value.diagnostics]
    assert paths == [
        "spec",
        "spec.min_ready_seconds",
        "spec.create_namespace",
        "spec.tolerations[0]",
        "spec.tolerations[1]",
        "spec.node_selector.a",
    ]
    assert len(str(refused.value).splitlines()) == len(paths)


def test_an_error_in_a_stack_input_has_its_path_there() -> None:
    (error,) = refusal(as_yaml(a_stack_input({"spec.replicas": 3}, docker_config_json="{}")))
    assert 'target.spec: unknown field "replicas"' in error
    (error,) = refusal(as_yaml(a_stack_input(docker_config="{}")))
    assert 'unknown field "docker_config"; did you mean docker_config_json?' in error


@pytest.mark.parametrize(
    ("content", "diagnostic"),
    [
        ("", f"{SOURCE}: is empty; expected a manifest of kind KubernetesDaemonSet"),
        ("---\n---\n# a word\n", "is empty"),
        ("null", "is empty"),
        ("hello", f'{SOURCE}:1:1: expected a mapping with api_version, kind, metadata, spec, status, found "hello"'),
        ("- a\n", "found a list"),
        ("a: b: c", f"{SOURCE}:1:5: not YAML: mapping values are not allowed"),
        ("spec:\n\ta: b", f"{SOURCE}:2:1: not YAML: found a tab; indent with spaces"),
        ("spec: @a", f"{SOURCE}:1:7: not YAML: while scanning for the next token, found character that cannot"),
        ("spec: [", "not YAML: while parsing a flow node"),
        ("spec: *unknown", f"{SOURCE}:1:7: not YAML: found undefined alias"),
        ('a: "\\ud800"', "not YAML: while parsing a quoted scalar, found invalid Unicode character escape code"),
        ('a: "\\U00110000"', "found invalid Unicode character escape code"),
        (b"metadata: {name: \xe9t\xe9}", f"{SOURCE}: not valid UTF-8: invalid trailing UTF-8 octet at byte 18"),
        (b"a: \xff", "not valid UTF-8"),
        (b"a: \x00", "not valid UTF-8: control characters are not allowed at byte"),
        ("a: b".encode("utf-32"), "not valid UTF-8"),
        (codecs.BOM_UTF16_LE + b"a", "not valid UTF-8"),
        (b"%YAML 9.9\n---\na: b", "not YAML: found incompatible YAML document"),
        ("[" * 65 + "]" * 65, f"{SOURCE}:1:65: nested more than 64 levels deep"),
        ("- " * 100_000, "nested more than 64 levels deep"),
        ("[" * 1_000_000, "nested more than 64 levels deep"),
        ("{a: " * 100_000, "nested more than 64 levels deep"),
        ("a" * (yamltree.MAX_BYTES + 1), "4,194,305 bytes are too large for a manifest; expected at most 4,194,304"),
        ("&a [*a]", "expected a mapping with api_version"),
    ],
)
def test_input_that_is_not_a_manifest_has_one_error(content: str | bytes, diagnostic: str) -> None:
    (error,) = refusal(content)
    assert diagnostic in error
    assert error.isprintable()


def test_the_deepest_valid_manifest_is_accepted() -> None:
    assert refusal("[" * 64 + "]" * 64) != []
    assert "levels deep" not in refusal("[" * 64 + "]" * 64)[0]


def test_a_lone_surrogate_is_rejected() -> None:
    """PyYAML's own reader, where there is no libyaml, lets it pass."""
    reader = manifest.Reader(SOURCE)
    target = KubernetesDaemonSet()
    for node in (yaml.compose('metadata: {name: "\\ud800"}'), yaml.compose('metadata: {labels: {"\\udfff": a}}')):
        assert node
        reader.fill(target, node, "")
    assert [str(one).isprintable() for one in reader.diagnostics] == [True, True]
    assert [one.path for one in reader.diagnostics] == ["metadata.name", "metadata.labels"]


def test_a_mapping_that_contains_itself_is_handled() -> None:
    assert refusal("&a\nspec: *a\n<<: *a\n") == [
        f'{SOURCE}:2:1: spec: unknown field "spec"; expected {SPEC_FIELDS}',
    ]


def test_aliases_that_expand_to_billions_of_values_are_rejected_immediately() -> None:
    bomb = "\n".join(
        [
            "x0: &x0 {a: b}",
            *(f"x{at}: &x{at} [{', '.join([f'*x{at - 1}'] * 10)}]" for at in range(1, 10)),
            "spec: {tolerations: *x5}",
        ]
    )
    assert "x0" in refusal(bomb)[0]
    many = "\n".join(
        [
            f"metadata: {{labels: &labels {{{', '.join(f'a{at}: b' for at in range(1000))}}}}}",
            "spec: {affinity: {pod_affinity: {required_during_scheduling_ignored_during_execution: &terms [",
            ", ".join(["&term {label_selector: {match_labels: *labels}}"] + ["*term"] * 999),
            "]}}}",
        ]
    )
    (error,) = refusal(many)
    assert "more than 100,000 values; check for nested aliases" in error


def test_merges_that_expand_to_billions_of_values_are_bounded() -> None:
    text = indented(
        "pod_labels: &m0 {a: b}\n"
        + "".join(
            f"{name}: &m{at} {{<<: [{', '.join([f'*m{at - 1}'] * 20)}]}}\n"
            for at, name in enumerate(["pod_annotations", "service_account_annotations", "config_maps"], start=1)
        )
        + "node_selector: &self {<<: [*m3, *m3, *self, *self]}\n"
    )
    assert dict(read(text).manifest.spec.node_selector) == {"a": "b"}


@pytest.mark.parametrize(
    ("too_much", "why"),
    [
        (
            {"spec.tolerations": [{f"a{at}": 1 for at in range(1_000)}]},
            "1,000 errors; the rest of the file was not read",
        ),
        ({"spec.image_pull_secrets": ["a"] * 100_000}, "more than 100,000 values; check for nested aliases"),
    ],
    ids=["mistakes", "values"],
)
def test_errors_of_earlier_documents_are_reported_if_a_later_one_is_too_large(too_much: Changes, why: str) -> None:
    wrong = a_manifest({"spec.replicas": 3, "app.image.tag": ""})
    found = manifest.load(as_yaml(wrong, a_manifest(too_much), wrong).encode(), SOURCE)
    first, second = (validate.validate(one) for one in found)
    assert [one.path for one in first] == ["spec.container.app.image", "spec"]
    assert second[-1].message == why


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("[" * 65 + "]" * 65, "nested more than 64 levels deep"),
        ("a: b: c", "not YAML: mapping values are not allowed in this context"),
        ("a: *unknown", "not YAML: found undefined alias"),
    ],
)
def test_errors_of_earlier_documents_are_reported_if_a_later_one_is_not_yaml(broken: str, why: str) -> None:
    wrong = as_yaml(a_manifest({"spec.replicas": 3, "app.image.tag": ""}))
    found = manifest.load(f"{wrong}---\n{wrong}---\n{broken}\n---\n{wrong}".encode(), SOURCE)
    *earlier, last = (validate.validate(one) for one in found)
    assert [[one.path for one in diagnostics] for diagnostics in earlier] == [["spec.container.app.image", "spec"]] * 2
    assert [one.message for one in last] == [why]
    assert last[0].location.line == 2 * len(wrong.splitlines()) + 3


def test_reading_stops_after_a_thousand_errors() -> None:
    text = as_yaml(a_manifest({"spec.tolerations": [{f"a{at}": 1 for at in range(5_000)}] * 20}))
    error = refusal(text)
    assert len(error) == manifest.MAX_MISTAKES + 1
    assert error[-1].endswith("1,000 errors; the rest of the file was not read")


def test_a_long_value_is_shown_in_part() -> None:
    (error,) = refusal(indented(f"create_namespace: {'a' * 1000}"))
    assert error.endswith(f'found "{"a" * 59}…"')


def test_keys_with_many_dots_are_not_nesting() -> None:
    key = f"{'a.' * 120}a/b"
    assert dict(message({"metadata.annotations": {key: "c"}}).metadata.annotations) == {key: "c"}


def test_an_error_without_a_line_names_only_the_file() -> None:
    assert str(Diagnostic("", "is empty", Location(SOURCE))) == f"{SOURCE}: is empty"
    assert str(Diagnostic("spec", "is required", Location(SOURCE, 2, 3))) == f"{SOURCE}:2:3: spec: is required"


BIG = "x" * 1_000_000
APP = "{image: {repo: a/b, tag: c}, %s}"


@pytest.mark.parametrize(
    "app",
    [
        pytest.param(f"args: [&big {BIG}{', *big' * 90_000}]", id="in a list"),
        pytest.param(
            f"env: {{variables: {{A: &big {BIG}, {', '.join(f'A{at}: *big' for at in range(20_000))}}}}}", id="in a map"
        ),
    ],
)
def test_aliases_of_a_long_text_do_not_use_up_the_memory(app: str) -> None:
    """The file has 1.5 MB and stands for 20 or 90 GB."""
    text = f"kind: KubernetesDaemonSet\nspec: {{container: {{app: {APP % app}}}}}\n"
    (found,) = manifest.load(text.encode(), "bomb.yaml")
    assert "characters; check for nested aliases" in str(found.diagnostics[-1])


def test_aliases_of_a_long_name_do_not_use_up_the_memory() -> None:
    """The file has 1 MB, and its duplicate names stand for 1 GB."""
    names = "    *name : v\n" * 990
    text = f"kind: KubernetesDaemonSet\nmetadata:\n  id: &name {'x' * 1_000_000}\n  labels:\n{names}"
    (found,) = manifest.load(text.encode(), "bomb.yaml")
    assert sum(len(diagnostic.path) for diagnostic in found.diagnostics) < 100_000_000
    assert "characters; check for nested aliases" in str(found.diagnostics[-1])


def test_many_documents_do_not_have_as_many_limits() -> None:
    text = f"&big {'x' * 20_000}{', *big' * 1_500}"
    document = f"kind: KubernetesDaemonSet\nspec: {{container: {{app: {APP % f'args: [{text}]'}}}}}\n"
    found = manifest.load("---\n".join([document] * 40).encode(), "bombs.yaml")
    assert len(found) < 10  # of 30 MB each
    assert "characters; check for nested aliases" in str(found[-1].diagnostics[-1])


def test_a_name_with_many_dots_is_one_step_of_a_path() -> None:
    """A step for each dot, as long as what precedes it, would take minutes."""
    name = "a." * 300_000
    text = f"kind: KubernetesDaemonSet\nmetadata:\n  labels:\n    ? {name}x/\n    : v\n"
    (found,) = manifest.load(text.encode(), "dots.yaml")
    path = f'metadata.labels["{name}y/"]'
    assert [step for step in manifest.ancestors(path) if step != path] == ["metadata.labels", "metadata", ""]
    assert found.location(path).line == 3
