"""The chart's DaemonSet mode on real nodes: `helm install` of the image that is released, to `helm uninstall`.

The tests share a cluster and follow one another: first the pattern `once`, then `continuous`, then back. Each leaves
three healthy nodes, `a`, `b` and `c`, with an open gate.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.models.core_v1 import ContainerStateTerminated
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.core_v1 import Event, Node, NodeStatus, Pod

import lab
from demo import image as release_image
from kube_node_ready.exit_codes import ExitCode
from kube_node_ready.verification import worker_pod
from lab import pki
from tests.support.chart_cluster import (
    GATE,
    LABEL,
    NAMESPACE,
    Guarded,
    guarded,
    is_kept_out,
    is_proved,
    is_running,
    name_of,
    uids,
    uninstall_as_documented,
)

NODES = ("a", "b", "c")
NAME = "kube-node-ready"
DOMAINS = ["kubernetes.default.svc.cluster.local", "example.com"]
UNKNOWN = "no-such-name.example"
VALUES: dict[str, Any] = {
    "deploymentMode": "daemonset",
    "image": {"repository": release_image.REPOSITORY},
    "config": {"dnsTestDomains": DOMAINS, "checkTimeout": "7s", "maxRetries": 20, "retryBackoff": "linear"},
    "daemonset": {
        # Shorter than a check that hangs: who waits for it to end is killed.
        "terminationGracePeriodSeconds": 5,
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": "100%"}},
        "readinessProbe": {"initialDelaySeconds": 0, "periodSeconds": 1},
    },
}
CONTINUOUS: dict[str, Any] = {
    "daemonset": {
        "mode": "continuous",
        "config": {"checkInterval": "1s", "failureThreshold": 2, "enableConnectivityMatrix": True},
    }
}
CLOSED: dict[str, Any] = {"spec": {"taints": [GATE.as_dict()]}}
CONDEMNED = {"status": {"conditions": [{"type": "NodeVerified", "status": "False"}]}}
FOREIGN = lab.Taint("example.com/foreign", "NoExecute").as_dict()


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Every node is gated, and the DaemonSet is not there yet."""
    with guarded(tmp_path_factory.mktemp("helm"), f"daemonset/{NAME}") as site:
        yield site


@pytest.fixture(scope="module")
def installed(cold: Guarded) -> Guarded:
    """Whichever test comes first: three nodes, and a DaemonSet that has opened their gates."""
    if not list(cold.plane.client.list(DaemonSet, namespace=NAMESPACE)):
        cold.release.install(VALUES)
    if "c" not in cold.plane.nodes:
        cold.join("c")
    cold.until("the gates are open", lambda: cold.is_released(*NODES))
    return cold


@pytest.fixture
def once(installed: Guarded) -> Iterator[Guarded]:
    yield installed
    installed.settle(*NODES)
    installed.until("the pods are gone", lambda: not installed.guards())


@pytest.fixture(scope="module")
def upgraded(installed: Guarded) -> Guarded:
    installed.release.upgrade(CONTINUOUS)
    installed.rolled_out()
    return installed


@pytest.fixture
def continuous(upgraded: Guarded) -> Iterator[Guarded]:
    """A pod stays on every node."""
    yield upgraded
    upgraded.settle(*NODES)
    upgraded.rolled_out()


def test_every_gated_node_opens_its_own_gate(cold: Guarded) -> None:
    with cold.workload("a") as a, cold.workload("b") as b:
        cold.until("workloads wait for the gates", lambda: is_kept_out(a()) and is_kept_out(b()))
        cold.release.install(VALUES)
        cold.until("the gates are open", lambda: cold.is_released("a", "b"))
        cold.until("what waited runs", lambda: is_running(a()) and is_running(b()))
    assert all(is_proved(cold.node(name)) for name in ("a", "b"))


def test_a_pod_leaves_its_verified_node_without_restarts(cold: Guarded) -> None:
    cold.join("c")
    cold.until("the gate is open", lambda: cold.is_released("c"))
    cold.until("no node wants a pod", lambda: desired(cold) == 0)
    cold.until("and none has one", lambda: not cold.guards())
    assert is_proved(cold.node("c"))
    assert len(cold.bound()) == len(NODES)
    assert starts(cold) == dict.fromkeys(cold.bound(), 1)
    cold.until("the condition says so", lambda: cold.condition("c").get("status") == "True")
    cold.until("the Event, too", lambda: cold.event_messages("c", "Verified"))


def test_a_node_without_dns_stays_gated_with_a_reason_until_repaired(once: Guarded) -> None:
    with once.without_dns("b") as waiting:
        once.until("it failed twice", lambda: once.failures("b") >= 2)
        once.until("its workload waits", lambda: is_kept_out(waiting()))
        assert once.is_gated("b")
        assert once.condition("b")["status"] == "False"
        assert f"dns: {DOMAINS[0]}: no answer from " in once.condition("b")["message"]
        assert f"dns: {DOMAINS[0]}: no answer from " in once.event_messages("b", "VerificationFailed")[0]
        assert run_outside(once, "b") == ExitCode.NOT_PROVED
        assert once.is_gated("b"), "this machine's network is not the node's"
        once.plane.nodes["b"].heal()
        once.until("released", lambda: once.is_released("b"))
        once.until("its workload runs", lambda: is_running(waiting()))
    once.until("the condition says so", lambda: once.condition("b")["status"] == "True")


