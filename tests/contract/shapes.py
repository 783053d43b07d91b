"""Data as facts: which keys it has, of which type their values are, or which values."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.contract.golden import Facts

_TYPES: Final = {bool: "boolean", int: "number", float: "number", str: "text", type(None): "null"}


def shape(data: object) -> Facts:
    """Types by path. Types that differ between the elements of a list are joined with `or`."""
    found: dict[str, set[str]] = {}
    for path, kind in _types(data, ""):
        found.setdefault(path, set()).add(kind)
    return {path: " or ".join(sorted(kinds)) for path, kinds in found.items()}


def values(data: object) -> Facts:
    """Values by path, as JSON."""
    return {path: json.dumps(value) for path, value in leaves(data)}


def leaves(data: object, path: str = "") -> Iterator[tuple[str, Any]]:
    """Values by path. Lists of mappings are walked; other lists are values, and so are empty mappings."""
    if isinstance(data, Mapping) and data:
        for key, value in data.items():
            yield from leaves(value, f"{path}.{key}".lstrip("."))
    elif isinstance(data, list) and data and all(isinstance(item, Mapping) for item in data):
        for number, item in enumerate(data):
            yield from leaves(item, f"{path}[{number}]")
    else:
        yield path, data


def prefixed(prefix: str, facts: Facts) -> Facts:
    return {f"{prefix} {name}": what for name, what in facts.items()}


def _types(data: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, Mapping):
        yield path or ".", "object"
        for key, value in data.items():
            yield from _types(value, f"{path}.{key}".lstrip("."))
    elif isinstance(data, list):
        yield path or ".", "list"
        for value in data:
            yield from _types(value, f"{path}[]")
    else:
        yield path or ".", _TYPES[type(data)]
