"""The rights that the chart grants, held against what its programs do with them: nothing is missing, nothing is spare.

Each program runs with the token of the chart's ServiceAccount. What it did is in the audit log; what it is
allowed to do is the API server's own answer.
"""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import lab
from kube_node_ready.settings import policy
from kube_node_ready.verification.model import Node
from kube_node_ready.verification.worker_pod import worker_pod
from tests.support import chart_release, configs, rbac
from tests.support.agent_live import VALUES, a_world, command, environment_of
from tests.support.chart_release import Release
from tests.support.chart_run import a_run
from tests.support.ports import unused_port
from tests.support.removal import LEDGER, nodeclaims
from tests.support.scenarios.agent import CONTINUOUS, is_gated, is_released, released

NO_LIMITS: Mapping[str, object] = {"maxCount": 100, "maxPercent": 100, "maxFailingCount": 100}
REMOVING = {"deleteFailedNodes": True, "removal": NO_LIMITS}
# Rights that a run need not use, and why they are granted.
STREAMED = dict.fromkeys(
    ["* nodes list", "own pods list", f"own configmaps {LEDGER} list"],
    "servers that cannot stream a list are asked for its pages: tests/old_kubernetes",
)


def of_nodes_and_pods(spare: Mapping[str, str]) -> dict[str, str]:
    """Where there is no ledger."""
    return {right: why for right, why in spare.items() if LEDGER not in right}


def test_a_controller_that_verifies(plane: lab.Plane, prefix: str, tmp_path: Path) -> None:
    # The admission policy rejects the relabeling below. Without it, the controller uses its right to get pods.
    with a_run(plane, prefix, tmp_path, policy=False) as run:
        passing, failing = run.join("passes", lab.PASSES), run.join("fails", lab.fails(seconds=0.2))
        hanging = run.join("hangs", lab.HANGS)
        with run.controller() as operator:
            run.until("a node passed", lambda: operator.logged("Node verified", node=passing))
            run.until("a node failed", lambda: operator.logged("Verification failed", node=failing))
            run.until("a worker hangs", lambda: run.workers(hanging))
            (worker,) = run.workers(hanging)
            plane.kubectl("label", "pod", f"--namespace={prefix}", worker, "component-")
            run.until("it was looked up", lambda: operator.logged("Unusable worker pod deleted"))
            operator.stop()
        rbac.fit(run.release, spare=of_nodes_and_pods(STREAMED))


def test_a_controller_that_removes(plane: lab.Plane, prefix: str, tmp_path: Path) -> None:
    fails = lab.fails(seconds=0.2)

    def of_karpenter(pool: str) -> dict[str, str]:
        """One each: of a pool of two, the second is held if the first is gone when its turn comes."""
        return {"karpenter.sh/nodepool": pool, "karpenter.sh/registered": "true"}

    with (
        nodeclaims(plane) as claims,
        a_run(plane, prefix, tmp_path, nodeManagement=REMOVING) as run,
    ):
        passing, plain = run.join("passes", lab.PASSES), run.join("plain", fails)
        owned, named = (claims.make(run.join(by, fails, **of_karpenter(by)), by=by) for by in ("owner", "status"))
        with run.controller() as operator:
            run.until("a node passed", lambda: operator.logged("Node verified", node=passing))
            run.until("claims are gone", lambda: not {owned, named} & claims.names())
            run.until("the node is gone", lambda: plain not in run.nodes())
            operator.stop()
        rbac.fit(run.release, spare=STREAMED | rbac.EARLIER_LIFE)


def test_a_controller_in_dry_run_of_removal_without_leader_election(
    plane: lab.Plane, prefix: str, tmp_path: Path
) -> None:
    dry = {"deleteFailedNodes": True, "removal": {**NO_LIMITS, "dryRun": True}}
    of_karpenter = {"karpenter.sh/nodepool": "a", "karpenter.sh/registered": "true"}
    with (
        nodeclaims(plane) as claims,
        a_run(plane, prefix, tmp_path, nodeManagement=dry, leaderElection={"enabled": False}) as run,
    ):
        passing = run.join("passes", lab.PASSES)
        nodes = {by: run.join(by, lab.fails(seconds=0.2), **of_karpenter) for by in ("owner", "status")}
        made = {claims.make(node, by=by) for by, node in nodes.items()}
        with run.controller() as operator:
            run.until("a node passed", lambda: operator.logged("Node verified", node=passing))
            for node in nodes.values():
                run.until("it would be removed", lambda on=node: operator.logged("Removal blocked", node=on))
            operator.stop()
        assert made <= claims.names()
        rbac.fit(run.release, spare=STREAMED | rbac.EARLIER_LIFE)


def test_a_controller_in_dry_run(plane: lab.Plane, prefix: str, tmp_path: Path) -> None:
    with a_run(plane, prefix, tmp_path, nodeManagement=REMOVING, dryRun=True) as run:
        node = run.join("passes", lab.PASSES)
        with run.controller() as operator:
            run.until("it would begin", lambda: operator.logged("Dry run: effect skipped", on=node))
        rbac.fit(run.release, spare=STREAMED)


