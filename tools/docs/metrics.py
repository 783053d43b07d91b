"""Writes docs/metrics.md from the metrics themselves: python -m kube_node_ready.metrics_page > docs/metrics.md"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from prometheus_client import Metric

from kube_node_ready.daemonset import reference
from kube_node_ready.metrics import Metrics
from kube_node_ready.verify.model import Gate, Node, Outcome, Phase, Policy, Record, RemovalPolicy

_HEAD = """\
# Metrics

<!-- Written by `python -m kube_node_ready.metrics_page > docs/metrics.md`; change the code, not this page. -->

## Of the controller

At `:8080/metrics`. Every series whose labels are known beforehand is there from the start, as 0. Series of single nodes
go when the node goes; `metrics.perNode: false` switches them off.

| series | type | labels | what it says |
|---|---|---|---|
"""
_DAEMONSET = """
## Of DaemonSet mode

At `:8080/metrics` of every pod. A pod tells of its own node, and its series go when it goes: with the pattern *once*,
when the node is verified.

"""


class _Example:
    """One node, so that series of nodes show which labels they have."""

    nodes = (Node("a", "uid", labelled=True, record=Record(1, outcome=Outcome.PASSED)),)
    workers = ()
    phases: Mapping[str, Phase] = MappingProxyType({})
    queue_depth = 0
    removals = ()


def page() -> str:
    metrics = Metrics(Policy((Gate("node-ready/unverified", "NoSchedule"),), removal=RemovalPolicy()))
    metrics.describe(_Example(), per_node=True)
    families = sorted(metrics.registry.collect(), key=lambda family: family.name)
    return _HEAD + "".join(f"{_row(family, metrics)}\n" for family in families) + _DAEMONSET + reference.metrics()


def _row(family: Metric, metrics: Metrics) -> str:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ", ".join(f"`{label}`" for label in _labels(family, metrics))
    return f"| `{name}` | {family.type} | {labels} | {family.documentation} |"


def _labels(family: Metric, metrics: Metrics) -> Iterator[str]:
    declared = getattr(metrics.registry._names_to_collectors.get(family.name), "_labelnames", ())  # noqa: SLF001
    seen = next((tuple(sample.labels) for sample in family.samples), ())
    yield from (label for label in declared or seen if label != "le")


def main() -> None:
    print(page(), end="")  # noqa: T201


if __name__ == "__main__":
    main()
