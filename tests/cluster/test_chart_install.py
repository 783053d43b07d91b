"""Whatever the chart renders, a cluster takes; its pods run where they must, and pass the `restricted` standard."""

from collections.abc import Iterator

import pytest
from lightkube.resources.core_v1 import Node as NodeObject
from lightkube.resources.core_v1 import Pod

import lab
from kube_node_ready.settings import policy
from kube_node_ready.verification.model import Node
from kube_node_ready.verification.worker_pod import worker_pod
from lab import waiting
from tests.support import chart_sets, configs
from tests.support.chart import Object, Rendered
from tests.support.chart_release import Release, apply, ready_for_everything
from tests.support.controller_process import taints
from tests.support.scenarios.agent import GATE, LABEL

PATIENCE = 180


@pytest.fixture(scope="module")
def ready(plane: lab.Plane) -> lab.Plane:
    """With every namespace and kind that values can name."""
    ready_for_everything(plane)
    return plane


@pytest.mark.parametrize("name", chart_sets.all_sets())
def test_the_api_server_accepts_every_object(ready: lab.Plane, name: str) -> None:
    apply(ready, chart_sets.rendered(name), "--dry-run=server")


def test_unknown_fields_are_rejected(ready: lab.Plane) -> None:
    """So that taking everything means something."""
    made = chart_sets.rendered("defaults")
    misspelt = {**made.workload, "spec": {**made.workload["spec"], "replica": 1}}
    with pytest.raises(lab.LabError, match="unknown field"):
        apply(ready, [misspelt], "--dry-run=server")


def pods(made: Rendered) -> Iterator[Object]:
    """Of the workload, and of a worker as the controller makes it."""
    yield {"apiVersion": "v1", "kind": "Pod", **made.pod}
    if made.workload["kind"] == "Deployment":
        yield worker_pod(Node("a", "uid"), 1, policy.template(configs.load(made.file)))


@pytest.mark.parametrize("name", [name for name in chart_sets.all_sets() if name != chart_sets.POWERFUL])
def test_every_pod_is_admitted_where_restricted_is_enforced(ready: lab.Plane, name: str) -> None:
    for pod in pods(chart_sets.rendered(name)):
        # A pod's account is looked up when it is made, and what is rendered here is not installed.
        spec = {**pod["spec"], "serviceAccountName": "default"}
        metadata = {**pod["metadata"], "name": "tried", "namespace": chart_sets.NAMESPACE}
        apply(ready, [{**pod, "metadata": metadata, "spec": spec}], "--dry-run=server")


def test_a_pod_that_could_become_root_is_rejected(ready: lab.Plane) -> None:
    (pod, *_) = pods(chart_sets.rendered("defaults"))
    spec = {**pod["spec"], "securityContext": {}, "serviceAccountName": "default"}
    metadata = {"name": "tried", "namespace": chart_sets.NAMESPACE}
    with pytest.raises(lab.LabError, match="violates PodSecurity"):
        apply(ready, [{**pod, "metadata": metadata, "spec": spec}], "--dry-run=server")


def test_the_controller_runs_where_every_node_is_gated(plane: lab.Plane, prefix: str) -> None:
    """The nodes that it can choose from are this test's: other tests have nodes on this plane, too."""
    own = {"test": prefix}
    release = Release(plane, prefix, {"controller": {"nodeSelector": own}}, workload=True)
    nodes = plane.simulated_nodes(1, prefix=prefix, taints=taints(GATE), labels=own)
    try:
        release.install()
        until_running(release, set(nodes.names))
    finally:
        release.uninstall()
        nodes.delete()


def test_the_daemonset_runs_where_nodes_are_unverified(plane: lab.Plane, prefix: str) -> None:
    own = {"test": prefix}
    release = Release(plane, prefix, {"deploymentMode": "daemonset", "daemonset": {"nodeSelector": own}}, workload=True)
    new = plane.simulated_nodes(1, prefix=f"{prefix}-new", taints=taints(GATE), labels=own)
    known = plane.simulated_nodes(1, prefix=f"{prefix}-known", labels={LABEL: "true", **own})
    try:
        release.install()
        until_running(release, set(new.names))
        plane.client.patch(NodeObject, new.names[0], {"metadata": {"labels": {LABEL: "true"}}})
        until_running(release, set())
        plane.client.patch(NodeObject, known.names[0], {"metadata": {"labels": {LABEL: None}}})
        until_running(release, set(known.names))
    finally:
        release.uninstall()
        new.delete()
        known.delete()


def until_running(release: Release, nodes: set[str]) -> None:
    """Wait until pods of the release run on exactly these nodes; if they do not, show what the cluster reports."""
    try:
        waiting.until(
            f"pods run on {sorted(nodes)}", lambda: running(release) == nodes, PATIENCE, alive=release.plane.check
        )
    except lab.NotReadyInTimeError as error:
        for kind in ("deployments,daemonsets,replicasets,pods", "events", "nodes"):
            error.add_note(release.plane.kubectl("get", kind, f"--namespace={release.namespace}", "--output=wide"))
        raise


def running(release: Release) -> set[str]:
    """On which nodes pods of the release run."""
    found = release.plane.client.list(Pod, namespace=release.namespace, labels={"app": "kube-node-ready"})
    return {str(pod.spec.nodeName) for pod in found if pod.spec and pod.status and pod.status.phase == "Running"}
