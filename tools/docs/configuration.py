"""Writes docs/configuration.md, and with `example` the complete example file, from what the code says.

python -m kube_node_ready.reference > docs/configuration.md
python -m kube_node_ready.reference example > examples/controller-config.yaml
"""

import argparse
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import yaml
from msgspec import NODEFAULT, Struct, inspect

from kube_node_ready.configuration import checks
from kube_node_ready.configuration.environment import ORIGINAL
from kube_node_ready.configuration.flags import add_flags
from kube_node_ready.configuration.mistakes import within
from kube_node_ready.configuration.model import Config
from kube_node_ready.configuration.pods import Part, Worker, manifest
from kube_node_ready.configuration.schema import Field, Kind, fields, kind_of, part_of
from kube_node_ready.configuration.spelling import MOVED

_INTRODUCTION = """\
# Configuration of the controller

<!-- Written by `python -m kube_node_ready.reference > docs/configuration.md`; change the code, not this page. -->

`kube-node-ready-controller --config FILE` reads one YAML file. Every key has a default, so an empty file will do;
[examples/controller-config.yaml](../examples/controller-config.yaml) has them all. What is unknown, of the wrong type
or impossible in combination is refused at the start: all mistakes at once, each with its line and what would be right.

    2 mistakes in the configuration:
      - reconciliation.maxRetrys: unknown key (did you mean maxRetries?) [config.yaml line 7]
      - logging.level: is loud, and must be debug, error, info or warn [LOG_LEVEL]

Later ones win: defaults, the file, environment variables, flags. A key without a value, or with `null`, is as good as
absent. Numbers and switches may be quoted; text need not be (`tag: 1.10` is the tag 1.10). Anchors, aliases and `<<`
work.
"""
_VARIABLES = """\
## Environment variables

Every field that holds a single value can be set by `KUBE_NODE_READY_` and its path in capitals:
`KUBE_NODE_READY_RECONCILIATION_MAX_RETRIES=7`, `KUBE_NODE_READY_WORKER_IMAGE_TAG=1.2.3`. Of the lists, those of the
worker's checks can be given with commas: `KUBE_NODE_READY_WORKER_DNS_TEST_DOMAINS=example.com,example.org`. An empty
variable counts as not set; an unknown one is refused, unless Kubernetes made it for a Service. Also read:

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

`controller: {config: …}`, the shape of Helm values, is read as what is in it. Keys of the flat `config:` section are
refused with the place where the same is said today:

| then | now |
|---|---|
"""
_EXAMPLE = """\
# Every key of the controller's configuration, with its default. Keep what you change and leave out the rest.
# docs/configuration.md says more. Both are written by `python -m kube_node_ready.reference`: change the code instead.
"""


def main() -> None:
    sys.stdout.write(example() if sys.argv[1:] == ["example"] else page())


def page() -> str:
    tops = [field for field in fields(Config).values() if not part_of(field.kind)]
    sections = [(field, part) for field in fields(Config).values() if (part := part_of(field.kind))]
    return "\n".join(
        [
            _INTRODUCTION,
            *(_section(field, part) for field, part in sections),
            "## At the top\n\n" + _table((field.key, field, field.default) for field in tops),
            _VARIABLES
            + _rows(
                (f"`{name}`", f"`{path}`")
                for name, path in (ORIGINAL | {"POD_NAMESPACE": "worker.namespace, if that is empty"}).items()
            ),
            _FLAGS + _rows(_flags()),
            _OLDER + _rows((f"`config.{old}`", f"`{new}`") for old, new in MOVED.items()),
        ]
    )


def example() -> str:
    return _EXAMPLE + "".join(_written(Config, Config(), ""))


def _section(field: Field, part: type[Part]) -> str:
    text = f"## {field.key}\n\n{field.description}\n\n{_table(_deep(part, field.default, ''))}"
    if field.key == "worker":
        text += "\nWhat the worker checks:\n\n" + _HEAD + _rows(_check_rows())
    for path, item in _item_parts(part, field.key):
        text += f"\nEach of `{path}`:\n\n{_table(_deep(item, None, ''))}"
    return text


_HEAD = "| key | default | must be | |\n|---|---|---|---|\n"


def _table(found: Iterator[tuple[str, Field, Any]]) -> str:
    return _HEAD + _rows(
        (f"`{path}`", _default(default), _must(field.kind), field.description) for path, field, default in found
    )


def _deep(part: type[Part], base: Any, path: str) -> Iterator[tuple[str, Field, Any]]:  # noqa: ANN401  a Part, or none
    """Fields and the fields within them, each with the default it has here."""
    for field in fields(part).values():
        at, default = within(path, field.key), getattr(base, field.name, field.default)
        if inner := part_of(field.kind):
            yield from _deep(inner, default, at)
        else:
            yield at, field, default


def _item_parts(part: type[Part], path: str) -> Iterator[tuple[str, type[Part]]]:
    """Parts that stand in lists, wherever they are within this part."""
    for field in fields(part).values():
        at = within(path, field.key)
        if inner := part_of(field.kind):
            yield from _item_parts(inner, at)
        elif isinstance(field.kind.type, inspect.VarTupleType) and (
            inner := part_of(kind_of(field.kind.type.item_type))
        ):
            yield at, inner
            yield from _item_parts(inner, f"{at}[]")


def _check_rows() -> Iterator[tuple[str, ...]]:
    for name, text in checks.ABOUT.items():
        yield f"`{name}`", _default(checks.default(name)), checks.must_be(name), text


def _rows(rows: Iterator[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _must(kind: Kind) -> str:
    if isinstance(kind.type, inspect.VarTupleType):
        inner = kind_of(kind.type.item_type)
        return "a list" if part_of(inner) or isinstance(inner.type, inspect.DictType) else f"a list, each {inner.must}"
    return kind.must


def _default(value: Any) -> str:  # noqa: ANN401  any field's
    if value is NODEFAULT:
        return "required"
    return "none" if value is None else f"`{_yaml(value)}`"


def _flags() -> Iterator[tuple[str, str]]:
    parser = argparse.ArgumentParser(add_help=False)
    add_flags(parser)
    for action in parser._actions:  # noqa: SLF001  argparse has no public list of them
        name = ", ".join(f"`{option}`" for option in action.option_strings)
        yield name, action.help or ""


def _written(part: type[Part], base: Any, indent: str) -> Iterator[str]:  # noqa: ANN401  a Part
    for field in fields(part).values():
        value = getattr(base, field.name)
        inner = part_of(field.kind)
        yield from _comment(field, indent)
        if inner:
            yield f"{indent}{field.key}:\n"
            yield from _written(inner, value, f"{indent}  ")
        else:
            yield from _entry(field.key, value, indent)
            yield from _shown_example(field, indent)
    if part is Worker:
        for name, text in checks.ABOUT.items():
            yield f"{indent}# {text}\n"
            yield from _entry(name, checks.default(name), indent)


def _comment(field: Field, indent: str) -> Iterator[str]:
    if not indent:
        yield "\n"
    choices = f" ({field.kind.must})" if isinstance(field.kind.type, inspect.LiteralType) else ""
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
    if isinstance(value, Struct):
        assert isinstance(value, Part)
        return manifest(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return msgspec.to_builtins(value)


if __name__ == "__main__":
    main()