def test_a_worker(plane: lab.Plane, prefix: str, tmp_path: Path) -> None:
    dns = {"name": "kube-dns", "namespace": "kube-system"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": dns, "spec": {"ports": [{"port": 53}]}}
    chart_release.apply(plane, [service])
    with a_run(plane, prefix, tmp_path) as run:
        account = configs.load(run.release.made.file).worker.service_account_name
        _work(run.release, account, tmp_path / "mounted")
        rbac.fit(run.release, account)
    plane.kubectl("delete", "service", f"--namespace={dns['namespace']}", dns["name"])


def _work(release: Release, account: str, mounted: Path) -> None:
    """A worker's process, with the variables that the controller gives it. Without cluster DNS it fails; it has asked
    for everything by then.
    """
    pod = worker_pod(Node("a", "uid"), 1, policy.template(configs.load(release.made.file)))
    (container,) = pod["spec"]["containers"]
    reported = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    host, port = release.plane.api_endpoint
    where = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(port)}
    release.mount(mounted, account=account)
    program = (
        "import os, sys; from kube_node_ready.worker import main as worker; "
        "worker.work(os.environ, folder=sys.argv[1], dry_run=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(mounted)],
        env={**os.environ, **reported, **where},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Report" in done.stdout, done.stdout


def test_the_daemonset(plane: lab.Plane, prefix: str, tmp_path: Path) -> None:
    with _daemonset(plane, prefix, enableConnectivityMatrix=True) as release:
        with a_world(release, prefix, tmp_path) as world:
            released(world, *CONTINUOUS, f"--metrics-port={unused_port()}")
            world.break_network()
            world.until("the gate is closed", lambda: is_gated(world))
            world.heal_network()
            world.until("released again", lambda: is_released(world))
        rbac.fit(release)


def test_a_daemonset_in_dry_run(plane: lab.Plane, prefix: str, tmp_path: Path) -> None:
    with _daemonset(plane, prefix, dryRun=True) as release:
        release.mount(tmp_path)
        environment = environment_of(release, plane.api_endpoint, NODE_NAME="any", METRICS_PORT=str(unused_port()))
        with subprocess.Popen(command(tmp_path), env=environment, stdout=subprocess.PIPE, text=True) as looking:
            assert looking.stdout
            assert any("Dry run: no changes made" in line for line in looking.stdout)
            looking.terminate()
            assert looking.wait(120) in (0, 1), "depending on the checks"
        rbac.fit(release)


@contextmanager
def _daemonset(plane: lab.Plane, namespace: str, **config: object) -> Iterator[Release]:
    release = Release(plane, namespace, {**VALUES, "config": config})
    release.install()
    try:
        yield release
    finally:
        release.uninstall()


VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
KINDS = (
    *("nodes", "nodes/status", "nodes/proxy", "namespaces", "secrets", "configmaps", "events", "services", "endpoints"),
    *("pods", "pods/status", "pods/log", "pods/exec", "pods/eviction", "pods/binding", "pods/ephemeralcontainers"),
    *("serviceaccounts", "serviceaccounts/token", "persistentvolumes", "replicationcontrollers"),
    *("endpointslices.discovery.k8s.io", "leases.coordination.k8s.io"),
    *("deployments.apps", "daemonsets.apps", "nodeclaims.karpenter.sh", "nodepools.karpenter.sh"),
    *("clusterroles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"),
    *("validatingadmissionpolicies.admissionregistration.k8s.io", "certificatesigningrequests.certificates.k8s.io"),
)
NAMED = ("services", "configmaps", "leases.coordination.k8s.io")
WIDEST: Mapping[str, Mapping[str, Any]] = {
    "controller": {"controller": {"config": {"nodeManagement": REMOVING}}},
    "worker": {},
    "daemonset": {**VALUES, "config": {"enableConnectivityMatrix": True}},
}


@pytest.mark.parametrize("role", WIDEST)
def test_all_other_requests_are_rejected(plane: lab.Plane, prefix: str, role: str) -> None:
    """Asked verb by verb, kind by kind and namespace by namespace of those with the widest rights."""
    release = Release(plane, prefix, WIDEST[role])
    release.install()
    try:
        account = release.account
        if role == "worker":
            account = configs.load(release.made.file).worker.service_account_name
        held = rbac.granted(release, account, {prefix, *rbac.PLACES})
        names = {"", "other", *(right.name for right in held)}
        assert {right.resource for right in held} & set(KINDS), "of those asked for, some are granted"
        with chart_release.reviews(plane, release.user(account)) as allow:
            for use in _uses(("", prefix, *rbac.PLACES), names):
                allowed = allow(use.verb, use.resource, use.place, use.name)
                assert allowed == any(right.covers(use) for right in held), use
    finally:
        release.uninstall()


def _uses(places: Iterable[str], names: Iterable[str]) -> Iterator[rbac.Right]:
    for place, kind, verb in itertools.product(places, KINDS, VERBS):
        for name in names if kind in NAMED else ("",):
            yield rbac.Right(place, kind, name, verb)
