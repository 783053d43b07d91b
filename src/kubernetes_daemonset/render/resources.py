"""Render a message into Kubernetes objects, in the order of their creation.

Pure: every backend deploys these objects and creates no others.
"""

import base64
from collections.abc import Mapping
from typing import Final

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetRbacRule, KubernetesDaemonSetSpec
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.render import annotations, naming
from kubernetes_daemonset.render.pod import pod_spec
from kubernetes_daemonset.types import Json

_RBAC: Final = "rbac.authorization.k8s.io"


def render(stack_input: KubernetesDaemonSetStackInput) -> list[Json]:
    """Return all objects of a valid manifest; dependencies come first."""
    return [*_for_the_pods(stack_input), _daemon_set(stack_input)]


def named(stack_input: KubernetesDaemonSetStackInput) -> list[Json]:
    """Return the same objects, but only the name of the DaemonSet: the checksum of its secrets is slow."""
    manifest = stack_input.target
    metadata = {"name": manifest.metadata.name, "namespace": naming.namespace(manifest)}
    return [*_for_the_pods(stack_input), {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata}]


def _for_the_pods(stack_input: KubernetesDaemonSetStackInput) -> list[Json]:
    manifest = stack_input.target
    objects = [
        _namespace(manifest),
        _service_account(manifest),
        *_config_maps(manifest),
        _env_secret(manifest),
        _pull_secret(stack_input),
        *_rights(manifest),
    ]
    return [body for body in objects if body is not None]


def pull_secrets(stack_input: KubernetesDaemonSetStackInput) -> list[str]:
    spec = stack_input.target.spec
    created = naming.pull_secret(stack_input.target) if stack_input.docker_config_json else ""
    return [
        name
        for name in dict.fromkeys([created, spec.container.app.image.pull_secret_name, *spec.image_pull_secrets])
        if name
    ]


def _namespace(manifest: KubernetesDaemonSet) -> Json | None:
    if not manifest.spec.create_namespace:
        return None
    # Several components can share a namespace, so it has no fields of any of them.
    metadata = {"name": naming.namespace(manifest), "labels": {naming.MANAGED_BY_LABEL: naming.MANAGED_BY}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _service_account(manifest: KubernetesDaemonSet) -> Json | None:
    if not manifest.spec.create_service_account:
        return None
    metadata = _metadata(manifest, naming.service_account(manifest), annotations.of_account(manifest))
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _config_maps(manifest: KubernetesDaemonSet) -> list[Json]:
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _of_object(manifest, name), "data": {name: text}}
        for name, text in sorted(manifest.spec.config_maps.items())
    ]


def _env_secret(manifest: KubernetesDaemonSet) -> Json | None:
    data = naming.secret_texts(manifest)
    return _secret(manifest, naming.env_secret(manifest), "Opaque", data) if data else None


def _pull_secret(stack_input: KubernetesDaemonSetStackInput) -> Json | None:
    if not stack_input.docker_config_json:
        return None
    data = {".dockerconfigjson": stack_input.docker_config_json}
    return _secret(stack_input.target, naming.pull_secret(stack_input.target), "kubernetes.io/dockerconfigjson", data)


def _secret(manifest: KubernetesDaemonSet, name: str, kind: str, data: Mapping[str, str]) -> Json:
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    metadata = _of_object(manifest, name)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind, "data": encoded}


def _rights(manifest: KubernetesDaemonSet) -> list[Json]:
    rbac = manifest.spec.rbac
    objects: list[Json] = []
    if rbac.cluster_rules:
        metadata = _of_object(manifest, naming.cluster_role(manifest), namespaced=False)
        objects += _role(manifest, "ClusterRole", metadata, [_rule(rule) for rule in rbac.cluster_rules])
    if rbac.namespace_rules:
        metadata = _of_object(manifest, manifest.metadata.name)
        objects += _role(manifest, "Role", metadata, [_rule(rule) for rule in rbac.namespace_rules])
    return objects


def _role(manifest: KubernetesDaemonSet, kind: str, metadata: Json, rules: list[Json]) -> list[Json]:
    subject = {
        "kind": "ServiceAccount",
        "name": naming.service_account(manifest),
        "namespace": naming.namespace(manifest),
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


def _rule(granted: KubernetesDaemonSetRbacRule) -> Json:
    if granted.non_resource_urls:
        return {"nonResourceURLs": list(granted.non_resource_urls), "verbs": list(granted.verbs)}
    rule: Json = {
        "apiGroups": list(granted.api_groups),
        "resources": list(granted.resources),
        "verbs": list(granted.verbs),
    }
    return rule | ({"resourceNames": list(granted.resource_names)} if granted.resource_names else {})


def _daemon_set(stack_input: KubernetesDaemonSetStackInput) -> Json:
    manifest, spec = stack_input.target, stack_input.target.spec
    metadata = _metadata(manifest, manifest.metadata.name, annotations.of_daemon_set(manifest))
    body: Json = {"selector": {"matchLabels": naming.selector(manifest)}, "updateStrategy": _update_strategy(spec)}
    if spec.min_ready_seconds:
        body["minReadySeconds"] = spec.min_ready_seconds
    if spec.HasField("revision_history_limit"):
        body["revisionHistoryLimit"] = spec.revision_history_limit
    body["template"] = {"metadata": _pod_metadata(manifest), "spec": pod_spec(manifest, pull_secrets(stack_input))}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": body}


def _update_strategy(spec: KubernetesDaemonSetSpec) -> Json:
    strategy = spec.update_strategy
    if strategy.type == "OnDelete":
        return {"type": "OnDelete"}
    unavailable, surge = strategy.rolling_update.max_unavailable, strategy.rolling_update.max_surge
    if any(digit in surge for digit in "123456789"):
        # Kubernetes defaults max_unavailable to 1, and then rejects the surge.
        unavailable = unavailable or "0"
    rolling = {
        key: int(value) if value.isdecimal() else value
        for key, value in (("maxUnavailable", unavailable), ("maxSurge", surge))
        if value
    }
    return {"type": "RollingUpdate"} | ({"rollingUpdate": rolling} if rolling else {})


def _pod_metadata(manifest: KubernetesDaemonSet) -> Json:
    return {"labels": naming.pod_labels(manifest)} | _annotated(annotations.of_pods(manifest))


def _of_object(manifest: KubernetesDaemonSet, name: str, *, namespaced: bool = True) -> Json:
    return _metadata(manifest, name, annotations.of_object(manifest), namespaced=namespaced)


def _metadata(
    manifest: KubernetesDaemonSet, name: str, annotated: Mapping[str, str], *, namespaced: bool = True
) -> Json:
    metadata: Json = {"name": name} | ({"namespace": naming.namespace(manifest)} if namespaced else {})
    return metadata | {"labels": naming.labels(manifest)} | _annotated(annotated)


def _annotated(annotated: Mapping[str, str]) -> Json:
    return {"annotations": dict(annotated)} if annotated else {}
