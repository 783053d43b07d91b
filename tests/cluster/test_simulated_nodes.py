"""Simulated nodes: realistic objects, and pods that end as the test chooses."""

import time
import uuid

import msgspec
import pytest
from lightkube.models.core_v1 import PodStatus
from lightkube.resources.core_v1 import Node, Pod

import lab
from lab import simulated_stages, waiting
from lab.simulated_nodes import Stage
from tests.support.builders import a_pod, is_ready, status_of, wait_ended, wait_running


def run_on(plane: lab.Plane, node: str, namespace: str) -> Pod:
    return plane.client.create(a_pod(f"on-{node}"[:63], namespace, node=node))


def terminated(status: PodStatus) -> tuple[int, str]:
    assert status.containerStatuses
    state = status.containerStatuses[0].state
    assert state
    assert state.terminated
    return state.terminated.exitCode, state.terminated.message or ""


def test_200_nodes_complete_200_pods(plane: lab.Plane, namespace: str, prefix: str) -> None:
    nodes = plane.simulated_nodes(200, prefix=prefix)
    for name in nodes.names:
        run_on(plane, name, namespace)

    def all_done() -> bool:
        pods = list(plane.client.list(Pod, namespace=namespace))
        return len(pods) == 200 and all(pod.status and pod.status.phase == "Succeeded" for pod in pods)

    waiting.until("200 pods succeed", all_done, 600, alive=plane.check)
    nodes.delete()


def test_a_node_is_about_as_large_as_a_cloud_makes_it(plane: lab.Plane, prefix: str) -> None:
    nodes = plane.simulated_nodes(1, prefix=prefix, taints=[lab.Taint("node-ready/unverified")], labels={"pool": "a"})
    node = plane.client.get(Node, nodes.names[0])
    assert 13_000 < len(msgspec.json.encode(node.to_dict())) < 16_000
    assert node.metadata
    assert node.metadata.labels
    assert node.metadata.labels["pool"] == "a"
    assert node.spec
    assert node.spec.taints
    assert "node-ready/unverified" in [taint.key for taint in node.spec.taints]
    waiting.until("it is Ready", lambda: is_ready(plane, nodes.names[0]), 180)
    nodes.delete()


def test_a_pod_fails_with_the_chosen_message(plane: lab.Plane, namespace: str, prefix: str) -> None:
    """Any words: a report is JSON, and JSON is all braces and quotes."""
    words = '{"checks":[{"name":"dns","error":"google.com: {{timed}} out"}]}\nß'
    nodes = plane.simulated_nodes(1, prefix=prefix, verdict=lab.fails(words, exit_code=3))
    status = wait_ended(plane, run_on(plane, nodes.names[0], namespace))
    assert status.phase == "Failed"
    assert terminated(status) == (3, words)
    nodes.delete()


def test_a_pod_takes_the_chosen_time(plane: lab.Plane, namespace: str, prefix: str) -> None:
    nodes = plane.simulated_nodes(1, prefix=prefix, verdict=lab.passes(seconds=8))
    pod = run_on(plane, nodes.names[0], namespace)
    wait_running(plane, pod)
    time.sleep(2)
    assert status_of(plane, pod).phase == "Running"
    assert wait_ended(plane, pod).phase == "Succeeded"
    nodes.delete()


def test_a_pod_hangs_until_the_verdict_changes(plane: lab.Plane, namespace: str, prefix: str) -> None:
    nodes = plane.simulated_nodes(2, prefix=prefix, verdict=lab.HANGS)
    pod = run_on(plane, nodes.names[0], namespace)
    wait_running(plane, pod)
    time.sleep(3)
    assert status_of(plane, pod).phase == "Running"
    nodes.decide(lab.fails("too late"))
    assert terminated(wait_ended(plane, run_on(plane, nodes.names[1], namespace))) == (1, "too late")
    nodes.delete()


def test_a_pod_that_arrives_before_the_stages_of_its_group_gets_its_verdict(
    plane: lab.Plane, namespace: str, prefix: str
) -> None:
    nodes = plane.simulated_nodes(1, prefix=prefix, verdict=lab.fails("late", exit_code=3))
    for stage in simulated_stages.of_group(prefix, lab.PASSES):
        plane.client.delete(Stage, stage["metadata"]["name"])
    pod = waiting.until("a pod has no stages", lambda: one_without_stages(plane, nodes.names[0], namespace), 60)
    nodes.decide(lab.fails("late", exit_code=3))
    assert terminated(wait_ended(plane, pod)) == (3, "late")


def one_without_stages(plane: lab.Plane, node: str, namespace: str) -> Pod | None:
    """A new pod for which KWOK has no stages. It needs a while to notice that these are gone."""
    name = f"on-{uuid.uuid4().hex}"
    pod = plane.client.create(a_pod(name, namespace, node=node))
    time.sleep(1)  # until KWOK has chosen a stage for it
    if status_of(plane, pod).phase == "Pending":
        return pod
    plane.client.delete(Pod, name, namespace=namespace)
    return None


def test_a_pod_that_never_starts_has_a_reason(plane: lab.Plane, namespace: str, prefix: str) -> None:
    nodes = plane.simulated_nodes(1, prefix=prefix, verdict=lab.never_starts("ImagePullBackOff", "no such image"))
    pod = run_on(plane, nodes.names[0], namespace)

    def reason() -> str | None:
        statuses = status_of(plane, pod).containerStatuses or []
        return next((each.state.waiting.reason for each in statuses if each.state and each.state.waiting), None)

    assert waiting.until("it says why", reason, 180) == "ImagePullBackOff"
    assert status_of(plane, pod).phase == "Pending"
    nodes.delete()


def test_a_group_is_created_once(plane: lab.Plane, prefix: str) -> None:
    """The second would silently change the first one's verdict."""
    nodes = plane.simulated_nodes(1, prefix=prefix)
    with pytest.raises(lab.LabError, match=f"there are simulated nodes called {prefix}-… already"):
        plane.simulated_nodes(1, prefix=prefix, verdict=lab.fails())
    nodes.delete()


def test_verdicts_of_groups_do_not_mix(plane: lab.Plane, namespace: str, prefix: str) -> None:
    """Also when one group's name begins with the other's."""
    good, bad = (
        plane.simulated_nodes(1, prefix=prefix),
        plane.simulated_nodes(1, prefix=f"{prefix}-bad", verdict=lab.fails()),
    )
    good_pod, bad_pod = (run_on(plane, group.names[0], namespace) for group in (good, bad))
    assert wait_ended(plane, good_pod).phase == "Succeeded"
    assert wait_ended(plane, bad_pod).phase == "Failed"
    good.delete()
    bad.delete()


def test_a_pod_without_an_end_runs(plane: lab.Plane, namespace: str, prefix: str) -> None:
    """DaemonSets live on simulated nodes too, whatever becomes of one-off pods there."""
    nodes = plane.simulated_nodes(1, prefix=prefix, verdict=lab.fails())
    pod = plane.client.create(a_pod("agent", namespace, node=nodes.names[0], restartPolicy="Always"))
    wait_running(plane, pod)
    time.sleep(2)
    assert status_of(plane, pod).phase == "Running"
    nodes.delete()
