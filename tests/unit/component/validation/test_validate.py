"""Validation: every rule with its field, its line and its message."""

import functools
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import protovalidate
import pytest

from kubekit.diagnostics import Severity
from kubernetes_daemonset.api.buf.validate import validate_pb2
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.deploy import loader
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest import reader
from kubernetes_daemonset.validation import rules, validate
from tests.support.manifests.builders import (
    DIGEST,
    GONE,
    SOURCE,
    Changes,
    Json,
    a_manifest,
    a_mount,
    a_port,
    a_sidecar,
    a_stack_input,
    as_yaml,
    full,
    line_of,
    loaded,
    problems,
    read,
    read_in_part,
    warnings,
)
from tests.support.manifests.refusals import REFUSALS, STRICTER, TAKEN, Refusal

# --- the original's own cases ---


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"spec.create_namespace": True},
        {"spec.create_namespace": False},
        {"spec.tolerations": [{"key": "node-role.kubernetes.io/master", "operator": "Exists", "effect": "NoSchedule"}]},
        {"spec.tolerations": [{"key": "pool", "operator": "Equal", "value": "gpu", "effect": "NoExecute"}]},
        {"spec.update_strategy": {"type": "RollingUpdate", "rolling_update": {"max_unavailable": "1"}}},
        {"spec.update_strategy": {"type": "OnDelete"}},
        {"spec.node_selector": {"kubernetes.io/os": "linux"}},
        {"app.volume_mounts": [a_mount(name="varlog", host_path="/var/log", read_only=True)]},
    ],
    ids=[
        "basic",
        "a namespace is made",
        "a namespace is there",
        "Exists",
        "Equal",
        "RollingUpdate",
        "OnDelete",
        "a node selector",
        "a volume mount",
    ],
)
def test_manifests_that_the_original_accepts_are_accepted(changes: Changes) -> None:
    assert problems(changes) == []


@pytest.mark.parametrize(
    ("changes", "path", "says"),
    [
        ({"app.image.repo": ""}, "app.image", "Image repo is required"),
        ({"app.image.tag": ""}, "app.image", "Image tag is required"),
        ({"app.ports": [a_port(name="HTTP")]}, "app.ports[0].name", "lowercase"),
        ({"app.ports": [a_port(name="-http")]}, "app.ports[0].name", "no hyphen at an end"),
        ({"app.ports": [a_port(network_protocol="INVALID")]}, "app.ports[0].network_protocol", "TCP, UDP or SCTP"),
        (
            {"spec.tolerations": [{"key": "a", "operator": "Invalid"}]},
            "spec.tolerations[0].operator",
            "Exists or Equal",
        ),
        ({"spec.tolerations": [{"key": "a", "effect": "Invalid"}]}, "spec.tolerations[0].effect", "NoSchedule"),
        ({"spec.update_strategy.type": "Invalid"}, "spec.update_strategy.type", "RollingUpdate or OnDelete"),
    ],
    ids=["repo", "tag", "capitals", "hyphen", "protocol", "operator", "effect", "strategy"],
)
def test_manifests_that_the_original_rejects_are_rejected(changes: Changes, path: str, says: str) -> None:
    (diagnostic,) = problems(changes)
    assert diagnostic.path == full(path)
    assert says in diagnostic.message


# --- errors ---


@pytest.mark.parametrize("case", REFUSALS, ids=[case.what for case in REFUSALS])
def test_an_error_is_reported_once_with_its_field_its_line_and_the_expected_value(case: Refusal) -> None:
    text = as_yaml(a_manifest(case.changes))
    (diagnostic,) = validate.errors(validate.validate(read(text)))
    assert diagnostic.path == full(case.path)
    assert case.says in diagnostic.message
    assert diagnostic.location.source == SOURCE
    assert diagnostic.location.line == line_of(text, diagnostic.path)


def test_the_table_of_refusals_names_each_case_once() -> None:
    names = [case.what for case in REFUSALS]
    assert len(set(names)) == len(names)
    assert STRICTER.keys() <= set(names)


