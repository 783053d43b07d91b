"""A controller at work as the chart configures it, with the rights that the chart grants."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from lightkube.resources.core_v1 import Node as NodeObject
from lightkube.resources.core_v1 import Pod

import lab
from lab import waiting
from tests.installed import Release
from tests.operator import QUICK, Operator, operating

GATE = lab.Taint("node-ready/unverified", value="true")
PATIENCE = 180


class Run:
    """A release of the chart with a controller at work, and nodes that only this one looks at."""

    def __init__(self, plane: lab.Plane, prefix: str, folder: Path, config: Mapping[str, Any], *, policy: bool) -> None:
        management = {"nodeSelector": {"case": prefix}, **config.get("nodeManagement", {})}
        quick = {**QUICK, "intervalSeconds": 1, "maxRetries": 1, **config.get("reconciliation", {})}
        whole = {**config, "nodeManagement": management, "reconciliation": quick}
        self.plane = plane
        self.release = Release(plane, prefix, {"controller": {"config": whole}, "admissionPolicy": {"enabled": policy}})
        self._folder = folder
        self._prefix = prefix
        self._nodes: list[str] = []

    def join(self, group: str, verdict: lab.Verdict, **labels: str) -> str:
        prefix, labels = f"{self._prefix}-{group}", {"case": self._prefix, **labels}
        (name,) = self.plane.fake_nodes(1, prefix=prefix, verdict=verdict, taints=[GATE], labels=labels).names
        self._nodes.append(name)
        return name

    def controller(self) -> AbstractContextManager[Operator]:
        """As the chart configures it, but for the ports."""
        config = self.release.made.config
        config["metrics"]["port"] = config["health"]["port"] = 0
        return operating(self._folder, self.release.kubeconfig(), config)

    def until(self, what: str, condition: Any) -> None:  # noqa: ANN401  whatever it answers
        waiting.until(what, condition, PATIENCE, alive=self.plane.check)

    def workers(self, node: str) -> list[str]:
        pods = self.plane.client.list(Pod, namespace=self.release.namespace, fields={"spec.nodeName": node})
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
    **config: Any,  # noqa: ANN401  as in YAML
) -> Iterator[Run]:
    """`policy`: whether the chart's admission policy protects the worker pods."""
    run = Run(plane, prefix, folder, config, policy=policy)
    run.release.install()
    try:
        yield run
    finally:
        run.leave()
