"""The generated parts of the chart's schema: they follow the tables, and keep what the chart adds."""

import json
from typing import Any

import pytest

from tests.support.shell import ROOT
from tools.docs import values_schema

TEXT = (ROOT / "deploy" / "helm" / "kube-node-ready" / "values.schema.json").read_text()


def config(schema: Any) -> Any:  # noqa: ANN401  JSON
    return schema["properties"]["controller"]["properties"]["config"]["properties"]


@pytest.mark.parametrize(
    ("section", "key", "keyword", "value"),
    [
        ("reconciliation", "maxRetries", "maximum", 5),
        ("reconciliation", "maxRetries", "description", "?"),
        ("reconciliation", "maxRetries", "type", "string"),
        ("reconciliation", "maxRetries", "exclusiveMinimum", 5),
        ("metrics", "port", "minimum", 0),
        ("logging", "level", "enum", ["loud"]),
        ("leaderElection", "leaseDuration", "pattern", "s"),
        ("worker", "configMapName", "maxLength", 5),
    ],
)
def test_a_changed_table_updates_the_schema(section: str, key: str, keyword: str, value: object) -> None:
    schema = json.loads(TEXT)
    config(schema)[section]["properties"][key][keyword] = value
    written = json.loads(values_schema.rewritten(json.dumps(schema)))
    original = json.loads(TEXT)
    if keyword == "enum":
        assert sorted(config(written)["logging"]["properties"]["level"].pop("enum")) == [
            "debug",
            "error",
            "info",
            "warn",
        ]
        del config(original)["logging"]["properties"]["level"]["enum"]
    assert written == original


def test_unknown_keys_are_removed_and_missing_ones_added() -> None:
    schema = json.loads(TEXT)
    config(schema)["metrics"]["properties"]["prot"] = {"type": "integer"}
    del config(schema)["metrics"]["properties"]["perNode"]
    assert json.loads(values_schema.rewritten(json.dumps(schema))) == json.loads(TEXT)


def test_additions_of_the_chart_are_kept() -> None:
    schema = json.loads(TEXT)
    added = {"not": {"const": 7}}
    config(schema)["reconciliation"]["properties"]["maxRetries"] |= added
    written = json.loads(values_schema.rewritten(json.dumps(schema)))
    assert config(written)["reconciliation"]["properties"]["maxRetries"]["not"] == added["not"]