class Given(NamedTuple):
    """A mistake in what comes with a manifest."""

    what: str
    fields: Json
    path: str
    says: str


GKE: Final = {"cluster_endpoint": "https://192.0.2.1", "cluster_ca_data": "Cg==", "service_account_key_base64": "e30="}
GIVEN: Final = [
    Given("no provider", {"provider_config": {}}, "provider_config.provider", "is required"),
    Given("no login", {"provider_config": {"provider": "gcp_gke"}}, "provider_config", "gcp_gke is required"),
    Given(
        "no kubeconfig",
        {"provider_config": {"provider": "digital_ocean_doks"}},
        "provider_config",
        "digital_ocean_doks is required",
    ),
    Given(
        "a provider that nothing is known of",
        {"provider_config": {"provider": "aws_eks"}},
        "provider_config",
        "logging in to this provider from a stack input is not supported",
    ),
    *(
        Given(
            f"no {name}",
            {"provider_config": {"provider": "gcp_gke", "gcp_gke": {key: GKE[key] for key in GKE if key != name}}},
            f"provider_config.gcp_gke.{name}",
            "is required",
        )
        for name in GKE
    ),
    Given(
        "an empty kubeconfig",
        {"provider_config": {"provider": "digital_ocean_doks", "digital_ocean_doks": {}}},
        "provider_config.digital_ocean_doks.kube_config",
        "is required",
    ),
    *(
        Given(what, {"docker_config_json": text}, "docker_config_json", "is not a Docker config.json; expected")
        for what, text in [
            ("a login that is no JSON", "auths"),
            ("a login that is a list", "[]"),
            ("a login without logins", "{}"),
            ("a login of a bomb", "[" * 100_000),
        ]
    ),
]


@pytest.mark.parametrize("case", GIVEN, ids=[case.what for case in GIVEN])
def test_an_error_in_a_stack_input_is_reported_once_with_its_line(case: Given) -> None:
    text = as_yaml(a_stack_input(**case.fields))
    (diagnostic,) = validate.errors(validate.validate(read(text)))
    assert diagnostic.path == case.path
    assert case.says in diagnostic.message
    assert diagnostic.location.line == line_of(text, case.path)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"docker_config_json": '{"auths": {"registry.example.com": {"auth": "dTpw"}}}'},
        {"provider_config": {"provider": "gcp_gke", "gcp_gke": GKE}},
        {"provider_config": {"provider": "digital_ocean_doks", "digital_ocean_doks": {"kube_config": "e30="}}},
    ],
    ids=["alone", "login", "GKE", "DOKS"],
)
def test_a_complete_stack_input_is_accepted(fields: Json) -> None:
    assert validate.errors(validate.validate(read(as_yaml(a_stack_input(**fields))))) == []


def test_an_error_in_the_manifest_of_a_stack_input_has_the_manifests_path_and_the_files_line() -> None:
    text = as_yaml(a_stack_input({"app.image.tag": ""}))
    (diagnostic,) = validate.validate(read(text))
    assert diagnostic.path == "spec.container.app.image"
    assert diagnostic.location.line == line_of(text, "target.spec.container.app.image")


# --- what is unusual and right ---


@pytest.mark.parametrize("what", TAKEN)
def test_unusual_manifests_that_work_are_accepted(what: str) -> None:
    assert problems(TAKEN[what]) == []


# --- warnings ---


class Warned(NamedTuple):
    what: str
    changes: Changes
    path: str
    says: str
    instead: Changes | None = None
    """What the warning advises, or what makes it unnecessary; has no warning."""


SURGE: Final = {"spec.update_strategy.rolling_update.max_surge": "10%"}
LIMITED: Final = {"limits": {"memory": "64Mi"}}
VARIABLES: Final = {"app.env": {"variables": {"A": "a"}, "secrets": {"B": "b"}}}


def a_rule(*resources: str, **fields: object) -> Json:
    return {"api_groups": [""], "resources": list(resources), "verbs": ["get"]} | fields


