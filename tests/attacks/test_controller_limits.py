"""A running controller with the chart's rights and within the limits of its admission policies."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace

import lab
from kube_node_ready.agent.api import JSON, MERGE_PATCH
from kube_node_ready.kube.errors import Rejected
from kube_node_ready.settings import policy as settings
from kube_node_ready.verification.model import Node
from kube_node_ready.verification.worker_pod import worker_pod
from lab import waiting
from tests.attacks.mirror import MIRROR, a_mirror
from tests.support import configs, rbac
from tests.support.chart_release import Release
from tests.support.chart_run import GATE, Run, a_run

FAILS = lab.fails("dns: no answer", seconds=0.2)
NO_LIMITS: Mapping[str, object] = {"maxCount": 100, "maxPercent": 100, "maxFailingCount": 100}
LABEL = "node-ready/verified"
OTHER = "other"
HOLD = {"metadata": {"finalizers": ["example.com/hold"]}}
CONFINED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
CHECK = {"name": "disk", "image": "example.com/disk:1", "securityContext": CONFINED}


@contextmanager
def a_limited_run(plane: lab.Plane, prefix: str, folder: Path, **how: Any) -> Iterator[Run]:  # noqa: ANN401  as for a_run
    """All policies are in effect: what the controller must not do is rejected."""
    with a_run(plane, prefix, folder, **how) as run:
        wait_for_limits(run.release)
        yield run


def wait_for_limits(release: Release) -> None:
    """The API server needs a moment to load new policies. As soon as one is, it rejects what RBAC allows."""
    plane, namespace = release.plane, release.made.config["worker"]["namespace"]
    container = {"name": "a", "image": "a", "securityContext": {**CONFINED, "runAsNonRoot": True}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": OTHER}, "spec": {"containers": [container]}}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": OTHER}}
    node = f"{release.namespace}-{OTHER}"
    made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}
    plane.kubectl("apply", "--filename=-", standard_input=json.dumps(made))
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{release.namespace}/leases"

    def are_loaded() -> bool:
        response = [
            rejection(release, f"/api/v1/namespaces/{namespace}/pods", pod),
            rejection(release, leases, lease),
            rejection(release, f"/api/v1/nodes/{node}", HOLD, MERGE_PATCH),
        ]
        return all("ValidatingAdmissionPolicy" in text for text in response)

    waiting.until("the policies are loaded", are_loaded, 180, alive=plane.check)
    plane.kubectl("delete", "node", node)


def rejection(release: Release, path: str, body: Mapping[str, Any], kind: str = JSON) -> str:
    """Why the API server rejects this write of the controller's, a dry run; empty if it does not."""
    api, text = release.api(), json.dumps(body).encode()
    try:
        if kind == JSON:
            api.create(f"{path}?dryRun=All", text)
        else:
            api.patch(f"{path}?dryRun=All", text, kind)
    except Rejected as error:
        return error.message
    return ""


def nothing_was_rejected(run: Run) -> None:
    """But for what this test itself has tried with the controller's account."""
    refused = rbac.used_rights(run.release, run.release.account).refused
    assert not {use for use in refused if not use.name.endswith(OTHER)}


def is_verified(run: Run, node: str) -> bool:
    found = run.node(node)
    assert found.metadata
    assert found.spec
    keys = {taint.key for taint in found.spec.taints or ()}
    return (found.metadata.labels or {}).get(LABEL) == "true" and GATE.key not in keys


def test_all_writes_of_the_controller_are_allowed(plane: lab.Plane, prefix: str, tmp_path: Path) -> None:
    """Verification, retries, re-verification, a gate that is closed again and one that came back, and removal."""
    removal = {"deleteFailedNodes": True, "removal": NO_LIMITS}
    again = {"reverifyIntervalSeconds": 10, "reverifyFailureThreshold": 1, "maxRetries": 2}
    with a_limited_run(plane, prefix, tmp_path, nodeManagement=removal, reconciliation=again) as run:
        good, retried, bad = run.join("good", lab.PASSES), run.join("retried", FAILS), run.join("bad", lab.PASSES)
        with run.controller() as operator:
            run.until("a node failed", lambda: operator.logged("Verification failed", node=retried))
            run.decide(retried, lab.PASSES)
            run.until("all are verified", lambda: all(is_verified(run, node) for node in (good, retried, bad)))
            plane.kubectl("taint", "node", good, f"{GATE.key}={GATE.value}:{GATE.effect}")
            run.until("the gate that came back is opened", lambda: is_verified(run, good))
            plane.kubectl("label", "node", retried, f"{LABEL}-")
            run.until("a node is verified that lost its label", lambda: is_verified(run, retried))
            run.decide(bad, FAILS)
            run.until("its gate is closed again", lambda: operator.logged("Gate closed", node=bad))
            run.until("it is removed", lambda: bad not in run.nodes())
            run.until("others are verified again", lambda: attempts(run, good) > 1)
            operator.stop()
        nothing_was_rejected(run)


def attempts(run: Run, node: str) -> int:
    found = run.node(node).metadata
    assert found
    return int(json.loads((found.annotations or {})["node-ready/verification"])["attempt"])


