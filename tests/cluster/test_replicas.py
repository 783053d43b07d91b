"""Several controllers at once: one works, the others stand by, and no two write in the same moment."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.coordination_v1 import Lease

import lab
from tests.support.controller_process import Operator, operating
from tests.support.faulty_proxy import Cuts
from tests.support.site import Site, bad_route

LEASE = "replicas"
READS = {"get", "list", "watch"}


@pytest.fixture
def site(plane: lab.Plane, namespace: str) -> Iterator[Site]:
    mine = Site(plane, namespace)
    yield mine
    mine.leave()


def replicated(site: Site, duration: int, renew: int) -> dict[str, Any]:
    times = {"leaseDuration": f"{duration}s", "renewDeadline": f"{renew}s", "retryPeriod": "500ms"}
    return site.config(leaderElection={"enabled": True, "id": LEASE, **times})


def leads(operator: Operator) -> bool:
    return operator.said("Controller started")


def identity(operator: Operator) -> str:
    return str(next(line["identity"] for line in operator.lines() if "identity" in line))


def holder(site: Site) -> str:
    spec = site.plane.client.get(Lease, LEASE, namespace=site.namespace).spec
    return (spec and spec.holderIdentity) or ""


def authors(site: Site, *names: str) -> set[str]:
    return {str(event.reportingInstance) for name in names for event in site.events(name)}


def is_ready(operator: Operator) -> bool:
    return operator.ask("/readyz") == "ok\n"


def test_of_two_replicas_one_works_and_the_other_takes_over_as_soon_as_it_stops(site: Site, tmp_path: Path) -> None:
    config = replicated(site, duration=120, renew=90)
    with (
        operating(tmp_path, site.plane.kubeconfig(), config) as first,
        operating(tmp_path, site.plane.kubeconfig(), config) as second,
    ):
        site.until("one leads", lambda: leads(first) or leads(second))
        leader, standby = (first, second) if leads(first) else (second, first)
        site.until("the standby is ready too", lambda: is_ready(standby))
        names = site.join(5).names
        site.until("released", lambda: site.released(*names))
        site.until("told", lambda: authors(site, *names) == {identity(leader)})
        assert not leads(standby)
        assert "kube_node_ready_controller_leader_election_status 0.0" in standby.ask("/metrics")
        assert leader.stop() == 0
        (late,) = site.join(group="late").names
        site.until("released by the other, long before the Lease expires", lambda: site.released(late), 60)
        site.until("told", lambda: authors(site, late) == {identity(standby)})
        assert holder(site) == identity(standby)


def test_after_a_killed_leader_the_other_goes_on_where_it_stopped(site: Site, tmp_path: Path) -> None:
    config = replicated(site, duration=10, renew=7)
    with (
        operating(tmp_path, site.plane.kubeconfig(), config) as leader,
        operating(tmp_path, site.plane.kubeconfig(), config) as standby,
    ):
        site.until("it leads", lambda: leads(leader))
        nodes = site.join(4, verdict=lab.passes(seconds=3))
        site.until("in the middle of it", lambda: len(site.workers()) == 4)
        leader.kill()
        site.until("released", lambda: site.released(*nodes.names))
        assert leads(standby)
        site.until("nothing is left", lambda: not site.workers())
    assert len(site.pods_ever()) == 4
    assert {site.node(name).record.attempt for name in nodes.names} == {1}


def test_a_leader_that_is_cut_off_has_ended_before_another_may_begin(site: Site, tmp_path: Path) -> None:
    config = replicated(site, duration=20, renew=5)
    with bad_route(site.plane.kubeconfig(), tmp_path) as route, operating(tmp_path, route.kubeconfig, config) as leader:
        site.until("it leads", lambda: leads(leader))
        with operating(tmp_path, site.plane.kubeconfig(), config) as standby:
            site.until("the standby knows", lambda: is_ready(standby))
            route.proxy.plan = lambda _: Cuts()
            route.cut()
            assert leader.process.wait(60) == 1
            assert not leads(standby), "the other had to wait"
            assert leader.said("Lease lost")
            (name,) = site.join().names
            site.until("the other goes on", lambda: site.released(name))


def test_a_leader_that_slept_through_its_lease_writes_nothing_when_it_wakes(site: Site, tmp_path: Path) -> None:
    config = replicated(site, duration=10, renew=7)
    site.plane.kubectl(
        *("create", "clusterrolebinding", site.namespace, "--clusterrole=cluster-admin"),
        f"--serviceaccount={site.namespace}:default",
    )
    sleeper = site.plane.kubeconfig(f"{site.namespace}/default")
    with operating(tmp_path, sleeper, config) as leader:
        site.until("it leads", lambda: leads(leader))
        with operating(tmp_path, site.plane.kubeconfig(), config) as standby:
            nodes = site.join(4, verdict=lab.passes(seconds=3))
            site.until("in the middle of it", lambda: len(site.workers()) == 4)
            leader.process.send_signal(signal.SIGSTOP)
            try:
                site.until("the other leads", lambda: leads(standby))
                site.until("released by the other", lambda: site.released(*nodes.names))
                asleep = len(writes(site))
            finally:
                leader.process.send_signal(signal.SIGCONT)
            assert leader.process.wait(60) == 1
            assert leader.said("Lease lost")
            assert len(writes(site)) == asleep > 0
            assert holder(site) == identity(standby)


def writes(site: Site) -> list[Any]:
    """What the site's ServiceAccount has written so far."""
    user = f"system:serviceaccount:{site.namespace}:default"
    events = site.plane.audit._events(0)
    return [event for event in events if event["user"].get("username") == user and event["verb"] not in READS]


def test_a_standby_that_is_stopped_leaves_the_lease_alone(site: Site, tmp_path: Path) -> None:
    config = replicated(site, duration=30, renew=20)
    with operating(tmp_path, site.plane.kubeconfig(), config) as leader:
        site.until("it leads", lambda: leads(leader))
        with operating(tmp_path, site.plane.kubeconfig(), config) as standby:
            site.until("the standby knows", lambda: is_ready(standby))
            assert standby.stop() == 0
        assert holder(site) == identity(leader)
        (name,) = site.join().names
        site.until("released", lambda: site.released(name))


def test_even_two_controllers_that_know_nothing_of_each_other_double_no_attempt(site: Site, tmp_path: Path) -> None:
    """Leader election is switched off, as nobody should; fixed names and absolute effects still hold."""
    good, bad = site.join(10).names, site.join(3, verdict=lab.fails(), group="bad")
    with (
        operating(tmp_path, site.plane.kubeconfig(), site.config()),
        operating(tmp_path, site.plane.kubeconfig(), site.config()),
    ):
        site.until("released", lambda: site.released(*good))
        site.until("failed twice", lambda: all(site.node(name).record.failures >= 2 for name in bad.names))
        bad.decide(lab.PASSES)
        site.until("recovered", lambda: site.released(*bad.names))
        site.until("nothing is left", lambda: not site.workers())
    made = site.pods_ever()
    assert len(made) == len(set(made)), made
    assert {site.node(name).record.attempt for name in good} == {1}
