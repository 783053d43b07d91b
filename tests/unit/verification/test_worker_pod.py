"""The worker pod: what is asked of the cluster."""

from typing import Any

import msgspec
import pytest

from kube_node_ready.api.objects import Taint
from kube_node_ready.api.record import MAX_ATTEMPTS, Cause, Outcome, VerificationRecord
from kube_node_ready.verification.fingerprint import fingerprint
from kube_node_ready.verification.model import Gate, Node
from kube_node_ready.verification.worker_pod import WorkerPodTemplate, worker_pod
from kube_node_ready.worker.main import attempt

UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
TEMPLATE = WorkerPodTemplate(
    "kube-system", "registry.example/worker:1", (Gate("node-ready/unverified", "NoSchedule"),), deadline_seconds=60
)
AWS = "ip-192-168-100-100.us-west-2.compute.internal"
LONG = ".".join(["a" * 62] * 4)[:253]


def made(name: str = "a", attempt: int = 1, **template: Any) -> dict[str, Any]:  # noqa: ANN401  its own fields
    return worker_pod(Node(name, UID), attempt, msgspec.structs.replace(TEMPLATE, **template))


@pytest.mark.parametrize("name", ["a", AWS, LONG], ids=["short", "as AWS names them", "as long as may be"])
def test_names_and_labels_are_valid_for_every_node(name: str) -> None:
    pod = made(name, attempt=MAX_ATTEMPTS)
    assert len(pod["metadata"]["name"]) <= 63
    assert all(0 < len(value) <= 63 for value in pod["metadata"]["labels"].values())
    assert all(value[0].isalnum() and value[-1].isalnum() for value in pod["metadata"]["labels"].values())
    assert pod["metadata"]["annotations"]["kube-node-ready/target-node"] == name


def test_long_names_that_begin_alike_get_labels_of_their_own() -> None:
    one, other = made(LONG + "a"), made(LONG + "b")
    assert one["metadata"]["labels"]["node"] != other["metadata"]["labels"]["node"]


def test_it_runs_on_that_node_and_no_other_whatever_its_hostname_label_is() -> None:
    affinity = made(AWS)["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    field = {"key": "metadata.name", "operator": "In", "values": [AWS]}
    assert affinity == {"nodeSelectorTerms": [{"matchFields": [field]}]}


def test_it_tolerates_the_gate_and_a_node_that_is_not_ready_yet_and_what_was_configured() -> None:
    extra = {"key": "dedicated", "operator": "Exists"}
    tolerated = made(tolerations=(extra,))["spec"]["tolerations"]
    assert {"key": "node-ready/unverified", "operator": "Exists", "effect": "NoSchedule"} in tolerated
    assert {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} <= {each["key"] for each in tolerated}
    assert extra in tolerated


def test_it_has_no_privileges_and_an_end() -> None:
    spec = made()["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert (spec["restartPolicy"], spec["activeDeadlineSeconds"]) == ("Never", 60)


def test_every_attempt_has_the_same_spec_and_its_number_in_the_pods_name() -> None:
    """So that one fingerprint covers all attempts."""
    first, later = made(attempt=1), made(attempt=7)
    assert first["spec"] == later["spec"]
    (variable,) = [entry for entry in first["spec"]["containers"][0]["env"] if entry["name"] == "POD_NAME"]
    assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert (attempt(first["metadata"]["name"]), attempt(later["metadata"]["name"])) == (1, 7)


def test_it_is_deleted_with_its_node() -> None:
    (owner,) = made(AWS)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Node", AWS, UID)


def test_labels_of_the_configuration_cannot_replace_those_we_select_by() -> None:
    labels = made(labels={"app": "mine", "team": "net"})["metadata"]["labels"]
    assert (labels["app"], labels["component"], labels["team"]) == ("kube-node-ready", "worker", "net")


def a_blocked_node(*taints: Taint, **changes: Any) -> Node:  # noqa: ANN401  its own fields
    """The worker of its last attempt did not start."""
    record = VerificationRecord(1, failures=1, outcome=Outcome.FAILED, cause=Cause.NOT_STARTED, reason="no room")
    return Node("node-1", UID, taints=taints, **{"record": record, **changes})


class TestBound:
    """After a worker that was not scheduled, the next one is bound to its node."""

    @pytest.mark.parametrize(
        "taints",
        [
            (),
            (Taint("node-ready/unverified", "NoSchedule"),),
            (Taint("node.kubernetes.io/not-ready", "NoExecute"), Taint("node.kubernetes.io/unreachable", "NoSchedule")),
            (Taint("example.com/full", "PreferNoSchedule"),),
        ],
    )
    def test_a_retry_bypasses_the_scheduler_if_only_other_pods_can_be_the_reason(
        self, taints: tuple[Taint, ...]
    ) -> None:
        assert worker_pod(a_blocked_node(*taints), 2, TEMPLATE)["spec"]["nodeName"] == "node-1"

    @pytest.mark.parametrize(
        "node",
        [
            Node("node-1", UID),
            a_blocked_node(labelled=True),
            a_blocked_node(record=VerificationRecord(1, outcome=Outcome.FAILED, cause=Cause.CHECKS)),
            a_blocked_node(Taint("node.kubernetes.io/network-unavailable", "NoSchedule")),
            a_blocked_node(Taint("node.kubernetes.io/unschedulable", "NoSchedule")),
        ],
    )
    def test_a_retry_uses_the_scheduler_otherwise(self, node: Node) -> None:
        assert "nodeName" not in worker_pod(node, 2, TEMPLATE)["spec"]

    @pytest.mark.parametrize("kind", ["persistentVolumeClaim", "ephemeral"])
    def test_a_retry_with_a_scheduler_bound_volume_uses_the_scheduler(self, kind: str) -> None:
        template = msgspec.structs.replace(TEMPLATE, volumes=({"name": "data", kind: {}},))
        assert "nodeName" not in worker_pod(a_blocked_node(), 2, template)["spec"]
        other = msgspec.structs.replace(TEMPLATE, volumes=({"name": "data", "emptyDir": {}},))
        assert "nodeName" in worker_pod(a_blocked_node(), 2, other)["spec"]

    def test_its_fingerprint_is_that_of_other_workers(self) -> None:
        bound, scheduled = (worker_pod(node, 2, TEMPLATE) for node in (a_blocked_node(), Node("node-1", UID)))
        assert fingerprint(bound["spec"]) == fingerprint(scheduled["spec"])
