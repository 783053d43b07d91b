"""Write the settings in the chart's values.schema.json: types, ranges and descriptions, from the tables of settings.

python -m tools.docs.values_schema deploy/helm/kube-node-ready/values.schema.json

What the chart adds to a key stays as it is in the file: `required`, `not`, `allOf`, `anyOf`, references.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from kube_node_ready.settings import agent
from kube_node_ready.settings.controller import CONFIG
from kube_node_ready.settings.engine import REQUIRED, Entries, Field, Items, Table
from kube_node_ready.settings.field_types import QUANTITY
from kube_node_ready.settings.readers import (
    YEAR_SECONDS,
    Boolean,
    Choice,
    Duration,
    Number,
    OneOf,
    Pattern,
    Percentage,
    Plain,
    Raw,
    Reader,
    Seconds,
    Switch,
    TextList,
    Whole,
)
from kube_node_ready.settings.worker_pod import CHECKS

Schema = dict[str, Any]

_OWN: Final = frozenset(
    {
        *("description", "type", "enum", "pattern", "minLength", "maxLength", "maxItems"),
        *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"),
        *("properties", "items", "propertyNames", "additionalProperties"),
    }
)
"""Keywords that a table decides. All others are the chart's."""

_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NUMBER: Final = r"[0-9]{1,9}(\.[0-9]{1,9})?"
_DURATION: Final = f"^({_NUMBER}h)?({_NUMBER}m)?({_NUMBER}s)?({_NUMBER}ms)?$"
_LOOK_AHEAD: Final = re.compile(r"\(\?[=!](?:[^()]|\([^()]*\))*\)")
_LENGTH: Final = re.compile(r"\(\?=\.\{1,(\d+)\}\\Z\)")
_CHECKS: Final = "#/definitions/checks/properties/"

_TEXTS: Final[Mapping[str, Schema]] = {
    "dnsTestDomains": {"pattern": "^[A-Za-z0-9_.:-]{1,254}$"},
    "clusterDnsIp": {"pattern": "^[0-9a-fA-F.:]*$"},
    "networkTargets": {"pattern": r"^(https?://\S+|\S+:[0-9]{1,5})$"},
    "services": {"pattern": f"^{_LABEL}/{_LABEL}$"},
    "dnsService": {"pattern": f"^({_LABEL}/{_LABEL})?$"},
    "payloadPath": {"pattern": '^/[!-"$-~]*$'},
    "connectivitySelector": {"minLength": 1},
    "image": {"pattern": r"^\S{1,512}$"},
    "mountPath": {"pattern": "^/[^:]*$", "maxLength": 4096},
    "workingDir": {"pattern": "^(/[^:]*)?$", "maxLength": 4096},
    "subPath": {"pattern": "^([^/].*)?$", "maxLength": 4096},
    "kubeconfigPath": {"maxLength": 4096},
}
"""What Helm can check of texts that are checked by code, or by patterns that its regular expressions do not know."""

_FILLED_IN: Final = ("worker.serviceAccountName", "leaderElection.id")
"""Names that can be empty in values, since the chart has a name for them."""
_PORTS: Final = ("metrics.port", "health.port", "metricsPort")
"""Any free port is not sufficient: probes, Services and monitors name it."""


def main() -> None:
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(rewritten(path.read_text()))


def rewritten(text: str) -> str:
    schema = json.loads(text)
    values, definitions = schema["properties"], schema["definitions"]
    controller = values["controller"]["properties"]
    controller["config"] = _merged(controller["config"], {**_table(CONFIG, ""), **_described(controller["config"])})
    definitions["checks"]["properties"] = _properties(
        definitions["checks"], {key: _field(field, key) for key, field in CHECKS.items()}
    )
    workers = values["worker"]["properties"]["config"]
    idle = {key: inner for key, inner in workers["properties"].items() if "$ref" not in inner}
    workers["properties"] = {key: {"$ref": f"{_CHECKS}{key}"} for key in CHECKS} | idle
    flags = {field.flag.replace("-", ""): field for field in agent.FIELDS}
    flat = definitions["flat"]
    short = {
        key: inner if "$ref" in inner else _of(flags[key.lower()].reader, key)
        for key, inner in flat["properties"].items()
    }
    flat["properties"] = _properties(flat, short)
    return f"{_dump(schema)}\n"


def _described(section: Schema) -> Schema:
    return {"description": section["description"]}


def _table(table: Table, path: str) -> Schema:
    properties = {key: _field(field, f"{path}.{key}".lstrip(".")) for key, field in table.fields.items()}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _field(field: Field, path: str) -> Schema:
    if path.removeprefix("worker.") in CHECKS and path.startswith("worker."):
        return {"$ref": f"{_CHECKS}{field.key}"}
    schema = {"description": field.description, **_of(field.reader, path)}
    if field.default is None and "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    elif field.default is None:
        schema["type"] = [schema["type"], "null"]
    return schema


