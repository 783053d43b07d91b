"""YAML -> message, with the place of every field, and all that could not be read.

The reader walks the YAML nodes beside the message's own description, so there is no second list of fields to keep: what
the .proto files say is what may be written, in snake_case or camelCase. Shapes that differ are brought together by
`dialects` before a message is read.
"""

import difflib
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from kubernetes_daemonset import dialects, yamltree
from kubernetes_daemonset.api.buf.validate import validate_pb2
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.mistakes import ManifestError, Mistake, Place

MAX_NODES: Final = 100_000  # aliases can make a small file stand for billions
MAX_MISTAKES: Final = 1_000  # and so for as many mistakes

KIND: Final = "KubernetesDaemonSet"

_CLOSE: Final = 0.9  # KubernetesDaemonset is; KubernetesDeployment is not
_SHOWN: Final = 12  # names of fields in one message: more than anyone reads
_DIGITS: Final = 24  # more than any number that fits has, with its sign and 0x; int() raises at thousands of them

_BOOLEANS: Final = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}
_INTEGERS: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
}
_AT_LEAST: Final = re.compile(r"this >= (-?[0-9]+)")
_AT_MOST: Final = re.compile(r"this <= (-?[0-9]+)")


@dataclass(frozen=True)
class Loaded:
    """A manifest, what it was given with, and where each of its fields was written."""

    input: KubernetesDaemonSetStackInput
    source: str
    places: Mapping[str, Place]
    mistakes: tuple[Mistake, ...] = ()
    """What could not be read. The rest was: `validate` says all that is wrong with both."""
    unread: frozenset[str] = frozenset()
    """The fields that are not as they were written, since they could not be read."""

    @property
    def manifest(self) -> KubernetesDaemonSet:
        return self.input.target

    def place(self, path: str) -> Place:
        """Where a field was written, or else the nearest field above it that was."""
        return next((self.places[one] for one in upwards(path) if one in self.places), Place(self.source))


def load(content: bytes, source: str, *, skip_others: bool = False) -> list[Loaded]:
    """Every manifest of a text, each with what could not be read of it: nothing is raised, `validate` says it all.

    Documents of other kinds are mistakes, or are left alone: a folder may hold much that is not ours.
    """
    loaded = list(_each(content, source, skip_others=skip_others))
    if not loaded and not skip_others:
        nothing = Mistake("", f"nothing in it; write a manifest of kind {KIND}", Place(source))
        return [_unreadable([nothing], source)]
    return loaded


def _each(content: bytes, source: str, *, skip_others: bool) -> Iterator[Loaded]:
    try:
        for root in yamltree.each_document(content, source):
            if not (skip_others and _is_clearly_another_kind(root)):
                yield _document(root, source)
    except ManifestError as why:  # what follows is not read: a limit that each of many documents may reach is none
        yield _unreadable(why.mistakes, source)


def _unreadable(mistakes: list[Mistake], source: str) -> Loaded:
    return Loaded(KubernetesDaemonSetStackInput(), source, {}, tuple(mistakes), frozenset({""}))


def _kind(root: Node) -> ScalarNode | None:
    """The kind that a document names; None if it names none."""
    if isinstance(root, MappingNode):
        for key, value in yamltree.pairs(root):
            named = isinstance(key, ScalarNode) and key.value == "kind"
            if named and isinstance(value, ScalarNode) and not yamltree.is_null(value):
                return value
    return None


def _is_clearly_another_kind(root: Node) -> bool:
    """A kind that is ours but for a slip is a mistake, in a folder of many kinds too."""
    kind = _kind(root)
    return kind is not None and not difflib.get_close_matches(kind.value, [KIND], cutoff=_CLOSE)


def _is_another_kind(root: Node) -> bool:
    kind = _kind(root)
    return kind is not None and kind.value != KIND


def _document(root: Node, source: str) -> Loaded:
    reader = Reader(source)
    result = KubernetesDaemonSetStackInput()
    if _is_stack_input(root):
        reader.fill(result, root, "")
        places = {path.removeprefix("target."): place for path, place in reader.places.items()}
        return Loaded(result, source, places, tuple(reader.mistakes), frozenset(map(_within_target, reader.unread)))
    if (kind := _kind(root)) and _is_another_kind(root):  # its fields mean something else: nothing is said about them
        reader.note(kind, "kind", f"{yamltree.kind(kind)} is another kind; write {KIND}")
        return _unreadable(reader.mistakes, source)
    result.target.SetInParent()
    reader.fill(result.target, root, "")
    if reader.mistakes and reader.places.keys() == {""}:  # not one field of it is a manifest's
        return _unreadable(reader.mistakes, source)
    return Loaded(result, source, reader.places, tuple(reader.mistakes), frozenset(reader.unread))


def _within_target(path: str) -> str:
    """A path as the manifest in a stack input has it."""
    return "" if path == "target" else path.removeprefix("target.")


def _is_stack_input(root: Node) -> bool:
    return isinstance(root, MappingNode) and any(
        isinstance(key, ScalarNode) and key.value == "target" for key, _ in yamltree.pairs(root)
    )


