"""The objects that the specification speaks of, as this project makes them."""

import functools
import re
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from kube_node_ready.settings import policy
from kube_node_ready.verification.model import Node
from kube_node_ready.verification.worker_pod import worker_pod
from tests.support import chart, configs
from tests.support.chart import Rendered

NODE = Node("node-1", "0e2c5a1e-8f0c-4a55-9d0a-6a7d5f0f3c11")
Json = dict[str, Any]


def controller(**values: object) -> Rendered:
    return chart.render({"deploymentMode": "controller", **values})


def daemonset(**values: object) -> Rendered:
    return chart.render({"deploymentMode": "daemonset", **values})


@functools.cache
def worker() -> Json:
    """The worker pod of a controller with the chart's defaults."""
    return worker_pod(NODE, 1, policy.template(configs.load(controller().file)))


def pods() -> dict[str, Json]:
    """Every kind of pod there is."""
    return {"controller": controller().pod, "daemonset": daemonset().pod, "worker": worker()}


def only_container(pod: Json) -> Json:
    (container,) = pod["spec"]["containers"]
    assert isinstance(container, dict)
    return container


def leaves(tree: object, path: str = "") -> dict[str, Any]:
    """Values by path. A list is one value, unless it is a list of one container."""
    if isinstance(tree, dict):
        below = [leaves(value, f"{path}.{key}".lstrip(".")) for key, value in tree.items()]
        return {name: value for part in below for name, value in part.items()}
    if path.endswith(".containers") and isinstance(tree, list):
        (container,) = tree
        return leaves(container, path)
    return {path: tree}


def has(actual: object, expected: object) -> bool:
    """Whether this is the expected value. A list can have more elements, and these more fields."""
    if isinstance(expected, list):
        return isinstance(actual, list) and all(any(has(one, item) for one in actual) for item in expected)
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(has(actual.get(key), value) for key, value in expected.items())
    return actual == expected


def page(registry: CollectorRegistry) -> dict[str, float]:
    """Every series and its value, as scraped."""
    lines = generate_latest(registry).decode().splitlines()
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def sorted_labels(series: str) -> str:
    """As a page has them, whose order has no meaning."""
    return re.sub(r"\{(.+)\}", lambda found: "{" + ",".join(sorted(found[1].split(","))) + "}", series)