WARNED: Final = [
    Warned(
        "a port of the node while another pod has it",
        {**SURGE, "app.ports": [a_port(host_port=9100)]},
        "app.ports[0]",
        "port 9100 of the node is held by the old pod until it stops, so with max_surge no new pod can start beside it",
        {"app.ports": [a_port(host_port=9100)]},
    ),
    Warned(
        "a port of the node's network while another pod has it",
        {**SURGE, "spec.host_network": True, "app.ports": [a_port()]},
        "app.ports[0]",
        "port 9100 of the node is held by the old pod until it stops",
        {**SURGE, "app.ports": [a_port()]},
    ),
    Warned(
        "root that may not be root",
        {"app.security_context": {"run_as_non_root": True, "run_as_user": 0}},
        "app.security_context.run_as_user",
        "is root, but run_as_non_root rejects root, so the container cannot start",
        {"app.security_context": {"run_as_non_root": True, "run_as_user": 1000}},
    ),
    Warned(
        "root that the pod does not allow",
        {"app.security_context": {"run_as_user": 0}, "spec.pod_security_context": {"run_as_non_root": True}},
        "app.security_context.run_as_user",
        "run_as_non_root rejects root",
        {
            "app.security_context": {"run_as_user": 0, "run_as_non_root": False},
            "spec.pod_security_context": {"run_as_non_root": True},
        },
    ),
    Warned(
        "a pod's root that the container does not allow",
        {"app.security_context": {"run_as_non_root": True}, "spec.pod_security_context": {"run_as_user": 0}},
        "spec.pod_security_context.run_as_user",
        "run_as_non_root rejects root",
        {
            "app.security_context": {"run_as_non_root": True, "run_as_user": 1},
            "spec.pod_security_context": {"run_as_user": 0},
        },
    ),
    Warned(
        "resources without a memory limit",
        {"app.resources": {"requests": {"memory": "64Mi"}}},
        "app.resources",
        "no memory limit: one leak can bring down every pod on a node",
        {"app.resources": LIMITED},
    ),
    Warned(
        "a sidecar without a memory limit",
        {"spec.container.sidecars": [{"name": "helper", "image": "helper:1"}]},
        "spec.container.sidecars[0].resources",
        "no memory limit",
        {"spec.container.sidecars": [a_sidecar()]},
    ),
    Warned(
        "privileges that nothing needs",
        {"app.security_context.privileged": True},
        "app.security_context.privileged",
        "the container uses nothing of the node; remove it or add only the capabilities it needs",
        {"app.security_context.privileged": True, "spec.host_pid": True},
    ),
    Warned(
        "privileges beside one of them",
        {"app.security_context": {"privileged": True, "capabilities": {"add": ["NET_ADMIN"]}}, "spec.host_pid": True},
        "app.security_context.capabilities.add",
        "privileged includes every capability; remove one of the two",
        {"app.security_context": {"privileged": True}, "app.volume_mounts": [a_mount(host_path="/sys")]},
    ),
    Warned(
        "the latest image",
        {"app.image.tag": "latest"},
        "app.image",
        'agent:latest" can change over time, so nodes can run different images; use a version tag or a digest',
        {"app.image": {"repo": "registry.example.com/agent", "tag": "latest", "digest": DIGEST}},
    ),
    Warned(
        "a sidecar of any version",
        {"spec.container.sidecars": [a_sidecar(image="registry.example.com:5000/helper")]},
        "spec.container.sidecars[0].image",
        '"registry.example.com:5000/helper" can change over time',
        {"spec.container.sidecars": [a_sidecar(image=f"registry.example.com:5000/helper@{DIGEST}")]},
    ),
    Warned(
        "a probe of a port that is not there",
        {"app.ports": [a_port()], "app.liveness_probe": {"http_get": {"port_name": "web"}}},
        "app.liveness_probe.http_get.port_name",
        'the container has no port "web" (it has metrics): the probe always fails',
        {"app.ports": [a_port()], "app.liveness_probe": {"http_get": {"port_name": "metrics"}}},
    ),
    Warned(
        "a probe of a port where there is none",
        {"app.startup_probe": {"tcp_socket": {"port_name": "web"}}},
        "app.startup_probe.tcp_socket.port_name",
        'the container has no port "web" (it has none): the probe always fails',
        {"app.startup_probe": {"tcp_socket": {"port_number": 80}}},
    ),
    Warned(
        "a secret of nothing",
        {"app.env.secrets": {"A": ""}},
        "app.env.secrets.A",
        "is empty, so the agent receives an empty value; set a value or a secret_ref",
        {"app.env.secrets": {"A": "b"}},
    ),
    Warned(
        "a secret that was left open",
        {"app.env.secrets": {"A": {}}},
        "app.env.secrets.A",
        "is empty",
        {"app.env.secrets": {"A": {"secret_ref": {"name": "a", "key": "b"}}}},
    ),
    *(
        Warned(
            f"the capability {given}",
            {"app.security_context.capabilities": {kind: [given]}},
            f"app.security_context.capabilities.{kind}[0]",
            says,
            {"app.security_context.capabilities": {kind: [right]}},
        )
        for kind, given, says, right in [
            ("add", "NET_ADMN", '"NET_ADMN" is not a known capability; did you mean NET_ADMIN?', "NET_ADMIN"),
            (
                "add",
                "NOSUCH",
                '"NOSUCH" is not a known capability: pods do not start on nodes that do not support it',
                "BPF",
            ),
            ("add", "CAP_NET_ADMIN", "Kubernetes expects it without CAP_; use NET_ADMIN", "net_admin"),
            ("drop", "CAP_ALL", "Kubernetes expects it without CAP_; use ALL", "ALL"),
            ("drop", "CAP_SYSLOOG", "Kubernetes expects it without CAP_; use SYSLOG", "CHECKPOINT_RESTORE"),
        ]
    ),
    *(
        Warned(
            f"a variable that nobody defines in {field}",
            {f"app.{field}": ["--name=$(NODE)"]},
            f"app.{field}[0]",
            '"$(NODE)" is not replaced: the container has no variable NODE',
            {f"app.{field}": ["$(K8S_NODE_NAME) $(A) $(B) $$(NODE) $(date) $(KUBERNETES_SERVICE_HOST)"], **VARIABLES},
        )
        for field in ("command", "args")
    ),
    Warned(
        "a variable that nobody defines in another",
        {"app.env.variables": {"URL": "http://$(HOST)/"}},
        "app.env.variables.URL",
        '"$(HOST)" is not replaced: the container has no variable HOST; define it, or write $$(HOST)',
        {"app.env.variables": {"URL": "http://$(HOST)/"}, "app.env.env_from": [{"config_map_ref": {"name": "a"}}]},
    ),
    Warned(
        "a variable that nobody defines in a sidecar's",
        {"spec.container.sidecars": [a_sidecar(env=[{"name": "A", "value": "$(K8S_NODE_NAME)"}])]},
        "spec.container.sidecars[0].env[0].value",
        "the container has no variable K8S_NODE_NAME",
        {"spec.container.sidecars": [a_sidecar(env=[{"name": "B", "value": "b"}, {"name": "A", "value": "$(B)"}])]},
    ),
    Warned(
        "rights to nodes in a namespace",
        {"spec.create_service_account": True, "spec.rbac.namespace_rules": [a_rule("pods", "nodes/metrics")]},
        "spec.rbac.namespace_rules[0].resources[1]",
        "nodes are not namespaced, so this grants nothing; move it to cluster_rules",
        {
            "spec.create_service_account": True,
            "spec.rbac": {"namespace_rules": [a_rule("pods", "namespaces")], "cluster_rules": [a_rule("nodes")]},
        },
    ),
    Warned(
        "rights to cluster roles in a namespace",
        {"spec.create_service_account": True, "spec.rbac.namespace_rules": [a_rule("clusterroles", api_groups=["*"])]},
        "spec.rbac.namespace_rules[0].resources[0]",
        "clusterroles are not namespaced",
        {"spec.create_service_account": True, "spec.rbac.namespace_rules": [a_rule("nodes", api_groups=["a.example"])]},
    ),
    Warned(
        "a cluster that is not chosen by it",
        {"spec.target_cluster": {"cluster_kind": "AwsEksCluster", "cluster_name": "production"}},
        "spec.target_cluster.cluster_name",
        '"production" does not choose the cluster: this tool deploys to the kubeconfig\'s current context; use'
        " --kube-context to choose the cluster",
        {},
    ),
    Warned(
        "a kind of cluster that is not chosen by it",
        {"spec.target_cluster": {"cluster_kind": "AwsEksCluster"}},
        "spec.target_cluster",
        "does not choose the cluster",
        {},
    ),
    Warned(
        "a mark that nothing acts on yet",
        {"spec.require_on_new_nodes": True},
        "spec.require_on_new_nodes",
        "kube-node-ready does not wait for required agents yet, so new nodes are verified without this one; expected"
        " false unless another tool reads the annotation node-ready/required",
        {},
    ),
    Warned(
        "names that will not resolve",
        {"spec.host_network": True, "spec.dns_policy": "ClusterFirst"},
        "spec.dns_policy",
        "ClusterFirst means Default with host_network, so Services do not resolve; expected ClusterFirstWithHostNet",
        {"spec.dns_policy": "ClusterFirst"},
    ),
]


