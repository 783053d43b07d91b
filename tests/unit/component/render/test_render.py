"""What becomes of a manifest: the objects, and nothing lost, invented or shared on the way to them."""

import base64
import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.deploy.plan import Ref
from kubernetes_daemonset.manifest.dump import to_yaml
from kubernetes_daemonset.render import annotations, resources
from kubernetes_daemonset.render.environment import sort_by_reference
from kubernetes_daemonset.validation import validate
from tests.support.manifests.builders import (
    DIGEST,
    NAMESPACE,
    Changes,
    Json,
    a_mount,
    a_sidecar,
    a_stack_input,
    app,
    as_yaml,
    daemon_set,
    objects_of,
    only,
    pod,
    read,
    rendered,
)
from tests.support.manifests.texts import WHOLE

RULE: Final = {"api_groups": [""], "resources": ["nodes"], "verbs": ["get"]}
ACCOUNT: Final = {"spec.create_service_account": True}


def kinds(objects: list[Json]) -> list[str]:
    return [one["kind"] for one in objects]


def of(given: Json) -> list[Json]:
    """The objects of a stack input."""
    return objects_of(read(as_yaml(given)))


def environment(changes: Changes) -> dict[str, Json]:
    """The agent's variables by name, without their names."""
    return {one["name"]: {key: one[key] for key in one if key != "name"} for one in app(changes)["env"]}


# --- which objects ---


def test_the_smallest_manifest_renders_only_a_daemonset() -> None:
    assert rendered() == [
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {
                "name": "agent",
                "namespace": NAMESPACE,
                "labels": {
                    "app.kubernetes.io/component": "node-agent",
                    "app.kubernetes.io/managed-by": "kubernetes-daemonset",
                    "app.kubernetes.io/name": "agent",
                    "app.kubernetes.io/version": "1.4.2",
                    "kubernetes-daemonset/namespace": NAMESPACE,
                    "planton.ai/kind": "KubernetesDaemonSet",
                    "planton.ai/name": "agent",
                    "planton.ai/resource": "true",
                },
            },
            "spec": {
                "selector": {
                    "matchLabels": {
                        "app.kubernetes.io/managed-by": "kubernetes-daemonset",
                        "app.kubernetes.io/name": "agent",
                    }
                },
                "updateStrategy": {"type": "RollingUpdate"},
                "template": {
                    "metadata": {"labels": {"app": "daemonset"} | daemon_set()["metadata"]["labels"]},
                    "spec": {
                        "containers": [
                            {
                                "name": "agent",
                                "image": "registry.example.com/agent:1.4.2",
                                "env": [
                                    {
                                        "name": "K8S_NODE_NAME",
                                        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}},
                                    },
                                    {
                                        "name": "K8S_POD_ID",
                                        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
                                    },
                                    {
                                        "name": "K8S_POD_IP",
                                        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}},
                                    },
                                ],
                                "resources": {
                                    "limits": {"cpu": "1", "memory": "1Gi"},
                                    "requests": {"cpu": "50m", "memory": "100Mi"},
                                },
                            }
                        ]
                    },
                },
            },
        }
    ]


def test_dependencies_are_rendered_first() -> None:
    changes = {
        **ACCOUNT,
        "spec.create_namespace": True,
        "spec.config_maps": {"b": "", "a": ""},
        "app.env.secrets": {"A": "b"},
        "spec.rbac": {"cluster_rules": [RULE], "namespace_rules": [RULE]},
    }
    objects = of(a_stack_input(changes, docker_config_json='{"auths": {}}'))
    assert kinds(objects) == [
        "Namespace",
        "ServiceAccount",
        "ConfigMap",
        "ConfigMap",
        "Secret",
        "Secret",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "DaemonSet",
    ]


def test_a_created_namespace_has_no_labels_of_a_component() -> None:
    namespace = only("Namespace", rendered({"spec.create_namespace": True, "metadata.labels": {"team": "nodes"}}))
    assert namespace["metadata"] == {
        "name": NAMESPACE,
        "labels": {"app.kubernetes.io/managed-by": "kubernetes-daemonset"},
    }


# --- labels, and how pods are found ---


def test_a_selector_matches_only_its_own_component() -> None:
    one, other = daemon_set(), daemon_set({"metadata.name": "other"})
    selector = one["spec"]["selector"]["matchLabels"]
    assert selector.items() <= one["spec"]["template"]["metadata"]["labels"].items()
    assert not selector.items() <= other["spec"]["template"]["metadata"]["labels"].items()
    assert "daemonset" not in selector.values()


