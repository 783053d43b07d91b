"""What a pod on a real node sees, and what each fault affects, and only that."""

import datetime as dt
import functools
import socket
from collections.abc import Callable

import pytest
from lightkube.models.core_v1 import Container, SecurityContext
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.resources.core_v1 import Node as NodeObject

import lab
from lab import images, network, waiting
from tests.e2e.conftest import PROBERS, Probed
from tests.support.builders import a_pod, a_server, can, probe, status_of, wait_ended, wait_running

API_NAME = "kubernetes.default.svc.cluster.local"
DNS = ("dns", API_NAME)
API = ("get", f"https://{API_NAME}/version")
API_BY_ADDRESS = ("get", f"https://{network.API_SERVICE}/version")


def hello(there: Probed) -> tuple[str, str]:
    return ("get", f"http://{there.address}:8080/")


def large(there: Probed) -> tuple[str, str]:
    return ("get", f"http://{there.address}:8080/100000")


def test_a_pod_resolves_the_api_through_cluster_dns(plane: lab.Plane, first: Probed, second: Probed) -> None:
    assert probe(plane, first.prober, *DNS) == network.API_SERVICE
    assert probe(plane, second.prober, *DNS) == network.API_SERVICE


def test_external_names_are_answered_locally(plane: lab.Plane, first: Probed) -> None:
    assert probe(plane, first.prober, "dns", "example.com") == "192.0.2.1"
    with pytest.raises(lab.LabError, match="no such host"):
        probe(plane, first.prober, "dns", "no-such-name.example")


def test_a_pod_reaches_the_api_by_its_service_as_its_service_account(plane: lab.Plane, first: Probed) -> None:
    assert probe(plane, first.prober, *API).startswith("200 ")
    with pytest.raises(lab.LabError, match="403 Forbidden"):
        probe(plane, first.prober, "get", f"https://{API_NAME}/api/v1/nodes")


def test_a_pod_reaches_a_pod_on_another_node(plane: lab.Plane, first: Probed, second: Probed) -> None:
    assert probe(plane, first.prober, *hello(second)).startswith("200 ")
    assert probe(plane, second.prober, *large(first)) == "200 100000"


def test_broken_dns_affects_only_dns(plane: lab.Plane, first: Probed, second: Probed) -> None:
    with first.node.break_dns():
        assert not can(plane, first.prober, *DNS)
        assert can(plane, first.prober, *API_BY_ADDRESS)
        assert can(plane, first.prober, *hello(second))
        assert can(plane, second.prober, *DNS)
    assert can(plane, first.prober, *DNS)


def test_a_broken_api_affects_only_the_api(plane: lab.Plane, first: Probed, second: Probed) -> None:
    directly = ("tcp", ":".join(map(str, plane.api_endpoint)))
    assert can(plane, first.prober, *directly)
    with first.node.break_api():
        assert not can(plane, first.prober, *API_BY_ADDRESS)
        assert not can(plane, first.prober, *directly)
        assert can(plane, first.prober, *DNS)
        assert can(plane, first.prober, *hello(second))
        assert can(plane, second.prober, *API)
    assert can(plane, first.prober, *API)


def test_a_small_mtu_affects_only_large_responses(plane: lab.Plane, first: Probed, second: Probed) -> None:
    assert can(plane, first.prober, *large(second))
    with first.node.drop_mtu():
        assert not can(plane, first.prober, *large(second))
        assert can(plane, first.prober, *hello(second))
        assert can(plane, first.prober, *DNS)
    assert can(plane, first.prober, *large(second))


def test_a_cut_node_is_disconnected_until_healed(plane: lab.Plane, first: Probed, second: Probed) -> None:
    with first.node.cut():
        assert not can(plane, second.prober, *hello(first))
        assert not kubelet_answers(first.node)
    waiting.until("its kubelet is back", lambda: kubelet_answers(first.node), 180)
    waiting.until("its pod is back", lambda: can(plane, second.prober, *hello(first)), 180)