@pytest.mark.parametrize("case", WARNED, ids=[case.what for case in WARNED])
def test_a_warning_is_reported_until_its_advice_is_followed(case: Warned) -> None:
    text = as_yaml(a_manifest(case.changes))
    (warning,) = warnings(case.changes)
    assert warning.path == full(case.path)
    assert case.says in warning.message
    assert warning.severity is Severity.WARNING
    assert warning.location.line == line_of(text, warning.path)
    assert case.instead is not None
    assert warnings(case.instead) == []


def test_the_smallest_manifest_has_no_warnings() -> None:
    assert warnings() == []


@pytest.mark.parametrize("image", ["", "nginx:::latest", "Foo/Bar"], ids=["none", "colons", "capitals"])
@pytest.mark.parametrize("field", ["spec.container.sidecars", "spec.init_containers"])
def test_an_invalid_image_has_one_error(field: str, image: str) -> None:
    (diagnostic,) = validate.validate(loaded({field: [a_sidecar(image=image)]}))
    assert (diagnostic.path, diagnostic.severity) == (f"{field}[0].image", Severity.ERROR)


def test_all_missing_fields_of_an_empty_rule_are_reported() -> None:
    found = problems({"spec.create_service_account": True, "spec.rbac.cluster_rules": [{}]})
    text_of_all = " ".join(one.message for one in found)
    assert all(f"{name} " in text_of_all for name in ("api_groups", "resources", "verbs"))