def test_a_selector_never_changes() -> None:
    changes = {
        "app.image.tag": "2",
        "metadata.labels": {"team": "nodes"},
        "metadata.org": "acme",
        "spec.pod_labels": {"a": "b"},
    }
    assert daemon_set(changes)["spec"]["selector"] == daemon_set()["spec"]["selector"]


def test_labels_and_annotations_of_the_manifest_are_on_every_object() -> None:
    changes = {
        **ACCOUNT,
        "metadata": {
            "name": "agent",
            "labels": {"team": "nodes"},
            "annotations": {"example.com/a": "b"},
            "org": "acme",
        },
        "spec.config_maps": {"a": ""},
        "app.env.secrets": {"A": "b"},
        "spec.rbac": {"cluster_rules": [RULE], "namespace_rules": [RULE]},
    }
    for one in rendered(changes):
        assert one["metadata"]["labels"]["team"] == "nodes"
        assert one["metadata"]["labels"]["planton.ai/organization"] == "acme"
        assert one["metadata"]["annotations"]["example.com/a"] == "b"
    # A note about who deployed it must not roll every node.
    assert "annotations" not in pod({"metadata": changes["metadata"]})["metadata"]


def test_pod_labels_and_annotations_are_only_on_pods_and_take_precedence() -> None:
    changes = {
        "metadata": {"name": "agent", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec.pod_labels": {"a": "pod", "app.kubernetes.io/component": "logs"},
        "spec.pod_annotations": {"c": "pod", "e": "f"},
    }
    template, whole = pod(changes)["metadata"], daemon_set(changes)["metadata"]
    assert (template["labels"]["a"], template["labels"]["app.kubernetes.io/component"]) == ("pod", "logs")
    assert template["annotations"] == {"c": "pod", "e": "f"}
    assert (whole["labels"]["a"], whole["labels"]["app.kubernetes.io/component"]) == ("b", "node-agent")
    assert whole["annotations"] == {"c": "d"}


def test_invalid_label_values_are_omitted() -> None:
    labels = daemon_set({"app.image.tag": "1" * 64, "metadata.org": "Acme Inc."})["metadata"]["labels"]
    assert "app.kubernetes.io/version" not in labels
    assert "planton.ai/organization" not in labels


# --- the containers ---


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({"repo": "a/b", "tag": "1"}, "a/b:1"),
        ({"repo": "a/b", "digest": DIGEST}, f"a/b@{DIGEST}"),
        ({"repo": "a/b", "tag": "1", "digest": DIGEST}, f"a/b:1@{DIGEST}"),
    ],
)
def test_an_image_is_named_by_tag_digest_or_both(image: Json, expected: str) -> None:
    assert app({"app.image": image})["image"] == expected


def test_default_resources_apply_only_if_none_are_set() -> None:
    assert app({"app.resources": {"limits": {"memory": "1Gi"}}})["resources"] == {"limits": {"memory": "1Gi"}}
    assert "resources" not in app({"app.resources": {}})
    assert app()["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}


def test_explicit_zero_and_false_are_rendered() -> None:
    rights = {
        "privileged": False,
        "allow_privilege_escalation": False,
        "run_as_user": 0,
        "run_as_group": 0,
        "run_as_non_root": False,
        "read_only_root_filesystem": False,
    }
    assert app({"app.security_context": rights})["securityContext"] == {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "runAsUser": 0,
        "runAsGroup": 0,
        "runAsNonRoot": False,
        "readOnlyRootFilesystem": False,
    }
    spec = pod(
        {
            "spec.pod_security_context": {"run_as_user": 0, "run_as_group": 0, "fs_group": 0, "run_as_non_root": False},
            "spec.host_network": False,
            "spec.host_pid": False,
            "spec.host_ipc": False,
            "spec.share_process_namespace": False,
            "spec.automount_service_account_token": False,
            "spec.termination_grace_period_seconds": 0,
            "spec.tolerations": [
                {"key": "a", "operator": "Exists", "effect": "NoExecute", "toleration_seconds": 0},
            ],
        }
    )["spec"]
    assert spec["securityContext"] == {"runAsUser": 0, "runAsGroup": 0, "fsGroup": 0, "runAsNonRoot": False}
    for name in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "automountServiceAccountToken"):
        assert spec[name] is False
    assert spec["terminationGracePeriodSeconds"] == 0
    assert spec["tolerations"] == [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}]
    assert daemon_set({"spec.revision_history_limit": 0})["spec"]["revisionHistoryLimit"] == 0
    probe = {"initial_delay_seconds": 0, "exec": {"command": ["true"]}}
    assert app({"app.liveness_probe": probe})["livenessProbe"] == {
        "exec": {"command": ["true"]},
        "initialDelaySeconds": 0,
    }
    mount = a_mount(config_map={"name": "a", "default_mode": 0, "optional": False})
    assert pod({"app.volume_mounts": [mount]})["spec"]["volumes"] == [
        {"name": "data", "configMap": {"name": "a", "defaultMode": 0, "optional": False}}
    ]