def test_a_frozen_node_is_unresponsive_until_healed(plane: lab.Plane, first: Probed, second: Probed) -> None:
    with first.node.freeze():
        # The kernel still accepts connections; no process serves them.
        assert can(plane, second.prober, "tcp", f"{first.address}:8080")
        assert not can(plane, second.prober, *hello(first))
    assert can(plane, second.prober, *hello(first))


def test_heal_ends_every_fault(plane: lab.Plane, first: Probed, second: Probed) -> None:
    """Also faults made twice, and by someone else's hands: it finds them on the node."""
    for fault in (first.node.break_dns, first.node.break_dns, first.node.drop_mtu, first.node.break_api):
        fault()
    first.node.heal()
    assert can(plane, first.prober, *API)
    assert can(plane, first.prober, *large(second))


def test_a_rebooted_node_has_a_new_boot_id_and_restarts_its_pods(plane: lab.Plane, first: Probed) -> None:
    before = boot_id(plane, first.node)
    first.node.reboot()
    assert boot_id(plane, first.node) != before
    waiting.until("the pod was restarted", lambda: restarts(plane, first.prober) > 0, 180)
    # Cluster DNS might have been on this node, and needs its time too.
    waiting.until("the pod sees the API again", lambda: can(plane, first.prober, *API), 180)


def test_taints_and_labels_are_there_from_registration_on(plane: lab.Plane, namespace: str) -> None:
    """A gate that comes later than the node comes too late."""
    gate = lab.Taint("node-ready/unverified", "NoSchedule", "true")
    before = plane.client.create(ConfigMap(metadata=ObjectMeta(name="before", namespace=namespace))).metadata
    assert before
    plane.node("gated", taints=[gate], labels={"pool": "new"})
    history = plane.client.watch(NodeObject, resource_version=before.resourceVersion)
    event, node = next((event, node) for event, node in history if node.metadata and node.metadata.name == "gated")
    assert event == "ADDED"
    assert node.metadata
    assert node.metadata.labels
    assert node.metadata.labels["pool"] == "new"
    assert node.spec
    assert node.spec.taints
    assert (gate.key, gate.value, gate.effect) in [(taint.key, taint.value, taint.effect) for taint in node.spec.taints]


def test_a_daemonset_loses_its_pod_when_the_node_gets_the_label_it_excludes(plane: lab.Plane, first: Probed) -> None:
    plane.apply(DAEMON_SET_FOR_UNVERIFIED_NODES)
    waiting.until("the pod runs", lambda: daemon_pods(plane, first.node.name), 180)
    plane.kubectl("label", "node", first.node.name, "node-ready/verified=true")
    waiting.until("the pod is gone", lambda: not daemon_pods(plane, first.node.name), 180)
    plane.client.delete(DaemonSet, "one-time", namespace=PROBERS)
    plane.kubectl("label", "node", first.node.name, "node-ready/verified-")


def test_a_hardened_container_runs_and_its_termination_message_is_kept(plane: lab.Plane, first: Probed) -> None:
    """Non-root, read-only, without privileges: what the operator's workers will be."""
    hardened = a_pod(
        "hardened",
        PROBERS,
        node=first.node.name,
        containers=[
            Container(
                name="worker",
                image=images.TOOLBOX,
                imagePullPolicy="Never",
                command=["/toolbox", "dns", "no-such-name.example"],
                terminationMessagePolicy="FallbackToLogsOnError",
                securityContext=SecurityContext(
                    allowPrivilegeEscalation=False, readOnlyRootFilesystem=True, runAsNonRoot=True
                ),
            )
        ],
    )
    status = wait_ended(plane, plane.client.create(hardened))
    assert status.containerStatuses
    state = status.containerStatuses[0].state
    assert state
    assert state.terminated
    assert state.terminated.exitCode == 1
    assert "no such host" in (state.terminated.message or "")