def test_removing_the_label_restarts_a_pod_for_a_new_proof(once: Guarded) -> None:
    before, bound = once.node("a").record.attempt, once.bound()
    once.unlabel("a")
    once.until("verified again", lambda: once.is_released("a") and once.node("a").record.attempt > before)
    once.until("the pod is gone again", lambda: not once.guards())
    assert is_proved(once.node("a"))
    assert len(once.bound()) == len(bound) + 1


def test_an_upgrade_changes_the_checks_and_a_rollback_restores_them(once: Guarded) -> None:
    once.release.upgrade({"config": {"dnsTestDomains": [UNKNOWN]}})
    once.close("a")
    once.until("the new question is asked", lambda: UNKNOWN in once.node("a").record.reason)
    assert once.is_gated("a")
    attempt, asking = once.node("a").record.attempt, uids(once.guards())
    once.release.rollback()
    once.until("the old one is", lambda: once.is_released("a"))
    assert once.node("a").record.attempt > attempt, "the new pod goes on where the old one stopped"
    once.until("the old one is gone", lambda: asking.isdisjoint(uids(once.guards())))


def test_a_dry_run_logs_its_decisions_and_keeps_running(once: Guarded) -> None:
    once.release.upgrade({"config": {"dryRun": True}})
    once.close("a")
    pod = once.until("a pod is ready", lambda: next((pod for pod in once.guards() if is_ready(pod)), None))
    words = ("logs", name_of(pod), f"--namespace={NAMESPACE}")
    once.until("it says what it would do", lambda: '"would":"open the gate"' in once.plane.kubectl(*words))
    assert once.is_gated("a")
    assert starts(once)[name_of(pod)] == 1
    once.release.rollback()


def test_an_upgrade_that_changes_nothing_restarts_nothing(continuous: Guarded) -> None:
    pods, before = uids(continuous.guards()), generation_of(continuous)
    assert len(pods) == len(NODES)
    continuous.release.upgrade({})
    continuous.rolled_out()
    assert uids(continuous.guards()) == pods
    assert generation_of(continuous) == before


def test_a_node_that_breaks_later_is_gated_until_repaired(continuous: Guarded) -> None:
    with continuous.plane.nodes["b"].break_dns():
        continuous.until("the gate is back", lambda: continuous.is_gated("b"))
        assert not continuous.node("b").labelled
        continuous.until("the condition says why", lambda: continuous.condition("b")["status"] == "False")
        assert continuous.condition("b")["message"].startswith(f"dns: {DOMAINS[0]}: no answer from ")
        continuous.until("the Event, too", lambda: continuous.event_messages("b", "GateRestored"))
        assert continuous.failures("b") >= 1
        with continuous.workload("b") as kept_out:
            continuous.until("nothing new comes to it", lambda: is_kept_out(kept_out()))
        assert continuous.is_released("a", "c")
    continuous.until("the gate is open again", lambda: continuous.is_released("b"))
    assert is_proved(continuous.node("b"))
    assert not continuous.event_messages("a", "GateRestored") + continuous.event_messages("c", "GateRestored")


def test_a_disconnected_node_is_gated_and_its_peers_are_not(continuous: Guarded) -> None:
    with without_way_to_other_pods(continuous.plane.nodes["c"]):
        continuous.until("the gate is back", lambda: continuous.is_gated("c"))
        assert continuous.node("c").record.reason.startswith("matrix: "), continuous.node("c").record.reason
        assert "2 of 2 cannot be reached" in continuous.node("c").record.reason
        assert continuous.is_released("a", "b")
    continuous.until("the gate is open again", lambda: continuous.is_released("c"))
    assert "matrix" in {check.name for check in continuous.node("c").record.checks}
    assert not continuous.event_messages("a", "GateRestored")


def test_a_pod_terminates_while_its_checks_hang(continuous: Guarded) -> None:
    """With exit code 0: who does not end in time is killed, and has another."""
    pod = pod_on(continuous, "b")
    keep = {"metadata": {"finalizers": ["example.com/to-see-how-it-ends"]}}
    path = ("pod", name_of(pod), f"--namespace={NAMESPACE}", "--type=merge")
    continuous.plane.kubectl("patch", *path, f"--patch={json.dumps(keep)}")
    with continuous.plane.nodes["b"].break_dns():
        continuous.until("its checks fail", lambda: continuous.is_gated("b"))
        continuous.plane.client.delete(Pod, name_of(pod), namespace=NAMESPACE)
        end = continuous.until("it ends", lambda: ended(continuous, pod))
        continuous.plane.kubectl("patch", *path, '--patch={"metadata": {"finalizers": null}}')
    assert end.exitCode == 0