@pytest.mark.parametrize(
    ("field", "right"), [("kind", "KubernetesDaemonSet"), ("apiVersion", "kubernetes.project-planton.org/v1")]
)
def test_a_missing_kind_or_version_is_reported(field: str, right: str) -> None:
    (diagnostic,) = problems({field: GONE})
    assert diagnostic.message == f"is required; expected {right}"


# --- all of them ---


@functools.cache
def refused_inputs() -> list[KubernetesDaemonSetStackInput]:
    return [loaded(case.changes).input for case in REFUSALS]


def rule_ids(message: Any, seen: set[str]) -> Iterator[str]:  # noqa: ANN401  a descriptor, with options that have no types
    """The ids of all rules that the .proto files have for a message and what it holds."""
    if message.full_name in seen:
        return
    seen.add(message.full_name)
    yield from (one.id for one in message.GetOptions().Extensions[validate_pb2.message].cel)
    for field in message.fields:
        options = field.GetOptions().Extensions[validate_pb2.field]
        for location in (options, options.repeated.items, options.map.keys):
            yield from (one.id for one in location.cel)
        if field.message_type:
            yield from rule_ids(field.message_type, seen)


def test_every_rule_of_the_proto_files_is_broken_by_a_case() -> None:
    validator = protovalidate.Validator()
    no_kind = read(as_yaml(a_manifest({"kind": None}))).input
    inputs = [no_kind, *refused_inputs(), *(read(as_yaml(a_stack_input(**case.fields))).input for case in GIVEN)]
    broken = {one.proto.rule_id for given in inputs for one in validator.collect_violations(given)}
    assert set(rule_ids(KubernetesDaemonSetStackInput.DESCRIPTOR, set())) - broken == set()


