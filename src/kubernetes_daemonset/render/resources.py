"""Message -> Kubernetes objects, in the order in which they are to be made.

Pure: every backend takes these objects and builds none of its own.
"""

import base64
from collections.abc import Mapping
from typing import Final

from kubernetes_daemonset import annotations, names
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetRbacRule, KubernetesDaemonSetSpec
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.objects import Json
from kubernetes_daemonset.pod import pod_spec

_RBAC: Final = "rbac.authorization.k8s.io"


def render(given: KubernetesDaemonSetStackInput) -> list[Json]:
    """Everything that a valid manifest asks for; what others need comes first."""
    return [*_for_the_pods(given), _daemon_set(given)]


def named(given: KubernetesDaemonSetStackInput) -> list[Json]:
    """The same objects, of the DaemonSet only what it is called: the sum of its secrets takes its time."""
    manifest = given.target
    metadata = {"name": manifest.metadata.name, "namespace": names.namespace(manifest)}
    return [*_for_the_pods(given), {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata}]


def _for_the_pods(given: KubernetesDaemonSetStackInput) -> list[Json]:
    manifest = given.target
    found = [
        _namespace(manifest),
        _service_account(manifest),
        *_config_maps(manifest),
        _env_secret(manifest),
        _pull_secret(given),
        *_rights(manifest),
    ]
    return [one for one in found if one is not None]


def pull_secrets(given: KubernetesDaemonSetStackInput) -> list[str]:
    spec = given.target.spec
    made = names.pull_secret(given.target) if given.docker_config_json else ""
    return [
        name
        for name in dict.fromkeys([made, spec.container.app.image.pull_secret_name, *spec.image_pull_secrets])
        if name
    ]


def _namespace(manifest: KubernetesDaemonSet) -> Json | None:
    if not manifest.spec.create_namespace:
        return None
    # Several components may share a namespace, so it carries nothing of any one of them.
    metadata = {"name": names.namespace(manifest), "labels": {names.MANAGED_BY_LABEL: names.MANAGED_BY}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _service_account(manifest: KubernetesDaemonSet) -> Json | None:
    if not manifest.spec.create_service_account:
        return None
    metadata = _metadata(manifest, names.service_account(manifest), annotations.of_account(manifest))
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _config_maps(manifest: KubernetesDaemonSet) -> list[Json]:
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _of_object(manifest, name), "data": {name: text}}
        for name, text in sorted(manifest.spec.config_maps.items())
    ]


def _env_secret(manifest: KubernetesDaemonSet) -> Json | None:
    data = names.secret_texts(manifest)
    return _secret(manifest, names.env_secret(manifest), "Opaque", data) if data else None


def _pull_secret(given: KubernetesDaemonSetStackInput) -> Json | None:
    if not given.docker_config_json:
        return None
    data = {".dockerconfigjson": given.docker_config_json}
    return _secret(given.target, names.pull_secret(given.target), "kubernetes.io/dockerconfigjson", data)


def _secret(manifest: KubernetesDaemonSet, name: str, kind: str, data: Mapping[str, str]) -> Json:
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    metadata = _of_object(manifest, name)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind, "data": encoded}


def _rights(manifest: KubernetesDaemonSet) -> list[Json]:
    rbac = manifest.spec.rbac
    found: list[Json] = []
    if rbac.cluster_rules:
        metadata = _of_object(manifest, names.cluster_role(manifest), namespaced=False)
        found += _role(manifest, "ClusterRole", metadata, [_rule(one) for one in rbac.cluster_rules])
    if rbac.namespace_rules:
        metadata = _of_object(manifest, manifest.metadata.name)
        found += _role(manifest, "Role", metadata, [_rule(one) for one in rbac.namespace_rules])
    return found


def _role(manifest: KubernetesDaemonSet, kind: str, metadata: Json, rules: list[Json]) -> list[Json]:
    subject = {
        "kind": "ServiceAccount",
        "name": names.service_account(manifest),
        "namespace": names.namespace(manifest),
    }
    version = f"{_RBAC}/v1"
    return [
        {"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules},
        {
            "apiVersion": version,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]},
            "subjects": [subject],
        },
    ]


def _rule(one: KubernetesDaemonSetRbacRule) -> Json:
    if one.non_resource_urls:
        return {"nonResourceURLs": list(one.non_resource_urls), "verbs": list(one.verbs)}
    rule: Json = {"apiGroups": list(one.api_groups), "resources": list(one.resources), "verbs": list(one.verbs)}
    return rule | ({"resourceNames": list(one.resource_names)} if one.resource_names else {})


def _daemon_set(given: KubernetesDaemonSetStackInput) -> Json:
    manifest, spec = given.target, given.target.spec
    metadata = _metadata(manifest, manifest.metadata.name, annotations.of_daemon_set(manifest))
    body: Json = {"selector": {"matchLabels": names.selector(manifest)}, "updateStrategy": _update_strategy(spec)}
    if spec.min_ready_seconds:
        body["minReadySeconds"] = spec.min_ready_seconds
    if spec.HasField("revision_history_limit"):
        body["revisionHistoryLimit"] = spec.revision_history_limit
    body["template"] = {"metadata": _pod_metadata(manifest), "spec": pod_spec(manifest, pull_secrets(given))}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": body}


def _update_strategy(spec: KubernetesDaemonSetSpec) -> Json:
    given = spec.update_strategy
    if given.type == "OnDelete":
        return {"type": "OnDelete"}
    unavailable, surge = given.rolling_update.max_unavailable, given.rolling_update.max_surge
    if any(digit in surge for digit in "123456789"):
        # Kubernetes takes 1 for max_unavailable if it is left out, and then refuses the surge.
        unavailable = unavailable or "0"
    rolling = {
        key: int(value) if value.isdecimal() else value
        for key, value in (("maxUnavailable", unavailable), ("maxSurge", surge))
        if value
    }
    return {"type": "RollingUpdate"} | ({"rollingUpdate": rolling} if rolling else {})


def _pod_metadata(manifest: KubernetesDaemonSet) -> Json:
    metadata: Json = {"labels": dict(sorted((names.labels(manifest) | dict(manifest.spec.pod_labels)).items()))}
    return metadata | _annotated(annotations.of_pods(manifest))


def _of_object(manifest: KubernetesDaemonSet, name: str, *, namespaced: bool = True) -> Json:
    return _metadata(manifest, name, annotations.of_object(manifest), namespaced=namespaced)


def _metadata(
    manifest: KubernetesDaemonSet, name: str, annotated: Mapping[str, str], *, namespaced: bool = True
) -> Json:
    metadata: Json = {"name": name} | ({"namespace": names.namespace(manifest)} if namespaced else {})
    return metadata | {"labels": names.labels(manifest)} | _annotated(annotated)


def _annotated(given: Mapping[str, str]) -> Json:
    return {"annotations": dict(given)} if given else {}
