"""Write docs/reference/metrics.md from the metrics themselves."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from prometheus_client import Metric

from kube_node_ready.api.record import Outcome, VerificationRecord
from kube_node_ready.controller.metrics import Metrics
from kube_node_ready.verification.model import Gate, Node, Phase, Policy, RemovalPolicy
from tools.docs import agent_tables

_HEAD = """\
# Metrics

<!-- Written by `make docs`; change the code, not this page. -->

This page is for operators who build alerts and dashboards: it lists every series of both modes.

## Controller

Served at `:8080/metrics`. Every series whose labels are known in advance exists from the start, with the value 0.
Series per node are removed with the node; `metrics.perNode: false` turns them off.

| series | type | labels | meaning |
|---|---|---|---|
"""
_DAEMONSET = """
## DaemonSet mode

Served at `:8080/metrics` of every pod. A pod reports its own node, and its series end with the pod: in mode
`once`, when the node is verified.

"""


class _Example:
    """One node, so that series of nodes show which labels they have."""

    nodes = (Node("a", "uid", labelled=True, record=VerificationRecord(1, outcome=Outcome.PASSED)),)
    workers = ()
    phases: Mapping[str, Phase] = MappingProxyType({})
    queue_depth = 0
    removals = ()


def page() -> str:
    metrics = Metrics(Policy((Gate("node-ready/unverified", "NoSchedule"),), removal=RemovalPolicy()))
    metrics.export_state(_Example(), per_node=True)
    families = sorted(metrics.registry.collect(), key=lambda family: family.name)
    return _HEAD + "".join(f"{_row(family, metrics)}\n" for family in families) + _DAEMONSET + agent_tables.metrics()


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
