"""YAML as it was written: a tree of texts with their locations. What a text means is for the field to decide.

So `tag: 1.10` stays 1.10, `value: yes` is the text "yes" where text is expected and true where a boolean is, and a
number can be quoted. Repeated keys, tags, endless aliases and documents beyond any honest size are errors.
"""

import re
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

import yaml

from kubekit.diagnostics import NOWHERE, Diagnostic, DiagnosticsError, Location, join_path, truncate

_MOST_BYTES = 256 * 1024
_MOST_VALUES = 20_000
_MOST_CHARACTERS = 4 * _MOST_BYTES  # each use of an alias has a copy of its texts
_DEEPEST = 32
_LONGEST_KEY = 1024  # three times the longest key of Kubernetes; aliases can repeat one
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BARE = re.compile(r"true|false|[+-]?[0-9.]{1,20}([eE][+-]?[0-9]{1,3})?")
_TEXT_TAG = "tag:yaml.org,2002:str"


class Scalar(str):
    """A text, and whether it was in quotes."""

    __slots__ = ("location", "quoted")
    location: Location
    quoted: bool

    def __new__(cls, text: str, location: Location = NOWHERE, *, quoted: bool = False) -> Self:
        scalar = super().__new__(cls, text)
        scalar.location, scalar.quoted = location, quoted
        return scalar

    @property
    def is_null(self) -> bool:
        return not self.quoted and str(self) in _NULLS

    @property
    def is_bare(self) -> bool:
        """Whether YAML would read a number or a boolean."""
        return not self.quoted and _BARE.fullmatch(self) is not None

    def at(self, location: Location) -> "Scalar":
        return Scalar(str(self), location, quoted=self.quoted)


class Sequence(list["Node"]):
    __slots__ = ("location",)

    def __init__(self, items: "list[Node]", location: Location = NOWHERE) -> None:
        super().__init__(items)
        self.location = location

    def at(self, location: Location) -> "Sequence":
        return Sequence(self, location)


class Mapping(dict[str, "Node"]):
    __slots__ = ("location",)

    def __init__(self, entries: "dict[str, Node]", location: Location = NOWHERE) -> None:
        super().__init__(entries)
        self.location = location

    def at(self, location: Location) -> "Mapping":
        return Mapping(self, location)

    def with_entry(self, key: str, node: "Node") -> "Mapping":
        return Mapping({**self, key: node}, self.location)


Node: TypeAlias = Scalar | Sequence | Mapping


def is_null(node: Node | None) -> bool:
    return node is None or (isinstance(node, Scalar) and node.is_null)


def set_path(root: Mapping, path: str, value: Node) -> Mapping:
    """Return the tree with one more value. A section that is not a mapping stays, for the reader to report."""
    first, _, rest = path.partition(".")
    if not rest:
        return root.with_entry(first, value)
    section = root.get(first)
    if section is None or is_null(section):
        section = Mapping({})
    return root.with_entry(first, set_path(section, rest, value)) if isinstance(section, Mapping) else root


def has_path(root: Mapping, path: str) -> bool:
    """Return whether the tree has something there that is not empty."""
    first, _, rest = path.partition(".")
    node = root.get(first)
    if node is None or is_null(node):
        return False
    return has_path(node, rest) if rest and isinstance(node, Mapping) else node != ""


def locate(root: Mapping, *paths: str) -> Location:
    """Return where the first of these paths was written; if none was, where the nearest part of the first one was."""
    nodes = [_find(root, path) for path in paths]
    return next((node.location for node, is_exact in nodes if is_exact), nodes[0][0].location)


def _find(root: Mapping, path: str) -> tuple[Node, bool]:
    node: Node = root
    for word in re.findall(r"[^.\[\]]+", path):
        inner: Node | None = None
        if isinstance(node, Mapping):
            inner = node.get(word)
        elif isinstance(node, Sequence) and word.isdecimal() and int(word) < len(node):
            inner = node[int(word)]
        if inner is None:
            return node, False
        node = inner
    return node, True


