"""YAML as it was written: a tree of texts that know their line. What a text means is for the field to say.

So `tag: 1.10` stays 1.10, `value: yes` is the text "yes" where a text is wanted and true where a switch is, and a
number may be quoted. Repeated keys, tags, endless aliases and documents beyond any honest size are mistakes.
"""

from pathlib import Path

import yaml
from msgspec import Struct
from msgspec.structs import replace

from kube_node_ready.configuration.mistakes import ConfigError, Mistake, shown, within

_MOST_BYTES = 256 * 1024
_MOST_VALUES = 20_000
_DEEPEST = 32
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TEXT_TAG = "tag:yaml.org,2002:str"


class Scalar(Struct, frozen=True):
    text: str
    where: str = ""
    quoted: bool = False


class Series(Struct, frozen=True):
    items: "tuple[Node, ...]"
    where: str = ""


class Table(Struct, frozen=True):
    entries: "dict[str, Node]"
    where: str = ""


Node = Scalar | Series | Table


def is_null(node: "Node | None") -> bool:
    return node is None or (isinstance(node, Scalar) and not node.quoted and node.text in _NULLS)


def read(file: Path, mistakes: list[Mistake]) -> Table:
    """What the file says; nothing, if it is empty or holds only comments."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError as why:
        raise ConfigError([Mistake("", f"the file {file} cannot be read: {why.strerror}")]) from why
    if len(content) > _MOST_BYTES:
        raise ConfigError(
            [Mistake("", f"the file {file} has more than {_MOST_BYTES // 1024} KiB: not a configuration")]
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as why:
        reason = f"the file {file} is not UTF-8 text: byte {why.start + 1} is {content[why.start]:#04x}"
        raise ConfigError([Mistake("", reason)]) from why
    return root(text, file.name, mistakes)


def root(text: str, name: str, mistakes: list[Mistake]) -> Table:
    """The same of a text that is at hand."""
    found = parse(text, name, mistakes)
    if found is None or is_null(found):
        return Table({})
    if not isinstance(found, Table):
        a_kind = "a list" if isinstance(found, Series) else f"the text {shown(found.text)}"
        reason = f"the file must hold sections such as `worker:` and `reconciliation:`, not {a_kind}"
        raise ConfigError([Mistake("", reason, found.where)])
    return found


def parse(text: str, name: str, mistakes: list[Mistake]) -> Node | None:
    """The document in the text. Repeated keys are added to the mistakes; what is no YAML at all raises them."""
    try:
        return _Composer(text, name, mistakes).document()
    except yaml.MarkedYAMLError as why:
        line = why.problem_mark.line + 1 if why.problem_mark else 1
        raise ConfigError([Mistake("", _explained(why), f"{name} line {line}")]) from why
    except yaml.reader.ReaderError as why:
        line = text.count("\n", 0, why.position) + 1
        raise ConfigError([Mistake("", "not YAML: a character that no text has", f"{name} line {line}")]) from why
    except ConfigError:
        raise
    except ValueError as why:  # PyYAML's, for escapes such as "\\U00110000"
        raise ConfigError([Mistake("", f"not YAML: {why}", name)]) from why


def _explained(why: yaml.MarkedYAMLError) -> str:
    problem = why.problem or "cannot be understood"
    if "'\\t'" in problem:
        return "not YAML: a tab cannot indent, use spaces"
    context = f" {why.context}" if why.context else ""
    return f"not YAML: {problem}{context}"


class _Composer:
    """Composes from events, because PyYAML's own composer expands recursion and forgets repeated keys."""

    def __init__(self, text: str, name: str, mistakes: list[Mistake]) -> None:
        self._events = yaml.parse(text, Loader=yaml.SafeLoader)
        self._name = name
        self._mistakes = mistakes
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._values = 0

    def document(self) -> Node | None:
        root = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._refused(event, "a second document starts here; one file holds one configuration")
            elif isinstance(event, yaml.NodeEvent):
                root = self._node(event, "", 0)
        return root

    def _node(self, event: yaml.Event, path: str, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self._refused(event, f"nested more than {_DEEPEST} levels deep")
        self._count(event, 1)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        if event.tag not in (None, "!", _TEXT_TAG):
            raise self._refused(event, f"the tag {shown(event.tag)} is not understood here; leave it out")
        before = self._values
        if event.anchor:
            self._anchors[event.anchor] = None
        node = self._content(event, path, depth)
        if event.anchor:
            self._anchors[event.anchor] = node, self._values - before
        return node

    def _content(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, path: str, depth: int) -> Node:
        if isinstance(event, yaml.SequenceStartEvent):
            return self._series(event, path, depth)
        if isinstance(event, yaml.MappingStartEvent):
            return self._table(event, path, depth)
        assert isinstance(event, yaml.ScalarEvent)
        if any("\ud800" <= character <= "\udfff" for character in event.value):
            raise self._refused(event, "half of a surrogate pair is not a character")
        return Scalar(event.value, self._where(event), quoted=event.style is not None or event.tag is not None)

    def _series(self, event: yaml.Event, path: str, depth: int) -> Series:
        items: list[Node] = []
        while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(inner, within(path, len(items)), depth + 1))
        return Series(tuple(items), self._where(event))

    def _table(self, event: yaml.Event, path: str, depth: int) -> Table:
        entries: dict[str, Node] = {}
        inherited: list[Node] = []
        while not isinstance(at := next(self._events), yaml.MappingEndEvent):
            key = self._key(at, path, depth)
            value = self._node(next(self._events), within(path, key), depth + 1)
            if key == "<<":
                inherited += value.items if isinstance(value, Series) else [value]
            elif key in entries:
                first = entries[key].where
                self._mistakes.append(Mistake(within(path, key), f"given twice, first at {first}", self._where(at)))
            else:
                entries[key] = replace(value, where=self._where(at))
        for node in inherited:
            if not isinstance(node, Table):
                raise self._refused(event, "`<<` takes the alias of a mapping")
            entries = node.entries | entries
        return Table(entries, self._where(event))

    def _key(self, event: yaml.Event, path: str, depth: int) -> str:
        key = self._node(event, path, depth + 1)
        if not isinstance(key, Scalar):
            raise self._refused(event, "a key must be a plain word")
        return key.text

    def _alias(self, event: yaml.AliasEvent, depth: int) -> Node:
        assert event.anchor
        known = self._anchors.get(event.anchor)
        if known is None:
            reason = "contains itself" if event.anchor in self._anchors else "was never defined"
            raise self._refused(event, f"the alias *{shown(event.anchor)} {reason}")
        node, values = known
        self._count(event, values)
        if depth + _height(node) > _DEEPEST:
            raise self._refused(event, f"nested more than {_DEEPEST} levels deep")
        return node

    def _count(self, event: yaml.Event, values: int) -> None:
        self._values += values
        if self._values > _MOST_VALUES:
            raise self._refused(
                event, f"more than {_MOST_VALUES} values once aliases are followed: not a configuration"
            )

    def _refused(self, event: yaml.Event, reason: str) -> ConfigError:
        return ConfigError([*self._mistakes, Mistake("", reason, self._where(event))])

    def _where(self, event: yaml.Event) -> str:
        assert event.start_mark
        return f"{self._name} line {event.start_mark.line + 1}"


def _height(node: Node) -> int:
    if isinstance(node, Scalar):
        return 0
    inner = node.items if isinstance(node, Series) else node.entries.values()
    return 1 + max(map(_height, inner), default=0)
