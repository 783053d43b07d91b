"""The values, their schema and the settings of the code define the same keys, types, limits and defaults."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from kube_node_ready.settings import worker
from kube_node_ready.settings.controller import CONFIG
from kube_node_ready.settings.engine import REQUIRED, Entries, Field, Items, Table
from kube_node_ready.settings.readers import Boolean, Choice, Duration, Number, Pattern
from kube_node_ready.settings.worker_pod import CHECKS
from tests.support import configs
from tests.support.chart import render
from tests.support.chart_values import SCHEMA, VALUES, walk


def resolved(schema: Mapping[str, Any]) -> dict[str, Any]:
    """With references followed."""
    while "$ref" in schema:
        found: Any = SCHEMA
        for word in schema["$ref"].removeprefix("#/").split("/"):
            found = found[word]
        schema = found
    return dict(schema)


def schema_paths(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key that the schema knows, `[]` standing for the items of a list."""
    schema = resolved(schema)
    for key, inner in schema.get("properties", {}).items():
        at = f"{path}.{key}" if path else key
        yield at, resolved(inner)
        yield from schema_paths(inner, at)
    if "items" in schema:
        yield from schema_paths(schema["items"], f"{path}[]")


def code_paths(table: Table, path: str = "") -> Iterator[tuple[str, Field]]:
    """Every key that the code reads, with its field."""
    for field in table.fields.values():
        at = f"{path}.{field.key}" if path else field.key
        yield at, field
        if isinstance(field.reader, Table):
            yield from code_paths(field.reader, at)
        elif isinstance(field.reader, Items) and isinstance(field.reader.item, Table):
            yield from code_paths(field.reader.item, f"{at}[]")


def check_default(name: str) -> object:
    default = CHECKS[name].default
    return list(default) if isinstance(default, tuple) else default


def own_schema() -> dict[str, dict[str, Any]]:
    config = SCHEMA["properties"]["controller"]["properties"]["config"]
    in_a_mapping = "worker.imagePullSecrets[].name"  # as in a pod, where the code also takes plain names
    return {path: schema for path, schema in schema_paths(config) if path != in_a_mapping}


def test_the_schema_has_exactly_the_keys_of_the_configuration() -> None:
    assert own_schema().keys() == {path for path, _ in code_paths(CONFIG)}


OWN_FIELDS = {path: field for path, field in code_paths(CONFIG) if path.removeprefix("worker.") not in CHECKS}


@pytest.mark.parametrize("path", OWN_FIELDS)
def test_the_schema_allows_what_the_code_allows(path: str) -> None:
    schema, field = own_schema()[path], OWN_FIELDS[path]
    types = schema.get("type", [])
    allowed = {types} if isinstance(types, str) else set(types)
    assert ("null" in allowed or None in schema.get("enum", [])) == (field.default is None)
    match field.reader:
        case Boolean():
            assert "boolean" in allowed
        case Number() as number:
            assert ("integer" if number.whole else "number") in allowed
            least = 1 if path in ("metrics.port", "health.port") else number.least  # 0 is any port; probes must know it
            assert (schema.get("minimum"), schema.get("exclusiveMinimum")) == (
                (None, least) if number.above else (least, None)
            )
            assert schema.get("maximum") == number.most
        case Choice(words=words):
            assert set(schema["enum"]) - {None} == set(words)
        case Pattern(pattern=pattern):
            assert "string" in allowed
            assert schema.get("pattern") in patterns(pattern, field.default)
        case Items():
            assert types == "array"
        case Entries() | Table():
            assert types == "object"
        case Duration():
            assert allowed == {"string", "number"}
        case other:
            pytest.fail(f"nothing is known about {other}")


def test_the_schema_requires_what_the_code_requires() -> None:
    lists = {path: field.reader.item for path, field in code_paths(CONFIG) if isinstance(field.reader, Items)}
    for path, item in lists.items():
        if isinstance(item, Table):
            demanded = [field.key for field in item.fields.values() if field.default is REQUIRED]
            assert own_schema()[path]["items"].get("required", []) == demanded, path


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_the_schema_of_the_checks_is_that_of_their_settings(name: str) -> None:
    schema, default = own_schema()[f"worker.{name}"], check_default(name)
    number = "number" if name.endswith(("Seconds", "Percent")) else "integer"
    kind = {bool: "boolean", str: "string", list: "array"}.get(type(default), number)
    assert schema["type"] == ([kind, "null"] if default is None else kind)
    assert schema["description"] == CHECKS[name].description
    if name.endswith("Seconds"):
        assert (schema["exclusiveMinimum"], schema["maximum"]) == (0, 3600)
    if name.endswith("Percent"):
        assert (schema["minimum"], schema["exclusiveMaximum"]) == (0, 100)


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("dnsTestDomains", ["example.com.", "_srv.example.com", "10.96.0.10", "fd00::a"]),
        ("networkTargets", ["example.com:443", "[fd00::a]:53", "https://example.com/a?b=c", "http://10.0.0.1:8080"]),
        ("services", ["default/kubernetes", "a-1/b-2"]),
    ],
)
def test_the_schema_accepts_what_a_worker_accepts(name: str, right: list[str]) -> None:
    worker.parse({name: right}, "here")
    for value in right:
        assert re.search(own_schema()[f"worker.{name}"]["items"]["pattern"], value), value


def patterns(pattern: str, default: object) -> list[str | None]:
    """How Helm's regular expressions, which cannot look ahead, say the same; those of paths leave more to the code."""
    plain = re.sub(r"\(\?[=!](?:[^()]|\([^()]*\))*\)", "", pattern).replace(r"\Z", "$")
    if r"\0" in plain:
        return [None, "^/[^:]*$", "^(/[^:]*)?$", "^([^/].*)?$", r"^\S{1,512}$"]
    is_filled_in = default in ("", REQUIRED) or "kube-node-ready" in str(default) or default == "latest"
    return [f"^{plain}$", f"^({plain})?$"] if is_filled_in else [f"^{plain}$"]


def test_the_defaults_are_the_codes() -> None:
    """As far as the chart does not know better: images, names and namespaces."""
    given = render().config
    assert given.pop("leaderElection")["namespace"] == given["worker"].pop("namespace") == "kube-system"
    given["worker"] = {key: value for key, value in given["worker"].items() if key not in ("image", "job")}
    loaded, plain = configs.load(render().file), configs.load("")
    filled_in = {"connectivityPort"}
    assert {name: value for name, value in given["worker"].items() if name in CHECKS} == {
        name: check_default(name) for name in CHECKS.keys() - filled_in
    }
    worker = msgspec.structs.replace(loaded.worker, checks={}, image=plain.worker.image)
    assert msgspec.structs.replace(loaded, worker=worker) == plain


def test_every_key_with_a_default_is_in_the_values() -> None:
    shown = {path for path, *_ in walk(VALUES["controller"]["config"])}
    elsewhere = {"image", "job", "leaderElection", "health", "metrics.enabled", "metrics.port"}  # commented on there
    for path, field in code_paths(CONFIG):
        hidden = field.default is None or "[]" in path or any(word in path for word in elsewhere)
        assert hidden or isinstance(field.reader, Table) or path in shown, path


def test_objects_of_the_schema_reject_unknown_keys() -> None:
    """What Kubernetes defines is open; what is ours is not."""
    for path, schema in schema_paths(SCHEMA):
        if schema.get("type") == "object" and "properties" in schema:
            assert schema["additionalProperties"] is False, path
