"""The chart: values with type and default, and what its objects show to the rest of a cluster."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from tests.contract.golden import Facts
from tests.support.chart import CHART, POLICIES, Object, render

_MONITORING: Final = {"enabled": True}
_COMMON: Final = {"networkPolicy": {"enabled": True}}
MODES: Final[Mapping[str, Mapping[str, Any]]] = {
    "controller": {
        **_COMMON,
        "controller": {
            "replicas": 2,
            "metrics": {
                "serviceMonitor": _MONITORING,
                "prometheusRule": _MONITORING,
                "grafanaDashboard": _MONITORING,
            },
            "config": {
                "nodeManagement": {"deleteFailedNodes": True},
                "worker": {"connectivityMatrix": True, "namespace": "workers"},
            },
        },
    },
    "daemonset": {
        **_COMMON,
        "deploymentMode": "daemonset",
        "daemonset": {
            "config": {"enableConnectivityMatrix": True},
            "metrics": {
                "podMonitor": _MONITORING,
                "prometheusRule": _MONITORING,
                "grafanaDashboard": _MONITORING,
            },
        },
    },
}
"""Values with which each mode has every object that it can have."""
_VERSIONED: Final = ("app.kubernetes.io/version", "helm.sh/chart")
_NOTHING: Final = ("", "null")


def values() -> Facts:
    """Every value that the schema knows, with its type or its choices, and its default."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    return {path: f"{kind}{_default(defaults, path)}" for path, kind in _properties(schema, schema, "")}


def objects() -> Facts:
    """Objects of both modes by kind and name: labels, rights, and the interfaces of pods."""
    return {
        f"{mode} {name}": what
        for mode, given in MODES.items()
        for made in render(given, apis=[POLICIES])
        for name, what in _facts(made)
        if what not in _NOTHING
    }


def _properties(node: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    node = _resolved(node, schema)
    if "items" in node:
        yield from _properties(node["items"], schema, f"{path}[]")
    for key, below in node.get("properties", {}).items():
        yield from _properties(below, schema, f"{path}.{key}".lstrip("."))
    if path and "properties" not in node:
        yield path, _kind(node, schema)


def _resolved(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in node:
        found: Any = schema
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def _kind(node: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "enum" in node or "const" in node:
        return "|".join(json.dumps(choice) for choice in node.get("enum", [node.get("const")]))
    if "type" in node:
        return node["type"] if isinstance(node["type"], str) else "|".join(node["type"])
    choices = node.get("anyOf", node.get("oneOf", ()))
    return "|".join(_kind(_resolved(choice, schema), schema) for choice in choices) or "anything"


def _default(tree: Any, path: str) -> str:  # noqa: ANN401  YAML
    for part in path.split("."):
        if not isinstance(tree, Mapping) or part not in tree:
            return ""
        tree = tree[part]
    return f", default {json.dumps(tree)}"


def _facts(made: Object) -> Iterator[tuple[str, str]]:
    metadata, spec = made["metadata"], made.get("spec", {})
    name = f"{made['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
    yield name, made["apiVersion"]
    yield f"{name} labels", _map(metadata.get("labels", {}))
    yield f"{name} annotations", " ".join(sorted(metadata.get("annotations", {})))
    if "data" in made:
        yield f"{name} data", " ".join(sorted(made["data"]))
    for number, rule in enumerate(made.get("rules", ())):
        yield f"{name} rule {number}", json.dumps(rule)
    shown = {"roleRef": made, "subjects": made, "ports": spec, "selector": spec, "validationActions": spec}
    for key, location in shown.items():
        if key in location:
            yield f"{name} {key}", json.dumps(location[key])
    if made["kind"] == "PrometheusRule":
        yield f"{name} alerts", " ".join(rule["alert"] for group in spec["groups"] for rule in group["rules"])
    if "template" in spec:
        yield from _pod(name, spec["template"])


def _pod(name: str, pod: Object) -> Iterator[tuple[str, str]]:
    yield f"{name} pod labels", _map(pod["metadata"]["labels"])
    yield f"{name} pod annotations", " ".join(sorted(pod["metadata"].get("annotations", {})))
    yield f"{name} tolerations", json.dumps(pod["spec"].get("tolerations"))
    yield f"{name} affinity", json.dumps(pod["spec"].get("affinity"))
    for container in pod["spec"]["containers"]:
        for key in ("command", "args", "ports", "livenessProbe", "readinessProbe", "volumeMounts", "envFrom"):
            yield f"{name} {container['name']} {key}", json.dumps(container.get(key))
        yield f"{name} {container['name']} variables", " ".join(one["name"] for one in container.get("env", ()))


def _map(given: Mapping[str, str]) -> str:
    return " ".join(key if key in _VERSIONED else f"{key}={given[key]}" for key in sorted(given))