@dataclass
class Reader:
    """Reads nodes into messages, and notes each mistake instead of stopping at it."""

    source: str
    mistakes: list[Mistake] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    nodes: int = 0

    def fill(self, message: Message, node: Node, path: str) -> None:
        """Reads a mapping into a message."""
        self._count(node, path)
        node = dialects.shaped(message.DESCRIPTOR.full_name, node)
        self.places[path] = yamltree.place(node, self.source)
        if yamltree.is_null(node):
            return
        if not isinstance(node, MappingNode):
            self._cannot_read(node, path, f"a mapping with {_some(fields(message.DESCRIPTOR))}")
            return
        given: dict[str, str] = {}
        misspelt = {self._entry(message, key, value, path, given) for key, value in yamltree.pairs(node)}
        self.unread |= {_below(path, name) for name in misspelt - given.keys() if name}

    def read(self, message: Message, what: FieldDescriptor, node: Node, path: str) -> None:
        """Reads a node into one field of a message."""
        self._count(node, path)
        self.places[path] = yamltree.place(node, self.source)
        if yamltree.is_null(node):
            return  # as in Kubernetes: written and empty is as good as left out
        if is_map(what):
            self._map(message, what, dialects.entries(what.full_name, node), path)
        elif what.is_repeated:
            self._list(message, what, node, path)
        elif what.message_type:
            if self._oneof_is_free(message, what, node, path):
                inner = getattr(message, what.name)
                inner.SetInParent()
                self.fill(inner, node, path)
        elif self._oneof_is_free(message, what, node, path) and (value := self.value(what, node, path)) is not None:
            setattr(message, what.name, value)

    def value(self, what: FieldDescriptor, node: Node, path: str) -> str | int | bool | None:
        """A scalar as the field wants it; None, with a mistake noted, if it cannot be that."""
        if not isinstance(node, ScalarNode):
            self._cannot_read(node, path, _wanted(what))
            return None
        if yamltree.is_null(node):
            self._cannot_read(node, path, _wanted(what), "; write what is meant, or leave it out")
            return None
        text = node.value
        found: str | int | bool | None
        match what.cpp_type:
            case FieldDescriptor.CPPTYPE_STRING:
                # 9200, true and 1.20 are texts here; they keep the form in which they were written.
                found = text if _is_unicode(text) else None
            case FieldDescriptor.CPPTYPE_BOOL:
                found = _BOOLEANS.get(text.lower())
            case FieldDescriptor.CPPTYPE_ENUM:
                found = _enum_value(what, text)
            case _:
                found = _integer(text, *_INTEGERS[what.cpp_type])
        if found is None:
            self._cannot_read(node, path, _wanted(what), _nearest_enum_value(what, text))
        return found

    def _entry(self, message: Message, key: Node, value: Node, path: str, given: dict[str, str]) -> str:
        """Reads one entry of a mapping. Returns the field that was probably meant, if it is none of the message's."""
        known = fields(message.DESCRIPTOR)
        name = key.value if isinstance(key, ScalarNode) else ""
        what = known.get(name)
        if what is None:
            self.note(key, path, unknown(yamltree.kind(key), name, known))
            near = _nearest(name, known)
            return known[near].name if near else ""
        if what.name in given:
            also = "" if given[what.name] == name else f" (also as {given[what.name]})"
            self.note(key, _below(path, what.name), f"given twice{also}; leave one out")
            return ""
        given[what.name] = name
        self.read(message, what, value, _below(path, what.name))
        # The key's place says more than the value's: an empty value may be on no line at all.
        self.places[_below(path, what.name)] = yamltree.place(key, self.source)
        return ""

    def _list(self, message: Message, what: FieldDescriptor, node: Node, path: str) -> None:
        if not isinstance(node, SequenceNode):
            self._cannot_read(node, path, "a list")
            return
        items = getattr(message, what.name)
        for index, item in enumerate(node.value):
            here = f"{path}[{index}]"
            if what.message_type:
                self.fill(items.add(), item, here)
                continue
            self._count(item, here)
            self.places[here] = yamltree.place(item, self.source)
            if (value := self.value(what, item, here)) is None:
                self.unread.add(path)  # those that follow are not where they were written
            else:
                items.append(value)

    def _map(self, message: Message, what: FieldDescriptor, node: Node, path: str) -> None:
        if not isinstance(node, MappingNode):
            self._cannot_read(node, path, "a mapping of names to values")
            return
        items = getattr(message, what.name)
        inner = what.message_type.fields_by_name["value"]
        for key, value in yamltree.pairs(node):
            if not isinstance(key, ScalarNode) or yamltree.is_null(key) or not _is_unicode(key.value):
                self._cannot_read(key, path, "a name")
                continue
            here = entry(path, key.value)
            if key.value in items:
                self.note(key, here, "given twice; leave one out")
                continue
            self._count(value, here)
            if yamltree.is_null(value):
                self.note(key, here, "found nothing; write what is meant, or '' for an empty text")
                self.unread.add(here)
            elif inner.message_type:
                self.fill(items[key.value], value, here)
            elif (text := self.value(inner, value, here)) is not None:
                items[key.value] = text
            self.places[here] = yamltree.place(key, self.source)

    def _oneof_is_free(self, message: Message, what: FieldDescriptor, node: Node, path: str) -> bool:
        oneof = what.containing_oneof
        taken = message.WhichOneof(oneof.name) if oneof else None
        if taken is None or taken == what.name:
            return True
        self.note(node, path, f"cannot stand beside {taken}; leave one of them out")
        return False

    def _count(self, node: Node, path: str) -> None:
        """Bounds the work. How deep it goes need not be bounded: no message holds one of its own kind."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self._give_up(node, path, f"more than {MAX_NODES:,} values, by aliases perhaps")

    def note(self, node: Node, path: str, text: str) -> None:
        self.mistakes.append(Mistake(path, text, yamltree.place(node, self.source)))
        if len(self.mistakes) >= MAX_MISTAKES:
            self._give_up(node, path, f"{MAX_MISTAKES:,} mistakes so far; the rest was not read")

    def _cannot_read(self, node: Node, path: str, expected: str, besides: str = "") -> None:
        self.note(node, path, f"expected {expected}, found {yamltree.kind(node)}{besides}")
        self.unread.add(path)

    def _give_up(self, node: Node, path: str, why: str) -> NoReturn:
        raise ManifestError([*self.mistakes, Mistake(path, why, yamltree.place(node, self.source))])


@functools.cache
def fields(message: Descriptor) -> dict[str, FieldDescriptor]:
    """A message's fields by both of their names: snake_case first, then camelCase."""
    return {what.name: what for what in message.fields} | {what.json_name: what for what in message.fields}


