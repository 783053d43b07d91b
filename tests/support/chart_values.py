"""Values for tests of the chart: the modes, and values by path."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from tests.support.chart import CHART

CONTROLLER, WORKER, DAEMONSET = "kube-node-ready-controller", "kube-node-ready-worker", "kube-node-ready"
ONCE: Mapping[str, Any] = {"deploymentMode": "daemonset"}
CONTINUOUS: Mapping[str, Any] = {"deploymentMode": "daemonset", "daemonset": {"mode": "continuous"}}
DIGEST = f"sha256:{'0' * 64}"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
GATE = {"key": "node-ready/unverified", "operator": "Exists"}


def nested(path: str, value: object) -> dict[str, Any]:
    """`nested("a.b", 1)` -> {"a": {"b": 1}}"""
    for word in reversed(path.split(".")):
        value = {word: value}
    assert isinstance(value, dict)
    return value


def on(path: str) -> dict[str, Any]:
    return nested(path, value=True)


def off(path: str) -> dict[str, Any]:
    return nested(path, value=False)


def controller_config(path: str, value: object) -> dict[str, Any]:
    return nested(f"controller.config.{path}", value)


def walk(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        at = f"{path}.{key}" if path else key
        yield at, value
        if isinstance(value, dict):
            yield from walk(value, at)


MATRIX: Mapping[str, Any] = {"config": {"enableConnectivityMatrix": True}}
