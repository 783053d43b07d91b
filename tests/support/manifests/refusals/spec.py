"""Invalid fields of the component as a whole."""

from typing import Final

from tests.support.manifests.builders import GONE
from tests.support.manifests.refusals.case import Refusal, rows

RESOURCE: Final = [
    Refusal(
        "another API",
        {"apiVersion": "apps/v1"},
        "api_version",
        '"apps/v1" is invalid; expected kubernetes.project-planton.org/v1',
    ),
    Refusal("no API", {"apiVersion": GONE}, "api_version", "expected kubernetes.project-planton.org/v1"),
    Refusal("no metadata", {"metadata": GONE}, "metadata", "is required"),
    Refusal("no spec", {"spec": GONE}, "spec", "is required"),
    Refusal("no name", {"metadata.name": ""}, "metadata.name", "is required; the DaemonSet"),
    Refusal(
        "a name with capitals",
        {"metadata.name": "Bad_Name"},
        "metadata.name",
        '"Bad_Name" is invalid; expected a DaemonSet name',
    ),
    Refusal("a long name", {"metadata.name": "a" * 64}, "metadata.name", "at most 63 lowercase letters"),
    Refusal(
        "a name that ends in a hyphen",
        {"metadata.name": "a-"},
        "metadata.name",
        '"a-" is invalid; expected a DaemonSet name',
    ),
    Refusal(
        "a relationship to nothing",
        {"metadata.relationships": [{"kind": "AwsEksCluster", "type": "runs_on"}]},
        "metadata.relationships[0].name",
        "is required",
    ),
    Refusal(
        "a label that is none",
        {"metadata.labels": {"a b": "c"}},
        'metadata.labels["a b"]',
        '"a b" is invalid; expected a label key',
    ),
    Refusal(
        "a label of a domain that is none",
        {"metadata.labels": {"a..b/c": "d"}},
        'metadata.labels["a..b/c"]',
        '"a..b/c" is invalid; expected a label key',
    ),
    Refusal(
        "a label with a long value",
        {"metadata.labels": {"a": "b" * 64}},
        "metadata.labels.a",
        "is invalid; expected a label value",
    ),
    Refusal(
        "an annotation that is none",
        {"metadata.annotations": {"-a": "b"}},
        "metadata.annotations.-a",
        '"-a" is invalid; expected an annotation key',
    ),
    Refusal(
        "a label that is the component's own",
        {"metadata.labels": {"app.kubernetes.io/name": "other"}},
        'metadata.labels["app.kubernetes.io/name"]',
        'is reserved: the component sets it to "agent" and selects its own objects by it; remove it',
    ),
    Refusal(
        "a pod label that is the component's own",
        {"spec.pod_labels": {"app.kubernetes.io/managed-by": "me"}},
        'spec.pod_labels["app.kubernetes.io/managed-by"]',
        'is reserved: the component sets it to "kubernetes-daemonset"',
    ),
    Refusal(
        "a pod label that is none",
        {"spec.pod_labels": {"a/b/c": ""}},
        'spec.pod_labels["a/b/c"]',
        "is invalid; expected a label key",
    ),
    Refusal(
        "a pod annotation that is none",
        {"spec.pod_annotations": {"a b": ""}},
        'spec.pod_annotations["a b"]',
        "is invalid; expected an annotation key",
    ),
    Refusal(
        "an account's annotation that is none",
        {"spec.create_service_account": True, "spec.service_account_annotations": {"a b": ""}},
        'spec.service_account_annotations["a b"]',
        "is invalid; expected an annotation key",
    ),
]

