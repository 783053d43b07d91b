"""The changes that applying a manifest would make: objects before and after. Pure."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from kubernetes_daemonset.types import Json

# Fields that the server changes.
_NOT_ESSENTIAL: Final = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink")
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


@dataclass(frozen=True, slots=True)
class Ref:
    """The identity of one object in a cluster."""

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
    """One object before and after; either can be missing."""

    ref: Ref
    before: Json | None
    after: Json | None

    @property
    def verb(self) -> str:
        if self.before is None:
            return "create"
        if self.after is None:
            return "delete"
        return "unchanged" if comparable(self.before) == comparable(self.after) else "change"


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of a dry run: the objects to apply in order, and all changes including deletions."""

    objects: tuple[Json, ...]
    changes: tuple[Change, ...]
    warnings: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()  # fields that would change and that another manager owns

    @property
    def new_namespaces(self) -> list[Ref]:
        return [change.ref for change in self.changes if change.ref.kind == "Namespace" and change.before is None]


def referenced_objects(objects: Sequence[Json]) -> set[tuple[str, str]]:
    """Return kind and name of all objects that the pods reference, regardless of their owner."""
    spec = next(body for body in objects if body["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    used = {("ServiceAccount", spec.get("serviceAccountName", ""))}
    used |= {("Secret", secret["name"]) for secret in spec.get("imagePullSecrets", [])}
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


def comparable(body: Json) -> Json:
    """Return an object without the fields that the server changes, for comparison and display."""
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
