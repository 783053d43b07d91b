"""Parse YAML into a message, with the location of every field and all syntax errors.

The reader walks the YAML nodes along the message descriptor, so there is no second list of fields to maintain: the
.proto files define the fields, in snake_case or camelCase. Syntax variants are normalized by `dialects` before a
message is read.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from kubekit.diagnostics import Diagnostic, Location
from kubekit.suggestions import did_you_mean
from kubernetes_daemonset.api.shared import bounds_pb2
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest import dialects, secret_fields, yamltree

MAX_NODES: Final = 100_000  # aliases can make a small file stand for billions
MAX_CHARACTERS: Final = 64 * 2**20  # of all texts and paths of one file: an alias of a long text is a copy of it
MAX_MISTAKES: Final = 1_000  # and so for as many mistakes

KIND: Final = "KubernetesDaemonSet"

_CLOSE: Final = 0.9  # KubernetesDaemonset is close; KubernetesDeployment is not
_SHOWN: Final = 12  # field names in one message
_DIGITS: Final = 24  # longer than any valid number with sign and 0x; int() raises an error at thousands of digits

_BOOLEANS: Final = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}
_INTEGERS: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
}


@dataclass(frozen=True)
class Loaded:
    """A manifest with its stack input, and the location of each of its fields."""

    input: KubernetesDaemonSetStackInput
    source: str
    locations: Mapping[str, Location]
    diagnostics: tuple[Diagnostic, ...] = ()
    """Syntax errors. The rest was read: `validate` reports what is wrong with both."""
    unreadable: frozenset[str] = frozenset()
    """The fields that could not be read and therefore do not have the value in the file."""

    @property
    def manifest(self) -> KubernetesDaemonSet:
        return self.input.target

    def location(self, path: str) -> Location:
        """Return the location of a field, or of its nearest ancestor in the file."""
        return next(
            (self.locations[ancestor] for ancestor in ancestors(path) if ancestor in self.locations),
            Location(self.source),
        )


def load(content: bytes, source: str, *, skip_others: bool = False) -> list[Loaded]:
    """Return every manifest of a text, each with its syntax errors. Nothing is raised: `validate` reports everything.

    Documents of other kinds are errors, or are skipped: a directory can contain unrelated files.
    """
    loaded = list(_each(content, source, skip_others=skip_others))
    if not loaded and not skip_others:
        nothing = Diagnostic("", f"is empty; expected a manifest of kind {KIND}", Location(source))
        return [_unreadable([nothing], source)]
    return loaded


def _each(content: bytes, source: str, *, skip_others: bool) -> Iterator[Loaded]:
    characters = 0
    try:
        for root in yamltree.each_document(content, source):
            if not (skip_others and _is_clearly_another_kind(root)):
                reader = Reader(source, characters=characters)
                yield _document(root, reader)
                characters = reader.characters
    except (
        ManifestError
    ) as error:  # what follows is not read: a limit that each of many documents can reach is not a limit
        yield _unreadable(error.diagnostics, source)


def _unreadable(diagnostics: list[Diagnostic], source: str) -> Loaded:
    return Loaded(KubernetesDaemonSetStackInput(), source, {}, tuple(diagnostics), frozenset({""}))


def _kind(root: Node) -> ScalarNode | None:
    """Return the kind of a document, or None if it has none."""
    if isinstance(root, MappingNode):
        for key, value in yamltree.pairs(root):
            named = isinstance(key, ScalarNode) and key.value == "kind"
            if named and isinstance(value, ScalarNode) and not yamltree.is_null(value):
                return value
    return None


def _is_clearly_another_kind(root: Node) -> bool:
    """Return whether the kind is not ours. A misspelled kind of ours is an error, also in a directory of many kinds."""
    kind = _kind(root)
    return kind is not None and did_you_mean(kind.value, [KIND], cutoff=_CLOSE) is None


def _is_another_kind(root: Node) -> bool:
    kind = _kind(root)
    return kind is not None and kind.value != KIND


def _document(root: Node, reader: "Reader") -> Loaded:
    source = reader.source
    result = KubernetesDaemonSetStackInput()
    if _is_stack_input(root):
        reader.fill(result, root, "")
        locations = {path.removeprefix("target."): location for path, location in reader.locations.items()}
        return Loaded(
            result, source, locations, tuple(reader.diagnostics), frozenset(map(_within_target, reader.unreadable))
        )
    if (kind := _kind(root)) and _is_another_kind(root):  # its fields have other meanings: they are not checked
        reader.note(kind, "kind", f"{yamltree.kind(kind)} is invalid; expected {KIND}")
        return _unreadable(reader.diagnostics, source)
    result.target.SetInParent()
    reader.fill(result.target, root, "")
    if reader.diagnostics and reader.locations.keys() == {""}:  # it has none of the fields of a manifest
        return _unreadable(reader.diagnostics, source)
    return Loaded(result, source, reader.locations, tuple(reader.diagnostics), frozenset(reader.unreadable))


def _within_target(path: str) -> str:
    """Return a path of a stack input relative to its manifest."""
    return "" if path == "target" else path.removeprefix("target.")


def _is_stack_input(root: Node) -> bool:
    return isinstance(root, MappingNode) and any(
        isinstance(key, ScalarNode) and key.value == "target" for key, _ in yamltree.pairs(root)
    )


@dataclass
class Reader:
    """Reads nodes into messages, and records each error instead of stopping."""

    source: str
    diagnostics: list[Diagnostic] = field(default_factory=list)
    locations: dict[str, Location] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    nodes: int = 0
    characters: int = 0
    """Of texts and paths, with those of the documents before this one."""

    def fill(self, message: Message, node: Node, path: str) -> None:
        """Read a mapping into a message."""
        self._count(node, path)
        node = dialects.normalize(message.DESCRIPTOR.full_name, node)
        self.locations[path] = yamltree.location(node, self.source)
        if yamltree.is_null(node):
            return
        if not isinstance(node, MappingNode):
            self._cannot_read(node, path, f"a mapping with {_some(fields(message.DESCRIPTOR))}")
            return
        seen: dict[str, str] = {}
        misspelt = {self._entry(message, key, value, path, seen) for key, value in yamltree.pairs(node)}
        self.unreadable |= {_child(path, name) for name in misspelt - seen.keys() if name}

    def read(self, message: Message, what: FieldDescriptor, node: Node, path: str) -> None:
        """Read a node into one field of a message."""
        self._count(node, path)
        self.locations[path] = yamltree.location(node, self.source)
        if yamltree.is_null(node):
            return  # as in Kubernetes, null means omitted
        if is_map(what):
            self._map(message, what, dialects.as_mapping(what.full_name, node), path)
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
        """Return a scalar converted to the field's type, or None with an error recorded."""
        if not isinstance(node, ScalarNode):
            self._cannot_read(node, path, _wanted(what))
            return None
        if yamltree.is_null(node):
            self._cannot_read(node, path, _wanted(what), "; set a value or remove it")
            return None
        text = node.value
        result: str | int | bool | None
        match what.cpp_type:
            case FieldDescriptor.CPPTYPE_STRING:
                # 9200, true and 1.20 are strings here; they keep their notation.
                result = text if _is_unicode(text) else None
            case FieldDescriptor.CPPTYPE_BOOL:
                result = _BOOLEANS.get(text.lower())
            case FieldDescriptor.CPPTYPE_ENUM:
                result = _enum_value(what, text)
            case _:
                result = _integer(text, *_INTEGERS[what.cpp_type])
        if result is None:
            self._cannot_read(node, path, _wanted(what), _nearest_enum_value(what, text))
        return result

    def _entry(self, message: Message, key: Node, value: Node, path: str, seen: dict[str, str]) -> str:
        """Read one entry of a mapping. For an unknown field, return the one that was probably meant."""
        known = fields(message.DESCRIPTOR)
        name = key.value if isinstance(key, ScalarNode) else ""
        what = known.get(name)
        if what is None:
            near = _nearest(name, known)
            found = yamltree.kind(key) if near or not secret_fields.is_secret(path) else ""
            self.note(key, path, unknown(found, name, known))
            return known[near].name if near else ""
        if what.name in seen:
            also = "" if seen[what.name] == name else f" (also as {seen[what.name]})"
            self.note(key, _child(path, what.name), f"is defined twice{also}; remove one")
            return ""
        seen[what.name] = name
        self.read(message, what, value, _child(path, what.name))
        # The location of the key is more useful than that of the value: an empty value can be on another line.
        self.locations[_child(path, what.name)] = yamltree.location(key, self.source)
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
            self.locations[here] = yamltree.location(item, self.source)
            if (value := self.value(what, item, here)) is None:
                self.unreadable.add(path)  # the indexes of the following items are shifted
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
            here = map_entry(path, key.value)
            self._count(value, here)  # also of a duplicate, whose path a diagnostic keeps
            if key.value in items:
                self.note(key, here, "is defined twice; remove one")
                continue
            if yamltree.is_null(value):
                self.note(key, here, "found nothing; set a value, or '' for an empty text")
                self.unreadable.add(here)
            elif inner.message_type:
                self.fill(items[key.value], value, here)
            elif (text := self.value(inner, value, here)) is not None:
                items[key.value] = text
            self.locations[here] = yamltree.location(key, self.source)

    def _oneof_is_free(self, message: Message, what: FieldDescriptor, node: Node, path: str) -> bool:
        oneof = what.containing_oneof
        taken = message.WhichOneof(oneof.name) if oneof else None
        if taken is None or taken == what.name:
            return True
        self.note(node, path, f"cannot be combined with {taken}; remove one of them")
        return False

    def _count(self, node: Node, path: str) -> None:
        """Limit the number of nodes. The depth needs no limit: no message contains its own type."""
        self.nodes += 1
        self.characters += len(path) + (len(node.value) if isinstance(node, ScalarNode) else 0)
        if self.nodes > MAX_NODES:
            self._give_up(node, path, f"more than {MAX_NODES:,} values; check for nested aliases")
        if self.characters > MAX_CHARACTERS:
            self._give_up(node, "", f"more than {MAX_CHARACTERS:,} characters; check for nested aliases")

    def note(self, node: Node, path: str, text: str) -> None:
        self.diagnostics.append(Diagnostic(*secret_fields.masked(path, text), yamltree.location(node, self.source)))
        if len(self.diagnostics) >= MAX_MISTAKES:
            self._give_up(node, path, f"{MAX_MISTAKES:,} errors; the rest of the file was not read")

    def _cannot_read(self, node: Node, path: str, expected: str, besides: str = "") -> None:
        self.note(node, path, f"expected {expected}, found {secret_fields.kind(path, node)}{besides}")
        self.unreadable.add(path)

    def _give_up(self, node: Node, path: str, text: str) -> NoReturn:
        raise ManifestError([*self.diagnostics, Diagnostic(path, text, yamltree.location(node, self.source))])


