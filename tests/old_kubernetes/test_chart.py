"""The chart on a Kubernetes of 2024: what it renders, its rights, and its admission policy."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import lab
from kube_node_ready.agent.api import MERGE_PATCH
from kube_node_ready.kube.errors import Rejected
from tests.attacks import test_controller_nodes, test_controller_pods
from tests.attacks.stolen import a_stolen_token, denied
from tests.support import chart_sets, rbac
from tests.support.agent_live import VALUES, a_world
from tests.support.chart_release import Release, apply, ready_for_everything
from tests.support.chart_run import a_run
from tests.support.scenarios.agent import failures_in_a_row_close_the_gate_and_recovery_opens_it

VERSION = "1.31.4"


@pytest.fixture(scope="module")
def old() -> Iterator[lab.Plane]:
    with lab.plane(VERSION) as plane:
        ready_for_everything(plane)
        yield plane


@pytest.mark.parametrize("name", chart_sets.all_sets())
def test_it_accepts_every_object(old: lab.Plane, name: str) -> None:
    apply(old, chart_sets.rendered(name), "--dry-run=server")


def test_the_controllers_rights_are_all_used_and_sufficient(old: lab.Plane, prefix: str, tmp_path: Path) -> None:
    """A server that streams no lists is asked for them page by page."""
    with a_run(old, prefix, tmp_path) as run:
        passing, failing = run.join("passes", lab.PASSES), run.join("fails", lab.fails(seconds=0.2))
        with run.controller() as operator:
            run.until("a node passed", lambda: operator.logged("Node verified", node=passing))
            run.until("a node failed", lambda: operator.logged("Verification failed", node=failing))
            run.until("its worker is gone", lambda: not run.workers(passing))
            operator.stop()
        rbac.fit(run.release, spare=rbac.EARLIER_LIFE)


def test_the_daemonset_writes_to_its_own_node_only(old: lab.Plane, prefix: str, tmp_path: Path) -> None:
    release = Release(old, prefix, VALUES)
    release.install()
    (other,) = old.simulated_nodes(1, prefix=f"{prefix}-other").names
    try:
        release.wait_for_policy(other)
        with a_world(release, prefix, tmp_path) as world:
            failures_in_a_row_close_the_gate_and_recovery_opens_it(world)
            thief = release.api(pod=world.pod)
            with pytest.raises(Rejected, match=f'on node "{world.name}" can write to that Node only, not to "{other}"'):
                thief.patch(
                    f"/api/v1/nodes/{other}", b'{"metadata": {"labels": {"node-ready/verified": "true"}}}', MERGE_PATCH
                )
    finally:
        release.uninstall()


def test_the_controllers_token_writes_only_what_verification_needs(old: lab.Plane) -> None:
    limits = test_controller_nodes
    with a_stolen_token(old, limits.LIMITED, limits.EVERYTHING_ON, policy=True) as scene:
        for request, message in (*limits.ATTACKS.values(), *limits.STATE_ATTACKS.values()):
            denied(scene.rejection(request), message)
        for request in (*limits.VERIFICATION.values(), *limits.STATE.values()):
            assert scene.rejection(request) == ""


def test_the_controllers_token_creates_worker_pods_only(old: lab.Plane) -> None:
    limits = test_controller_pods
    with a_stolen_token(old, limits.LIMITED, limits.VALUES, policy=True) as scene:
        for request, message in limits.CREATIONS.values():
            denied(scene.rejection(request), message)
        for request in limits.ALLOWED.values():
            assert scene.rejection(request) == ""
