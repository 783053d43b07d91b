"""The settings engine: reads what was written by a table of fields, and collects every diagnostic on the way.

A `Table` lists the `Field`s of a mapping. What was written is a tree of mappings, lists and texts: of JSON, or of YAML,
whose nodes know their location (`kubekit.yaml_nodes`). A mistake is reported and leaves its field at the default, so
that one run finds all of them. Standard library only: a worker starts with it on every new node.
"""

from kube_node_ready.settings.readers import INVALID, Reader, is_null

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from kubekit.diagnostics import Diagnostic

    Build = Callable[[Any, Mapping[str, Any]], object]
    """Makes what a table describes: of the object that has the defaults, or None, and of the values that were given."""
    Suggest = Callable[[str, Iterable[str], str], str | None]
    """Returns the name that was probably meant by an unknown key: of the key, the known ones and their path."""

REQUIRED = object()
"""The default of a field that has none."""


class Field:
    """One setting. `key` is its name in files, `name` the attribute that holds it; without one it has no effect."""

    __slots__ = ("default", "description", "examples", "flag", "key", "name", "not_null", "reader", "variable")

    def __init__(  # noqa: PLR0913  the columns of a table
        self,
        key: str,
        reader: Reader,
        description: str = "",
        *,
        name: str | None = None,
        variable: str = "",
        flag: str = "",
        default: object = REQUIRED,
        examples: "tuple[object, ...]" = (),
        not_null: str = "",
    ) -> None:
        self.key = key
        self.reader = reader
        self.description = description
        self.name = snake_case(key) if name is None else name
        self.variable = variable
        self.flag = flag
        self.default = default
        self.examples = examples
        self.not_null = not_null
        """Why it cannot be null, if it cannot."""


class Table(Reader):
    """A mapping of fields. Without `build`, its values become values of the mapping around it."""

    expected = "a mapping"

    def __init__(
        self, *fields: Field, defaults: object = None, build: "Build | None" = None, expected: str = ""
    ) -> None:
        """`defaults` is the record that has the default of each field, by its name."""
        self.fields = {field.key: field for field in fields}
        self.build = build
        self.expected = expected or Table.expected
        if defaults is not None:
            for field in fields:
                field.default = getattr(defaults, field.name, None)


class Items(Reader):
    """A list, each item read alike."""

    expected = "a list"

    def __init__(self, item: Reader) -> None:
        self.item = item


class Entries(Reader):
    """A mapping with keys of the user's own."""

    expected = "a mapping"

    def __init__(self, key: Reader, value: Reader) -> None:
        self.key, self.value = key, value


class Decoder:
    def __init__(self, suggest: "Suggest | None" = None) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._suggest = suggest or closest
        self._source = ""

    def read(self, table: Table, tree: "Mapping[str, object]", source: str = "", base: object = None) -> "Any":  # noqa: ANN401
        """Read one tree. `source` is where values were written that do not know their location."""
        self._source = source
        return self._table(table, tree, "", base)

    def read_field(self, field: Field, text: str, source: str) -> "Any":  # noqa: ANN401
        """Read one setting that its source names, such as a variable: INVALID if it is reported."""
        self._source = source
        return self._value(field.reader, text, "")

    def _table(self, table: Table, value: object, path: str, base: object) -> object:
        if not isinstance(value, dict):
            self._invalid(table, value, path)
            return INVALID if base is None else base
        values: dict[str, object] = {}
        for key, item in value.items():
            field = table.fields.get(key)
            if field is None:
                self._unknown(table, str(key), item, path)
            elif not is_null(item):
                self._field(field, item, path, base, values)
            elif field.not_null:
                self._report(item, _make().invalid(_join(path, key), None, field.not_null))
        if table.build is None:
            return values
        required = [field for field in table.fields.values() if field.default is REQUIRED]
        for field in required:
            if is_null(value.get(field.key)):
                self._report(value, _make().missing(_join(path, field.key), field.reader.expected))
        is_complete = all(field.name in values for field in required)
        return table.build(base, values) if is_complete else INVALID

    def _field(self, field: Field, item: object, path: str, base: object, values: dict[str, object]) -> None:
        default = getattr(base, field.name, field.default)
        if _is_default(item, default):
            value = default
        else:
            value = self._value(field.reader, item, _join(path, field.key), None if default is REQUIRED else default)
        if isinstance(field.reader, Table) and field.reader.build is None and isinstance(value, dict):
            values.update(value)
        elif value is not INVALID and field.name:
            values[field.name] = value

    def _value(self, reader: Reader, value: object, path: str, base: object = None) -> object:
        if is_null(value) and not reader.accepts_null:
            self._invalid(reader, value, path)
            return INVALID
        if isinstance(reader, Table):
            return self._table(reader, value, path, base)
        if isinstance(reader, Items) and isinstance(value, list):
            items = [self._value(reader.item, item, f"{path}[{index}]") for index, item in enumerate(value)]
            return tuple(item for item in items if item is not INVALID)
        if isinstance(reader, Entries) and isinstance(value, dict):
            return self._entries(reader, value, path)
        parsed = INVALID if isinstance(reader, (Items, Entries)) else reader.parse(value)
        if parsed is INVALID:
            self._invalid(reader, value, path)
        return parsed

    def _entries(self, reader: Entries, entries: "Mapping[str, object]", path: str) -> dict[str, object]:
        values = {}
        for key, item in entries.items():
            at = _join(path, key)
            if reader.key.parse(key) is INVALID:
                self._report(item, _make().Diagnostic(at, f"the key is invalid; expected {reader.key.expected}"))
            elif (value := self._value(reader.value, item, at)) is not INVALID:
                values[key] = value
        return values

    def _invalid(self, reader: Reader, value: object, path: str) -> None:
        self._report(value, _make().invalid(path, *reader.problem(value)))

    def _unknown(self, table: Table, key: str, item: object, path: str) -> None:
        meant = self._suggest(key, table.fields, path)
        self._report(item, _make().unknown("key", _join(path, key), meant, table.fields))

    def _report(self, value: object, diagnostic: "Diagnostic") -> None:
        """Add a diagnostic of a value, with the location of that."""
        location = getattr(value, "location", _make().NOWHERE)
        if not location.source:
            location = _make().Location(self._source)
        self.diagnostics.append(diagnostic._replace(location=location))


def _is_default(item: object, default: object) -> bool:
    """Return whether this is the default, which needs no reader. The chart sets most settings of a worker to theirs.

    Values of YAML are texts of a type of their own, and never equal.
    """
    if type(item) is list:
        return tuple(item) == default
    return type(item) is type(default) and item == default


def _make() -> "Any":  # noqa: ANN401  a module
    """Return `kubekit.diagnostics`, which makes diagnostics. Only a mistake pays for its import."""
    from kubekit import diagnostics  # noqa: PLC0415

    return diagnostics


def closest(key: str, names: "Iterable[str]", path: str) -> str | None:  # noqa: ARG001  as a Suggest
    from kubekit.suggestions import did_you_mean  # noqa: PLC0415  only a typo pays for it

    return did_you_mean(key, names, normalize=str.lower)


def snake_case(key: str) -> str:
    """`dnsTestDomains` -> dns_test_domains."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


def camel_case(name: str) -> str:
    """`dns_test_domains` -> dnsTestDomains."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
