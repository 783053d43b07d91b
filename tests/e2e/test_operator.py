"""The operator on real nodes: controller, worker pods, kubelets, and a network that really breaks."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from lightkube.resources.core_v1 import Node as NodeObject
from lightkube.resources.core_v1 import Pod

import lab
from demo import image as release_image
from kube_node_ready.api.contract import CONDITION, RECORD_ANNOTATION
from kube_node_ready.api.record import VerificationRecord, decode_record
from lab import faults, images, waiting
from tests.e2e.conftest import WORKERS, Probed
from tests.support.builders import wait_running
from tests.support.controller_process import Operator, a_config, operating

GATE = "node-ready/unverified"
LABEL = "node-ready/verified"
PATIENCE = 180
WORKLOAD = f"""
apiVersion: v1
kind: Pod
metadata: {{name: workload, namespace: {WORKERS}}}
spec:
  nodeSelector: {{kubernetes.io/hostname: first}}
  terminationGracePeriodSeconds: 0
  containers: [{{name: main, image: "{images.TOOLBOX}", imagePullPolicy: Never, command: [/toolbox, serve, ":8080"]}}]
"""


@pytest.fixture(scope="module")
def operator(plane: lab.Plane, workers: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    worker = {
        "namespace": workers,
        "serviceAccountName": "worker",
        "image": {"repository": release_image.REPOSITORY, "tag": release_image.TAG, "pullPolicy": "Never"},
        "timeoutSeconds": 30,
        "checkTimeoutSeconds": 5,
        "dnsTestDomains": ["kubernetes.default.svc.cluster.local", "example.com"],
    }
    config = a_config(workers, worker=worker)
    with operating(tmp_path_factory.mktemp("operator"), plane.kubeconfig(), config) as running:
        yield running


class Gated:
    """A real node, about to be gated."""

    def __init__(self, plane: lab.Plane, node: lab.Node) -> None:
        self.plane = plane
        self.node = node

    def close(self) -> None:
        """As if it joined: gated, without label or record."""
        name, annotation = self.node.name, RECORD_ANNOTATION
        self.plane.kubectl("annotate", "node", name, f"{annotation}-")
        self.plane.kubectl("taint", "node", name, f"{GATE}=true:NoSchedule", "--overwrite")
        self.plane.kubectl("label", "node", name, f"{LABEL}-")

    def seen(self) -> NodeObject:
        return self.plane.client.get(NodeObject, self.node.name)

    def is_open(self) -> bool:
        node = self.seen()
        assert node.metadata
        assert node.spec
        labelled = LABEL in (node.metadata.labels or {})
        return labelled and GATE not in [taint.key for taint in node.spec.taints or []]

    def record(self) -> VerificationRecord:
        metadata = self.seen().metadata
        assert metadata
        return decode_record((metadata.annotations or {}).get(RECORD_ANNOTATION))

    def condition(self) -> dict[str, Any]:
        conditions = msgspec.to_builtins(self.seen().to_dict())["status"]["conditions"]
        (found,) = [condition for condition in conditions if condition["type"] == CONDITION]
        return dict(found)

    def until(self, what: str, condition: Callable[[], object]) -> None:
        waiting.until(what, condition, PATIENCE, alive=self.plane.check)


@pytest.fixture
def gated(plane: lab.Plane, first: Probed, operator: Operator) -> Iterator[Gated]:
    gated = Gated(plane, first.node)
    yield gated
    assert operator.process.poll() is None
    first.node.heal()
    gated.until("open for the next test", gated.is_open)


def test_a_healthy_node_is_released_and_pending_pods_run(plane: lab.Plane, gated: Gated) -> None:
    gated.close()
    plane.apply(WORKLOAD)
    try:
        gated.until("released", gated.is_open)
        wait_running(plane, plane.client.get(Pod, "workload", namespace=WORKERS))
        assert {check.name for check in gated.record().checks} >= {
            "dns",
            "api",
            "network",
            "services",
            "payload",
            "clock",
        }
        assert all(check.ok for check in gated.record().checks)
        assert gated.record().attempt == 1
        assert gated.condition()["status"] == "True"
        assert "Verified" in plane.kubectl("describe", "node", "first")
    finally:
        plane.client.delete(Pod, "workload", namespace=WORKERS)


FAULTS: dict[str, Callable[[lab.Node], faults.Fault]] = {
    "dns": lambda node: node.break_dns(),
    "api": lambda node: node.break_api(),
    "payload": lambda node: node.drop_mtu(),
}


@pytest.mark.parametrize("cause", FAULTS)
def test_a_broken_node_stays_gated_with_a_reason_until_repaired(gated: Gated, cause: str) -> None:
    with FAULTS[cause](gated.node):
        gated.close()
        gated.until("it failed", lambda: gated.record().failures >= 1)
        record = gated.record()
        assert not gated.is_open()
        assert record.reason.startswith(f"{cause}: "), record.reason
        condition = gated.condition()
        assert condition["status"] == "False"
        assert condition["message"].startswith(record.reason[:40])
    gated.until("released without help", gated.is_open)
    assert gated.record().failures == 0


def test_a_node_with_flaky_dns_stays_gated_after_many_attempts(gated: Gated) -> None:
    with gated.node.lose_dns(0.3):
        gated.close()
        gated.until("it failed three times", lambda: gated.record().failures >= 3 or gated.is_open())
        assert not gated.is_open(), gated.record()
        assert re.search(r"\d+ of \d+ queries lost", gated.condition()["message"]), gated.record()
    gated.until("released without help", gated.is_open)


@pytest.mark.parametrize("fault", [lab.Node.cut, lab.Node.freeze], ids=["cut", "frozen"])
def test_a_disconnected_node_stays_gated_until_reconnected(
    plane: lab.Plane, gated: Gated, fault: Callable[[lab.Node], faults.Fault]
) -> None:
    with fault(gated.node):
        gated.close()
        gated.until("a worker waits for it", lambda: list(plane.client.list(Pod, namespace=WORKERS)))
        assert not gated.is_open()
    gated.until("released", gated.is_open)
