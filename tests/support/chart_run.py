"""A controller that runs as the chart configures it, with the rights that the chart grants."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from lightkube.resources.core_v1 import Node as NodeObject
from lightkube.resources.core_v1 import Pod

import lab
from lab import simulated_nodes, waiting
from tests.support.chart_release import Release
from tests.support.controller_process import QUICK, Operator, operating

GATE = lab.Taint("node-ready/unverified", value="true")
PATIENCE = 180


class Run:
    """A release of the chart with a running controller, and nodes that only this one looks at."""

    def __init__(self, plane: lab.Plane, prefix: str, folder: Path, config: Mapping[str, Any], **values: Any) -> None:  # noqa: ANN401  as in YAML
        management = {"nodeSelector": {"case": prefix}, **config.get("nodeManagement", {})}
        quick = {**QUICK, "intervalSeconds": 1, "maxRetries": 1, **config.get("reconciliation", {})}
        whole = {**config, "nodeManagement": management, "reconciliation": quick}
        self.plane = plane
        self.release = Release(plane, prefix, {"controller": {"config": whole}, **values})
        self._folder = folder
        self._prefix = prefix
        self._nodes: dict[str, simulated_nodes.SimulatedNodes] = {}

    def join(self, group: str, verdict: lab.Verdict, **labels: str) -> str:
        prefix, labels = f"{self._prefix}-{group}", {"case": self._prefix, **labels}
        nodes = self.plane.simulated_nodes(1, prefix=prefix, verdict=verdict, taints=[GATE], labels=labels)
        (name,) = nodes.names
        self._nodes[name] = nodes
        return name

    def decide(self, node: str, verdict: lab.Verdict) -> None:
        """From now on, workers on this node end this way."""
        self._nodes[node].decide(verdict)

    def controller(self) -> AbstractContextManager[Operator]:
        """As the chart configures it, but for the ports."""
        config = self.release.made.config
        config["metrics"]["port"] = config["health"]["port"] = 0
        return operating(self._folder, self.release.kubeconfig(), config)

    def until(self, what: str, condition: Any) -> None:  # noqa: ANN401  whatever it answers
        waiting.until(what, condition, PATIENCE, alive=self.plane.check)

    def node(self, name: str) -> NodeObject:
        return self.plane.client.get(NodeObject, name)

    def workers(self, node: str) -> list[str]:
        namespace = self.release.made.config["worker"]["namespace"]
        pods = self.plane.client.list(Pod, namespace=namespace, fields={"spec.nodeName": node})
        return [str(pod.metadata.name) for pod in pods if pod.metadata]

    def nodes(self) -> set[str]:
        found = self.plane.client.list(NodeObject, labels={"case": self._prefix})
        return {str(node.metadata.name) for node in found if node.metadata}

    def leave(self) -> None:
        self.plane.kubectl("delete", "node", "--ignore-not-found", *self._nodes, "no-such-node")
        self.release.uninstall()


@contextmanager
def a_run(
    plane: lab.Plane,
    prefix: str,
    folder: Path,
    *,
    policy: bool = True,
    values: Mapping[str, Any] | None = None,
    **config: Any,  # noqa: ANN401  as in YAML
) -> Iterator[Run]:
    """`policy`: whether there are the chart's admission policies. `values`: of the chart, besides the configuration."""
    run = Run(plane, prefix, folder, config, **{"admissionPolicy": {"enabled": policy}, **(values or {})})
    run.release.install()
    try:
        yield run
    finally:
        run.leave()