def test_an_imported_image_can_be_run(plane: lab.Plane, first: Probed) -> None:
    archive = plane.run.folder / "imported.tar"
    images.write(
        archive, "lab.local/imported:1", {"/toolbox": plane.programs.path("toolbox")}, ["/toolbox", "serve", ":1"]
    )
    plane.import_image(archive)
    imported = Container(name="serve", image="lab.local/imported:1", imagePullPolicy="Never")
    pod = plane.client.create(a_pod("imported", PROBERS, node=first.node.name, containers=[imported]))
    wait_running(plane, pod)


def test_pods_of_two_planes_are_isolated(
    plane: lab.Plane, first: Probed, fresh_plane: Callable[..., lab.Plane]
) -> None:
    other = fresh_plane()
    node = other.node("other")
    pod = other.client.create(a_server("there", "default", node=node.name))
    address = wait_running(other, pod).podIP
    assert address
    for host, port in ((address, 8080), (node.address, 10250)):
        # Running is said of a container before its program listens.
        waiting.until(f"{host}:{port} answers", functools.partial(answers, host, port), 180)
        assert not can(plane, first.prober, "tcp", f"{host}:{port}")


def test_faults_of_pods_do_not_affect_their_node(plane: lab.Plane, first: Probed) -> None:
    """Its kubelet continues to renew its lease: the node is Ready and useless."""
    with first.node.break_dns(), first.node.break_api(), first.node.drop_mtu():
        begun = renewal(plane, first.node)
        waiting.until("two renewals", lambda: (renewal(plane, first.node) - begun).total_seconds() > 15, 180)


def test_a_dead_process_of_a_node_is_named_even_after_a_freeze(fresh_plane: Callable[..., lab.Plane]) -> None:
    plane = fresh_plane()
    node = plane.node("mortal")
    node.freeze().heal()
    node.processes["kubelet"].kill()
    with pytest.raises(lab.ComponentDiedError, match="kubelet of node mortal died"):
        waiting.until("its death is seen", lambda: None, 60, alive=plane.check)
    node.stop()


def test_a_stopped_node_cannot_be_broken_and_blocks_nothing(fresh_plane: Callable[..., lab.Plane]) -> None:
    """Its pid might belong to another process by now."""
    plane = fresh_plane()
    node = plane.node("off")
    node.stop()
    with pytest.raises(lab.LabError, match=r"^node off is off$"):
        node.freeze()
    plane.node("next")
    with pytest.raises(lab.LabError, match="there is a node 'next' already"):
        plane.node("next")


def answers(host: str, port: int) -> bool:
    """To this machine, which has a way to every node and pod."""
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError:
        return False
    return True


def kubelet_answers(node: lab.Node) -> bool:
    return answers(node.address, 10250)


def renewal(plane: lab.Plane, node: lab.Node) -> dt.datetime:
    spec = plane.client.get(Lease, node.name, namespace="kube-node-lease").spec
    assert spec
    assert spec.renewTime
    return spec.renewTime


def boot_id(plane: lab.Plane, node: lab.Node) -> str:
    status = plane.client.get(NodeObject, node.name).status
    assert status
    assert status.nodeInfo
    return status.nodeInfo.bootID


def restarts(plane: lab.Plane, pod: Pod) -> int:
    return sum(container.restartCount for container in status_of(plane, pod).containerStatuses or [])


def daemon_pods(plane: lab.Plane, node: str) -> list[Pod]:
    pods = plane.client.list(Pod, namespace=PROBERS, labels={"app": "one-time"})
    return [pod for pod in pods if pod.spec and pod.spec.nodeName == node]


DAEMON_SET_FOR_UNVERIFIED_NODES = f"""
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: one-time, namespace: {PROBERS}}}
spec:
  selector: {{matchLabels: {{app: one-time}}}}
  template:
    metadata: {{labels: {{app: one-time}}}}
    spec:
      terminationGracePeriodSeconds: 0
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions:
                  - {{key: node-ready/verified, operator: DoesNotExist}}
      tolerations: [{{operator: Exists}}]
      containers:
        - {{name: pause, image: "{images.TOOLBOX}", imagePullPolicy: Never}}
"""
