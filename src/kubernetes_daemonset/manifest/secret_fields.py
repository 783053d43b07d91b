"""The fields whose values can be secrets, so that messages about them show no value. A mistyped secret stays secret."""

import re
from typing import Final

from yaml import Node, ScalarNode

from kubernetes_daemonset.manifest import yamltree

_SECRETS: Final = "spec.container.app.env.secrets"
_PATH: Final = re.compile(rf"(target\.)?({re.escape(_SECRETS)}|provider_config|docker_config_json)(?![A-Za-z0-9_])")
# The key of a map that is a variable and its value: DB=password, DB:password.
_KEY: Final = re.compile(rf'(?:target\.)?{re.escape(_SECRETS)}\["(?P<name>[^=:]*[=:])(?P<value>.*)"\]', re.DOTALL)
_QUOTE: Final = '"'


def is_secret(path: str) -> bool:
    """Return whether the field or one above it can be a secret."""
    return _PATH.match(path) is not None


def kind(path: str, node: Node) -> str:
    """Return a description of a node for a message about the field."""
    if is_secret(path) and isinstance(node, ScalarNode) and not yamltree.is_null(node):
        return "a text"
    return yamltree.kind(node)


def masked(path: str, text: str) -> tuple[str, str]:
    """Return a path and what is wrong there, without the value in a key such as `DB=password`."""
    found = _KEY.match(path)
    if not found:
        return path, text
    shown = f"{found['name']}…"
    path = f"{path[: found.start('name')]}{shown}{path[found.end('value') :]}"
    return path, f'"{shown}"{text.rpartition(_QUOTE)[2]}' if text.startswith(_QUOTE) else text
