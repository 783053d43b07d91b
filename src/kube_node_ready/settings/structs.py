"""What the Structs say about themselves: fields by key, what each may hold, and how to say so."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import NODEFAULT, Struct, inspect

from kube_node_ready.configuration.mistakes import within
from kube_node_ready.configuration.pods import Part


class Kind(Struct, frozen=True):
    """What a value may be."""

    type: inspect.Type
    must: str
    optional: bool = False
    """None may stand for it."""


class Field(Struct, frozen=True):
    name: str
    key: str
    kind: Kind
    description: str
    examples: tuple[Any, ...]
    default: Any
    """NODEFAULT if it must be given."""
    null: str
    """Why it must not be null, if it must not."""


@cache
def fields(part: type[Part]) -> dict[str, Field]:
    """The fields that can be written, by key."""
    info = inspect.type_info(part)
    assert isinstance(info, inspect.StructType)
    found = (_field(field) for field in info.fields if not _extra(field.type).get("derived"))
    return {field.key: field for field in found}


def kind_of(described: inspect.Type) -> Kind:
    must = str(_extra(described).get("must", ""))
    plain = described.type if isinstance(described, inspect.Metadata) else described
    if isinstance(plain, inspect.UnionType):
        (inner,) = (kind_of(one) for one in plain.types if not isinstance(one, inspect.NoneType))
        return Kind(inner.type, inner.must, optional=True)
    return Kind(plain, must or _must(plain))


def part_of(kind: Kind) -> type[Part] | None:
    if isinstance(kind.type, inspect.StructType):
        assert issubclass(kind.type.cls, Part)
        return kind.type.cls
    return None


def leaves(
    part: type[Part], path: str = "", names: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[str, ...], Field]]:
    """Every field that holds no further fields: its path, the Python names on the way, and itself."""
    for field in fields(part).values():
        at, via = within(path, field.key), (*names, field.name)
        if inner := part_of(field.kind):
            yield from leaves(inner, at, via)
        else:
            yield at, via, field


def is_scalar(kind: Kind) -> bool:
    return not isinstance(kind.type, inspect.StructType | inspect.VarTupleType | inspect.DictType)


def _field(field: inspect.Field) -> Field:
    about = field.type.extra_json_schema or {} if isinstance(field.type, inspect.Metadata) else {}
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    return Field(
        name=field.name,
        key=field.encode_name,
        kind=kind_of(field.type),
        description=about.get("description", ""),
        examples=tuple(about.get("examples", ())),
        default=default,
        null=str(_extra(field.type).get("null", "")),
    )


def _extra(described: inspect.Type) -> dict[str, Any]:
    return described.extra or {} if isinstance(described, inspect.Metadata) else {}


def _must(plain: inspect.Type) -> str:
    match plain:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() | inspect.FloatType():
            return _number(plain)
        case inspect.TimeDeltaType():
            return "a duration such as 15s, 1m30s or 500ms"
        case inspect.LiteralType(values):
            *most, last = map(str, values)
            return f"{', '.join(most)} or {last}" if most else last
        case inspect.VarTupleType():
            return "a list"
        case inspect.DictType() | inspect.StructType():
            return "a mapping"
        case _:
            return "text"


def _number(plain: inspect.IntType | inspect.FloatType) -> str:
    noun = "a whole number" if isinstance(plain, inspect.IntType) else "a number"
    if plain.gt is not None:
        return f"{noun} above {plain.gt:g} and at most {plain.le:.0f}"
    return f"{noun} from {plain.ge:g} to {plain.le:.0f}"
