"""What a field of the manifest means, from the comments of the .proto files: `explain spec.container.app`."""

import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.manifest import entry, fields, is_map, unknown
from kubernetes_daemonset.paths import NoPath, steps


class NoSuchField(Exception):  # noqa: N818  it says what happened
    """The path leads nowhere."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str
    about: str


@dataclass(frozen=True, slots=True)
class Explained:
    """A place in the manifest: what it is, and what can be written below it."""

    path: str
    type: str
    about: str
    fields: tuple[Field, ...]


def explain(path: str) -> Explained:
    """By a path as mistakes name it; places in lists may be left out."""
    try:
        return _walk(steps(path))
    except NoPath as why:
        raise NoSuchField(str(why)) from why


def _walk(path: list[str]) -> Explained:
    message = cast("Descriptor", KubernetesDaemonSet.DESCRIPTOR)
    about, kind, walked = comment(message.full_name), "KubernetesDaemonSet", ""
    inside: Descriptor | None = message
    many: FieldDescriptor | None = None  # the list or map that the next step may choose from
    for step in path:
        chosen, many = many, None
        if chosen is not None and is_map(chosen):
            walked, kind = entry(walked, step), _one(_item(chosen))
            continue
        if chosen is not None and step.isdecimal():
            kind = _one(chosen)
            continue
        if inside is None:
            raise NoSuchField(f"{walked} holds one value, so there is no {step} in it")
        known = fields(inside)
        what = known.get(step)
        if what is None:
            raise NoSuchField(f"{walked or 'the manifest'}: {unknown(repr(step), step, known)}")
        walked = f"{walked}.{what.name}" if walked else what.name
        about, kind = comment(f"{inside.full_name}.{what.name}"), type_of(what)
        inside, many = message_below(what), what if what.is_repeated else None
    return Explained(walked, kind, about, described(inside) if inside else ())


def described(message: Descriptor) -> tuple[Field, ...]:
    return tuple(Field(one.name, type_of(one), comment(f"{message.full_name}.{one.name}")) for one in message.fields)


def type_of(what: FieldDescriptor) -> str:
    """In words: text, number, true or false, the names of messages and enums."""
    if is_map(what):
        return f"map of names to {_one(_item(what))}"
    return f"list of {_one(what)}" if what.is_repeated else _one(what)


def comment(name: str) -> str:
    return _comments().get(name, "")


def message_below(what: FieldDescriptor) -> Descriptor | None:
    """The message that a field holds, or that each item of its list or map is."""
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
    found: dict[str, str] = json.loads(text)
    return found