def read_file(file: Path, diagnostics: list[Diagnostic]) -> Node | None:
    """Parse a file; None if it is empty or has only comments."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _unreadable(file, str(error.strerror)) from error
    if len(content) > _MOST_BYTES:
        raise _unreadable(file, f"it has more than {_MOST_BYTES // 1024} KiB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 text, byte {error.start + 1} is {content[error.start]:#04x}"
        raise _unreadable(file, reason) from error
    return parse(text, file.name, diagnostics)


def _unreadable(file: Path, reason: str) -> DiagnosticsError:
    return DiagnosticsError([Diagnostic("", f"cannot read the file: {reason}", Location(str(file)))])


def parse(text: str, name: str, diagnostics: list[Diagnostic]) -> Node | None:
    """Parse the one document in a text. Repeated keys are added to the diagnostics; text that is not YAML raises."""
    try:
        return _Composer(text, name, diagnostics).document()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise DiagnosticsError([Diagnostic("", _explain(error), Location(name, line))]) from error
    except yaml.reader.ReaderError as error:
        location = Location(name, text.count("\n", 0, error.position) + 1)
        raise DiagnosticsError([Diagnostic("", "not YAML: a character that YAML does not allow", location)]) from error
    except DiagnosticsError:
        raise
    except ValueError as error:  # PyYAML's, for escapes such as "\\U00110000"
        raise DiagnosticsError([Diagnostic("", f"not YAML: {error}", Location(name))]) from error


def _explain(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "cannot be parsed"
    if "'\\t'" in problem:
        return "not YAML: tabs cannot indent; use spaces"
    return f"not YAML: {problem}{f' {error.context}' if error.context else ''}"


class _Anchored(NamedTuple):
    node: Node
    values: int
    characters: int


class _Composer:
    """Composes from events, because PyYAML's own composer expands recursion and drops repeated keys."""

    def __init__(self, text: str, name: str, diagnostics: list[Diagnostic]) -> None:
        self._events = yaml.parse(text, Loader=yaml.SafeLoader)
        self._name = name
        self._diagnostics = diagnostics
        self._anchors: dict[str, _Anchored | None] = {}
        self._values = 0
        self._characters = 0

    def document(self) -> Node | None:
        root = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._rejected(event, "a second document starts here; expected one per file")
            elif isinstance(event, yaml.NodeEvent):
                root = self._node(event, "", 0)
        return root

    def _node(self, event: yaml.Event, path: str, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self._rejected(event, f"nested more than {_DEEPEST} levels deep")
        characters = self._characters
        self._count(event, 1, len(event.value) if isinstance(event, yaml.ScalarEvent) else 0)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        if event.tag not in (None, "!", _TEXT_TAG):
            raise self._rejected(event, f"the tag {truncate(event.tag)} is not supported; remove it")
        values = self._values
        if event.anchor:
            self._anchors[event.anchor] = None
        node = self._content(event, path, depth)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(node, self._values - values, self._characters - characters)
        return node

    def _content(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, path: str, depth: int) -> Node:
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event, path, depth)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, path, depth)
        assert isinstance(event, yaml.ScalarEvent)
        if any("\ud800" <= character <= "\udfff" for character in event.value):
            raise self._rejected(event, "half of a surrogate pair is not a character")
        return Scalar(event.value, self._location(event), quoted=event.style is not None or event.tag is not None)

    def _sequence(self, event: yaml.Event, path: str, depth: int) -> Sequence:
        items: list[Node] = []
        while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(inner, join_path(path, len(items)), depth + 1))
        return Sequence(items, self._location(event))

    def _mapping(self, event: yaml.Event, path: str, depth: int) -> Mapping:
        entries: dict[str, Node] = {}
        inherited: list[Node] = []
        while not isinstance(at := next(self._events), yaml.MappingEndEvent):
            key = self._key(at, path, depth)
            value = self._node(next(self._events), join_path(path, key), depth + 1)
            if key == "<<":
                inherited += value if isinstance(value, Sequence) else [value]
            elif key in entries:
                message = f"is repeated; first at {entries[key].location}"
                self._diagnostics.append(Diagnostic(join_path(path, key), message, self._location(at)))
            else:
                entries[key] = value.at(self._location(at))
        for node in inherited:
            if not isinstance(node, Mapping):
                raise self._rejected(event, "`<<` is invalid; expected the alias of a mapping")
            entries = {**node, **entries}
        return Mapping(entries, self._location(event))

    def _key(self, event: yaml.Event, path: str, depth: int) -> str:
        key = self._node(event, path, depth + 1)
        if not isinstance(key, Scalar):
            raise self._rejected(event, "a key is not text")
        if len(key) > _LONGEST_KEY:
            raise self._rejected(event, f"a key has more than {_LONGEST_KEY} characters")
        return str(key)

    def _alias(self, event: yaml.AliasEvent, depth: int) -> Node:
        assert event.anchor
        known = self._anchors.get(event.anchor)
        if known is None:
            reason = "contains itself" if event.anchor in self._anchors else "is not defined"
            raise self._rejected(event, f"the alias *{truncate(event.anchor)} {reason}")
        self._count(event, known.values, known.characters)
        if depth + _height(known.node) > _DEEPEST:
            raise self._rejected(event, f"nested more than {_DEEPEST} levels deep")
        return known.node

    def _count(self, event: yaml.Event, values: int, characters: int) -> None:
        self._values += values
        self._characters += characters
        if self._values > _MOST_VALUES:
            raise self._rejected(event, f"more than {_MOST_VALUES} values once aliases are expanded")
        if self._characters > _MOST_CHARACTERS:
            raise self._rejected(event, f"more than {_MOST_CHARACTERS} characters once aliases are expanded")

    def _rejected(self, event: yaml.Event, message: str) -> DiagnosticsError:
        return DiagnosticsError([*self._diagnostics, Diagnostic("", message, self._location(event))])

    def _location(self, event: yaml.Event) -> Location:
        assert event.start_mark
        return Location(self._name, event.start_mark.line + 1)


def _height(node: Node) -> int:
    if isinstance(node, Scalar):
        return 0
    return 1 + max(map(_height, node.values() if isinstance(node, Mapping) else node), default=0)