@functools.cache
def fields(message: Descriptor) -> dict[str, FieldDescriptor]:
    """Return a message's fields by both of their names: snake_case first, then camelCase."""
    return {what.name: what for what in message.fields} | {what.json_name: what for what in message.fields}


def map_entry(path: str, key: str) -> str:
    """Return the path of a map entry."""
    return f"{path}.{key}" if key.replace("_", "").replace("-", "").isalnum() else f'{path}["{key}"]'


def ancestors(path: str) -> Iterator[str]:
    """Yield a field's path and those of its ancestors; the last one is the root, which is empty."""
    while path:
        yield path
        # A map's key is one step, whatever is in it. No map is in another one.
        end = path.find('["') if path.endswith('"]') else max(path.rfind("."), path.rfind("["), 0)
        path = path[:end]
    yield ""


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def is_map(what: FieldDescriptor) -> bool:
    return bool(what.message_type and what.message_type.GetOptions().map_entry)


def unknown(found: str, name: str, known: Mapping[str, FieldDescriptor]) -> str:
    near = _nearest(name, known)
    what = f"unknown field {found}".rstrip()
    return f"{what}; {f'did you mean {near}?' if near else f'expected {_some(known)}'}"


def _nearest(name: str, known: Mapping[str, FieldDescriptor]) -> str:
    return did_you_mean(name, known) or ""


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
    """Return the bounds of the field in the .proto file, or "" if it has none."""
    extensions: Any = what.GetOptions().Extensions  # its type does not include the extensions that protoc generates
    if bounds_pb2.least not in extensions:
        return ""
    most = extensions[bounds_pb2.most] if bounds_pb2.most in extensions else _INTEGERS[what.cpp_type][1]
    return f" from {extensions[bounds_pb2.least]} to {most}"


def _integer(text: str, low: int, high: int) -> int | None:
    """Return a whole number in YAML notation: 10, -1, 1_000, 0x1f, 0o644, and 0644, which is octal."""
    digits = text.replace("_", "")
    if len(digits) > _DIGITS:
        return None
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits.removeprefix("+"))
    if not digits[:1].isdecimal():  # int() would accept a second sign, and spaces
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
    near = did_you_mean(text, what.enum_type.values_by_name)
    return f"; did you mean {near}?" if near else ""


def _is_unicode(text: str) -> bool:
    """Return whether the text is valid Unicode. YAML's escapes can produce lone surrogates."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)