@pytest.mark.parametrize("is_limited", [True, False])
def test_with_the_rights_of_the_chart_a_privileged_pod_is_possible_only_without_the_limits(
    plane: lab.Plane, prefix: str, tmp_path: Path, *, is_limited: bool
) -> None:
    """The attack of finding H2, with no other rights than those that the chart grants."""
    plane.client.create(Namespace(metadata=ObjectMeta(name=prefix)))
    limits = {"admissionPolicy": {"enabled": True, "restrictController": is_limited}}
    with a_run(plane, prefix, tmp_path, values=limits) as run:
        container = {"name": "shell", "image": "example.com/evil:1", "securityContext": {"privileged": True}}
        spec = {"containers": [container], "volumes": [{"name": "host", "hostPath": {"path": "/"}}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger"}, "spec": spec}
        expected = "the controller can create and delete worker pods only" if is_limited else ""

        def is_as_expected() -> bool:
            response = rejection(run.release, f"/api/v1/namespaces/{prefix}/pods", pod)
            return expected in response if expected else not response

        run.until("the answer is as expected", is_as_expected)


# A namespace of the workers' own


def test_workers_run_in_a_namespace_of_their_own_that_enforces_restricted(
    plane: lab.Plane, prefix: str, tmp_path: Path
) -> None:
    """With an init container of the user's, which says itself that it drops all capabilities."""
    values = {"worker": {"namespace": f"{prefix}-w", "createNamespace": True}}
    with a_limited_run(plane, prefix, tmp_path, values=values, worker={"initContainers": [CHECK]}) as run:
        found = plane.client.get(Namespace, f"{prefix}-w").metadata
        assert found
        assert found.labels
        assert found.labels["pod-security.kubernetes.io/enforce"] == "restricted"
        passing, hanging = run.join("passes", lab.PASSES), run.join("hangs", lab.HANGS)
        with run.controller() as operator:
            run.until("a node is verified", lambda: operator.logged("Node verified", node=passing))
            run.until("a worker runs", lambda: run.workers(hanging))
            operator.stop()
        nothing_was_rejected(run)


@pytest.mark.parametrize("missing", ["allowPrivilegeEscalation", "capabilities"])
def test_that_namespace_rejects_init_containers_that_are_not_restricted(
    plane: lab.Plane, prefix: str, tmp_path: Path, missing: str
) -> None:
    values = {"worker": {"namespace": f"{prefix}-w", "createNamespace": True}}
    context = {key: value for key, value in CONFINED.items() if key != missing}
    check = {**CHECK, "securityContext": context}
    with a_limited_run(plane, prefix, tmp_path, values=values, worker={"initContainers": [check]}) as run:
        found = run.node(run.join("node", lab.PASSES)).metadata
        assert found
        template = settings.template(configs.load(run.release.made.file))
        pod = worker_pod(Node(str(found.name), str(found.uid)), 1, template)
        response = rejection(run.release, f"/api/v1/namespaces/{prefix}-w/pods", pod)
        assert 'violates PodSecurity "restricted:latest"' in response, response
        assert missing in response, response


def test_workers_can_be_moved_to_a_namespace_of_their_own(plane: lab.Plane, prefix: str, tmp_path: Path) -> None:
    """The worker of the old namespace is ignored, and stays: a new one is created."""
    with a_limited_run(plane, prefix, tmp_path) as before:
        node = before.join("node", lab.HANGS)
        with before.controller() as operator:
            before.until("a worker is bound in the old namespace", lambda: before.workers(node))
            operator.stop()
        values = {"worker": {"namespace": f"{prefix}-w", "createNamespace": True}, "admissionPolicy": {"enabled": True}}
        after = Run(plane, prefix, tmp_path, {}, **values)
        after.release.install()
        wait_for_limits(after.release)
        before.decide(node, lab.PASSES)  # of the workers to come: one that runs keeps its verdict
        with after.controller() as operator:
            after.until("the node is verified", lambda: operator.logged("Node verified", node=node))
            operator.stop()
        assert len(before.workers(node)) == 1, "the old one is still there"
        plane.client.delete(Namespace, f"{prefix}-w")


# A registry mirror


def reason(run: Run, node: str) -> str:
    """What the condition of the node says."""
    status = run.node(node).status
    assert status
    response = [condition.message or "" for condition in status.conditions or () if condition.type == "NodeVerified"]
    return "".join(response)


@pytest.mark.parametrize("images", [[], [f"{MIRROR}kube-node-ready:*"]])
def test_images_of_a_mirror_must_be_listed(plane: lab.Plane, prefix: str, tmp_path: Path, images: list[str]) -> None:
    plane.client.create(Namespace(metadata=ObjectMeta(name=prefix)))
    policy = {"admissionPolicy": {"enabled": True, "additionalWorkerImages": images}}
    with a_limited_run(plane, prefix, tmp_path, values=policy) as run, a_mirror(plane, prefix):
        node = run.join("node", lab.PASSES)
        with run.controller() as operator:
            if images:
                run.until("the node is verified", lambda: operator.logged("Node verified", node=node))
            else:
                run.until(
                    "it is rejected", lambda: "admissionPolicy.additionalWorkerImages: worker" in reason(run, node)
                )
                assert not is_verified(run, node)
            operator.stop()
