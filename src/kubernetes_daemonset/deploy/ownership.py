"""Ownership of objects: who manages an object, and whether this tool is allowed to change or delete it. Pure.

Labels identify the component of an object, not the tool that manages it: Terraform, Pulumi and `render` set them, too.
The server records the tool: the field manager that applies an object owns its label. Each tool applies with its own
field manager, and changes and deletes only its own objects.
"""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.deploy.plan import Ref
from kubernetes_daemonset.render import naming
from kubernetes_daemonset.types import Json

_OUR_LABEL: Final = f"f:{naming.MANAGED_BY_LABEL}"  # as managed fields are written


def belongs_to(manifest: KubernetesDaemonSet, live: Json) -> bool:
    """Return whether the object belongs to this component, regardless of the tool that manages it."""
    labels = live["metadata"].get("labels", {})
    return all(labels.get(key) == value for key, value in naming.owned(manifest).items())


def managed_by_us(live: Json) -> bool:
    return naming.MANAGED_BY in _managers(live)


def other_managers(live: Json) -> list[str]:
    """Return the other tools that apply the whole object, not those that own only some of its fields."""
    return sorted(_managers(live) - {naming.MANAGED_BY})


def takeover_blockers(manifest: KubernetesDaemonSet, body: Json, live: Json | None, *, adopt: bool) -> Iterator[str]:
    """Yield why an existing object must not be taken over."""
    if live is None or body["kind"] == "Namespace":
        return
    ref = Ref.of(body)
    if body["kind"] == "DaemonSet" and live["spec"]["selector"] != body["spec"]["selector"]:
        selector = _as_text(live["spec"]["selector"])
        # The original's selector, app=daemonset, is a label of our pods too.
        old_pods = ",".join(filter(None, [selector, f"{naming.MANAGED_BY_LABEL}!={naming.MANAGED_BY}"]))
        yield (
            f"{ref}: exists with selector {selector}, which is immutable; run kubectl delete daemonset"
            f" {ref.name} --namespace {ref.namespace} --cascade=orphan, apply again, then delete the old pods with"
            f" kubectl delete pods --namespace {ref.namespace} --selector {shlex.quote(old_pods)}"
        )
    elif belongs_to(manifest, live):
        if not managed_by_us(live) and not adopt:
            tools = _named(other_managers(live))
            yield f"{ref}: is managed by {tools}; deploy it with that tool, or use --adopt to take it over"
    elif _carries_our_label(live):
        component = live["metadata"]["labels"].get(naming.NAME, "?")
        yield f"{ref}: belongs to component {component}; rename this one"
    elif not adopt:
        managers = sorted({entry.get("manager", "?") for entry in _managed(live)})
        yield f"{ref}: is managed by {_named(managers)}; rename the component, or use --adopt to take it over"


def _as_text(selector: Mapping[str, Any]) -> str:
    """Return the selector in kubectl syntax."""
    labels = [f"{key}={value}" for key, value in selector.get("matchLabels", {}).items()]
    return ",".join([*labels, *map(_requirement, selector.get("matchExpressions", []))])


def _requirement(requirement: Mapping[str, Any]) -> str:
    key, values = str(requirement["key"]), ",".join(requirement.get("values", []))
    forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "DoesNotExist": f"!{key}"}
    return forms.get(requirement["operator"], key)


def _carries_our_label(live: Json) -> bool:
    return bool(live["metadata"].get("labels", {}).get(naming.MANAGED_BY_LABEL) == naming.MANAGED_BY)


def _managers(live: Json) -> set[str]:
    return {
        entry.get("manager", "?")
        for entry in _managed(live)
        if _OUR_LABEL in entry.get("fieldsV1", {}).get("f:metadata", {}).get("f:labels", {})
    }


def _managed(live: Json) -> list[Json]:
    entries: list[Json] = live["metadata"].get("managedFields", [])
    return entries


def _named(managers: list[str]) -> str:
    return ", ".join(managers) or "another tool"
