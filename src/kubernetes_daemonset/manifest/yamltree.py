"""Text -> YAML nodes that know their line and column, bounded in size and depth, with merge keys resolved.

Nodes, not values: a mistake found later can still say where it was written, and `9200` can still become the text that
a field wants.
"""

import json
import re
from collections.abc import Iterator
from typing import Final

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from kubernetes_daemonset.mistakes import ManifestError, Mistake, Place

# The C loader is ten times as fast; a PyYAML built without libyaml lacks it.
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_BYTES: Final = 4 * 1024 * 1024  # three times what etcd takes in one object
MAX_DEPTH: Final = 64  # a manifest has 12 levels at most

# An escaped surrogate pair, after backslashes that are escaped themselves.
_PAIR: Final = re.compile(rb"((?<!\\)(?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})")

_SHOWN: Final = 60  # characters of a value in a message

NULL: Final = "tag:yaml.org,2002:null"
_MERGE: Final = "tag:yaml.org,2002:merge"


def documents(content: bytes, source: str) -> list[Node]:
    """Every YAML document of a text that is not empty."""
    return list(each_document(content, source))


def each_document(content: bytes, source: str) -> Iterator[Node]:
    """The same, one after the other: those before one that cannot be read come before the error does."""
    if len(content) > MAX_BYTES:
        raise _refused(
            Place(source), f"{len(content):,} bytes is too much for a manifest; at most {MAX_BYTES:,} are read"
        )
    if content.lstrip().startswith(b"{"):
        content = _PAIR.sub(_joined, content)
    try:
        for root in _composed(content, source):
            if not is_null(root):
                yield root
    except yaml.reader.ReaderError as why:
        raise _refused(Place(source), f"not a text in UTF-8: {why.reason} at byte {why.position}") from why
    except yaml.MarkedYAMLError as why:
        mark = why.problem_mark or why.context_mark
        reason = "found a tab; indent with spaces" if _is_tab(content, mark) else _reason(why)
        raise _refused(_place_of_mark(mark, source), f"not YAML: {reason}") from why
    except (yaml.YAMLError, UnicodeError) as why:
        raise _refused(Place(source), f"not YAML: {why}") from why


def _joined(pair: re.Match[bytes]) -> bytes:
    """One character of two escapes: JSON writes those beyond the first 65,536 so, and YAML does not know of it."""
    letter: str = json.loads(b'"%b"' % pair[2])
    return pair[1] + letter.encode()


def place(node: Node, source: str) -> Place:
    return _place_of_mark(node.start_mark, source)


def is_null(node: Node) -> bool:
    return node.tag == NULL


def kind(node: Node) -> str:
    """What a node is, in words for a message."""
    match node:
        case MappingNode():
            return "a mapping"
        case SequenceNode():
            return "a list"
        case _:
            return "nothing" if is_null(node) else f'"{_shortened(node.value)}"'


def pairs(node: MappingNode) -> Iterator[tuple[Node, Node]]:
    """A mapping's keys and values, those it merges by `<<` included: its own win, then those merged first."""
    merged = [value for key, value in node.value if key.tag == _MERGE]
    own = [(key, value) for key, value in node.value if key.tag != _MERGE]
    yield from own
    if merged:
        yield from _merged(merged, {key.value for key, _ in own if isinstance(key, ScalarNode)})


def _merged(values: list[Node], taken: set[str]) -> Iterator[tuple[Node, Node]]:
    """Each mapping once, however many merge it: a few lines can stand for billions of ways to the same one."""
    seen: set[int] = set()
    left = list(reversed(values))
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, SequenceNode):
            left += reversed(value.value)
        elif isinstance(value, MappingNode):
            for key, item in value.value:
                if key.tag != _MERGE and isinstance(key, ScalarNode) and key.value not in taken:
                    taken.add(key.value)
                    yield key, item
            left += reversed([item for key, item in value.value if key.tag == _MERGE])


def scalar(text: str, like: Node, tag: str = "tag:yaml.org,2002:str") -> ScalarNode:
    """A scalar that was not written so, at the place of what it stands for."""
    return ScalarNode(tag, text, start_mark=like.start_mark, end_mark=like.end_mark)


def mapping(items: list[tuple[Node, Node]], like: Node) -> MappingNode:
    """A mapping that was not written so, at the place of what it stands for."""
    return MappingNode("tag:yaml.org,2002:map", items, start_mark=like.start_mark, end_mark=like.end_mark)


def _composed(content: bytes, source: str) -> Iterator[Node]:
    """Looks at each document before it is composed: libyaml calls itself for each level, and the process dies when the
    stack ends.
    """
    composed = yaml.compose_all(content, Loader=_Loader)
    depth = 0
    for event in yaml.parse(content, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentEndEvent):
            yield next(composed)
        if depth > MAX_DEPTH:
            raise _refused(_place_of_mark(event.start_mark, source), f"nested more than {MAX_DEPTH} levels deep")


def _refused(where: Place, text: str) -> ManifestError:
    return ManifestError([Mistake("", text, where)])


def _place_of_mark(mark: yaml.Mark | None, source: str) -> Place:
    return Place(source, mark.line + 1, mark.column + 1) if mark else Place(source)


def _is_tab(content: bytes, mark: yaml.Mark | None) -> bool:
    if not mark:
        return False
    line = content.decode(errors="replace").split("\n")[mark.line : mark.line + 1]
    return bool(line) and line[0][mark.column : mark.column + 1] == "\t"


def _reason(why: yaml.MarkedYAMLError) -> str:
    return ", ".join(part for part in (why.context, why.problem) if part)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
