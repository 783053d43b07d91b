"""The chart's controller mode on real nodes: `helm install` of the image that is released, to `helm uninstall`.

The tests share a cluster and follow one another; each leaves three healthy nodes, `a`, `b` and `c`, with an open gate.
"""

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import Node, Pod

import lab
from demo import image as release_image
from kube_node_ready.api.record import Cause
from kube_node_ready.checks import dns_client
from kube_node_ready.verification import worker_pod
from lab import images
from tests.attacks.kubelet import kubelets
from tests.support import pages
from tests.support.chart import CHART
from tests.support.chart_cluster import (
    GATE,
    NAMESPACE,
    REAL,
    Guarded,
    guarded,
    is_kept_out,
    is_proved,
    is_running,
    name_of,
    uids,
    uninstall_as_documented,
)
from tests.support.check_servers import dns_reply, dns_server

ALL_CHECKS = {"dns", "api", "network", "services", "payload", "clock"}
NODES = ("a", "b", "c")
CONTROLLER = "kube-node-ready-controller"
DOMAINS = ["kubernetes.default.svc.cluster.local", "example.com"]
UNKNOWN = "no-such-name.example"
_JOIN_SECONDS = 180
DNS_ENDPOINTS = ("get", "endpointslices", "--namespace=kube-system", "--output=yaml")
VALUES: dict[str, Any] = {
    "image": {"repository": release_image.REPOSITORY},
    "controller": {
        "nodeSelector": REAL,
        "leaderElection": {"leaseDuration": "8s", "renewDeadline": "6s", "retryPeriod": "1s"},
        "readinessProbe": {"initialDelaySeconds": 0, "periodSeconds": 1},
        "config": {
            "worker": {"checkTimeoutSeconds": 5, "dnsTestDomains": DOMAINS},
            "reconciliation": {"maxBackoffSeconds": 2, "exhaustedRetrySeconds": 2},
        },
    },
}


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Every node is gated, and the controller is not there yet."""
    with guarded(tmp_path_factory.mktemp("helm"), f"deployment/{CONTROLLER}") as site:
        yield site


@pytest.fixture(scope="module")
def installed(cold: Guarded) -> Guarded:
    """Whichever test comes first: three nodes, and a controller that has opened their gates."""
    if not cold.guards():
        cold.release.install(VALUES)
    if "c" not in cold.plane.nodes:
        cold.join("c")
    cold.until("the gates are open", lambda: cold.is_released(*NODES))
    return cold


@pytest.fixture
def site(installed: Guarded) -> Iterator[Guarded]:
    yield installed
    installed.settle(*NODES)


def test_the_namespace_admits_only_restricted_pods(cold: Guarded) -> None:
    """So that whatever runs there in the tests to come, workers included, is one."""
    with pytest.raises(lab.LabError, match="violates PodSecurity"):
        cold.plane.kubectl("run", "ordinary", f"--image={images.TOOLBOX}", f"--namespace={NAMESPACE}")


def test_the_controller_runs_on_gated_nodes_and_opens_the_gates(cold: Guarded) -> None:
    with cold.workload("a") as a, cold.workload("b") as b:
        cold.until("workloads wait for the gates", lambda: is_kept_out(a()) and is_kept_out(b()))
        cold.release.install(VALUES)
        cold.until("the gates are open", lambda: cold.is_released("a", "b"))
        cold.until("what waited runs", lambda: is_running(a()) and is_running(b()))
    assert all(is_proved(cold.node(name)) for name in ("a", "b"))


def test_a_node_that_joins_later_is_verified_with_an_event(cold: Guarded) -> None:
    cold.join("c")
    cold.until("the gate is open", lambda: cold.is_released("c"))
    assert {check.name for check in cold.node("c").record.checks} == ALL_CHECKS
    assert is_proved(cold.node("c"))
    cold.until("the condition says so", lambda: cold.condition("c").get("status") == "True")
    cold.until("the Event, too", lambda: cold.event_messages("c", "Verified"))
    cold.until("no worker is left", lambda: not cold.workers())


def _without_dns_server(site: Guarded) -> str:
    """A node other than `b`, whose first Event another test looks at."""
    return next(name for name in ("a", "c") if name not in site.dns_nodes())


def test_a_fake_dns_server_of_a_kubelet_does_not_blame_other_nodes(site: Guarded) -> None:
    """Any kubelet can make any address a ready endpoint of cluster DNS: by a mirror pod with the labels of its pods."""
    target = _without_dns_server(site)
    with kubelets(site.plane, "compromised") as (kubelet,):
        kubelet.register(taints=[lab.Taint("example.com/not-ours", "NoSchedule")])
        kubelet.mirror("coredns-forged", "kube-system", labels={"k8s-app": "kube-dns"})
        kubelet.serve("coredns-forged", "kube-system", "192.0.2.77")
        site.until("it is an endpoint", lambda: "192.0.2.77" in site.plane.kubectl(*DNS_ENDPOINTS))
        site.close(target)
        site.until("it is held", lambda: site.failures(target) >= 2)
        assert site.is_gated(target)
        record = site.node(target).record
        assert record.cause is Cause.NOT_JUDGED
        assert record.node_failures == 0
        assert "node compromised might be at fault" in record.reason
        site.plane.kubectl("delete", "pod", "coredns-forged", "--namespace=kube-system")
        site.until("the gate is open", lambda: site.is_released(target))


def test_a_wrong_dns_server_of_a_kubelet_does_not_blame_other_nodes(site: Guarded) -> None:
    """Asked directly it answers, so that nothing fails but the queries that the Service sends to it."""
    target = _without_dns_server(site)
    address = site.plane.network.gateway
    with kubelets(site.plane, "compromised") as (kubelet,), dns_server(_denied, _denied, address, dns_client.PORT):
        kubelet.register(taints=[lab.Taint("example.com/not-ours", "NoSchedule")])
        kubelet.mirror("coredns-forged", "kube-system", labels={"k8s-app": "kube-dns"})
        kubelet.serve("coredns-forged", "kube-system", address)
        site.until("it is an endpoint", lambda: f"- {address}\n" in site.plane.kubectl(*DNS_ENDPOINTS))
        site.close(target)
        site.until("it is held", lambda: site.failures(target) >= 2)
        assert site.is_gated(target)
        record = site.node(target).record
        assert "answered NXDOMAIN" in record.reason
        assert record.cause is Cause.NOT_JUDGED
        assert record.node_failures == 0
        site.plane.kubectl("delete", "pod", "coredns-forged", "--namespace=kube-system")
        site.until("the gate is open", lambda: site.is_released(target))


def _denied(query: bytes) -> list[bytes]:
    return [dns_reply(query, code=3)]


def test_a_node_without_dns_stays_gated_with_a_reason_until_repaired(site: Guarded) -> None:
    with site.without_dns("b") as waiting:
        site.until("it failed twice", lambda: site.failures("b") >= 2)
        site.until("its workload waits", lambda: is_kept_out(waiting()))
        assert site.is_gated("b")
        assert site.condition("b")["status"] == "False"
        assert f"dns: {DOMAINS[0]}: no answer from " in site.condition("b")["message"]
        assert f"dns: {DOMAINS[0]}: no answer from " in site.event_messages("b", "VerificationFailed")[0]
        site.plane.nodes["b"].heal()
        site.until("released", lambda: site.is_released("b"))
        site.until("its workload runs", lambda: is_running(waiting()))
    site.until("the condition says so", lambda: site.condition("b")["status"] == "True")


def test_removing_the_label_requests_a_new_proof(site: Guarded) -> None:
    before = site.node("a").record.attempt
    site.unlabel("a")
    site.until("verified again", lambda: site.is_released("a") and site.node("a").record.attempt > before)
    assert is_proved(site.node("a"))


def test_an_upgrade_that_changes_nothing_restarts_nothing(site: Guarded, tmp_path: Path) -> None:
    """Nor does a new version of the chart."""
    newer = tmp_path / CHART.name
    shutil.copytree(CHART, newer)
    facts = newer / "Chart.yaml"
    facts.write_text(facts.read_text().replace("\nversion: ", "\nversion: 9"))
    pods, before = uids(site.guards()), generation_of(site)
    for chart in (CHART, newer):
        site.release.upgrade({}, chart=chart)
        site.rolled_out()
        assert uids(site.guards()) == pods
        assert generation_of(site) == before
    assert "helm.sh/chart: kube-node-ready-9" in site.release.manifest()


def test_an_upgrade_changes_the_checks_and_a_rollback_restores_them(site: Guarded) -> None:
    before = uids(site.guards())
    site.release.upgrade({"config": {"dnsTestDomains": [UNKNOWN]}})
    site.rolled_out()
    assert before.isdisjoint(uids(site.guards()))
    site.close("a")
    site.until("the new question is asked", lambda: UNKNOWN in site.node("a").record.reason)
    assert site.is_gated("a")
    attempt = site.node("a").record.attempt
    site.release.rollback()
    site.rolled_out()
    site.until("the old one is", lambda: site.is_released("a"))
    assert site.node("a").record.attempt > attempt, "the new controller goes on where the old one stopped"


def test_a_controller_deleted_during_a_burst_loses_and_duplicates_nothing(site: Guarded) -> None:
    fakes = site.plane.simulated_nodes(20, prefix="burst", verdict=lab.passes(seconds=4), taints=[GATE])
    site.close(*NODES)
    site.until("it is in the middle of it", lambda: len(site.workers()) >= 10)
    (controller,) = site.guards()
    site.plane.client.delete(Pod, name_of(controller), namespace=NAMESPACE, grace_period=0)
    site.until("all are released", lambda: site.is_released(*fakes.names, *NODES))
    site.until("no worker is left", lambda: not site.workers())
    assert uids([controller]).isdisjoint(uids(site.guards()))
    assert_each_was_proved_once(site, fakes.names)
    assert all(is_proved(site.node(name)) for name in NODES)
    fakes.delete()


def test_a_new_leader_releases_only_proved_nodes(site: Guarded) -> None:
    site.release.upgrade({"controller": {"replicas": 2}})
    site.rolled_out()
    leader = site.until("one leads", lambda: leading(site))
    identity = holder(site)
    sound = site.plane.simulated_nodes(10, prefix="sound", verdict=lab.passes(seconds=4), taints=[GATE])
    broken = site.plane.simulated_nodes(5, prefix="broken", verdict=lab.fails("dns: broken"), taints=[GATE])
    site.plane.nodes["c"].break_dns()
    site.close(*NODES)
    site.until("they are in the middle of it", lambda: len(site.workers()) >= 10)
    kill(site, leader)
    site.until("what is sound is released", lambda: site.is_released(*sound.names, "a", "b"))
    # The container that is started again in its place is another, too.
    site.until("another leads", lambda: holder(site) not in ("", identity))
    assert_each_was_proved_once(site, sound.names)
    failing = (*broken.names, "c")
    site.until("what is not has failed again", lambda: all(site.failures(name) >= 2 for name in failing))
    assert all(site.is_gated(name) for name in failing)
    broken.decide(lab.PASSES)
    site.plane.nodes["c"].heal()
    site.until("everything is released", lambda: site.is_released(*failing))
    sound.delete()
    broken.delete()
    site.release.upgrade({"controller": {"replicas": 1}})


def test_a_node_that_joins_without_the_gate_has_it_from_its_first_appearance(site: Guarded) -> None:
    (turn_on,) = pages.section("Turn it on", pages.GATE_AT_BIRTH).commands
    site.release.run(turn_on)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(_first_appearance, site, "d")
        site.plane.start_nodes("d", labels=REAL)
        assert GATE in first.result()
    try:
        site.until("its gate is open", lambda: site.is_released("d"))
        assert is_proved(site.node("d"))
        site.plane.nodes["d"].reboot()
        assert site.is_released("d"), "it did not register again"
        assert site.is_released(*NODES), "nodes that exist are not changed"
    finally:
        site.plane.nodes.pop("d").stop()
        site.plane.client.delete(Node, "d")


def _first_appearance(site: Guarded, name: str) -> list[lab.Taint]:
    """Return the taints of a node in the first event about it."""
    events = site.plane.client.watch(Node, fields={"metadata.name": name}, server_timeout=_JOIN_SECONDS)
    node = next(node for _, node in events)
    taints = (node.spec and node.spec.taints) or []
    return [lab.Taint(taint.key, taint.effect, taint.value or "") for taint in taints]


def test_the_documented_uninstall_frees_all_nodes_and_leaves_no_object(installed: Guarded) -> None:
    """The last test: it leaves no controller."""
    uninstall_as_documented(installed)


def generation_of(site: Guarded) -> int:
    metadata = site.plane.client.get(Deployment, CONTROLLER, namespace=NAMESPACE).metadata
    assert metadata
    assert metadata.generation
    return metadata.generation


def leading(site: Guarded) -> Pod | None:
    """The pod that holds the Lease."""
    leader = holder(site).partition("_")[0]
    return next((pod for pod in site.guards() if name_of(pod) == leader), None)


def holder(site: Guarded) -> str:
    spec = site.plane.client.get(Lease, CONTROLLER, namespace=NAMESPACE).spec
    return (spec and spec.holderIdentity) or ""


def kill(site: Guarded, pod: Pod) -> None:
    """As the kernel does when memory runs out: it cannot say goodbye."""
    assert pod.spec
    assert pod.status
    (container,) = pod.status.containerStatuses or []
    identity = str(container.containerID).removeprefix("containerd://")
    node = site.plane.nodes[str(pod.spec.nodeName)]
    node.run("ctr", "--namespace=k8s.io", "task", "kill", "--signal=SIGKILL", identity)


def assert_each_was_proved_once(site: Guarded, names: Sequence[str]) -> None:
    """Each of these simulated nodes had one worker, which passed, and was released by it, which was reported once."""
    nodes = [site.node(name) for name in names]
    assert all(is_proved(node) and node.record.attempt == 1 for node in nodes)
    workers = [worker for worker in site.bound() if any(node.uid in worker for node in nodes)]
    assert workers == sorted(worker_pod.worker_name(node.uid, 1) for node in nodes)
    site.until("each is reported", lambda: all(site.event_messages(name, "Verified") for name in names))
    assert all(len(site.event_messages(name, "Verified")) == 1 for name in names)
