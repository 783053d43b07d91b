"""The connectivity matrix on real nodes, with one controller replica and in mode `once`: the chart's own responders.

The tests share a cluster and follow one another: first controller mode, then DaemonSet mode. Each leaves three healthy
nodes, `a`, `b` and `c`, with an open gate.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from lightkube.resources.core_v1 import Pod

import lab
from demo import image as release_image
from tests.support.chart_cluster import NAMESPACE, REAL, Guarded, guarded, is_proved

NODES = ("a", "b", "c")
VALUES: dict[str, Any] = {
    "image": {"repository": release_image.REPOSITORY},
    "config": {"enableConnectivityMatrix": True},
    "controller": {
        "nodeSelector": REAL,
        "readinessProbe": {"initialDelaySeconds": 0, "periodSeconds": 1},
        "config": {"reconciliation": {"maxBackoffSeconds": 2, "exhaustedRetrySeconds": 2}},
    },
}
ONCE: dict[str, Any] = {"deploymentMode": "daemonset", "daemonset": {"mode": "once"}}


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(tmp_path_factory.mktemp("helm"), "deployment/kube-node-ready-controller") as site:
        yield site


def test_the_first_nodes_pass_and_report_that_they_have_not_enough_peers(cold: Guarded) -> None:
    output = cold.release.install(VALUES)
    assert "not enough peers: N of 2" in output
    cold.until("the gates are open", lambda: cold.is_released("a", "b"))
    first = min(NODES[:2], key=lambda name: str(cold.node(name).record.at))
    assert _unchecked(cold, first).startswith("not enough peers: 0 of 2 ")
    cold.until(
        "the Event, too", lambda: "matrix (not enough peers: 0 of 2" in "".join(cold.event_messages(first, "Verified"))
    )
    assert "not applicable" in _explain(cold, first)
    assert "not enough peers: 0 of 2" in _explain(cold, first)


def test_responders_start_on_passed_nodes_and_healthy_nodes_reach_them(cold: Guarded) -> None:
    cold.until("two nodes have a responder", lambda: _responders(cold) >= {"a", "b"})
    cold.join("c")
    cold.until("the gate is open", lambda: cold.is_released("c"))
    assert _passed(cold, "c")
    cold.until("it is a peer now", lambda: _responders(cold) == set(NODES))


def test_a_disconnected_node_stays_gated_and_names_its_peers(cold: Guarded) -> None:
    _holds(cold)


def test_a_disconnected_node_stays_gated_in_mode_once(cold: Guarded) -> None:
    output = cold.release.upgrade(ONCE)
    assert "not enough peers: N of 2" in output
    cold.guard = "daemonset/kube-node-ready"
    _rolled_out(cold)
    cold.until("the pods of verified nodes left", lambda: not cold.guards())
    _holds(cold)


def test_in_mode_once_too_few_peers_are_reported_and_hold_no_node(cold: Guarded) -> None:
    output = cold.release.upgrade({"responder": {"nodeSelector": {"kubernetes.io/hostname": "a"}}})
    assert "not enough peers: N of 2" in output
    _rolled_out(cold)
    cold.until("one node has a responder", lambda: _responders(cold) == {"a"})
    before = cold.node("b").record.attempt
    cold.unlabel("b")
    cold.until("verified again", lambda: cold.is_released("b") and cold.node("b").record.attempt > before)
    assert _unchecked(cold, "b").startswith("not enough peers: 1 of 2 ")
    cold.until(
        "the Event, too", lambda: "matrix (not enough peers: 1 of 2" in "".join(cold.event_messages("b", "Verified"))
    )
    assert "not enough peers: 1 of 2" in _explain(cold, "b")


def _holds(site: Guarded) -> None:
    addresses = _addresses(site)
    with _without_way_to_other_pods(site.plane.nodes["c"]):
        site.close("c")
        site.until("it failed twice", lambda: site.failures("c") >= 2)
        assert site.is_gated("c")
        reason = site.node("c").record.reason
        assert "matrix: " in reason
        assert "2 of 2 cannot be reached: " in reason
        assert f"a ({addresses['a']})" in reason
        assert f"b ({addresses['b']})" in reason
        assert f"a ({addresses['a']})" in site.condition("c")["message"]
        # One node misses another. That does not hold it.
        site.close("b")
        site.until("another node passes meanwhile", lambda: site.is_released("b") and _passed(site, "b"))
    site.until("the gate is open again", lambda: site.is_released("c"))
    assert _passed(site, "c")


def _unchecked(site: Guarded, node: str) -> str:
    """Why the matrix did not apply."""
    (found,) = [check for check in site.node(node).record.checks if not check.applies]
    assert found.name == "matrix"
    return found.error


def _passed(site: Guarded, node: str) -> bool:
    """By a proof of which the matrix is part."""
    found = site.node(node)
    return is_proved(found) and any(check.name == "matrix" and check.proves for check in found.record.checks)


def _rolled_out(site: Guarded) -> None:
    """Until the responders are those of the last upgrade."""
    words = ("rollout", "status", "daemonset/kube-node-ready-responder", f"--namespace={NAMESPACE}", "--watch=false")
    site.until("responders are rolled out", lambda: "successfully" in site.plane.kubectl(*words))


def _responders(site: Guarded) -> set[str]:
    return set(_addresses(site))


def _addresses(site: Guarded) -> dict[str, str]:
    """The addresses of ready responders by node."""
    found = site.plane.client.list(Pod, namespace=NAMESPACE, labels={"app.kubernetes.io/component": "responder"})
    return {
        str(pod.spec.nodeName): str(pod.status.podIP)
        for pod in found
        if pod.spec
        and pod.status
        and any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or [])
    }


def _explain(site: Guarded, node: str) -> str:
    program = [sys.executable, "-c", "from kube_node_ready.entrypoints import main; main()"]
    words = ["explain", node, f"--namespace={NAMESPACE}", f"--kubeconfig={site.plane.kubeconfig()}"]
    return subprocess.run([*program, *words], capture_output=True, text=True, timeout=60, check=True).stdout


@contextlib.contextmanager
def _without_way_to_other_pods(node: lab.Node) -> Iterator[None]:
    """What its pods send to pods of other nodes on the ports of responders is dropped."""
    rule = ("FORWARD", "-p", "tcp", "-m", "multiport", "--dports", "8080,8081", "-j", "DROP")
    node.run("iptables", "--wait", "--insert", *rule)
    try:
        yield
    finally:
        node.run("iptables", "--wait", "--delete", *rule)