@pytest.mark.parametrize("rule", rules.ERRORS, ids=lambda rule: rule.__name__.strip("_"))
def test_every_other_rule_is_broken_by_a_case(rule: Any) -> None:  # noqa: ANN401  as the list has them
    assert any(list(rule(given.target)) for given in refused_inputs())


@pytest.mark.parametrize("rule", rules.WARNINGS, ids=lambda rule: rule.__name__.strip("_"))
def test_every_warning_is_given_by_a_case(rule: Any) -> None:  # noqa: ANN401  as the list has them
    assert any(list(rule(loaded(case.changes).manifest)) for case in WARNED)


def test_all_errors_are_reported_together_in_the_order_of_the_lines() -> None:
    changes = {
        "metadata.name": "Bad_Name",
        "app.image.tag": "",
        "app.ports": [a_port(container_port=99999), a_port(name="a" * 21)],
        "app.volume_mounts": [a_mount(mount_path="relative")],
        "spec.tolerations": [{"key": "a", "operator": "Exists", "value": "b"}],
        "spec.update_strategy.rolling_update": {"max_unavailable": "ten"},
        "app.resources": {"limits": {"cpu": "lots"}},
    }
    found = validate.validate(loaded(changes))
    assert [one.path for one in validate.errors(found)] == [
        "metadata.name",
        "spec.container.app.image",
        "spec.container.app.ports[0].container_port",
        "spec.container.app.ports[1].name",
        "spec.container.app.volume_mounts[0].mount_path",
        "spec.container.app.resources.limits.cpu",
        "spec.tolerations[0]",
        "spec.update_strategy.rolling_update.max_unavailable",
    ]
    lines = [one.location.line for one in found]
    assert lines == sorted(lines)
    assert all(lines)


def test_unreadable_fields_hide_no_other_errors() -> None:
    changes = {
        "metadata.name": "Bad_Name",
        "spec.namespace": {"value": "Bad_One"},
        "app.image": {"repo": "a", "tag": "latest"},
        "app.ports": [a_port(container_port="http"), a_port(name="web", container_port=99999)],
        "app.args": [None, "--verbose"],
        "spec.replicas": 3,
        "spec.min_ready_seconds": "soon",
        "spec.tolerations": [{"key": "a", "operator": "Exists", "value": "b"}, {"key": "a", "effekt": "NoSchedule"}],
    }
    found = validate.validate(read_in_part(as_yaml(a_manifest(changes))))
    assert [(one.path, one.severity.value) for one in found] == [
        ("metadata.name", "error"),
        ("spec.namespace", "error"),
        ("spec.container.app.image", "warning"),
        ("spec.container.app.ports[0].container_port", "error"),
        ("spec.container.app.ports[1].container_port", "error"),
        ("spec.container.app.args[0]", "error"),
        ("spec", "error"),
        ("spec.min_ready_seconds", "error"),
        ("spec.tolerations[0]", "error"),
        ("spec.tolerations[1]", "error"),
    ]
    lines = [one.location.line for one in found]
    assert lines == sorted(lines)


