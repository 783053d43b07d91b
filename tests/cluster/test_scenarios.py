"""Every scenario on a real control plane, with the controller as a process of its own."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Event, Namespace, Pod
from lightkube.resources.core_v1 import Node as NodeObject

import lab
from kube_node_ready.api import objects
from kube_node_ready.api.contract import CONDITION
from kube_node_ready.verification.model import Gate, Node, Policy, Worker
from kube_node_ready.verification.node_reader import read_node
from kube_node_ready.verification.worker_status import read_worker
from lab import simulated_node, simulated_nodes, waiting
from tests.support.controller_process import a_config, operating, taints
from tests.support.scenarios import controller as scenarios

NAMESPACE = "scenarios"
GATES = [
    {"key": "node-ready/unverified", "value": "true", "effect": "NoSchedule"},
    {"key": "example.com/second-gate", "effect": "NoExecute"},
]
POLICY = Policy(tuple(Gate(gate["key"], gate["effect"]) for gate in GATES))
VERDICTS = {"passes": lab.PASSES, "fails": lab.fails(), "hangs": lab.HANGS, "stuck": lab.never_starts()}
PATIENCE = 180


class Real:
    """The cluster as the API server shows it."""

    def __init__(self, plane: lab.Plane) -> None:
        self._plane = plane
        self._client = plane.client
        self._groups: dict[str, simulated_nodes.SimulatedNodes] = {}

    def join(self, name: str, *, taints: list[dict[str, str]], verdict: str, labels: dict[str, str]) -> None:
        prefix, key = name.removesuffix("-0"), _taints(taints)
        if name not in self._groups:
            self._groups[name] = self._plane.simulated_nodes(
                1, prefix=prefix, verdict=VERDICTS[verdict], taints=key, labels=labels
            )
        else:
            self.ordain(name, verdict)
            self._client.create(simulated_node.node_object(name, self._plane.version, key, labels))

    def leave(self, name: str) -> None:
        self._client.delete(NodeObject, name)

    def ordain(self, name: str, verdict: str) -> None:
        self._groups[name].decide(VERDICTS[verdict])

    def unlabel(self, name: str) -> None:
        self._plane.kubectl("label", "node", name, "node-ready/verified-")

    def add_taint(self, name: str, taint: dict[str, str]) -> None:
        self._plane.kubectl("taint", "node", name, f"{taint['key']}={taint['value']}:{taint['effect']}")

    def delete_worker(self, worker: Worker) -> None:
        self._plane.kubectl("delete", "pod", f"--namespace={NAMESPACE}", worker.name)

    def node(self, name: str) -> Node:
        return read_node(_wire(self._client.get(NodeObject, name), objects.Node), POLICY)

    def condition(self, name: str) -> dict[str, Any]:
        found = self._client.get(NodeObject, name).to_dict()["status"]["conditions"]
        return next((known for known in found if known["type"] == CONDITION), {})

    def workers(self, name: str) -> list[Worker]:
        uid = self.node(name).uid
        pods = self._client.list(Pod, namespace=NAMESPACE)
        found = (read_worker(_wire(pod, objects.Pod)) for pod in pods)
        return [worker for worker in found if worker and worker.node_uid == uid]

    def events(self, name: str) -> list[str]:
        found = self._client.list(Event, namespace="default", fields={"involvedObject.name": name})
        ours = [event for event in found if event.reportingComponent == "kube-node-ready-controller"]
        return [str(event.reason) for event in ours]

    def until(self, what: str, condition: Callable[[], object]) -> None:
        waiting.until(what, condition, PATIENCE, alive=self._plane.check)

    def stays(self, condition: Callable[[], bool]) -> None:
        with pytest.raises(lab.NotReadyInTimeError):
            waiting.until("it changes", lambda: not condition(), 3)

    def forget(self) -> None:
        for name in self._groups:
            self._plane.kubectl("delete", "node", name, "--ignore-not-found")


def _taints(listed: list[dict[str, str]]) -> list[lab.Taint]:
    return taints(*listed)


def _wire(found: Any, kind: type[Any]) -> Any:  # noqa: ANN401  from lightkube's model to ours
    return msgspec.json.decode(msgspec.json.encode(found.to_dict()), type=kind)


@pytest.fixture(scope="module")
def controller(plane: lab.Plane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    plane.client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    folder = tmp_path_factory.mktemp("scenarios")
    config = a_config(NAMESPACE, nodeManagement={"taints": GATES}, worker={"timeoutSeconds": 25})
    with operating(folder, plane.kubeconfig(), config):
        yield
    plane.client.delete(Namespace, NAMESPACE)


@pytest.mark.usefixtures("controller")
@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda scenario: scenario.__name__)
def test_on_a_real_api_server(plane: lab.Plane, prefix: str, scenario: scenarios.Scenario) -> None:
    world = Real(plane)
    try:
        scenario(world, f"{prefix}-0")
    finally:
        world.forget()
