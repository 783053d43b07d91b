"""Typed sections of the controller's configuration: Structs whose annotations are the engine's fields.

Each attribute says in one place what it is for, what is valid and its default:

    max_retries: Annotated[int, setting(ATTEMPTS, "How many failures in a row make a node exhausted.")] = 5

An attribute without `setting` is derived while loading, and not a key of the file.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, replace

from kube_node_ready.settings.engine import REQUIRED, Entries, Field, Items, Table, camel_case
from kube_node_ready.settings.readers import Reader
from kubekit.diagnostics import join_path


class Section(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A section, or a part of one."""


S = TypeVar("S", bound=Section)


def setting(
    reader: Reader,
    description: str,
    *,
    variable: str = "",
    flag: str = "",
    examples: tuple[object, ...] = (),
    not_null: str = "",
) -> Field:
    """Describe an attribute of a Section. Its key and its default are those of the attribute."""
    return Field("", reader, description, variable=variable, flag=flag, examples=examples, not_null=not_null)


@cache
def table(section: type[S]) -> Table:
    """Return the fields of a section."""
    return Table(*_fields(section), build=lambda base, values: _build(section, base, values))


def _fields(section: type[Section]) -> Iterator[Field]:
    for attribute in msgspec.structs.fields(section):
        for field in getattr(attribute.type, "__metadata__", ()):
            if isinstance(field, Field):
                field.key, field.name, field.default = camel_case(attribute.name), attribute.name, _default(attribute)
                yield field


def _default(attribute: FieldInfo) -> object:
    if attribute.default is not NODEFAULT:
        return attribute.default
    return REQUIRED if attribute.default_factory is NODEFAULT else attribute.default_factory()


def _build(section: type[S], base: S | None, values: Mapping[str, Any]) -> S:
    return section(**values) if base is None else replace(base, **values)


def leaves(fields: Table, path: str = "", names: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...], Field]]:
    """Every field that has no further fields: its path, the attributes on the way, and itself."""
    for field in fields.fields.values():
        at, attributes = join_path(path, field.key), (*names, field.name)
        if isinstance(field.reader, Table):
            yield from leaves(field.reader, at, attributes)
        else:
            yield at, attributes, field


def is_scalar(field: Field) -> bool:
    return not isinstance(field.reader, Table | Items | Entries)


def manifest(section: Section) -> dict[str, Any]:
    """Return the section as Kubernetes has it in a pod, without what was not given."""
    pruned: dict[str, Any] = _pruned(msgspec.to_builtins(section))
    return pruned


def _pruned(value: Any) -> Any:  # noqa: ANN401  JSON
    if isinstance(value, dict):
        inner = {key: _pruned(item) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item is not None and item not in ("", {}, [])}
    return [_pruned(item) for item in value] if isinstance(value, list | tuple) else value