IMAGE: Final = {"repo": "registry.example.com/agent", "tag": "1"}
NOT_DESCRIBED: Final = {"name": "data", "mount_path": "/data"}
PROBED: Final = {"app.liveness_probe": {"http_get": {"port_name": "web"}}}
LIMIT_OF_A_SIDECAR: Final = {
    "app.env.variables": {"A": {"resource_field_ref": {"resource": "limits.cpu", "container_name": "helper"}}}
}
RULE: Final = {"api_groups": [""], "resources": ["pods"], "verbs": ["get"]}
ONLY_A_CONSEQUENCE: Final[dict[str, Changes]] = {
    "another kind": {"kind": "Deployment", "spec": {"replicas": 3}},
    "metadata that is a text": {"metadata": "agent"},
    "a spec that is a text": {"spec": "agent"},
    "containers that are a text": {"spec.container": "agent"},
    "an image that is a list": {"app.image": ["agent"]},
    "an image that was misspelt": {"app.image": GONE, "app.imagee": IMAGE},
    "a tag that was misspelt": {"app.image": {"repo": "agent", "tagg": "1"}},
    "a namespace that was misspelt": {"spec.namespace": GONE, "spec.namespce": "a"},
    "a key that is a list": {"spec.tolerations": [{"key": ["a"], "effect": "NoSchedule"}]},
    "a name that is a list": {"metadata": {"name": ["a"], "labels": {"app.kubernetes.io/name": "a"}}},
    "a host path that was misspelt": {"app.volume_mounts": [NOT_DESCRIBED | {"host_pathh": "/data"}]},
    "mounts that are a text": {
        "app.volume_mounts": "data",
        "spec.container.sidecars": [a_sidecar(volume_mounts=[NOT_DESCRIBED])],
    },
    "ports that are a text": {**PROBED, "app.ports": "web"},
    "a port's name that was misspelt": {**PROBED, "app.ports": [{"nam": "web", "container_port": 80}]},
    "an account that is perhaps made": {
        "spec.create_service_account": "maybe",
        "spec.service_account_annotations": {"a": "b"},
        "spec.rbac.namespace_rules": [RULE],
    },
    "an account that was misspelt": {
        "spec.create_serviceaccount": True,
        "spec.service_account_annotations": {"a": "b"},
        "spec.rbac.namespace_rules": [RULE],
    },
    "an end in words": {
        "spec.termination_grace_period_seconds": "a minute",
        "app.lifecycle.pre_stop.sleep_seconds": 60,
    },
    "a namespace that is a list": {
        "spec.namespace": ["a"],
        "app.env.secrets": {"A": {"secret_ref": {"namespace": "a", "name": "b", "key": "c"}}},
    },
    "a right that is perhaps given": {
        "app.security_context.privileged": "maybe",
        "app.volume_mounts": [a_mount(mount_propagation="Bidirectional")],
    },
    "a node that is perhaps touched": {"spec.host_pid": "maybe", "app.security_context.privileged": True},
    "a host path that is perhaps mounted": {
        "app.volume_mounts": [a_mount(host_path=["/sys"])],
        "app.security_context.privileged": True,
    },
    "a container that perhaps stays": {
        "spec.init_containers": [a_sidecar(restart_policy=["Always"], liveness_probe={"exec": {"command": ["true"]}})]
    },
    "a limit that is a list": {"app.resources": {"limits": {"memory": ["1Gi"]}}},
    "limits that are a list": {"app.resources": {"limits": ["1Gi"], "requests": {"other": {"a.b/c": 1}}}},
    "a cpu that is a list": {"app.resources": {"limits": {"cpu": ["1"], "memory": "1Gi"}, "requests": {"cpu": "1"}}},
    "huge pages beside a list": {
        "app.resources": {
            "limits": {"other": {"hugepages-2Mi": "4Mi"}, "memory": ["1Gi"]},
        }
    },
    "sidecars that are a text": {**LIMIT_OF_A_SIDECAR, "spec.container.sidecars": "helper"},
    "a sidecar's name that is a list": {**LIMIT_OF_A_SIDECAR, "spec.container.sidecars": [a_sidecar(name=["helper"])]},
    "a list that is shorter than it was": {"spec.image_pull_secrets": [["a"], "B"]},
    "a secret that is a list": {"app.env.secrets": {"A": ["b"]}},
    "a network that is perhaps the node's": {"spec.host_network": "maybe", "spec.dns_policy": "ClusterFirst"},
}


