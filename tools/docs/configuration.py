"""Write docs/configuration.md, and with `example` the complete example file, from the code.

python -m tools.docs.configuration > docs/configuration.md
python -m tools.docs.configuration example > examples/controller-config.yaml
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import msgspec
import yaml

from kube_node_ready.settings.compat import RENAMED_KEYS
from kube_node_ready.settings.config import add_flags, short_variables
from kube_node_ready.settings.controller import CONFIG, Config
from kube_node_ready.settings.engine import REQUIRED, Entries, Field, Items, Table
from kube_node_ready.settings.readers import Choice, Reader
from kube_node_ready.settings.structs import Section, manifest
from kube_node_ready.settings.worker_pod import CHECKS, Image, WorkerConfig
from kubekit.diagnostics import join_path

_INTRODUCTION = """\
# Configuration of the controller

<!-- Written by `python -m tools.docs.configuration > docs/configuration.md`; change the code, not this page. -->

This page is for cluster operators: it lists every key, environment variable and flag of the controller.
`kube-node-ready-controller --config FILE` reads one YAML file. Every key but `worker.image.repository` has a default;
[examples/controller-config.yaml](../examples/controller-config.yaml) has them all. What is unknown, of the wrong type
or impossible in combination is rejected at the start: all errors in one list, each with its line and what is expected.

The worker's image is the controller's own. The chart sets it. Elsewhere name it, or set the variable `POD_IMAGE` to the
controller's image. If the workers' repository differs from it, or has no registry, the controller logs a warning.

    2 errors in the configuration:
      - config.yaml:7: reconciliation.maxRetrys: unknown key; did you mean maxRetries?
      - LOG_LEVEL: logging.level: "loud" is invalid; expected debug, info, warn or error

Sources in ascending order of precedence: defaults, the file, environment variables, flags. A key without a value, or
with `null`, counts as absent. Numbers and booleans can be quoted; text need not be (`tag: 1.10` is the tag 1.10).
Anchors, aliases and `<<` work.
"""
_VARIABLES = """\
## Environment variables

Every field with a single value can be set by `KUBE_NODE_READY_` and its path in capitals:
`KUBE_NODE_READY_RECONCILIATION_MAX_RETRIES=7`, `KUBE_NODE_READY_WORKER_IMAGE_TAG=1.2.3`. Of the lists, those of the
worker's checks can be given with commas: `KUBE_NODE_READY_WORKER_DNS_TEST_DOMAINS=example.com,example.org`. An empty
variable counts as not set; an unknown one is rejected, unless Kubernetes created it for a Service. Also read:

| variable | field |
|---|---|
"""
_FLAGS = """\
## Flags

| flag | what it does |
|---|---|
"""
_OLDER = """\
## Older files

`controller: {config: …}`, the structure of Helm values, is accepted: its contents are read. Keys of the flat `config:`
section are rejected, with the key that replaces them:

