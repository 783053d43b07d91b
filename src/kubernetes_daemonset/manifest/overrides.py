"""`--set path=value`: one field of a manifest, of whichever type, replaced by what the command line says.

The value is YAML, read by the same reader as a manifest: `--set spec.host_network=true`,
`--set spec.tolerations[0].key=gpu`, `--set 'spec.node_selector[kubernetes.io/os]=linux'`,
`--set 'spec.tolerations=[{operator: Exists}]'`. `null` takes a field or a map's entry out; no value at all is an
empty text.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from yaml import Node

from kubernetes_daemonset import yamltree
from kubernetes_daemonset.manifest import Loaded, Reader, entry, fields, is_map, unknown
from kubernetes_daemonset.mistakes import ManifestError, Mistake, Place
from kubernetes_daemonset.paths import NoPath, steps

_DIGITS: Final = 6  # of a place in a list; int() raises at thousands of them


def override(loaded: Loaded, assignments: Sequence[str]) -> Loaded:
    """The manifest with every assignment made, in their order. Raises one ManifestError with all that cannot be."""
    places = dict(loaded.places)
    mistakes: list[Mistake] = []
    target = type(loaded.input)()
    target.CopyFrom(loaded.input)
    for assignment in assignments:
        try:
            places |= _assign(target.target, assignment)
        except ManifestError as why:
            mistakes += why.mistakes
    if mistakes:
        raise ManifestError([*loaded.mistakes, *mistakes])
    return replace(loaded, input=target, places=places)


def _assign(manifest: Message, assignment: str) -> dict[str, Place]:
    path, equals, text = assignment.partition("=")
    source = f"--set {path}"
    while path.count("[") > path.count("]") and "=" in text:  # an = within brackets belongs to a key
        more, _, text = text.partition("=")
        path = f"{path}={more}"
    if not equals or not path:
        raise _wrong(f"--set {assignment}", "", "expected path=value, such as spec.container.app.image.tag=1.4.2")
    roots = yamltree.documents(text.encode(errors="surrogateescape") if text.strip() else b'""', source)
    if len(roots) > 1:
        raise _wrong(source, path, "expected one value")
    reader = Reader(source)
    _Walk(reader, source).assign(manifest, _steps(path, source), roots[0] if roots else None, "")
    if reader.mistakes:
        raise ManifestError(reader.mistakes)
    return dict.fromkeys(reader.places, Place(source))


class _Walk:
    """Goes down the steps of a path, and has the reader read the value into where they end."""

    def __init__(self, reader: Reader, source: str) -> None:
        self._reader = reader
        self._source = source

    def assign(self, message: Message, steps: Sequence[str], value: Node | None, path: str) -> None:
        name, *rest = steps
        known = fields(message.DESCRIPTOR)
        what = known.get(name)
        if what is None:
            raise _wrong(self._source, path, unknown(f'"{name}"', name, known))
        here = f"{path}.{what.name}" if path else what.name
        if not rest:
            message.ClearField(what.name)
            self._reader.places[here] = Place(self._source)
            if value is not None:
                self._reader.read(message, what, value, here)
        elif is_map(what):
            self._in_map(message, what, rest, value, here)
        elif what.is_repeated:
            self._in_list(message, what, rest, value, here)
        elif what.message_type:
            inner = getattr(message, what.name)
            inner.SetInParent()
            self.assign(inner, rest, value, here)
        else:
            raise _wrong(self._source, here, f"holds one value, so there is no {'.'.join(rest)} in it")

    def _in_map(
        self, message: Message, what: FieldDescriptor, steps: Sequence[str], value: Node | None, path: str
    ) -> None:
        key, *rest = steps
        items, inner = getattr(message, what.name), what.message_type.fields_by_name["value"]
        here = entry(path, key)
        if inner.message_type and rest:
            self.assign(items[key], rest, value, here)
        elif rest:
            raise _wrong(self._source, here, f"holds one value, so there is no {'.'.join(rest)} in it")
        elif value is None:
            items.pop(key, None)
        elif inner.message_type:
            items.pop(key, None)
            self._reader.fill(items[key], value, here)
        elif (text := self._reader.value(inner, value, here)) is not None:
            items[key] = text

    def _in_list(
        self, message: Message, what: FieldDescriptor, steps: Sequence[str], value: Node | None, path: str
    ) -> None:
        index, *rest = steps
        items = getattr(message, what.name)
        if not index.isdecimal() or len(index) > _DIGITS or int(index) > len(items):
            many = f"0 to {len(items)}" if items else "0"
            text = f'"{index}" is no place in this list; write {many} in the brackets ({len(items)} adds one)'
            raise _wrong(self._source, path, text)
        here, at = f"{path}[{index}]", int(index)
        is_new = at == len(items)
        if rest and what.message_type:
            self.assign(items.add() if is_new else items[at], rest, value, here)
        elif rest:
            raise _wrong(self._source, here, f"holds one value, so there is no {'.'.join(rest)} in it")
        elif value is None:
            raise _wrong(self._source, here, "one item alone cannot be taken out; write the whole list")
        elif what.message_type:
            item = items.add() if is_new else items[at]
            item.Clear()
            self._reader.fill(item, value, here)
        elif (found := self._reader.value(what, value, here)) is not None:
            items[at : at + 1] = [found]


def _steps(path: str, source: str) -> list[str]:
    try:
        return steps(path)
    except NoPath as why:
        raise _wrong(source, "", str(why)) from why


def _wrong(source: str, path: str, text: str) -> ManifestError:
    return ManifestError([Mistake(path, text, Place(source))])