def entry(path: str, key: str) -> str:
    """The path of a map's entry."""
    return f"{path}.{key}" if key.replace("_", "").replace("-", "").isalnum() else f'{path}["{key}"]'


def upwards(path: str) -> Iterator[str]:
    """A field's path, and that of each field around it; last the root's, which is empty."""
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    yield ""


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def is_map(what: FieldDescriptor) -> bool:
    return bool(what.message_type and what.message_type.GetOptions().map_entry)


def unknown(found: str, name: str, known: Mapping[str, FieldDescriptor]) -> str:
    near = _nearest(name, known)
    return f"unknown field {found}; {f'did you mean {near}?' if near else f'it has {_some(known)}'}"


def _nearest(name: str, known: Mapping[str, FieldDescriptor]) -> str:
    return next(iter(difflib.get_close_matches(name, known, n=1)), "")


def _some(known: Mapping[str, FieldDescriptor]) -> str:
    names = list(dict.fromkeys(what.name for what in known.values()))
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def _wanted(what: FieldDescriptor) -> str:
    match what.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            return "a text"
        case FieldDescriptor.CPPTYPE_BOOL:
            return "true or false"
        case FieldDescriptor.CPPTYPE_ENUM:
            return f"a {what.enum_type.name}"
        case _:
            return f"a whole number{_range(what)}"


def _range(what: FieldDescriptor) -> str:
    """What the field's rule in the .proto file allows; nothing if it has none."""
    extensions: Any = what.GetOptions().Extensions  # whose types do not know the extensions that protoc writes
    options: validate_pb2.FieldRules = extensions[validate_pb2.field]
    rule = " ".join(one.expression for one in [*options.cel, *options.repeated.items.cel])
    least, most = _AT_LEAST.search(rule), _AT_MOST.search(rule)
    high = most[1] if most else _INTEGERS[what.cpp_type][1]
    return f" from {least[1]} to {high}" if least else ""


def _integer(text: str, low: int, high: int) -> int | None:
    """A whole number as YAML writes it: 10, -1, 1_000, 0x1f, 0o644, and 0644, which is octal."""
    digits = text.replace("_", "")
    if len(digits) > _DIGITS:
        return None
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits.removeprefix("+"))
    if not digits[:1].isdecimal():  # int() would take a second sign, and spaces
        return None
    octal = len(digits) > 1 and digits.isdecimal() and digits.startswith("0")
    try:
        number = sign * (int(digits, 8) if octal else int(digits, 0))
    except ValueError:
        return None
    return number if low <= number <= high else None


def _enum_value(what: FieldDescriptor, text: str) -> int | None:
    if named := what.enum_type.values_by_name.get(text):
        return int(named.number)
    number = _integer(text, 0, 2**31 - 1)
    return number if number in what.enum_type.values_by_number else None


def _nearest_enum_value(what: FieldDescriptor, text: str) -> str:
    if what.cpp_type != FieldDescriptor.CPPTYPE_ENUM:
        return ""
    near = difflib.get_close_matches(text, what.enum_type.values_by_name, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _is_unicode(text: str) -> bool:
    """YAML's escapes can write halves of surrogate pairs, which are no characters."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)