def test_unset_fields_are_omitted() -> None:
    spec = pod()["spec"]
    assert spec.keys() == {"containers"}
    assert "securityContext" not in app()
    assert app({"app.security_context": {}})["securityContext"] == {}


def test_sidecars_run_beside_the_app() -> None:
    sidecar = a_sidecar(
        env=[{"name": "EMPTY"}, {"name": "NODE", "field_ref": {"field_path": "spec.nodeName"}}],
        ports=[{"container_port": 8080}],
        command=["/helper"],
        security_context={"run_as_user": 0},
        volume_mounts=[a_mount()],
        readiness_probe={"grpc": {"port": 8080}},
        pull_policy="Never",
    )
    first, second = pod({"spec.container.sidecars": [sidecar]})["spec"]["containers"]
    assert first["name"] == "agent"
    assert second == {
        "name": "helper",
        "image": "registry.example.com/helper:1",
        "imagePullPolicy": "Never",
        "env": [
            {"name": "EMPTY", "value": ""},
            {"name": "NODE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
        ],
        "resources": {"limits": {"memory": "64Mi"}},
        "command": ["/helper"],
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "readinessProbe": {"grpc": {"port": 8080}},
        "securityContext": {"runAsUser": 0},
    }


def test_init_containers_run_before_in_the_order_in_which_they_are_written() -> None:
    before = [a_sidecar(name="b"), a_sidecar(name="a", restart_policy="Always")]
    spec = pod({"spec.init_containers": before})["spec"]
    assert [one["name"] for one in spec["initContainers"]] == ["b", "a"]
    assert [one.get("restartPolicy") for one in spec["initContainers"]] == [None, "Always"]
    assert [one["name"] for one in spec["containers"]] == ["agent"]


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        ({"exec": {"command": ["a", "b"]}}, {"exec": {"command": ["a", "b"]}}),
        ({"grpc": {"port": 1}}, {"grpc": {"port": 1}}),
        ({"grpc": {"port": 1, "service": "a"}}, {"grpc": {"port": 1, "service": "a"}}),
        ({"tcp_socket": {"port_number": 1, "host": "a"}}, {"tcpSocket": {"port": 1, "host": "a"}}),
        ({"http_get": {"port_name": "a"}}, {"httpGet": {"port": "a"}}),
        (
            {
                "http_get": {
                    "port_number": 1,
                    "path": "/a",
                    "host": "b",
                    "scheme": "HTTPS",
                    "http_headers": [{"name": "A", "value": "b"}, {"name": "C"}],
                }
            },
            {
                "httpGet": {
                    "port": 1,
                    "path": "/a",
                    "host": "b",
                    "scheme": "HTTPS",
                    "httpHeaders": [{"name": "A", "value": "b"}, {"name": "C", "value": ""}],
                }
            },
        ),
    ],
)
@pytest.mark.parametrize("which", ["liveness", "readiness", "startup"])
def test_every_probe_can_be_of_every_kind(which: str, probe: Json, expected: Json) -> None:
    container = app({f"app.{which}_probe": {**probe, "period_seconds": 7}})
    assert container[f"{which}Probe"] == {**expected, "periodSeconds": 7}


def test_hooks_are_sent() -> None:
    hooks = {"post_start": {"sleep_seconds": 1}, "pre_stop": {"http_get": {"port_number": 80}}}
    assert app({"app.lifecycle": hooks})["lifecycle"] == {
        "postStart": {"sleep": {"seconds": 1}},
        "preStop": {"httpGet": {"port": 80}},
    }


# --- variables ---


def test_hostname_is_not_set_and_location_variables_are() -> None:
    variables = environment({})
    assert "HOSTNAME" not in variables
    assert variables.keys() == {"K8S_NODE_NAME", "K8S_POD_ID", "K8S_POD_IP"}


def test_an_empty_variable_is_sent() -> None:
    assert (
        environment({"app.env.variables": {"A": "", "B": {"value": ""}, "C": {}}}).items()
        >= {
            "A": {"value": ""},
            "B": {"value": ""},
            "C": {"value": ""},
        }.items()
    )


