"""The kubeconfig of a stack input: checked field by field, and written from what was checked.

A kubeconfig can name programs (`exec`, `auth-provider`) and files, which client-go runs and reads where the deployment
runs. A stack input can come from another party, so these are rejected unless the environment says that it is trusted.

The check is an allowlist. client-go matches keys case-insensitively, and two YAML parsers can disagree
about duplicate keys, tags and directives. So a key must be spelled exactly, and the provider never sees the original
text, only JSON of the fields that were checked. `proxy-url` is allowed: it chooses where the connection goes, and so
does `server`.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

from yaml import MappingNode, Node, ScalarNode, SequenceNode

from kubekit.diagnostics import truncate
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest import yamltree
from kubernetes_daemonset.types import Json

TRUST: Final = "KUBERNETES_DAEMONSET_TRUST_KUBECONFIG"

_MAX_NODES: Final = 20_000  # aliases can expand a small file to billions of nodes
_TEXT_TAG: Final = "tag:yaml.org,2002:str"
_BOOLEANS: Final = {"true": True, "false": False}


class _Kind(Enum):
    TEXT = auto()
    FLAG = auto()
    TEXTS = auto()
    TEXTS_BY_NAME = auto()
    UNUSED = auto()  # client-go does not act on it; it is left out


_ENTRIES: Final = {"clusters": "cluster", "contexts": "context", "users": "user"}
_FIELDS: Final[dict[str, dict[str, _Kind]]] = {
    "": {
        "apiVersion": _Kind.TEXT,
        "kind": _Kind.TEXT,
        "current-context": _Kind.TEXT,
        "preferences": _Kind.UNUSED,
        "extensions": _Kind.UNUSED,
    },
    "cluster": {
        "server": _Kind.TEXT,
        "tls-server-name": _Kind.TEXT,
        "insecure-skip-tls-verify": _Kind.FLAG,
        "certificate-authority-data": _Kind.TEXT,
        "proxy-url": _Kind.TEXT,
        "disable-compression": _Kind.FLAG,
        "extensions": _Kind.UNUSED,
    },
    "context": {
        "cluster": _Kind.TEXT,
        "user": _Kind.TEXT,
        "namespace": _Kind.TEXT,
        "extensions": _Kind.UNUSED,
    },
    "user": {
        "token": _Kind.TEXT,
        "username": _Kind.TEXT,
        "password": _Kind.TEXT,
        "client-certificate-data": _Kind.TEXT,
        "client-key-data": _Kind.TEXT,
        "as": _Kind.TEXT,
        "as-uid": _Kind.TEXT,
        "as-groups": _Kind.TEXTS,
        "as-user-extra": _Kind.TEXTS_BY_NAME,
        "extensions": _Kind.UNUSED,
    },
}
_FIXED: Final = {"apiVersion": "v1", "kind": "Config"}
_CREDENTIALS: Final = "a token or certificate data"
# What runs a program or reads a file, in lowercase, and what to write instead.
_FORBIDDEN: Final = {
    "cluster": {"certificate-authority": "certificate-authority-data"},
    "user": {
        "exec": _CREDENTIALS,
        "auth-provider": _CREDENTIALS,
        "tokenfile": "token",
        "client-certificate": "client-certificate-data",
        "client-key": "client-key-data",
    },
}
_NAMES_OF_PROGRAMS: Final = ("command", "name")


class TrustError(Exception):
    """The variable that trusts kubeconfigs has an invalid value."""


def is_trusted(environment: Mapping[str, str]) -> bool:
    value = environment.get(TRUST, "")
    if value not in {"true", "false", ""}:
        raise TrustError(f'{TRUST}: "{value}" is invalid; expected true or false')
    return value == "true"


def problems(encoded: str, environment: Mapping[str, str]) -> list[str]:
    """Return what is wrong with a kubeconfig in base64, each with its field."""
    try:
        trusted = is_trusted(environment)
        _, root = _decoded(encoded)
    except (TrustError, ManifestError, ValueError) as error:
        return [str(error) if isinstance(error, TrustError) else "is not a kubeconfig in base64"]
    return [] if trusted else _checked(root)[1]


def for_provider(encoded: str, environment: Mapping[str, str]) -> str:
    """Return the kubeconfig for the provider: the text itself if trusted, otherwise the checked fields as JSON."""
    assert not problems(encoded, environment), "only a kubeconfig without problems is passed on"
    text, root = _decoded(encoded)
    return text if is_trusted(environment) else json.dumps(_checked(root)[0])


def _decoded(encoded: str) -> tuple[str, MappingNode]:
    """Decode a YAML mapping in base64. Raises ValueError or ManifestError if it is not one."""
    text = base64.b64decode("".join(encoded.split()), validate=True).decode()
    roots = yamltree.each_document(text.encode(), "kubeconfig")
    root = next(roots, None)
    if not isinstance(root, MappingNode) or next(roots, None) is not None:
        raise ValueError("not one mapping")
    return text, root


def _checked(root: MappingNode) -> tuple[Json, list[str]]:
    check = _Check()
    try:
        return check.config(root), check.problems
    except _TooLargeError:
        return {}, [f"is too large; expected at most {_MAX_NODES:,} values"]


class _TooLargeError(Exception):
    """There are more values than any kubeconfig has."""


@dataclass
class _Check:
    """Walks the nodes along the list of fields, returns what is allowed and records the rest."""

    problems: list[str] = field(default_factory=list)
    nodes: int = 0

    def config(self, root: MappingNode) -> Json:
        content: Json = {}
        for key, value in self._pairs(root, "", [*_FIELDS[""], *_ENTRIES]):
            if key in _ENTRIES:
                content[key] = self._entries(value, key)
            else:
                self._take(content, "", key, value, key)
        for key, expected in _FIXED.items():
            if key in content and content[key] != expected:
                self._note(key, f'"{content[key]}" is invalid; expected {expected}')
        return content

    def _entries(self, node: Node, path: str) -> list[Json]:
        singular = _ENTRIES[path]
        entries = []
        for at, item in enumerate(self._items(node, path)):
            here = f"{path}[{at}]"
            entry: Json = {}
            for key, value in self._pairs(item, here, ["name", singular]):
                if key == "name":
                    self._set(entry, key, self._text(value, f"{here}.name"))
                else:
                    entry[key] = self._section(singular, value, f"{here}.{key}")
            entries.append(entry)
        return entries

    def _section(self, section: str, node: Node, path: str) -> Json:
        fields: Json = {}
        for key, value in self._pairs(node, path, list(_FIELDS[section]), _FORBIDDEN.get(section, {})):
            self._take(fields, section, key, value, f"{path}.{key}")
        return fields

    def _take(self, fields: Json, section: str, key: str, node: Node, path: str) -> None:
        match _FIELDS[section][key]:
            case _Kind.TEXT:
                self._set(fields, key, self._text(node, path))
            case _Kind.FLAG:
                self._set(fields, key, self._flag(node, path))
            case _Kind.TEXTS:
                fields[key] = self._texts(node, path)
            case _Kind.TEXTS_BY_NAME:
                fields[key] = {name: self._texts(value, f"{path}.{name}") for name, value in self._pairs(node, path)}
            case _Kind.UNUSED:
                pass

    def _pairs(
        self,
        node: Node,
        path: str,
        allowed: list[str] | None = None,
        forbidden: Mapping[str, str] | None = None,
    ) -> Iterator[tuple[str, Node]]:
        """Yield the allowed keys and their values. Every other key is a problem, and so is a duplicate key."""
        self._count()
        if yamltree.is_null(node):
            return
        if not isinstance(node, MappingNode):
            self._note(path, "is invalid; expected a mapping")
            return
        seen: set[str] = set()
        for key, value in yamltree.pairs(node):
            self._count()
            if not isinstance(key, ScalarNode) or key.tag != _TEXT_TAG:
                self._note(path, "has a key that is not text; expected the name of a field")
                continue
            name = truncate(key.value)  # an alias can repeat a long one
            here = f"{path}.{name}" if path else name
            if key.value in seen:
                self._note(here, "is defined twice; expected once")
            seen.add(key.value)
            if allowed is None or key.value in allowed:
                yield key.value, value
            elif instead := (forbidden or {}).get(key.value.casefold()):
                self._forbid(here, value, instead)
            else:
                self._note(here, f"is not a known field; expected {', '.join(allowed)}")

    def _forbid(self, path: str, node: Node, instead: str) -> None:
        if yamltree.is_null(node) or (isinstance(node, ScalarNode) and not node.value):
            return  # client-go does nothing with it, and it is not passed on
        remedy = f"set {TRUST}=true to trust its kubeconfig"
        self._note(path, f"{_named(node)} is not allowed in a stack input; expected {instead}; {remedy}")

    def _items(self, node: Node, path: str) -> list[Node]:
        self._count()
        if isinstance(node, SequenceNode):
            return list(node.value)
        if not yamltree.is_null(node):
            self._note(path, "is invalid; expected a list")
        return []

    def _text(self, node: Node, path: str) -> str | None:
        """Return the text of a node. Messages do not include values: they can be secrets."""
        self._count()
        if isinstance(node, ScalarNode) and node.tag == _TEXT_TAG:
            return str(node.value)
        if not yamltree.is_null(node):
            self._note(path, "is invalid; expected text, in quotes if it looks like a number")
        return None

    def _texts(self, node: Node, path: str) -> list[str]:
        texts = (self._text(item, f"{path}[{at}]") for at, item in enumerate(self._items(node, path)))
        return [text for text in texts if text is not None]

    def _flag(self, node: Node, path: str) -> bool | None:
        self._count()
        if isinstance(node, ScalarNode) and node.tag.endswith(":bool") and node.value in _BOOLEANS:
            return _BOOLEANS[node.value]
        if not yamltree.is_null(node):
            self._note(path, "is invalid; expected true or false")
        return None

    def _set(self, fields: Json, key: str, value: Any) -> None:  # noqa: ANN401 - a field's value
        if value is not None:
            fields[key] = value

    def _note(self, path: str, text: str) -> None:
        self.problems.append(f"{path}: {text}")

    def _count(self) -> None:
        self.nodes += 1
        if self.nodes > _MAX_NODES:
            raise _TooLargeError


def _named(node: Node) -> str:
    """Return a file's path, or the name of a program or plugin."""
    if isinstance(node, MappingNode):
        named = [value for key, value in node.value if key.value in _NAMES_OF_PROGRAMS]
        return yamltree.kind(named[0]) if named else "a program"
    return yamltree.kind(node)