| before | now |
|---|---|
"""
_EXAMPLE = """\
# Every key of the controller's configuration, with its default; only worker.image.repository has none. Keep what you
# change and leave out the rest.
# docs/configuration.md has more details. `make docs` writes both files: change the code instead.
"""


def main() -> None:
    sys.stdout.write(example() if sys.argv[1:] == ["example"] else page())


def page() -> str:
    tables = {key: field for key, field in CONFIG.fields.items() if isinstance(field.reader, Table)}
    tops = (field for field in CONFIG.fields.values() if field.key not in tables)
    variables = short_variables() | {"POD_NAMESPACE": "worker.namespace, if that is empty"}
    return "\n".join(
        [
            _INTRODUCTION,
            *map(_section, tables.values()),
            "## At the top\n\n" + _table((field.key, field, field.default) for field in tops),
            _VARIABLES + _rows((f"`{name}`", f"`{path}`") for name, path in sorted(variables.items())),
            _FLAGS + _rows(_flags()),
            _OLDER + _rows((f"`config.{old}`", f"`{new}`") for old, new in RENAMED_KEYS.items()),
        ]
    )


def example() -> str:
    image = Image(repository="registry.example/team/kube-node-ready")  # the one key without a default
    return _EXAMPLE + "".join(_written(CONFIG, Config(worker=WorkerConfig(image=image)), ""))


def _section(field: Field) -> str:
    assert isinstance(field.reader, Table)
    own = (row for row in _deep(field.reader, field.default, "") if row[0] not in CHECKS or field.key != "worker")
    text = f"## {field.key}\n\n{field.description}\n\n{_table(own)}"
    if field.key == "worker":
        text += "\nWhat the worker checks:\n\n" + _table((key, check, check.default) for key, check in CHECKS.items())
    for path, item in _item_tables(field.reader, field.key):
        text += f"\nEach of `{path}`:\n\n{_table(_deep(item, None, ''))}"
    return text


_HEAD = "| key | default | expected | |\n|---|---|---|---|\n"


def _table(rows: Iterable[tuple[str, Field, Any]]) -> str:
    return _HEAD + _rows(
        (f"`{path}`", _default(default), _expected(field.reader), field.description) for path, field, default in rows
    )


def _deep(table: Table, base: Any, path: str) -> Iterator[tuple[str, Field, Any]]:  # noqa: ANN401  a Section, or none
    """Fields and the fields within them, each with the default it has here."""
    for field in table.fields.values():
        at, default = join_path(path, field.key), getattr(base, field.name, field.default)
        if isinstance(field.reader, Table):
            yield from _deep(field.reader, default, at)
        else:
            yield at, field, default


def _item_tables(table: Table, path: str) -> Iterator[tuple[str, Table]]:
    """Tables of what is in lists, wherever they are within this one."""
    for field in table.fields.values():
        at = join_path(path, field.key)
        if isinstance(field.reader, Table):
            yield from _item_tables(field.reader, at)
        elif isinstance(field.reader, Items) and isinstance(field.reader.item, Table):
            yield at, field.reader.item
            yield from _item_tables(field.reader.item, f"{at}[]")


def _rows(rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _expected(reader: Reader) -> str:
    if isinstance(reader, Items) and not isinstance(reader.item, Table | Entries):
        return f"a list, each {reader.item.expected}"
    return reader.expected


def _default(value: Any) -> str:  # noqa: ANN401  any field's
    if value is REQUIRED:
        return "required"
    return "none" if value is None else f"`{_yaml(value)}`"


def _flags() -> Iterator[tuple[str, str]]:
    parser = argparse.ArgumentParser(add_help=False)
    add_flags(parser)
    for action in parser._actions:  # noqa: SLF001  argparse has no public list of them
        name = ", ".join(f"`{option}`" for option in action.option_strings)
        yield name, action.help or ""


def _written(table: Table, base: Any, indent: str) -> Iterator[str]:  # noqa: ANN401  a Section
    for field in table.fields.values():
        value = getattr(base, field.name, field.default)
        yield from _comment(field, indent)
        if isinstance(field.reader, Table):
            yield f"{indent}{field.key}:\n"
            yield from _written(field.reader, value, f"{indent}  ")
        else:
            yield from _entry(field.key, value, indent)
            yield from _shown_example(field, indent)


def _comment(field: Field, indent: str) -> Iterator[str]:
    if not indent:
        yield "\n"
    choices = f" ({field.reader.expected})" if isinstance(field.reader, Choice) else ""
    yield f"{indent}# {field.description.removesuffix('.')}{choices}.\n"


def _entry(key: str, value: Any, indent: str) -> Iterator[str]:  # noqa: ANN401  any field's
    plain = _plain(value)
    if isinstance(plain, list | dict) and plain:
        yield f"{indent}{key}:\n"
        inner = indent + "  "
        yield from (f"{inner}{line}\n" for line in _block(plain))
    else:
        yield f"{indent}{key}: {_yaml(value)}\n"


def _shown_example(field: Field, indent: str) -> Iterator[str]:
    for shown in field.examples:
        yield from (f"{indent}#   {line}\n" for line in _block(shown))


def _block(value: object) -> list[str]:
    return yaml.safe_dump(value, sort_keys=False, width=1000).splitlines()


def _yaml(value: Any) -> str:  # noqa: ANN401  any field's
    return yaml.safe_dump([_plain(value)], default_flow_style=True, sort_keys=False, width=1000).strip()[1:-1]


def _plain(value: Any) -> Any:  # noqa: ANN401  any field's
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Section):
        return manifest(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return msgspec.to_builtins(value)


if __name__ == "__main__":
    main()