def test_variables_have_the_sources_of_the_manifest() -> None:
    sources = {
        "A": {"config_map_key_ref": {"name": "a", "key": "b", "optional": False}},
        "B": {"field_ref": {"field_path": "metadata.labels['a']"}},
        "C": {"resource_field_ref": {"resource": "limits.cpu", "divisor": "1m"}},
        "D": {"secret_ref": {"namespace": NAMESPACE, "name": "a", "key": "b", "optional": True}},
    }
    found = environment({"app.env.variables": sources, "app.env.secrets": {"E": sources["D"], "F": "geheim"}})
    secret = {"secretKeyRef": {"name": "a", "key": "b", "optional": True}}
    assert {name: found[name]["valueFrom"] for name in "ABCDEF"} == {
        "A": {"configMapKeyRef": {"name": "a", "key": "b", "optional": False}},
        "B": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['a']"}},
        "C": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}},
        "D": secret,
        "E": secret,
        "F": {"secretKeyRef": {"name": "agent-env-secrets", "key": "F"}},
    }


def test_a_custom_variable_replaces_a_built_in_one() -> None:
    assert environment({"app.env.variables": {"K8S_NODE_NAME": "a"}})["K8S_NODE_NAME"] == {"value": "a"}
    assert len(app({"app.env.variables": {"K8S_NODE_NAME": "a"}})["env"]) == 3


def test_whole_config_maps_and_secrets_become_variables() -> None:
    sources = [{"prefix": "A_", "config_map_ref": {"name": "a"}}, {"secret_ref": {"name": "b", "optional": True}}]
    assert app({"app.env.env_from": sources})["envFrom"] == [
        {"prefix": "A_", "configMapRef": {"name": "a"}},
        {"secretRef": {"name": "b", "optional": True}},
    ]


@pytest.mark.parametrize(
    ("variables", "order"),
    [
        ({"A": "$(B)", "B": "$(C)/$(D)", "C": "c", "D": "d"}, "CDBA"),
        ({"A": "$(Z)", "B": "b"}, "AB"),
        ({"A": "$(B)", "B": "$(A)"}, "BA"),
        ({"A": "$(A)", "B": "b"}, "AB"),
        ({"B": "$(K8S_NODE_NAME)", "A": "a"}, "AB"),
        ({"A": {"field_ref": {"field_path": "metadata.name"}}, "B": "$(A)"}, "AB"),
    ],
    ids=["a chain", "of another's", "a circle", "of itself", "of a built-in one", "of the pod"],
)
def test_a_variable_follows_those_that_it_references(variables: Json, order: str) -> None:
    names = list(environment({"app.env.variables": variables}))
    assert "".join(name for name in names if len(name) == 1) == order


@pytest.mark.timeout(20)
def test_a_chain_of_variables_can_have_any_length() -> None:
    names = [f"V{at}" for at in range(50_000)]
    chain = {name: {"name": name, "value": f"$({after})"} for name, after in itertools.pairwise(names)}
    assert [one["name"] for one in sort_by_reference(chain)] == list(reversed(chain))
    everything = {"ALL": {"name": "ALL", "value": "".join(f"$({name})" for name in chain)}} | chain
    assert [one["name"] for one in sort_by_reference(everything)] == [*reversed(chain), "ALL"]


def test_a_variable_can_reference_a_secret_one() -> None:
    names = list(environment({"app.env": {"variables": {"URL": "http://$(TOKEN)@host"}, "secrets": {"TOKEN": "a"}}}))
    assert names.index("TOKEN") < names.index("URL")


# --- volumes ---


def test_a_volume_that_is_mounted_twice_is_one_volume() -> None:
    mounts = [
        a_mount(host_path="/data"),
        a_mount(mount_path="/other", host_path="/data"),
        a_mount(name="more", mount_path="/more"),
    ]
    spec = pod(
        {
            "app.volume_mounts": mounts,
            "spec.container.sidecars": [a_sidecar(volume_mounts=[{"name": "data", "mount_path": "/there"}])],
        }
    )["spec"]
    assert spec["volumes"] == [{"name": "data", "hostPath": {"path": "/data"}}, {"name": "more", "emptyDir": {}}]
    assert [one["mountPath"] for one in spec["containers"][0]["volumeMounts"]] == ["/data", "/other", "/more"]
    assert spec["containers"][1]["volumeMounts"] == [{"name": "data", "mountPath": "/there"}]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"host_path": "/a"}, {"hostPath": {"path": "/a"}}),
        ({"host_path": {"path": "/a", "type": "File"}}, {"hostPath": {"path": "/a", "type": "File"}}),
        ({"config_map": "a"}, {"configMap": {"name": "a"}}),
        ({"config_map": {"name": "a", "key": "b"}}, {"configMap": {"name": "a", "items": [{"key": "b", "path": "b"}]}}),
        (
            {"secret": {"name": "a", "key": "b", "path": "c/d", "default_mode": 256}},
            {"secret": {"secretName": "a", "items": [{"key": "b", "path": "c/d"}], "defaultMode": 256}},
        ),
        ({"empty_dir": {}}, {"emptyDir": {}}),
        (
            {"empty_dir": {"medium": "Memory", "size_limit": "1Mi"}},
            {"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        ),
        ({"pvc": {"claim_name": "a"}}, {"persistentVolumeClaim": {"claimName": "a"}}),
        (
            {"pvc": {"claim_name": "a", "read_only": True}},
            {"persistentVolumeClaim": {"claimName": "a", "readOnly": True}},
        ),
    ],
)
def test_every_kind_of_volume_is_sent(source: Json, expected: Json) -> None:
    assert pod({"app.volume_mounts": [a_mount(**source)]})["spec"]["volumes"] == [{"name": "data", **expected}]


