"""Verified nodes that have to prove themselves again, on a real control plane."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lab
from tests.support.controller_process import operating
from tests.support.site import Site

FOREIGN = lab.Taint("example.com/foreign", "PreferNoSchedule", "x")
# The interval's smallest value, so that tests end soon; what is quick here is slow elsewhere.
OFTEN = {"reverifyIntervalSeconds": 10, "reverifyFailureThreshold": 2}
PATIENCE = 180


@pytest.fixture
def site(plane: lab.Plane, namespace: str) -> Iterator[Site]:
    mine = Site(plane, namespace)
    yield mine
    mine.leave()


def watchful(site: Site) -> dict[str, Any]:
    quick = {"maxRetries": 3, "backoffSeconds": 0.2, "maxBackoffSeconds": 1, "exhaustedRetrySeconds": 2}
    return site.config(reconciliation={**quick, **OFTEN})


def reasons(site: Site, name: str) -> list[str]:
    return [str(event.reason) for event in site.events(name)]


def closed(site: Site, name: str) -> bool:
    node = site.node(name)
    return not node.labelled and site.policy.is_gated(node)


def test_a_verified_node_that_breaks_is_gated_again_across_restarts(site: Site, tmp_path: Path) -> None:
    """The controller is killed after the first failure: its successor counts on."""
    site.join(3)
    broken = site.join(1, group="bad", taints=(FOREIGN,))
    names, bad = [f"{site.namespace}-{number}" for number in range(3)], f"{site.namespace}-bad-0"
    with operating(tmp_path, site.plane.kubeconfig(), watchful(site)) as operator:
        site.until("all are released", lambda: site.released(*names, bad))
        broken.decide(lab.fails("dns: no answer"))
        site.until("it failed once", lambda: site.node(bad).record.failures == 1, PATIENCE)
        operator.kill()
    node = site.node(bad)
    assert node.labelled, "one failure closes nothing"
    assert not site.policy.is_gated(node)
    with operating(tmp_path, site.plane.kubeconfig(), watchful(site)) as operator:
        site.until("it is gated again", lambda: closed(site, bad), PATIENCE)
        site.until("and says why", lambda: site.condition(bad)["status"] == "False")
        assert reasons(site, bad).count("GateRestored") == 1
        assert operator.logged("Gate closed", node=bad)
        assert "kube_node_ready_gates_closed_total 1.0" in operator.ask("/metrics", server=0)
        assert FOREIGN.key in [taint.key for taint in site.node(bad).taints]
        broken.decide(lab.PASSES)
        site.until("it is released again", lambda: site.released(bad), PATIENCE)
        site.until("and says so", lambda: site.condition(bad)["status"] == "True")
        assert site.released(*names), "the others were open all the time"
        site.until("they were checked again", lambda: all(site.node(name).record.attempt > 1 for name in names))
    for name in names:
        assert reasons(site, name) == ["Verified"], "a proof that is repeated is no news"


def test_when_all_fail_most_gates_stay_open(site: Site, tmp_path: Path) -> None:
    fleet = site.join(4)
    names = [f"{site.namespace}-{number}" for number in range(4)]
    with operating(tmp_path, site.plane.kubeconfig(), watchful(site)) as operator:
        site.until("all are released", lambda: site.released(*names))
        fleet.decide(lab.fails("dns: no answer"))
        site.until(
            "all failed often enough",
            lambda: all(site.node(name).record.failures >= OFTEN["reverifyFailureThreshold"] for name in names),
            PATIENCE,
        )
        still_open = [name for name in names if not closed(site, name)]
        assert len(still_open) >= 2, "maxFailingCount is 2"
        in_doubt = f"kube_node_ready_controller_nodes_doubtful {len(still_open)}.0"
        assert in_doubt in operator.ask("/metrics", server=0)
        assert any("GateKeptOpen" in reasons(site, name) for name in still_open)
        fleet.decide(lab.PASSES)
        site.until("all are well", lambda: site.released(*names), PATIENCE)
        site.until("and in no doubt", lambda: not any(site.node(name).record.failures for name in names), PATIENCE)