SPEC: Final = [
    Refusal("no namespace", {"spec.namespace": GONE}, "spec.namespace", "is required"),
    Refusal(
        "an empty namespace", {"spec.namespace": {}}, "spec.namespace", "is empty; expected the name of a namespace"
    ),
    Refusal(
        "a namespace with capitals",
        {"spec.namespace": "Logs"},
        "spec.namespace",
        '"Logs" is invalid; expected a namespace name',
    ),
    Refusal(
        "a namespace that is elsewhere",
        {"spec.namespace": {"value_from": {"name": "logs", "field_path": "spec.name"}}},
        "spec.namespace.value_from",
        "spec.name of logs cannot be resolved by this tool; set value instead",
    ),
    Refusal(
        "a reference to nothing",
        {"spec.namespace": {"value_from": {"name": "", "field_path": "spec.name"}}},
        "spec.namespace.value_from.name",
        "is required",
    ),
    Refusal(
        "a cluster that is none",
        {"spec.target_cluster": {"cluster_kind": "AwsVpc", "cluster_name": "a"}},
        "spec.target_cluster.cluster_kind",
        "is not a cluster kind",
    ),
    Refusal("no containers", {"spec.container": GONE}, "spec.container", "is required"),
    Refusal("no app", {"app": GONE}, "app", "is required"),
    Refusal(
        "an old time",
        {"spec.min_ready_seconds": -1},
        "spec.min_ready_seconds",
        "-1 is invalid; expected 0 or more seconds",
    ),
    Refusal(
        "an old end",
        {"spec.termination_grace_period_seconds": -1},
        "spec.termination_grace_period_seconds",
        "-1 is invalid; expected 0 or more seconds",
    ),
    Refusal(
        "less than no revisions",
        {"spec.revision_history_limit": -1},
        "spec.revision_history_limit",
        "-1 is invalid; expected 0 or more revisions",
    ),
    Refusal(
        "another DNS policy",
        {"spec.dns_policy": "None"},
        "spec.dns_policy",
        '"None" is invalid; expected Clust',
    ),
    Refusal(
        "an account with capitals",
        {"spec.service_account_name": "Robot"},
        "spec.service_account_name",
        '"Robot" is invalid; expected a service account name',
    ),
    Refusal(
        "an account with an empty part",
        {"spec.service_account_name": "a..b"},
        "spec.service_account_name",
        '"a..b" is invalid; expected a service account name',
    ),
    Refusal(
        "a priority class with capitals",
        {"spec.priority_class_name": "High"},
        "spec.priority_class_name",
        '"High" is invalid; expected an object name',
    ),
    Refusal(
        "a runtime class with spaces",
        {"spec.runtime_class_name": "a b"},
        "spec.runtime_class_name",
        '"a b" is invalid; expected an object name',
    ),
    Refusal(
        "a pull secret without a name",
        {"spec.image_pull_secrets": [""]},
        "spec.image_pull_secrets[0]",
        '"" is invalid; expected an object name',
    ),
    Refusal(
        "a pull secret with capitals",
        {"spec.image_pull_secrets": ["login", "Login"]},
        "spec.image_pull_secrets[1]",
        '"Login" is invalid; expected an object name',
    ),
    Refusal(
        "a ConfigMap without a name",
        {"spec.config_maps": {"": "a"}},
        'spec.config_maps[""]',
        '"" is invalid; expected an object name',
    ),
    Refusal(
        "a ConfigMap with capitals",
        {"spec.config_maps": {"Agent.conf": ""}},
        'spec.config_maps["Agent.conf"]',
        '"Agent.conf" is invalid; expected an object name',
    ),
    Refusal(
        "a ConfigMap of more than a megabyte",
        {"spec.config_maps": {"agent.conf": "é" * 524_289}},
        'spec.config_maps["agent.conf"]',
        "1,048,578 bytes are too large for a ConfigMap; expected at most 1,048,576",
    ),
    Refusal(
        "secrets of more than a megabyte",
        {"app.env.secrets": {"A": "a" * 1_000_000, "B": "b" * 100_000}},
        "app.env.secrets",
        "1,100,000 bytes are too large for a Secret",
    ),
    Refusal(
        "annotations of more than 256 KiB",
        {"metadata.annotations": {"a": "b" * 262_144}},
        "metadata.annotations",
        "262,145 bytes are too large",
    ),
    Refusal(
        "annotations of an account of more than 256 KiB together",
        {
            "spec.create_service_account": True,
            "metadata.annotations": {"a": "b" * 200_000},
            "spec.service_account_annotations": {"c": "d" * 100_000},
        },
        "spec.service_account_annotations",
        "together with metadata.annotations 300,002 bytes are too large",
    ),
    Refusal(
        "annotations of pods that leave no room for a checksum",
        {"spec.config_maps": {"a": ""}, "spec.pod_annotations": {"b": "c" * 262_100}},
        "spec.pod_annotations",
        "262,201 bytes are too large",
    ),
    Refusal(
        "annotations for no account",
        {"spec.service_account_name": "robot", "spec.service_account_annotations": {"a": "b"}},
        "spec.service_account_annotations",
        "there is no service account to annotate; set create_service_account: true",
    ),
    Refusal(
        "processes shared twice",
        {"spec.host_pid": True, "spec.share_process_namespace": True},
        "spec.share_process_namespace",
        "cannot be combined with host_pid",
    ),
    Refusal(
        "a node label that is none",
        {"spec.node_selector": {"kubernetes.io/os": "linux!"}},
        'spec.node_selector["kubernetes.io/os"]',
        '"linux!" is invalid; expected a label value',
    ),
]

