"""The written tree -> Structs. Every mistake is noted, and reading goes on with the default in its place."""

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import NODEFAULT, inspect

from kube_node_ready.configuration.document import Node, Scalar, Series, Table, is_null
from kube_node_ready.configuration.mistakes import Mistake, shown, within
from kube_node_ready.configuration.pods import Part
from kube_node_ready.configuration.scalars import UNUSABLE, Unusable, meaning, plain
from kube_node_ready.configuration.schema import Field, Kind, fields, kind_of, part_of
from kube_node_ready.configuration.spelling import nearest

P = TypeVar("P", bound=Part)


class Decoder:
    def __init__(self, mistakes: list[Mistake], elsewhere: Mapping[str, frozenset[str]]) -> None:
        """`elsewhere` has the keys of sections that others read, so that mistyped ones are recognised."""
        self._mistakes = mistakes
        self._elsewhere = elsewhere

    def part(self, kind: type[P], node: Node, path: str = "", base: P | None = None) -> P | Unusable:
        """The part, with `base` for what is not written."""
        if not isinstance(node, Table):
            self._complain(node, path, "a mapping")
            return base if base is not None else UNUSABLE
        known = fields(kind)
        names = known.keys() | self._elsewhere.get(path, frozenset())
        for key, odd in node.entries.items():
            if key not in known:
                self._mistakes.append(Mistake(within(path, key), nearest(key, names, path), odd.where))
        values = {
            field.name: self._field(field, node, within(path, field.key), getattr(base, field.name, field.default))
            for field in known.values()
        }
        return UNUSABLE if any(value is UNUSABLE for value in values.values()) else kind(**values)

    def _field(self, field: Field, table: Table, path: str, default: Any) -> Any:  # noqa: ANN401  a field of any type
        node = table.entries.get(field.key)
        if node is None or is_null(node):
            if node is not None and field.null:
                self._mistakes.append(Mistake(path, f"is null, which is ambiguous: {field.null}", node.where))
            if default is NODEFAULT:
                self._mistakes.append(Mistake(path, f"is missing, and must be {field.kind.must}", table.where))
                return UNUSABLE
            return default
        value = self._value(field.kind, node, path, default)
        return default if value is UNUSABLE and default is not NODEFAULT else value

    def _value(self, kind: Kind, node: Node, path: str, default: object) -> object:
        if inner := part_of(kind):
            return self.part(inner, node, path, default if isinstance(default, inner) else None)
        match kind.type:
            case inspect.VarTupleType(item):
                return self._items(kind_of(item), node, path)
            case inspect.DictType(key, item):
                return self._mapping(kind_of(key), kind_of(item), node, path)
            case inspect.AnyType():
                return plain(node)
        if not isinstance(node, Scalar):
            self._complain(node, path, kind.must)
            return UNUSABLE
        # An empty default is a way to say "none", and may be written down although no such name exists.
        value = node.text if node.text == default else meaning(node.text, kind)
        if value is UNUSABLE:
            self._complain(node, path, kind.must)
        return value

    def _items(self, kind: Kind, node: Node, path: str) -> object:
        if not isinstance(node, Series):
            self._complain(node, path, "a list")
            return UNUSABLE
        values = []
        for index, item in enumerate(node.items):
            at = within(path, index)
            if is_null(item):
                self._complain(item, at, kind.must)
            else:
                values.append(self._value(kind, item, at, NODEFAULT))
        return tuple(value for value in values if value is not UNUSABLE)

    def _mapping(self, key_kind: Kind, value_kind: Kind, node: Node, path: str) -> object:
        if not isinstance(node, Table):
            self._complain(node, path, "a mapping")
            return UNUSABLE
        values = {}
        for key, item in node.entries.items():
            at = within(path, key)
            if meaning(key, key_kind) is UNUSABLE:
                self._mistakes.append(Mistake(at, f"the key must be {key_kind.must}", item.where))
            elif is_null(item) and not isinstance(value_kind.type, inspect.AnyType):
                self._complain(item, at, value_kind.must)
            else:
                values[key] = self._value(value_kind, item, at, NODEFAULT)
        return {key: value for key, value in values.items() if value is not UNUSABLE}

    def _complain(self, node: Node, path: str, must: str) -> None:
        self._mistakes.append(Mistake(path, f"is {_described(node)}, and must be {must}", node.where))


def _described(node: Node) -> str:
    if isinstance(node, Scalar):
        return "null" if is_null(node) else shown(node.text)
    return "a list" if isinstance(node, Series) else "a mapping"
