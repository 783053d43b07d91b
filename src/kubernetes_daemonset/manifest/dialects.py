"""Normalize the syntax variants of existing manifests to the one of the .proto files.

The original changed its format four times without converting manifests: a host path was a text and is now a mapping,
variables were a mapping and are now a list. All variants are supported, and so are fields pasted from Kubernetes
manifests. A function here takes a node and returns the normalized node. It returns unknown nodes unchanged, so that the
reader reports them.
"""

from collections.abc import Callable, Mapping
from typing import Final

from yaml import MappingNode, Node, ScalarNode, SequenceNode

from kubekit.names import image_parts
from kubernetes_daemonset.manifest.yamltree import is_null, mapping, pairs, scalar

API_VERSION: Final = "kubernetes.project-planton.org/v1"
_SUCCESSORS_API_VERSION: Final = "kubernetes.planton.dev/v1"

_PLANTON: Final = "org.project_planton."
_KUBERNETES: Final = _PLANTON + "provider.kubernetes."
_COMPONENT: Final = _KUBERNETES + "kubernetesdaemonset.v1."

_INTEGER: Final = "tag:yaml.org,2002:int"


def normalize(message: str, node: Node) -> Node:
    """Return the node in the form that the message of this name requires."""
    shape = _SHAPES.get(message)
    return shape(node) if shape else node


def as_mapping(field: str, node: Node) -> Node:
    """Return the node in the form that this map field requires: a list of `{name: …, …}` becomes a mapping by name."""
    if field not in _LISTED_BY_NAME or not isinstance(node, SequenceNode):
        return node
    items: list[tuple[Node, Node]] = []
    for item in node.value:
        named = _take(item, "name") if isinstance(item, MappingNode) else None
        if named is None or named[0] is None:
            return node
        items.append((named[0], named[1]))
    return mapping(items, node)


def _scalar_as(key: str, *aliases: str) -> Callable[[Node], Node]:
    """Return a function that turns a scalar into a mapping with this key; aliases are other names of the key."""

    def shape(node: Node) -> Node:
        if isinstance(node, ScalarNode) and not is_null(node):
            return mapping([(scalar(key, node), node)], node)
        return _renamed(node, dict.fromkeys(aliases, key))

    return shape


def _resource(node: Node) -> Node:
    return _renamed(node, {}, {"apiVersion": _api_version, "api_version": _api_version})


def _api_version(node: Node) -> Node:
    return scalar(API_VERSION, node) if isinstance(node, ScalarNode) and node.value == _SUCCESSORS_API_VERSION else node


def _variable(node: Node) -> Node:
    """Normalize a variable's source: a text, or a mapping; Kubernetes' valueFrom has its source one level deeper."""
    return _lifted(_scalar_as("value", "string_value", "stringValue")(node))


def _lifted(node: Node) -> Node:
    if not isinstance(node, MappingNode):
        return node
    items: list[tuple[Node, Node]] = []
    for key, value in pairs(node):
        inner = (
            list(pairs(value)) if _text(key) in {"valueFrom", "value_from"} and isinstance(value, MappingNode) else []
        )
        if len(inner) == 1 and _text(inner[0][0]) in _KUBERNETES_SOURCES:
            source, what = inner[0]
            items.append((scalar(_KUBERNETES_SOURCES[_text(source)], source), what))
        else:
            items.append((key, value))
    return mapping(items, node)


def _volume_mount(node: Node) -> Node:
    """Merge `host_path: /var/log` and `host_path_type: Directory`, which the first dialect wrote as two fields."""
    if not isinstance(node, MappingNode):
        return node
    items = list(pairs(node))
    typed = [(key, value) for key, value in items if _text(key) in {"host_path_type", "hostPathType"}]
    paths = [(key, value) for key, value in items if _text(key) in {"host_path", "hostPath"}]
    if len(typed) != 1 or len(paths) != 1:
        return node
    path = _scalar_as("path")(paths[0][1])
    if not isinstance(path, MappingNode):
        return node
    whole = mapping([*pairs(path), (scalar("type", typed[0][0]), typed[0][1])], path)
    return mapping(
        [(key, whole if key is paths[0][0] else value) for key, value in items if key is not typed[0][0]], node
    )


def _image(node: Node) -> Node:
    if not isinstance(node, ScalarNode) or is_null(node):
        return _renamed(node, {"repository": "repo"})
    parts = zip(("repo", "tag", "digest"), image_parts(node.value), strict=True)
    return mapping([(scalar(key, node), scalar(text, node)) for key, text in parts if text], node)


