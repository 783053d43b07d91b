"""`--set path=value`: replace one field of a manifest, of any type, from the command line.

The value is YAML, parsed by the same reader as a manifest: `--set spec.host_network=true`,
`--set spec.tolerations[0].key=gpu`, `--set 'spec.node_selector[kubernetes.io/os]=linux'`,
`--set 'spec.tolerations=[{operator: Exists}]'`. `null` removes a field or a map entry; no value at all is an empty
string.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from yaml import Node

from kubekit.diagnostics import Diagnostic, Location
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest import secret_fields, yamltree
from kubernetes_daemonset.manifest.paths import NoPath, steps
from kubernetes_daemonset.manifest.reader import Loaded, Reader, fields, is_map, map_entry, unknown

_DIGITS: Final = 6  # of a list index; int() raises an error at thousands of digits


def override(loaded: Loaded, assignments: Sequence[str]) -> Loaded:
    """Return the manifest with all assignments applied in order. Raises one ManifestError with all invalid ones."""
    locations = dict(loaded.locations)
    diagnostics: list[Diagnostic] = []
    target = type(loaded.input)()
    target.CopyFrom(loaded.input)
    for assignment in assignments:
        try:
            locations |= _assign(target.target, assignment)
        except ManifestError as error:
            diagnostics += error.diagnostics
    if diagnostics:
        raise ManifestError([*loaded.diagnostics, *diagnostics])
    return replace(loaded, input=target, locations=locations)


def _assign(manifest: Message, assignment: str) -> dict[str, Location]:
    path, equals, text = assignment.partition("=")
    source = f"--set {path}"
    while path.count("[") > path.count("]") and "=" in text:  # an = in brackets belongs to a key
        more, _, text = text.partition("=")
        path = f"{path}={more}"
    if not equals or not path:
        source = "--set" if secret_fields.is_secret(assignment) else f"--set {assignment}"
        raise _wrong(source, "", "expected path=value, such as spec.container.app.image.tag=1.4.2")
    roots = yamltree.documents(text.encode(errors="surrogateescape") if text.strip() else b'""', source)
    if len(roots) > 1:
        raise _wrong(source, path, "expected one value")
    reader = Reader(source)
    _Walk(reader, source).assign(manifest, _steps(path, source), roots[0] if roots else None, "")
    if reader.diagnostics:
        raise ManifestError(reader.diagnostics)
    return dict.fromkeys(reader.locations, Location(source))


class _Walk:
    """Follows the steps of a path and reads the value into the field at its end."""

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
            self._reader.locations[here] = Location(self._source)
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
            raise _wrong(self._source, here, f"has a single value and no field {'.'.join(rest)}")

    def _in_map(
        self, message: Message, what: FieldDescriptor, steps: Sequence[str], value: Node | None, path: str
    ) -> None:
        key, *rest = steps
        items, inner = getattr(message, what.name), what.message_type.fields_by_name["value"]
        here = map_entry(path, key)
        if inner.message_type and rest:
            self.assign(items[key], rest, value, here)
        elif rest:
            raise _wrong(self._source, here, f"has a single value and no field {'.'.join(rest)}")
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
            text = f'"{index}" is not a valid index of this list; expected {many} ({len(items)} appends an item)'
            raise _wrong(self._source, path, text)
        here, at = f"{path}[{index}]", int(index)
        is_new = at == len(items)
        if rest and what.message_type:
            self.assign(items.add() if is_new else items[at], rest, value, here)
        elif rest:
            raise _wrong(self._source, here, f"has a single value and no field {'.'.join(rest)}")
        elif value is None:
            raise _wrong(self._source, here, "a single item cannot be removed; set the whole list")
        elif what.message_type:
            item = items.add() if is_new else items[at]
            item.Clear()
            self._reader.fill(item, value, here)
        elif (item_value := self._reader.value(what, value, here)) is not None:
            items[at : at + 1] = [item_value]


def _steps(path: str, source: str) -> list[str]:
    try:
        return steps(path)
    except NoPath as error:
        raise _wrong(source, "", str(error)) from error


def _wrong(source: str, path: str, text: str) -> ManifestError:
    return ManifestError([Diagnostic(path, text, Location(source))])
