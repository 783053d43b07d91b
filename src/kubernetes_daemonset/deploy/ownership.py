"""Whose an object is. Pure: an object as the cluster shows it -> who made it, and whether we may write or delete it.

Labels say for which component an object was made, and not by whom: Terraform, Pulumi and `render` give them too. By
whom is what the server notes: whoever applies an object of ours owns its label. Each tool applies under a name of its
own, and what it made is its to change and to delete.
"""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubernetes_daemonset import names
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.changes import Ref
from kubernetes_daemonset.objects import Json

_OUR_LABEL: Final = f"f:{names.MANAGED_BY_LABEL}"  # as managed fields are written


def is_of(manifest: KubernetesDaemonSet, live: Json) -> bool:
    """Whether it was made for this component, by whichever tool."""
    labels = live["metadata"].get("labels", {})
    return all(labels.get(key) == value for key, value in names.owned(manifest).items())


def made_by_us(live: Json) -> bool:
    return names.MANAGED_BY in _makers(live)


def other_makers(live: Json) -> list[str]:
    """The tools besides us that apply it as a whole; whoever owns a field or two of it is none."""
    return sorted(_makers(live) - {names.MANAGED_BY})


def objections(manifest: KubernetesDaemonSet, body: Json, live: Json | None, *, adopt: bool) -> Iterator[str]:
    """Why an object that is there already may not become ours."""
    if live is None or body["kind"] == "Namespace":
        return
    ref = Ref.of(body)
    if body["kind"] == "DaemonSet" and live["spec"]["selector"] != body["spec"]["selector"]:
        selector = _as_text(live["spec"]["selector"])
        yield (
            f"{ref}: exists with the selector {selector}, which nobody can change; run kubectl delete daemonset"
            f" {ref.name} --namespace {ref.namespace} --cascade=orphan, apply again, then end the old pods by kubectl"
            f" delete pods --namespace {ref.namespace} --selector {shlex.quote(selector)}"
        )
    elif is_of(manifest, live):
        if not made_by_us(live) and not adopt:
            yield f"{ref}: was made by {_named(other_makers(live))}; deploy it by that, or take it by --adopt"
    elif _carries_our_label(live):
        component = live["metadata"]["labels"].get(names.NAME, "?")
        yield f"{ref}: belongs to the component {component}; give this one another name"
    elif not adopt:
        managers = sorted({one.get("manager", "?") for one in _managed(live)})
        yield f"{ref}: was made by {_named(managers)}; give ours another name, or take it by --adopt"


def _as_text(selector: Mapping[str, Any]) -> str:
    """As kubectl takes it."""
    labels = [f"{key}={value}" for key, value in selector.get("matchLabels", {}).items()]
    return ",".join([*labels, *map(_requirement, selector.get("matchExpressions", []))])


def _requirement(one: Mapping[str, Any]) -> str:
    key, values = str(one["key"]), ",".join(one.get("values", []))
    forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "DoesNotExist": f"!{key}"}
    return forms.get(one["operator"], key)


def _carries_our_label(live: Json) -> bool:
    return bool(live["metadata"].get("labels", {}).get(names.MANAGED_BY_LABEL) == names.MANAGED_BY)


def _makers(live: Json) -> set[str]:
    return {
        one.get("manager", "?")
        for one in _managed(live)
        if _OUR_LABEL in one.get("fieldsV1", {}).get("f:metadata", {}).get("f:labels", {})
    }


def _managed(live: Json) -> list[Json]:
    found: list[Json] = live["metadata"].get("managedFields", [])
    return found


def _named(managers: list[str]) -> str:
    return ", ".join(managers) or "someone else"