# --- rights, accounts, logins ---


def test_no_service_account_is_set_by_default() -> None:
    assert "serviceAccountName" not in pod()["spec"]
    assert kinds(rendered()) == ["DaemonSet"]


@pytest.mark.parametrize(
    ("changes", "made", "used"),
    [
        ({"spec.create_service_account": True}, ["agent"], "agent"),
        ({"spec.create_service_account": True, "spec.service_account_name": "robot"}, ["robot"], "robot"),
        ({"spec.service_account_name": "robot"}, [], "robot"),
    ],
)
def test_a_service_account_is_created_on_request_and_used_if_named(
    changes: Changes, made: list[str], used: str
) -> None:
    objects = rendered(changes)
    assert [one["metadata"]["name"] for one in objects if one["kind"] == "ServiceAccount"] == made
    assert pod(changes)["spec"]["serviceAccountName"] == used


def test_a_service_accounts_annotations_are_its_own() -> None:
    changes = {**ACCOUNT, "spec.service_account_annotations": {"role": "a"}, "metadata.annotations": {"b": "c"}}
    assert only("ServiceAccount", rendered(changes))["metadata"]["annotations"] == {"b": "c", "role": "a"}
    assert daemon_set(changes)["metadata"]["annotations"] == {"b": "c"}


def test_rights_are_granted_to_the_agents_account_in_its_namespace() -> None:
    rules = {"cluster_rules": [RULE, {"non_resource_urls": ["/metrics"], "verbs": ["get"]}], "namespace_rules": [RULE]}
    objects = rendered({"spec.service_account_name": "robot", "spec.rbac": rules})
    subjects = [{"kind": "ServiceAccount", "name": "robot", "namespace": NAMESPACE}]
    sent = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}
    assert only("ClusterRole", objects)["rules"] == [sent, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    assert only("Role", objects)["rules"] == [sent]
    for kind in ("ClusterRole", "Role"):
        binding = only(f"{kind}Binding", objects)
        assert binding["subjects"] == subjects
        assert binding["roleRef"]["name"] == only(kind, objects)["metadata"]["name"]
        assert binding["roleRef"]["kind"] == kind
    assert "namespace" not in only("ClusterRole", objects)["metadata"]
    assert only("Role", objects)["metadata"]["namespace"] == NAMESPACE


def test_cluster_wide_objects_of_two_namespaces_have_different_names() -> None:
    def names(namespace: str) -> set[str]:
        objects = rendered({**ACCOUNT, "spec.rbac.cluster_rules": [RULE], "spec.namespace": namespace})
        return {one["metadata"]["name"] for one in objects if one["kind"].startswith("ClusterRole")}

    assert names("one").isdisjoint(names("two"))


def test_pull_secrets_of_all_sources_are_used_once() -> None:
    changes = {"app.image.pull_secret_name": "login", "spec.image_pull_secrets": ["more", "login"]}
    assert pod(changes)["spec"]["imagePullSecrets"] == [{"name": "login"}, {"name": "more"}]
    objects = of(a_stack_input(changes, docker_config_json='{"auths": {"a": {}}}'))
    assert only("DaemonSet", objects)["spec"]["template"]["spec"]["imagePullSecrets"] == [
        {"name": "agent-image-pull-secret"},
        {"name": "login"},
        {"name": "more"},
    ]
    secret = only("Secret", objects)
    assert (secret["metadata"]["name"], secret["type"]) == ("agent-image-pull-secret", "kubernetes.io/dockerconfigjson")
    assert json.loads(base64.b64decode(secret["data"][".dockerconfigjson"])) == {"auths": {"a": {}}}


def test_secret_variables_are_encoded_once_and_not_repeated() -> None:
    objects = rendered({"app.env.secrets": {"A": "s3cret", "B": "é", "C": {"secret_ref": {"name": "a", "key": "b"}}}})
    secret = only("Secret", objects)
    assert secret["metadata"]["name"] == "agent-env-secrets"
    assert {key: base64.b64decode(value).decode() for key, value in secret["data"].items()} == {"A": "s3cret", "B": "é"}
    assert "s3cret" not in json.dumps(only("DaemonSet", objects))


def test_no_secret_is_created_without_values() -> None:
    assert kinds(rendered({"app.env": {"variables": {"A": "b"}}})) == ["DaemonSet"]
    assert kinds(rendered({"app.env.secrets": {"A": {"secret_ref": {"name": "a", "key": "b"}}}})) == ["DaemonSet"]


def test_a_config_map_holds_one_file_of_its_own_name() -> None:
    config = only("ConfigMap", rendered({"spec.config_maps": {"agent.conf": "level: info\n"}}))
    assert (config["metadata"]["name"], config["data"]) == ("agent.conf", {"agent.conf": "level: info\n"})


# --- how changes reach the nodes ---


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ({}, {"type": "RollingUpdate"}),
        ({"type": "OnDelete"}, {"type": "OnDelete"}),
        ({"type": "RollingUpdate"}, {"type": "RollingUpdate"}),
        (
            {"rolling_update": {"max_unavailable": "1"}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
        ),
        ({"rolling_update": {"max_unavailable": 2}}, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}),
        (
            {"rolling_update": {"max_unavailable": "10%"}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
        ),
        (
            {"rolling_update": {"max_surge": 1}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        ),
        (
            {"type": "RollingUpdate", "rolling_update": {"max_surge": "100%"}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "100%"}},
        ),
        ({"rolling_update": {"max_surge": "0"}}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}),
        (
            {"rolling_update": {"max_unavailable": "0", "max_surge": "1"}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        ),
    ],
)
def test_the_update_strategy_is_rendered(written: Json, sent: Json) -> None:
    assert daemon_set({"spec.update_strategy": written})["spec"]["updateStrategy"] == sent


