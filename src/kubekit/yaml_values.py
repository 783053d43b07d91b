"""Parse YAML of unknown origin into plain values, with limits on depth and on the work for aliases and merge keys."""

from typing import Any

import yaml

_MAX_DEPTH = 64  # a kubeconfig has 7 levels, and extensions some more
_MAX_COPIED_KEYS = 100_000  # by merge keys, of which a few lines can stand for billions
_MAX_DIRECTIVES = 64  # a kubeconfig needs none, and libyaml compares each with all earlier ones
# The C loader is ten times as fast; a PyYAML built without libyaml lacks it.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"


class InvalidYamlError(ValueError):
    """The text is not YAML, or exceeds a limit. The message is one line and shows no value."""


def parse(content: bytes) -> Any:  # noqa: ANN401  any value
    """Return mappings, lists, text, numbers, true, false and None. Keys are text, each written once."""
    if content.replace(b"\0", b"").count(b"%TAG") > _MAX_DIRECTIVES:  # without the zeros of UTF-16
        raise InvalidYamlError("it has too many directives")
    try:
        _check_depth(content)
        node = yaml.compose(content, Loader=_Loader)
        return None if node is None else _Values().of(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f" in line {mark.line + 1}" if mark else ""
        raise InvalidYamlError(f"not valid YAML{line}: {error.problem}") from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise InvalidYamlError(f"not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise InvalidYamlError("it is nested too deeply") from error


def _check_depth(content: bytes) -> None:
    """Before the nodes are composed: libyaml calls itself for each level, and the process dies when the stack ends."""
    depth = 0
    for event in yaml.parse(content, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MAX_DEPTH:
            raise InvalidYamlError("it is nested too deeply")


class _Values:
    """Nodes -> values. An alias is the same value, not a copy of it, so that aliases cost nothing."""

    def __init__(self) -> None:
        self._done: dict[int, object] = {}
        self._copied = 0

    def of(self, node: yaml.Node) -> object:
        if id(node) in self._done:
            return self._done[id(node)]
        if isinstance(node, yaml.MappingNode):
            mapping: dict[str, object] = {}
            self._done[id(node)] = mapping
            self._fill(mapping, node)
            return mapping
        if isinstance(node, yaml.SequenceNode):
            items: list[object] = []
            self._done[id(node)] = items
            items += [self.of(item) for item in node.value]
            return items
        assert isinstance(node, yaml.ScalarNode)
        return _scalar(node)

    def _fill(self, mapping: dict[str, object], node: yaml.MappingNode) -> None:
        merged: list[object] = []
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                found = self.of(value)
                items = found if isinstance(found, list) else [found]
                self._count(len(items))
                merged += items
            elif not isinstance(key, yaml.ScalarNode):
                raise InvalidYamlError(f"line {key.start_mark.line + 1} has a key that is not text")
            elif key.value in mapping:
                raise InvalidYamlError(f"line {key.start_mark.line + 1}: {key.value[:80]!a} is a duplicate key")
            else:
                mapping[key.value] = self.of(value)
        for found in merged:
            if isinstance(found, dict):
                self._count(len(found))
                for name, value in found.items():
                    mapping.setdefault(name, value)

    def _count(self, copied: int) -> None:
        """Before they are copied. Items of a merged list count, too: they need not be mappings."""
        self._copied += copied
        if self._copied > _MAX_COPIED_KEYS:
            raise InvalidYamlError("it has too many merge keys")


def _scalar(node: yaml.ScalarNode) -> object:
    text = str(node.value)
    match node.tag.removeprefix(_TAG):
        case "null":
            return None
        case "bool":
            return text.lower() in ("true", "yes", "on", "y")
        case "int" | "float":
            return _number(text)
        case _:
            return text


def _number(text: str) -> int | float:
    """The value of an unusual number, such as one with a base, does not matter: it is not text."""
    try:
        return int(text) if text.lstrip("+-").isdecimal() and len(text) < 20 else float(text)  # noqa: PLR2004
    except ValueError:
        return 0
