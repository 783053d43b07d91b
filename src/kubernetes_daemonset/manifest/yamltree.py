"""Parse text into YAML nodes with line and column, bounded in size and depth, with merge keys resolved.

Nodes instead of values: a later diagnostic can still report the location, and `9200` can still become the string that
a field requires.
"""

import json
import re
from collections.abc import Iterator
from typing import Final

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from kubekit.diagnostics import Diagnostic, Location
from kubernetes_daemonset.errors import ManifestError

# The C loader is ten times as fast; a PyYAML built without libyaml lacks it.
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_BYTES: Final = 4 * 1024 * 1024  # three times what etcd takes in one object
MAX_DEPTH: Final = 64  # a manifest has 12 levels at most
MAX_MERGED: Final = 100_000  # keys that merges copy; a few bytes can merge a large mapping again
MAX_DIRECTIVES: Final = 1_000  # libyaml compares each with all others

# An escaped surrogate pair, after backslashes that are escaped themselves.
_PAIR: Final = re.compile(rb"((?<!\\)(?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})")

_SHOWN: Final = 60  # characters of a value in a message

NULL: Final = "tag:yaml.org,2002:null"
_MERGE: Final = "tag:yaml.org,2002:merge"


def documents(content: bytes, source: str) -> list[Node]:
    """Return all YAML documents of a text, except empty ones."""
    return list(each_document(content, source))


def each_document(content: bytes, source: str) -> Iterator[Node]:
    """Yield the documents one by one: those before an unreadable document are yielded before the error is raised."""
    if len(content) > MAX_BYTES:
        raise _refused(
            Location(source), f"{len(content):,} bytes are too large for a manifest; expected at most {MAX_BYTES:,}"
        )
    if content.replace(b"\0", b"").count(b"%TAG") > MAX_DIRECTIVES:  # without the zeros of UTF-16
        raise _refused(Location(source), f"more than {MAX_DIRECTIVES:,} %TAG directives; remove them")
    if content.lstrip().startswith(b"{"):
        content = _PAIR.sub(_joined, content)
    try:
        budget = _Budget(MAX_MERGED)
        for root in _composed(content, source):
            if not is_null(root):
                _merge_all(root, budget, source)
                yield root
    except yaml.reader.ReaderError as error:
        raise _refused(Location(source), f"not valid UTF-8: {error.reason} at byte {error.position}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = "found a tab; indent with spaces" if _is_tab(content, mark) else _reason(error)
        raise _refused(_location_of_mark(mark, source), f"not YAML: {reason}") from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise _refused(Location(source), f"not YAML: {error}") from error


def _joined(pair: re.Match[bytes]) -> bytes:
    """Join a surrogate pair: JSON escapes characters above U+FFFF this way, and YAML does not support it."""
    letter: str = json.loads(b'"%b"' % pair[2])
    return pair[1] + letter.encode()


def location(node: Node, source: str) -> Location:
    return _location_of_mark(node.start_mark, source)


def is_null(node: Node) -> bool:
    return node.tag == NULL


def kind(node: Node) -> str:
    """Return a description of a node for a message."""
    match node:
        case MappingNode():
            return "a mapping"
        case SequenceNode():
            return "a list"
        case _:
            return "nothing" if is_null(node) else f'"{_shortened(node.value)}"'


def pairs(node: MappingNode) -> Iterator[tuple[Node, Node]]:
    """Yield keys and values, including those merged by `<<`: own keys take precedence, then the first merged ones."""
    yield from node.value


def _merge_all(root: Node, budget: "_Budget", source: str) -> None:
    """Replace the merge keys of all mappings by what they merge, once: what reads a document reads some nodes often."""
    left, seen = [root], {id(root)}
    while left:
        node = left.pop()
        if isinstance(node, MappingNode):
            if any(key.tag == _MERGE for key, _ in node.value):
                node.value = list(_with_merged(node, budget, source))
            inner = [each for pair in node.value for each in pair]
        else:
            inner = node.value if isinstance(node, SequenceNode) else []
        fresh = [each for each in inner if id(each) not in seen]
        seen.update(map(id, fresh))
        left += fresh


class _Budget:
    """How many more merged keys and items a text can have."""

    def __init__(self, most: int) -> None:
        self._left = most

    def spend(self, count: int, node: Node, source: str) -> None:
        self._left -= count
        if self._left < 0:
            raise _refused(location(node, source), f"merges more than {MAX_MERGED:,} keys; check for repeated merges")


def _with_merged(node: MappingNode, budget: _Budget, source: str) -> Iterator[tuple[Node, Node]]:
    own = [(key, value) for key, value in node.value if key.tag != _MERGE]
    yield from own
    taken = {key.value for key, _ in own if isinstance(key, ScalarNode)}
    seen: set[int] = set()
    left = [value for key, value in reversed(node.value) if key.tag == _MERGE]
    while left:
        merged = left.pop()
        if id(merged) in seen:  # aliases can expand a few lines to billions of references
            continue
        seen.add(id(merged))
        if isinstance(merged, SequenceNode | MappingNode):
            budget.spend(len(merged.value), node, source)
        if isinstance(merged, SequenceNode):
            left += reversed(merged.value)
        elif isinstance(merged, MappingNode):
            for key, value in merged.value:
                if key.tag != _MERGE and isinstance(key, ScalarNode) and key.value not in taken:
                    taken.add(key.value)
                    yield key, value
            left += reversed([value for key, value in merged.value if key.tag == _MERGE])


def scalar(text: str, like: Node, tag: str = "tag:yaml.org,2002:str") -> ScalarNode:
    """Return a synthetic scalar at the location of the node that it replaces."""
    return ScalarNode(tag, text, start_mark=like.start_mark, end_mark=like.end_mark)


def mapping(items: list[tuple[Node, Node]], like: Node) -> MappingNode:
    """Return a synthetic mapping at the location of the node that it replaces."""
    return MappingNode("tag:yaml.org,2002:map", items, start_mark=like.start_mark, end_mark=like.end_mark)


def _composed(content: bytes, source: str) -> Iterator[Node]:
    """Check the depth of each document before composing it: libyaml recurses for each level, and the process crashes
    when the stack overflows.
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
            raise _refused(_location_of_mark(event.start_mark, source), f"nested more than {MAX_DEPTH} levels deep")


def _refused(where: Location, text: str) -> ManifestError:
    return ManifestError([Diagnostic("", text, where)])


def _location_of_mark(mark: yaml.Mark | None, source: str) -> Location:
    return Location(source, mark.line + 1, mark.column + 1) if mark else Location(source)


def _is_tab(content: bytes, mark: yaml.Mark | None) -> bool:
    if not mark:
        return False
    line = content.decode(errors="replace").split("\n")[mark.line : mark.line + 1]
    return bool(line) and line[0][mark.column : mark.column + 1] == "\t"


def _reason(error: yaml.MarkedYAMLError) -> str:
    return ", ".join(part for part in (error.context, error.problem) if part)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