def checksums(changes: Changes) -> dict[str, str]:
    annotations = pod(changes)["metadata"].get("annotations", {})
    return {key: value for key, value in annotations.items() if key.endswith("-checksum")}


def test_pods_carry_a_checksum_of_their_configuration_and_one_of_their_secrets() -> None:
    assert checksums({}) == {}
    both = {"spec.config_maps": {"a": "b"}, "app.env.secrets": {"A": "b"}}
    assert checksums(both).keys() == {annotations.CONFIG_CHECKSUM, annotations.SECRETS_CHECKSUM}
    assert all(re.fullmatch("[0-9a-f]{64}", value) for value in checksums(both).values())


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({"spec.config_maps": {"a": "other"}}, {annotations.CONFIG_CHECKSUM}),
        ({"spec.config_maps": {"a": "b", "c": ""}}, {annotations.CONFIG_CHECKSUM}),
        ({"spec.config_maps": {"ab": ""}}, {annotations.CONFIG_CHECKSUM}),
        ({"app.env.secrets": {"A": "other"}}, {annotations.SECRETS_CHECKSUM}),
        ({"app.env.secrets": {"B": "b"}}, {annotations.SECRETS_CHECKSUM}),
        ({"metadata.labels": {"a": "b"}}, set()),
        ({"metadata.annotations": {"a": "b"}}, set()),
        ({"app.env.variables": {"A2": "b"}}, set()),
        ({"app.image.tag": "2"}, set()),
        ({"spec.min_ready_seconds": 5}, set()),
    ],
)
def test_a_checksum_changes_only_with_its_content(changes: Changes, changed: set[str]) -> None:
    before = {"spec.config_maps": {"a": "b"}, "app.env.secrets": {"A": "b"}}
    one, other = checksums(before), checksums(before | dict(changes))
    assert {key for key in one if one[key] != other[key]} == changed


def test_equal_secrets_of_two_agents_have_different_checksums() -> None:
    """Two agents with one password have two sums; and the sum takes time, so that passwords cannot be tried."""
    one = checksums({"app.env.secrets": {"A": "b"}})
    other = checksums({"app.env.secrets": {"A": "b"}, "metadata.name": "other"})
    assert one != other


def test_a_manifest_cannot_override_a_checksum() -> None:
    forged = {"spec.config_maps": {"a": "b"}, "spec.pod_annotations": {annotations.CONFIG_CHECKSUM: "forged"}}
    assert checksums(forged) == checksums({"spec.config_maps": {"a": "b"}})


def test_seconds_between_nodes_are_sent() -> None:
    assert daemon_set({"spec.min_ready_seconds": 5})["spec"]["minReadySeconds"] == 5
    assert "minReadySeconds" not in daemon_set()["spec"]


# --- where pods run, and what they see of the node ---