TOLERATIONS: Final = [
    Refusal(what, {"spec.tolerations": [toleration]}, f"spec.tolerations[0]{field}", says)
    for what, toleration, field, says in rows(
        (
            "Exists with a value",
            {"key": "a", "operator": "Exists", "value": "b"},
            "",
            'operator Exists cannot be combined with value "b"; remove value',
        ),
        ("every taint by Equal", {"operator": "Equal", "value": "b"}, "", "requires operator: Exists"),
        ("every taint by nothing", {}, "", "a toleration without a key matches every taint"),
        (
            "seconds without an end",
            {"key": "a", "operator": "Exists", "effect": "NoSchedule", "toleration_seconds": 0},
            "",
            "toleration_seconds requires effect: NoExecute",
        ),
        (
            "seconds for every effect",
            {"key": "a", "operator": "Exists", "toleration_seconds": 60},
            "",
            "toleration_seconds requires effect: NoExecute",
        ),
        ("another operator", {"key": "a", "operator": "In"}, ".operator", '"In" is invalid; expected Exists or Equal'),
        ("another effect", {"key": "a", "effect": "Evict"}, ".effect", '"Evict" is invalid; expected NoSchedule'),
        ("a key that is none", {"key": "a b", "operator": "Exists"}, ".key", '"a b" is invalid; expected a taint key'),
        ("a value that is none", {"key": "a", "value": "b c"}, ".value", '"b c" is invalid; expected a taint value'),
    )
]

_ROLLING: Final = "spec.update_strategy.rolling_update"

UPDATES: Final = [
    Refusal(
        "another strategy",
        {"spec.update_strategy.type": "Recreate"},
        "spec.update_strategy.type",
        '"Recreate" is invalid; expected RollingUpdate or OnDelete',
    ),
    Refusal(
        "OnDelete that rolls",
        {"spec.update_strategy": {"type": "OnDelete", "rolling_update": {"max_unavailable": 1}}},
        "spec.update_strategy",
        "rolling_update cannot be combined with type: OnDelete; remove one of them",
    ),
    Refusal(
        "an update that cannot move",
        {_ROLLING: {"max_unavailable": 0, "max_surge": 0}},
        _ROLLING,
        "so no pod can be updated; increase one of them",
    ),
    Refusal("none at a time", {_ROLLING: {"max_unavailable": "0%"}}, _ROLLING, "so no pod can be updated"),
    Refusal(
        "an update both ways",
        {_ROLLING: {"max_unavailable": 1, "max_surge": "10%"}},
        _ROLLING,
        'max_unavailable is "1" and max_surge is "10%"; Kubernetes allows only one of them above 0',
    ),
    Refusal(
        "a number in words",
        {_ROLLING: {"max_unavailable": "ten"}},
        f"{_ROLLING}.max_unavailable",
        '"ten" is invalid; expected a number of nodes such as 1, or a percentage up to 100%',
    ),
    Refusal(
        "more than all",
        {_ROLLING: {"max_unavailable": "101%"}},
        f"{_ROLLING}.max_unavailable",
        "is invalid; expected a number of nodes",
    ),
    Refusal(
        "less than none",
        {_ROLLING: {"max_surge": -1}},
        f"{_ROLLING}.max_surge",
        '"-1" is invalid; expected a number of nodes',
    ),
]

_ACCOUNT: Final = {"spec.create_service_account": True}

_RULE: Final = {"api_groups": [""], "resources": ["pods"], "verbs": ["get"]}

RBAC: Final = [
    Refusal(
        "rights for nobody",
        {"spec.rbac.namespace_rules": [_RULE]},
        "spec",
        "rbac requires a service account; set create_service_account: true",
    ),
    Refusal(
        "rights to nothing",
        {**_ACCOUNT, "spec.rbac.cluster_rules": [_RULE | {"resources": []}]},
        "spec.rbac.cluster_rules[0]",
        "resources is empty",
    ),
    Refusal(
        "rights in no group",
        {**_ACCOUNT, "spec.rbac.cluster_rules": [_RULE | {"api_groups": []}]},
        "spec.rbac.cluster_rules[0]",
        'api_groups is empty; expected values such as [""] for pods',
    ),
    Refusal(
        "a rule of verbs alone",
        {**_ACCOUNT, "spec.rbac.cluster_rules": [{"verbs": ["get"]}]},
        "spec.rbac.cluster_rules[0]",
        'api_groups and resources are empty; expected values such as [""] and [pods]',
    ),
    Refusal(
        "rights to do nothing",
        {**_ACCOUNT, "spec.rbac.namespace_rules": [_RULE | {"verbs": []}]},
        "spec.rbac.namespace_rules[0].verbs",
        "verbs is empty; expected values",
    ),
    Refusal(
        "paths of a namespace",
        {**_ACCOUNT, "spec.rbac.namespace_rules": [{"non_resource_urls": ["/metrics"], "verbs": ["get"]}]},
        "spec.rbac.namespace_rules[0]",
        "non_resource_urls are not namespaced; move this rule to cluster_rules",
    ),
    Refusal(
        "paths and resources in one rule",
        {**_ACCOUNT, "spec.rbac.cluster_rules": [_RULE | {"non_resource_urls": ["/metrics"]}]},
        "spec.rbac.cluster_rules[0]",
        "write two rules",
    ),
]
