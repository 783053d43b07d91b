"""A tenant's pod that holds the kubelet's queue of image pulls, so that a worker whose image is missing does not start.

By default, a kubelet pulls one image at a time. Any pod that tolerates the gate can name a registry that never answers.
"""

from pathlib import Path

from lightkube.models.core_v1 import Container
from lightkube.resources.core_v1 import Node, Pod

import lab
from kube_node_ready.api.contract import RECORD_ANNOTATION
from kube_node_ready.api.record import Cause, VerificationRecord, decode_record
from lab import waiting
from tests.e2e.conftest import PROBERS, Probed
from tests.support.builders import a_pod
from tests.support.controller_process import a_config, operating

GATE = "example.com/pulls"
STALLED_PORT, CLOSED_PORT = 5000, 5001
"""Of the node itself. Nothing listens on the second, so a pull from there fails immediately."""
SECONDS = 10


def test_a_worker_that_waits_for_the_images_of_others_does_not_count_against_its_node(
    plane: lab.Plane, first: Probed, workers: str, tmp_path: Path
) -> None:
    name = first.node.name
    worker = {
        "image": {"repository": f"127.0.0.1:{CLOSED_PORT}/worker", "tag": "1", "pullPolicy": "IfNotPresent"},
        "timeoutSeconds": SECONDS,
        "checkTimeoutSeconds": 5,
    }
    config = a_config(workers, worker=worker, nodeManagement={"taints": [{"key": GATE, "effect": "NoSchedule"}]})
    try:
        with first.node.stall_registry(STALLED_PORT):
            plane.client.create(tenants_pod(name))
            waiting.until("the tenant's image is pulled", lambda: is_pulling(plane), 60, alive=plane.check)
            plane.kubectl("taint", "node", name, f"{GATE}=true:NoSchedule")
            with operating(tmp_path, plane.kubeconfig(), config):
                waiting.until("it failed", lambda: record(plane, name).failures, 120, alive=plane.check)
                found = record(plane, name)
        assert found.reason.startswith(f"no verdict within {SECONDS + 5} s"), found
        assert (found.cause, found.node_failures) == (Cause.NOT_STARTED, 0)
    finally:
        plane.kubectl("taint", "node", name, f"{GATE}-", "--overwrite")
        plane.kubectl("annotate", "node", name, f"{RECORD_ANNOTATION}-")
        plane.kubectl("delete", "pod", "tenant", f"--namespace={PROBERS}", "--grace-period=0", "--force")


def tenants_pod(node: str) -> Pod:
    image = f"127.0.0.1:{STALLED_PORT}/slow:1"
    container = Container(name="slow", image=image, imagePullPolicy="IfNotPresent")
    return a_pod("tenant", PROBERS, node=node, containers=[container])


def is_pulling(plane: lab.Plane) -> bool:
    events = plane.kubectl("get", "events", f"--namespace={PROBERS}", "--output=jsonpath={.items[*].message}")
    return f"127.0.0.1:{STALLED_PORT}/slow:1" in events


def record(plane: lab.Plane, node: str) -> VerificationRecord:
    metadata = plane.client.get(Node, node).metadata
    assert metadata
    return decode_record((metadata.annotations or {}).get(RECORD_ANNOTATION))