@pytest.mark.parametrize(
    ("changes", "policy"),
    [
        ({}, None),
        ({"spec.host_network": False}, None),
        ({"spec.host_network": True}, "ClusterFirstWithHostNet"),
        ({"spec.host_network": True, "spec.dns_policy": "Default"}, "Default"),
        ({"spec.dns_policy": "ClusterFirst"}, "ClusterFirst"),
    ],
)
def test_names_of_services_resolve_on_the_nodes_network_too(changes: Changes, policy: str | None) -> None:
    assert pod(changes)["spec"].get("dnsPolicy") == policy


def test_a_required_agent_is_marked_and_tolerates_the_gate() -> None:
    changes = {"spec.require_on_new_nodes": True}
    assert daemon_set(changes)["metadata"]["annotations"] == {"node-ready/required": "true"}
    gate = {"key": "node-ready/unverified", "operator": "Exists", "effect": "NoSchedule"}
    assert pod(changes)["spec"]["tolerations"] == [gate]
    other = {"key": "a", "operator": "Exists"}
    assert pod({**changes, "spec.tolerations": [other]})["spec"]["tolerations"] == [other, gate]


@pytest.mark.parametrize(
    "toleration",
    [
        {"operator": "Exists"},
        {"operator": "Exists", "effect": "NoSchedule"},
        {"key": "node-ready/unverified", "operator": "Exists"},
    ],
)
def test_an_existing_toleration_of_the_gate_is_not_repeated(toleration: Json) -> None:
    changes = {"spec.require_on_new_nodes": True, "spec.tolerations": [toleration]}
    assert pod(changes)["spec"]["tolerations"] == [toleration]


def test_an_agent_that_is_not_required_is_not_marked() -> None:
    assert "annotations" not in daemon_set()["metadata"]
    assert "tolerations" not in pod()["spec"]


def test_affinity_is_sent_as_kubernetes_has_it() -> None:
    affinity = {
        "node_affinity": {
            "required_during_scheduling_ignored_during_execution": {
                "node_selector_terms": [{"match_expressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
            }
        },
        "pod_anti_affinity": {
            "preferred_during_scheduling_ignored_during_execution": [
                {"weight": 1, "pod_affinity_term": {"topology_key": "a", "label_selector": {}}}
            ]
        },
    }
    term = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
    assert pod({"spec.affinity": affinity})["spec"]["affinity"] == {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"labelSelector": {}, "topologyKey": "a"}}
            ]
        },
    }


# --- all of it ---

UNSAID: Final = {
    "value_from": "another source, which is refused",
    "sleep_seconds": "another way to end",
    "gcp_gke": "another provider",
    "aws_eks": "another provider",
    "azure_aks": "another provider",
}
NOT_RENDERED: Final = re.compile(
    r"target\.(api_version|kind|status.*|metadata\.(slug|tags|relationships.*|group)|spec\.target_cluster.*)"
    r"|provider_config.*"
    r"|.*\.secret_ref\.namespace"  # always the pod's own
    r"|.*\.field_ref\.api_version"  # there is one, which is written if the manifest does not
    r"|target\.spec\.update_strategy\.type"  # the one that is the default
    # The app says what the volumes are; the others repeat it, and would say it in its place.
    r"|.*\.(sidecars|init_containers)\[0\]\.volume_mounts\[\d\]\.(config_map|secret|host_path|empty_dir|pvc).*"
    r"|target\.spec\.container\.app\.volume_mounts\[4\]\.pvc"
    r"|target\.spec\.rbac\.cluster_rules\[1\]\.(api_groups|resources|resource_names)"
)


def walk(message: Message, path: str = "") -> Iterator[tuple[str, Message, FieldDescriptor]]:
    """Every field that is set, with its path and the message that it is in."""
    for field, value in message.ListFields():
        here = f"{path}.{field.name}" if path else field.name
        yield here, message, field
        if not field.message_type:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type:
                for key in sorted(value):
                    yield from walk(value[key], f"{here}.{key}")
        elif field.is_repeated:
            for index, item in enumerate(value):
                yield from walk(item, f"{here}[{index}]")
        else:
            yield from walk(value, here)


def whole() -> KubernetesDaemonSetStackInput:
    one = read(WHOLE)
    assert validate.errors(validate.validate(one)) == []
    return one.input


def test_the_complete_manifest_sets_every_field() -> None:
    present = {field.full_name for _, _, field in walk(whole())}
    messages = {field.containing_type for _, _, field in walk(whole())}
    unsaid = {field.name for one in messages for field in one.fields if field.full_name not in present}
    assert unsaid == UNSAID.keys()


def test_names_do_not_require_the_checksum_of_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    whole_input = whole()
    refs = [Ref.of(one) for one in resources.render(whole_input)]
    monkeypatch.delattr(hashlib, "scrypt")
    assert [Ref.of(one) for one in resources.named(whole_input)] == refs


