"""Every scenario in the model: whether the decisions alone are right."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kube_node_ready.verification.model import Gate, Policy, Worker
from tests.support.model_cluster import Cluster
from tests.support.scenarios import controller

POLICY = Policy(
    (Gate("node-ready/unverified", "NoSchedule"), Gate("example.com/second-gate", "NoExecute")),
    max_failures=3,
    first_backoff=timedelta(seconds=0.2),
    max_backoff=timedelta(seconds=1),
    slow_retry=timedelta(seconds=2),
    deadline=timedelta(seconds=30),
)
PATIENCE = 60


class Model(Cluster):
    def join(self, name: str, **facts: Any) -> None:  # noqa: ANN401
        super().join(name, **facts)

    def ordain(self, name: str, verdict: str) -> None:
        self.verdicts[name] = verdict

    def add_taint(self, name: str, taint: dict[str, str]) -> None:
        self.nodes[name]["spec"]["taints"].append(taint)

    def delete_worker(self, worker: Worker) -> None:
        del self.pods[worker.name]

    def workers(self, name: str | None = None) -> list[Worker]:
        uid = self.nodes[name]["metadata"]["uid"] if name else None
        return [worker for worker in super().workers() if uid is None or worker.node_uid == uid]

    def events(self, name: str) -> list[str]:
        return [event.reason for event in self.news.values() if event.node.name == name]

    def until(self, what: str, condition: Callable[[], object]) -> None:
        self.settle(PATIENCE, stop=lambda: bool(condition()))
        assert condition(), what

    def stays(self, condition: Callable[[], bool]) -> None:
        self.settle(5, stop=lambda: not condition())
        assert condition()


@pytest.mark.parametrize("scenario", controller.ALL, ids=lambda scenario: scenario.__name__)
def test_in_the_model(scenario: controller.Scenario) -> None:
    scenario(Model(POLICY), "node")
