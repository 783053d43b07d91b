"""Describe a field of the manifest from the comments of the .proto files: `explain spec.container.app`."""

import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.manifest.paths import NoPath, steps
from kubernetes_daemonset.manifest.reader import fields, is_map, map_entry, unknown


class NoSuchField(Exception):  # noqa: N818 - named for the condition
    """The path does not name a field."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str
    about: str


@dataclass(frozen=True, slots=True)
class Explained:
    """A field of the manifest: its meaning, and the fields below it."""

    path: str
    type: str
    about: str
    fields: tuple[Field, ...]


def explain(path: str) -> Explained:
    """Describe the field at a path as diagnostics write it; list indexes are optional."""
    try:
        return _walk(steps(path))
    except NoPath as error:
        raise NoSuchField(str(error)) from error


def _walk(path: list[str]) -> Explained:
    message = cast("Descriptor", KubernetesDaemonSet.DESCRIPTOR)
    about, kind, walked = comment(message.full_name), "KubernetesDaemonSet", ""
    inside: Descriptor | None = message
    many: FieldDescriptor | None = None  # the list or map that the next step can select from
    for step in path:
        chosen, many = many, None
        if chosen is not None and is_map(chosen):
            walked, kind = map_entry(walked, step), _one(_item(chosen))
            continue
        if chosen is not None and step.isdecimal():
            kind = _one(chosen)
            continue
        if inside is None:
            raise NoSuchField(f"{walked} has a single value and no field {step}")
        known = fields(inside)
        what = known.get(step)
        if what is None:
            raise NoSuchField(f"{walked or 'the manifest'}: {unknown(repr(step), step, known)}")
        walked = f"{walked}.{what.name}" if walked else what.name
        about, kind = comment(f"{inside.full_name}.{what.name}"), type_of(what)
        inside, many = message_below(what), what if what.is_repeated else None
    return Explained(walked, kind, about, described(inside) if inside else ())


def described(message: Descriptor) -> tuple[Field, ...]:
    return tuple(
        Field(field.name, type_of(field), comment(f"{message.full_name}.{field.name}")) for field in message.fields
    )


def type_of(what: FieldDescriptor) -> str:
    """Return the name of the type: text, number, true or false, or the name of a message or enum."""
    if is_map(what):
        return f"map of names to {_one(_item(what))}"
    return f"list of {_one(what)}" if what.is_repeated else _one(what)


def comment(name: str) -> str:
    return _comments().get(name, "")


def message_below(what: FieldDescriptor) -> Descriptor | None:
    """Return the message type of a field, or of the items of its list or map."""
    return cast("Descriptor | None", _item(what).message_type)


def _item(what: FieldDescriptor) -> FieldDescriptor:
    return cast("FieldDescriptor", what.message_type.fields_by_name["value"]) if is_map(what) else what


def _one(what: FieldDescriptor) -> str:
    if what.message_type:
        return str(what.message_type.name)
    if what.enum_type:
        return str(what.enum_type.name)
    match what.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            return "text"
        case FieldDescriptor.CPPTYPE_BOOL:
            return "true or false"
        case _:
            return "number"


@functools.cache
def _comments() -> dict[str, str]:
    text = (resources.files("kubernetes_daemonset.api") / "comments.json").read_text(encoding="utf-8")
    comments: dict[str, str] = json.loads(text)
    return comments