def test_no_value_of_the_manifest_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each field that is taken away is missed in what is rendered, but for those of which nothing is made."""
    monkeypatch.setattr(hashlib, "scrypt", functools.cache(hashlib.scrypt))  # slow on purpose
    all_of_it = whole()
    before = resources.render(all_of_it)
    lost = []
    for index, (path, _, _) in enumerate(walk(all_of_it)):
        if NOT_RENDERED.fullmatch(path):
            continue
        less = KubernetesDaemonSetStackInput()
        less.CopyFrom(all_of_it)
        _, message, field = list(walk(less))[index]
        message.ClearField(field.name)
        if resources.render(less) == before:
            lost.append(path)
    assert lost == []


def shuffled(tree: Any) -> Any:  # noqa: ANN401  whatever YAML holds
    """The same, with every mapping in the opposite order."""
    if isinstance(tree, dict):
        return {key: shuffled(tree[key]) for key in reversed(tree)}
    return [shuffled(item) for item in tree] if isinstance(tree, list) else tree


def test_the_same_manifest_renders_to_the_same_bytes_in_any_order() -> None:
    one = json.dumps(resources.render(whole()))
    other = json.dumps(resources.render(read(as_yaml(shuffled(yaml.safe_load(WHOLE)))).input))
    assert one == other


def test_user_defined_names_are_sorted() -> None:
    texts = {"b": "", "c": "", "a": ""}
    amounts = {"limits": {"memory": "1Gi", "b.c/d": "1", "c.d/e": "1", "a.b/c": "1"}}
    near = [{"topology_key": "a", "label_selector": {"match_labels": texts}}]
    objects = rendered(
        {
            **ACCOUNT,
            "metadata": {"name": "agent", "labels": texts, "annotations": texts},
            "spec.pod_labels": texts,
            "spec.pod_annotations": texts,
            "spec.service_account_annotations": texts,
            "spec.node_selector": texts,
            "spec.config_maps": texts,
            "spec.affinity.pod_affinity.required_during_scheduling_ignored_during_execution": near,
            "app.env": {"variables": texts, "secrets": {"e": "1", "f": "1", "d": "1"}},
            "app.resources": amounts,
        }
    )
    template = only("DaemonSet", objects)["spec"]["template"]
    metadata, pod_spec = template["metadata"], template["spec"]
    container, affinity = pod_spec["containers"][0], pod_spec["affinity"]["podAffinity"]
    for mapping in (
        *(one["metadata"]["labels"] for one in objects),
        *(one["metadata"]["annotations"] for one in objects),
        only("Secret", objects)["data"],
        metadata["labels"],
        metadata["annotations"],
        pod_spec["nodeSelector"],
        affinity["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"]["matchLabels"],
    ):
        assert list(mapping) == sorted(mapping)
    assert [one["metadata"]["name"] for one in objects if one["kind"] == "ConfigMap"] == ["a", "b", "c"]
    assert [one["name"] for one in container["env"]][3:] == ["a", "b", "c", "d", "e", "f"]
    assert list(container["resources"]["limits"]) == ["memory", "a.b/c", "b.c/d", "c.d/e"]


AMBIGUOUS_TEXTS: Final = (
    *("1e3", "1E3", "0x1F", "0o17", "017", "08", "0b1", "1_000", "12:30:00", "1.20", ".5", "5.", "+1", "-0"),
    *("y", "Y", "n", "yes", "No", "on", "OFF", "true", "False", "~", "null", "NULL", "", ".inf", "-.INF", ".NaN"),
    *("2026-11-16", "2026-11-16T12:30:00Z", "=", "<<", "- a", "a: b", "# a", "*a", "&a", "!a", "%a", "@a", "{", "["),
)


@pytest.mark.parametrize("text", AMBIGUOUS_TEXTS)
def test_ambiguous_text_is_quoted(text: str) -> None:
    """Ours would not notice: to PyYAML 1e3 and y are texts, to Kubernetes a number and a truth."""
    quoted = rf"""(["']){re.escape(text)}\1"""
    assert re.fullmatch(f"A: {quoted}\n", to_yaml({"A": text}))
    assert re.fullmatch(f"{quoted}: A\n", to_yaml({text: "A"}))
    command = ["agent", text]
    again = yaml.safe_load(to_yaml(daemon_set({"app.command": command})))
    assert again["spec"]["template"]["spec"]["containers"][0]["command"] == command


def test_rendering_does_not_modify_the_manifest() -> None:
    given = whole()
    resources.render(given)
    assert given == whole()


def test_what_is_rendered_is_plain_data() -> None:
    objects = resources.render(whole())
    assert json.loads(json.dumps(objects)) == objects
