"""Environment variables of containers."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubernetes_daemonset.api.shared.container_pb2 import ContainerEnvVar, EnvFrom, FieldRef, KubernetesSecretKeyRef
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetEnvValue
from kubernetes_daemonset.render import naming
from kubernetes_daemonset.render.fields import drop_none, optional, to_kubernetes
from kubernetes_daemonset.types import Json

# Set in every agent. HOSTNAME is left to Kubernetes: programs read it as a host name.
_BUILT_IN: Final = {
    "K8S_NODE_NAME": "spec.nodeName",
    "K8S_POD_ID": "metadata.name",
    "K8S_POD_IP": "status.podIP",
}
# $(NAME), but not $$(NAME), which is its escaped form.
REFERENCE: Final = re.compile(r"(?<!\$)(?:\$\$)*\$\(([^()]+)\)")


def of_app(manifest: KubernetesDaemonSet) -> list[Json]:
    """Return built-in variables, those of the manifest by name, then secret ones. One with $(ANOTHER) follows that
    one, because Kubernetes resolves only references to earlier variables.
    """
    env = manifest.spec.container.app.env
    entries = {name: {"name": name, "valueFrom": _field(FieldRef(field_path=path))} for name, path in _BUILT_IN.items()}
    entries |= {name: variable(name, env.variables[name]) for name in sorted(env.variables)}
    for name in sorted(env.secrets):
        value = env.secrets[name]
        key = _secret_key(value.secret_ref) if value.HasField("secret_ref") else _own_key(manifest, name)
        entries[name] = {"name": name, "valueFrom": key}
    return sort_by_reference(entries)


def variable(name: str, source: KubernetesDaemonSetEnvValue | ContainerEnvVar) -> Json:
    if source.HasField("secret_ref"):
        return {"name": name, "valueFrom": _secret_key(source.secret_ref)}
    if source.HasField("field_ref"):
        return {"name": name, "valueFrom": _field(source.field_ref)}
    if source.HasField("config_map_key_ref"):
        return {"name": name, "valueFrom": {"configMapKeyRef": to_kubernetes(source.config_map_key_ref)}}
    if source.HasField("resource_field_ref"):
        return {"name": name, "valueFrom": {"resourceFieldRef": to_kubernetes(source.resource_field_ref)}}
    return {"name": name, "value": source.value}


def env_from(sources: Iterable[EnvFrom]) -> list[Json] | None:
    """Return the ConfigMaps and Secrets of which every key becomes a variable."""
    return [
        drop_none(
            {
                "prefix": source.prefix or None,
                "configMapRef": to_kubernetes(source.config_map_ref) if source.HasField("config_map_ref") else None,
                "secretRef": to_kubernetes(source.secret_ref) if source.HasField("secret_ref") else None,
            }
        )
        for source in sources
    ] or None


def sort_by_reference(variables: Mapping[str, Json]) -> list[Json]:
    """Return the variables, each after those that it references. Cycles stay: Kubernetes does not resolve them."""
    placed: dict[str, Json] = {}
    for first in variables:
        waiting = {} if first in placed else {first: _used(variables[first])}
        while waiting:
            name, rest = next(reversed(waiting.items()))
            needed = next(
                (
                    reference
                    for reference in rest
                    if reference in variables and reference not in placed and reference not in waiting
                ),
                None,
            )
            if needed is None:
                placed[name] = variables[name]
                del waiting[name]
            else:
                waiting[needed] = _used(variables[needed])
    return list(placed.values())


def _used(variable: Json) -> Iterator[str]:
    """Return an iterator over the names that a variable references, so that each is visited once."""
    return iter(REFERENCE.findall(variable.get("value", "")))


def _own_key(manifest: KubernetesDaemonSet, name: str) -> Json:
    return {"secretKeyRef": {"name": naming.env_secret(manifest), "key": name}}


def _secret_key(this: KubernetesSecretKeyRef) -> Json:
    """Return the reference without the namespace, which is always that of the pod."""
    return {"secretKeyRef": {"name": this.name, "key": this.key, **optional(this, "optional")}}


def _field(this: FieldRef) -> Json:
    """Return the reference with the API version, which the server would otherwise add: that looks like a change."""
    return {"fieldRef": {"apiVersion": this.api_version or "v1", "fieldPath": this.field_path}}