def _of(reader: Reader, path: str) -> Schema:
    reader = reader.reader if isinstance(reader, Plain) else reader
    if isinstance(reader, Table):
        return _table(reader, path)
    if isinstance(reader, Items):
        return {"type": "array", "items": _item(reader.item, f"{path}[]")}
    if isinstance(reader, Entries):
        return _entries(reader)
    key = path.rpartition(".")[2]
    for kind, make in _READERS.items():
        if isinstance(reader, kind):
            return {**make(reader), **_adjusted(path, key, make(reader))}
    return {"type": "string", **_TEXTS[key]}


def _item(reader: Reader, path: str) -> Schema:
    if not isinstance(reader, Table):
        return _of(reader, path)
    required = [field.key for field in reader.fields.values() if field.default is REQUIRED]
    return {**_table(reader, path), **({"required": required} if required else {})}


def _entries(reader: Entries) -> Schema:
    if isinstance(reader.value, Raw):
        return {"type": "object"}
    keys = {"pattern": _of(reader.key, "")["pattern"]}
    values = _of(reader.value, "")
    if reader.value is QUANTITY:
        values = {**values, "type": ["string", "number"], "minimum": 0}
    return {"type": "object", "propertyNames": keys, "additionalProperties": values}


def _adjusted(path: str, key: str, schema: Schema) -> Schema:
    """Return what holds in values only."""
    if path in _PORTS:
        return {"minimum": 1}
    if path in _FILLED_IN:
        return {"pattern": f"^({schema['pattern'][1:-1]})?$"}
    if schema.get("type") == "array":
        return {"items": {"type": "string", **_TEXTS[key]}}
    return _TEXTS.get(key, {}) if schema == {"type": "string"} else {}


def _number(reader: Number) -> Schema:
    least = "exclusiveMinimum" if reader.above else "minimum"
    return {"type": "integer" if reader.whole else "number", least: reader.least, "maximum": reader.most}


def _pattern(reader: Pattern) -> Schema:
    """Helm's regular expressions cannot look ahead, and do not know NUL."""
    length = _LENGTH.match(reader.pattern)
    longest = int(length[1]) if length else reader.longest
    pattern = _LOOK_AHEAD.sub("", reader.pattern)
    pattern = f"^({pattern})?$" if reader.empty else f"^{pattern}$"
    texts = {"pattern": pattern} if r"\0" not in pattern else {}
    return {"type": "string", **texts, **({"maxLength": longest} if longest else {})}


_READERS: Final[Mapping[type[Reader], Callable[[Any], Schema]]] = {
    Boolean: lambda _: {"type": "boolean"},
    Switch: lambda _: {"type": "boolean"},
    Number: _number,
    Whole: lambda reader: {"type": "integer", "minimum": reader.least, "maximum": reader.most},
    Seconds: lambda reader: {"type": "number", "exclusiveMinimum": 0, "maximum": reader.most},
    Percentage: lambda reader: {"type": "number", "minimum": 0, "exclusiveMaximum": reader.most},
    Duration: lambda _: {
        "type": ["string", "number"],
        "pattern": _DURATION,
        "exclusiveMinimum": 0,
        "maximum": YEAR_SECONDS,
    },
    Choice: lambda reader: {"enum": list(reader.words)},
    OneOf: lambda reader: {"enum": list(reader.words)},
    TextList: lambda reader: {"type": "array", "maxItems": reader.most},
    Pattern: _pattern,
}


def _merged(existing: Schema, made: Schema) -> Schema:
    """Return the schema of one key: what its table decides, and what the chart adds. Neither changes places."""
    if "$ref" in existing or "$ref" in made:
        return existing if "$ref" in existing else made
    if "properties" in made:
        made = {**made, "properties": _properties(existing, made["properties"])}
    if isinstance(made.get("items"), dict):
        made = {**made, "items": _merged(existing.get("items", {}), made["items"])}
    if set(existing.get("enum", ())) == set(made.get("enum", ())) and "enum" in existing:
        made = {**made, "enum": existing["enum"]}
    kept = {key: made.get(key, value) for key, value in existing.items() if key in made or key not in _OWN}
    return {**kept, **{key: value for key, value in made.items() if key not in kept}}


def _properties(existing: Schema, made: Mapping[str, Schema]) -> Schema:
    return {key: _merged(existing.get("properties", {}).get(key, {}), schema) for key, schema in made.items()}


def _dump(value: object, indent: str = "") -> str:
    """JSON with lists of single values on one line."""
    inner = f"{indent}  "
    if isinstance(value, dict) and value:
        lines = (f"{inner}{json.dumps(key)}: {_dump(item, inner)}" for key, item in value.items())
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return "[\n" + ",\n".join(f"{inner}{_dump(item, inner)}" for item in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    main()