def test_a_stolen_token_can_only_open_the_gate_of_its_own_node(continuous: Guarded) -> None:
    proof = continuous.node("a").record
    with thief_on(continuous, "a") as thief:
        thief.patch(Node, "a", CLOSED)
        continuous.until("what it closed is opened by a new proof", lambda: continuous.is_released("a"))
        assert continuous.node("a").record.attempt > proof.attempt
        for kind, patch in ((Node, CLOSED), (Node, {"metadata": {"labels": {LABEL: None}}}), (NodeStatus, CONDEMNED)):
            with pytest.raises(ApiError, match='on node "a" can write to that Node only, not to "b"'):
                thief.patch(kind, "b", patch)
        too_much: list[tuple[dict[str, Any], str]] = [
            ({"spec": {"taints": [FOREIGN]}}, "taints, pods of kube-node-ready can change node-ready/unverified only"),
            ({"spec": {"unschedulable": True}}, "spec, pods of kube-node-ready can change taints only"),
            ({"metadata": {"labels": {"example.com/x": "y"}}}, "labels, .* can change node-ready/verified only"),
        ]
        for patch, output in too_much:
            with pytest.raises(ApiError, match=f"of a Node's {output}"):
                thief.patch(Node, "a", patch)
        with pytest.raises(ApiError, match="cannot delete resource"):
            thief.delete(Node, "b")
    assert continuous.is_released(*NODES)


def test_the_mode_can_be_switched_and_nodes_stay_verified(continuous: Guarded) -> None:
    proofs = [continuous.node(name).record for name in ("a", "c")]
    continuous.release.upgrade({"deploymentMode": "controller"})
    continuous.until("the DaemonSet is gone", lambda: not continuous.guards())
    continuous.close("b")
    continuous.until("the controller opens gates", lambda: continuous.is_released("b"))
    verified = continuous.node("b")
    assert worker_pod.worker_name(verified.uid, verified.record.attempt) in continuous.bound()
    assert [continuous.node(name).record for name in ("a", "c")] == proofs
    continuous.release.rollback()


def test_the_documented_uninstall_after_mode_once_leaves_no_object(upgraded: Guarded) -> None:
    """The last test: it leaves no DaemonSet."""
    site = upgraded
    site.release.upgrade({"daemonset": {"mode": "once"}})
    site.until("the pods leave the verified nodes", lambda: not site.guards())
    uninstall_as_documented(site)


def run_outside(site: Guarded, node: str) -> int:
    """DaemonSet mode on this machine, with the administrator's kubeconfig. The exit code."""
    words = [f"--node-name={node}", f"--kubeconfig={site.plane.kubeconfig()}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    program = [sys.executable, "-c", "from kube_node_ready.entrypoints import main; main()"]
    return subprocess.run([*program, *words], env=environment, timeout=60, check=False).returncode


def daemonset(site: Guarded) -> DaemonSet:
    return site.plane.client.get(DaemonSet, NAME, namespace=NAMESPACE)


def generation_of(site: Guarded) -> int:
    metadata = daemonset(site).metadata
    assert metadata
    assert metadata.generation
    return metadata.generation


def desired(site: Guarded) -> int:
    status = daemonset(site).status
    assert status
    return status.desiredNumberScheduled


def starts(site: Guarded) -> Counter[str]:
    """How often a container of each pod was started."""
    found = site.plane.client.list(Event, namespace=NAMESPACE, fields={"reason": "Started"})
    return Counter({str(event.involvedObject.name): event.count or 1 for event in found})


def is_ready(pod: Pod) -> bool:
    conditions = (pod.status and pod.status.conditions) or []
    return any(one.type == "Ready" and one.status == "True" for one in conditions)


def pod_on(site: Guarded, node: str) -> Pod:
    (found,) = [pod for pod in site.guards() if pod.spec and pod.spec.nodeName == node]
    return found


def ended(site: Guarded, pod: Pod) -> ContainerStateTerminated | None:
    status = site.plane.client.get(Pod, name_of(pod), namespace=NAMESPACE).status
    (container,) = (status and status.containerStatuses) or []
    return container.state.terminated if container.state else None


@contextlib.contextmanager
def thief_on(site: Guarded, node: str) -> Iterator[Client]:
    """Who has the token that the kubelet gave to the pod on this node, as root finds it there."""
    (uid,) = uids([pod_on(site, node)])
    volumes = f"/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~projected"
    token = site.plane.nodes[node].run("sh", "-c", f"cat {volumes}/*/token").strip()
    file = site.plane.run.folder / "stolen.kubeconfig"
    pki.kubeconfig(file, site.plane.url, site.plane.authority.certificate, token)
    with contextlib.closing(Client(KubeConfig.from_file(file), trust_env=False)) as thief:
        yield thief


@contextlib.contextmanager
def without_way_to_other_pods(node: lab.Node) -> Iterator[None]:
    """Its pods reach no metrics port elsewhere, and theirs is not reached from there. Its own kubelet does."""
    rule = ("FORWARD", "-p", "tcp", "--dport", "8080", "-j", "DROP")
    node.run("iptables", "--wait", "--insert", *rule)
    try:
        yield
    finally:
        node.run("iptables", "--wait", "--delete", *rule)