@pytest.mark.parametrize("what", ONLY_A_CONSEQUENCE)
def test_consequences_of_unreadable_fields_are_not_reported(what: str) -> None:
    loaded = read_in_part(as_yaml(a_manifest(ONLY_A_CONSEQUENCE[what])))
    assert len(loaded.diagnostics) == 1
    assert validate.validate(loaded) == list(loaded.diagnostics)


def test_unreadable_fields_of_a_stack_input_hide_and_cause_no_other_errors() -> None:
    def paths(tree: Json) -> list[str]:
        return [one.path for one in validate.validate(read_in_part(as_yaml(tree)))]

    changes = {"spec.namespace": ["a"], "app.ports": [a_port(container_port=99999)]}
    assert paths(a_stack_input(changes, docker_config_json="{}")) == [
        "target.spec.namespace",
        "spec.container.app.ports[0].container_port",
        "docker_config_json",
    ]
    assert paths({"target": "a manifest"}) == ["target"]


def test_a_program_receives_all_errors_of_a_manifest_together() -> None:
    with pytest.raises(ManifestError) as refused:
        loader.load_valid(a_manifest({"spec.replicas": 3, "app.image.tag": ""}), "a program")
    assert {(one.path, str(one.location)) for one in refused.value.diagnostics} == {
        ("spec.container.app.image", "a program"),
        ("spec", "a program"),
    }


def test_missing_fields_are_not_reported_for_other_documents() -> None:
    for text in ("services: {web: {image: a}}", "tarket: {}", "a text", "[]"):
        loaded = read_in_part(text)
        assert validate.validate(loaded) == list(loaded.diagnostics) != []


def test_an_unknown_name_hides_no_other_errors() -> None:
    loaded = read_in_part(as_yaml(a_manifest({"spec.replicas": 3, "spec.namespace": GONE})))
    assert {one.path for one in validate.validate(loaded)} == {"spec", "spec.namespace"}


def test_an_error_has_its_location_in_every_dialect() -> None:
    text = as_yaml(
        a_manifest(
            {
                "app.volume_mounts": [
                    {"name": "log", "mountPath": "/log", "host_path": "log", "host_path_type": "Folder"}
                ],
                "app.env": {"variables": [{"name": "A=", "value": "b"}]},
            }
        )
    )
    lines = text.splitlines()
    found = {one.path: lines[one.location.line - 1].strip() for one in validate.validate(read(text))}
    assert found == {
        "spec.container.app.volume_mounts[0].host_path.path": "host_path: log",
        "spec.container.app.volume_mounts[0].host_path.type": "host_path_type: Folder",
        'spec.container.app.env.variables["A="]': "- name: A=",
    }


def test_errors_of_the_second_document_have_its_lines() -> None:
    text = as_yaml(a_manifest(), a_manifest({"app.image.tag": ""}))
    first, second = reader.load(text.encode(), SOURCE)
    assert validate.validate(first) == []
    (diagnostic,) = validate.validate(second)
    assert text.splitlines()[diagnostic.location.line - 1].strip() == "image:"
    assert diagnostic.location.line > len(as_yaml(a_manifest()).splitlines())


def test_control_characters_in_values_are_escaped() -> None:
    (diagnostic,) = problems({"metadata.name": "a\nb\x1b[31m"})
    assert str(diagnostic).startswith(f'{SOURCE}:4:3: metadata.name: "a\\nb\\x1b[31m" is invalid; expected')
    assert str(diagnostic).isprintable()


@pytest.mark.parametrize("letter", ["x", "\u061c", '"'])
def test_long_values_are_truncated_in_messages(letter: str) -> None:
    """With aliases, a small file has a thousand of them, and a hidden character is printed as six."""
    labels = {f"k{number}": letter * 60_000 for number in range(3)}
    for diagnostic in problems({"metadata.labels": labels}):
        assert len(diagnostic.message) <= 1_001
        assert diagnostic.message.endswith("with a letter or digit at both ends")
