"""What containers are told by variables."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubernetes_daemonset import names
from kubernetes_daemonset.api.shared.container_pb2 import ContainerEnvVar, EnvFrom, FieldRef, KubernetesSecretKeyRef
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetEnvValue
from kubernetes_daemonset.objects import Json
from kubernetes_daemonset.pod.fields import given, optional, plain

# What every agent is told about where it runs. HOSTNAME is left to Kubernetes: programs take it for a name.
_BUILT_IN: Final = {
    "K8S_NODE_NAME": "spec.nodeName",
    "K8S_POD_ID": "metadata.name",
    "K8S_POD_IP": "status.podIP",
}
# $(NAME), but not $$(NAME), which is how to write it without meaning it.
REFERENCE: Final = re.compile(r"(?<!\$)(?:\$\$)*\$\(([^()]+)\)")


def of_app(manifest: KubernetesDaemonSet) -> list[Json]:
    """Built-in variables, then the manifest's by name, secret ones last; one that uses $(ANOTHER) comes after that one,
    since Kubernetes fills in only what stands before.
    """
    env = manifest.spec.container.app.env
    found = {name: {"name": name, "valueFrom": _field(FieldRef(field_path=path))} for name, path in _BUILT_IN.items()}
    found |= {name: variable(name, env.variables[name]) for name in sorted(env.variables)}
    for name in sorted(env.secrets):
        value = env.secrets[name]
        key = _secret_key(value.secret_ref) if value.HasField("secret_ref") else _own_key(manifest, name)
        found[name] = {"name": name, "valueFrom": key}
    return in_order_of_use(found)


def variable(name: str, source: KubernetesDaemonSetEnvValue | ContainerEnvVar) -> Json:
    if source.HasField("secret_ref"):
        return {"name": name, "valueFrom": _secret_key(source.secret_ref)}
    if source.HasField("field_ref"):
        return {"name": name, "valueFrom": _field(source.field_ref)}
    if source.HasField("config_map_key_ref"):
        return {"name": name, "valueFrom": {"configMapKeyRef": plain(source.config_map_key_ref)}}
    if source.HasField("resource_field_ref"):
        return {"name": name, "valueFrom": {"resourceFieldRef": plain(source.resource_field_ref)}}
    return {"name": name, "value": source.value}


def whole_sources(sources: Iterable[EnvFrom]) -> list[Json] | None:
    """ConfigMaps and Secrets of which every key becomes a variable."""
    return [
        given(
            {
                "prefix": one.prefix or None,
                "configMapRef": plain(one.config_map_ref) if one.HasField("config_map_ref") else None,
                "secretRef": plain(one.secret_ref) if one.HasField("secret_ref") else None,
            }
        )
        for one in sources
    ] or None


def in_order_of_use(variables: Mapping[str, Json]) -> list[Json]:
    """The same, each after those that it uses. A circle is left as it is: Kubernetes leaves such a text alone."""
    placed: dict[str, Json] = {}
    for first in variables:
        waiting = {} if first in placed else {first: _used(variables[first])}
        while waiting:
            name, rest = next(reversed(waiting.items()))
            needed = next((one for one in rest if one in variables and one not in placed and one not in waiting), None)
            if needed is None:
                placed[name] = variables[name]
                del waiting[name]
            else:
                waiting[needed] = _used(variables[needed])
    return list(placed.values())


def _used(one: Json) -> Iterator[str]:
    """The names that a variable's text holds; each is looked at once, however often the variable is come back to."""
    return iter(REFERENCE.findall(one.get("value", "")))


def _own_key(manifest: KubernetesDaemonSet, name: str) -> Json:
    return {"secretKeyRef": {"name": names.env_secret(manifest), "key": name}}


def _secret_key(this: KubernetesSecretKeyRef) -> Json:
    """Without the namespace: it is always the pod's own."""
    return {"secretKeyRef": {"name": this.name, "key": this.key, **optional(this, "optional")}}


def _field(this: FieldRef) -> Json:
    """With the version that the server would add: what it adds looks to another manager like someone's change."""
    return {"fieldRef": {"apiVersion": this.api_version or "v1", "fieldPath": this.field_path}}