def _container(node: Node) -> Node:
    """Join a sidecar's image, which is one text, if it is written as `{repo, tag}` like that of the app."""
    return _renamed(node, {}, {"image": _joined_image})


def _joined_image(node: Node) -> Node:
    if not isinstance(node, MappingNode):
        return node
    scalars = [(_text(key), value) for key, value in pairs(node) if isinstance(value, ScalarNode)]
    parts = {key: "" if is_null(value) else value.value for key, value in scalars}
    if not parts.get("repo") or parts.keys() - {"repo", "tag", "digest"}:
        return node
    tag = f":{parts['tag']}" if parts.get("tag") else ""
    digest = f"@{parts['digest']}" if parts.get("digest") else ""
    return scalar(f"{parts['repo']}{tag}{digest}", node)


def _port(node: Node) -> Node:
    """Split Kubernetes' `port`, a number or a name, into the two fields of the .proto files."""
    if not isinstance(node, MappingNode):
        return node
    return mapping(
        [
            (scalar("port_number" if value.tag == _INTEGER else "port_name", key), value)
            if _text(key) == "port" and isinstance(value, ScalarNode)
            else (key, value)
            for key, value in pairs(node)
        ],
        node,
    )


def _amounts(node: Node) -> Node:
    """Move resources that have no field of their own to `other`; Kubernetes has all of them on one level."""
    if not isinstance(node, MappingNode):
        return node
    named: list[tuple[Node, Node]] = []
    other: list[tuple[Node, Node]] = []
    for key, value in pairs(node):
        if "/" in _text(key) or _text(key).startswith("hugepages-"):
            other.append((key, value))
        elif _text(key) == "ephemeral-storage":
            named.append((scalar("ephemeral_storage", key), value))
        else:
            named.append((key, value))
    return (
        mapping([*named, (scalar("other", other[0][0]), mapping(other, node))], node) if other else mapping(named, node)
    )


def _renamed(node: Node, names: Mapping[str, str], values: Mapping[str, Callable[[Node], Node]] | None = None) -> Node:
    """Return the mapping with keys renamed and the values of some keys reshaped."""
    if not isinstance(node, MappingNode):
        return node
    reshape = values or {}
    return mapping(
        [
            (
                scalar(names[_text(key)], key) if _text(key) in names else key,
                reshape[_text(key)](value) if _text(key) in reshape else value,
            )
            for key, value in pairs(node)
        ],
        node,
    )


def _take(node: MappingNode, wanted: str) -> tuple[Node | None, Node]:
    """Return the value of a key, and the mapping without it."""
    values = [value for key, value in pairs(node) if _text(key) == wanted]
    rest = [(key, value) for key, value in pairs(node) if _text(key) != wanted]
    return (values[0] if len(values) == 1 else None), mapping(rest, node)


def _text(key: Node) -> str:
    return key.value if isinstance(key, ScalarNode) else ""


_KUBERNETES_SOURCES: Final = {
    "fieldRef": "field_ref",
    "field_ref": "field_ref",
    "resourceFieldRef": "resource_field_ref",
    "resource_field_ref": "resource_field_ref",
    "configMapKeyRef": "config_map_key_ref",
    "config_map_key_ref": "config_map_key_ref",
    "secretKeyRef": "secret_ref",
    "secret_key_ref": "secret_ref",
}

_LISTED_BY_NAME: Final = {
    _COMPONENT + "KubernetesDaemonSetContainerAppEnv.variables",
    _COMPONENT + "KubernetesDaemonSetContainerAppEnv.secrets",
}

_SHAPES: Final[dict[str, Callable[[Node], Node]]] = {
    _COMPONENT + "KubernetesDaemonSet": _resource,
    _COMPONENT + "KubernetesDaemonSetEnvValue": _variable,
    _KUBERNETES + "ConfigMapSource": _scalar_as("name"),
    _KUBERNETES + "Container": _container,
    _KUBERNETES + "ContainerEnvVar": _lifted,
    _KUBERNETES + "ContainerImage": _image,
    _KUBERNETES + "CpuMemory": _amounts,
    _KUBERNETES + "HostPathSource": _scalar_as("path"),
    _KUBERNETES + "HttpGetAction": _port,
    _KUBERNETES + "KubernetesSensitiveValue": _variable,
    _KUBERNETES + "SecretSource": _scalar_as("name", "secret_name", "secretName"),
    _KUBERNETES + "TcpSocketAction": _port,
    _KUBERNETES + "VolumeMount": _volume_mount,
    _PLANTON + "shared.foreignkey.v1.StringValueOrRef": _scalar_as("value"),
}
