"""What applying a manifest would do: objects before and after. Pure."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from kubernetes_daemonset.objects import Json

# What a server changes by itself.
_NOT_ESSENTIAL: Final = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink")
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


@dataclass(frozen=True, slots=True)
class Ref:
    """One object of a cluster."""

    kind: str
    name: str
    namespace: str = ""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        return cls(body["kind"], body["metadata"]["name"], body["metadata"].get("namespace", ""))

    def __str__(self) -> str:
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"


@dataclass(frozen=True, slots=True)
class Change:
    """One object before and after; either may not be there."""

    ref: Ref
    before: Json | None
    after: Json | None

    @property
    def verb(self) -> str:
        if self.before is None:
            return "create"
        if self.after is None:
            return "delete"
        return "unchanged" if essence(self.before) == essence(self.after) else "change"


@dataclass(frozen=True, slots=True)
class Plan:
    """What applying would do, tried out on the server: the objects to apply in their order, and what then goes."""

    objects: tuple[Json, ...]
    changes: tuple[Change, ...]
    warnings: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()  # fields that would change and that another manager owns

    @property
    def new_namespaces(self) -> list[Ref]:
        return [one.ref for one in self.changes if one.ref.kind == "Namespace" and one.before is None]


def used_by_pods(objects: Sequence[Json]) -> set[tuple[str, str]]:
    """Kind and name of everything that the pods name, whoever made it."""
    spec = next(one for one in objects if one["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    used = {("ServiceAccount", spec.get("serviceAccountName", ""))}
    used |= {("Secret", one["name"]) for one in spec.get("imagePullSecrets", [])}
    for volume in spec.get("volumes", []):
        used |= {("ConfigMap", volume.get("configMap", {}).get("name", ""))}
        used |= {("Secret", volume.get("secret", {}).get("secretName", ""))}
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        for source in container.get("envFrom", []):
            used |= {("ConfigMap", source.get("configMapRef", {}).get("name", ""))}
            used |= {("Secret", source.get("secretRef", {}).get("name", ""))}
        for variable in container.get("env", []):
            source = variable.get("valueFrom", {})
            used |= {("ConfigMap", source.get("configMapKeyRef", {}).get("name", ""))}
            used |= {("Secret", source.get("secretKeyRef", {}).get("name", ""))}
    return used


def essence(body: Json) -> Json:
    """An object without what changes by itself, for comparing and showing."""
    kept = copy.deepcopy(body)
    kept.pop("status", None)
    metadata = kept["metadata"]
    for key in _NOT_ESSENTIAL:
        metadata.pop(key, None)
    annotations = metadata.get("annotations", {})
    annotations.pop(_TEMPLATE_GENERATION, None)
    if not annotations:
        metadata.pop("annotations", None)
    return kept
