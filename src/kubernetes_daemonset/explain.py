"""What a field of the manifest means, from the comments of the .proto files: `explain spec.container.app`."""

import functools
import json
import re
from dataclasses import dataclass
from importlib import resources
from typing import cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.manifest import fields, is_map, unknown


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
    message = cast("Descriptor", KubernetesDaemonSet.DESCRIPTOR)
    about, kind, walked = comment(message.full_name), "KubernetesDaemonSet", ""
    steps = [step for step in re.sub(r"\[[^\]]*\]", "", path).split(".") if step]
    below: Descriptor | None = message
    in_map = False
    for step in steps:
        if in_map:  # any name leads to the value
            in_map, walked = False, f"{walked}.{step}"
            continue
        if below is None:
            raise NoSuchField(f"{walked} holds one value, so there is no {step} in it")
        known = fields(below)
        what = known.get(step)
        if what is None:
            raise NoSuchField(f"{walked or 'the manifest'}: {unknown(repr(step), step, known)}")
        walked = f"{walked}.{what.name}" if walked else what.name
        about, kind, in_map = comment(f"{below.full_name}.{what.name}"), type_of(what), is_map(what)
        below = _below(what)
    return Explained(walked, kind, about, described(below) if below else ())


def described(message: Descriptor) -> tuple[Field, ...]:
    return tuple(Field(one.name, type_of(one), comment(f"{message.full_name}.{one.name}")) for one in message.fields)


def type_of(what: FieldDescriptor) -> str:
    """In words: text, number, true or false, the names of messages and enums."""
    if is_map(what):
        return f"map of names to {_one(what.message_type.fields_by_name['value'])}"
    return f"list of {_one(what)}" if what.is_repeated else _one(what)


def comment(name: str) -> str:
    return _comments().get(name, "")


def _below(what: FieldDescriptor) -> Descriptor | None:
    inner = what.message_type.fields_by_name["value"] if is_map(what) else what
    return cast("Descriptor | None", inner.message_type)


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
