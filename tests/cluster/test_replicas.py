"""Several replicas: one leads, the others are on standby, and no two write simultaneously."""

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
    return operator.logged("Controller started")


def identity(operator: Operator) -> str:
    return str(next(line["identity"] for line in operator.lines() if "identity" in line))


def holder(site: Site) -> str:
    spec = site.plane.client.get(Lease, LEASE, namespace=site.namespace).spec
    return (spec and spec.holderIdentity) or ""


def authors(site: Site, *names: str) -> set[str]:
    return {str(event.reportingInstance) for name in names for event in site.events(name)}


def is_ready(operator: Operator) -> bool:
    return operator.ask("/readyz") == "ok\n"


def test_one_of_two_replicas_leads_and_the_other_takes_over_when_it_stops(site: Site, tmp_path: Path) -> None:
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
        site.until("reported", lambda: authors(site, *names) == {identity(leader)})
        assert not leads(standby)
        assert "kube_node_ready_controller_leader_election_status 0.0" in standby.ask("/metrics")
        assert leader.stop() == 0
        (late,) = site.join(group="late").names
        site.until("released by the other, long before the Lease expires", lambda: site.released(late), 60)
        site.until("reported", lambda: authors(site, late) == {identity(standby)})
        assert holder(site) == identity(standby)


def test_a_standby_resumes_the_work_of_a_killed_leader(site: Site, tmp_path: Path) -> None:
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


def test_a_disconnected_leader_exits_before_another_starts(site: Site, tmp_path: Path) -> None:
    config = replicated(site, duration=20, renew=5)
    with bad_route(site.plane.kubeconfig(), tmp_path) as route, operating(tmp_path, route.kubeconfig, config) as leader:
        site.until("it leads", lambda: leads(leader))
        with operating(tmp_path, site.plane.kubeconfig(), config) as standby:
            site.until("the standby knows", lambda: is_ready(standby))
            route.proxy.plan = lambda _: Cuts()
            route.cut()
            assert leader.process.wait(60) == 1
            assert not leads(standby), "the other had to wait"
            assert leader.logged("Lease lost")
            (name,) = site.join().names
            site.until("the other goes on", lambda: site.released(name))


def test_a_suspended_leader_with_an_expired_lease_writes_nothing(site: Site, tmp_path: Path) -> None:
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
            assert leader.logged("Lease lost")
            assert len(writes(site)) == asleep > 0
            assert holder(site) == identity(standby)


def writes(site: Site) -> list[Any]:
    """What the site's ServiceAccount has written so far."""
    user = f"system:serviceaccount:{site.namespace}:default"
    events = site.plane.audit._events(0)
    return [event for event in events if event["user"].get("username") == user and event["verb"] not in READS]


def test_a_stopped_standby_does_not_change_the_lease(site: Site, tmp_path: Path) -> None:
    config = replicated(site, duration=30, renew=20)
    with operating(tmp_path, site.plane.kubeconfig(), config) as leader:
        site.until("it leads", lambda: leads(leader))
        with operating(tmp_path, site.plane.kubeconfig(), config) as standby:
            site.until("the standby knows", lambda: is_ready(standby))
            assert standby.stop() == 0
        assert holder(site) == identity(leader)
        (name,) = site.join().names
        site.until("released", lambda: site.released(name))


def test_two_controllers_without_leader_election_duplicate_no_attempt(site: Site, tmp_path: Path) -> None:
    """Leader election is disabled, which is not supported; fixed names and absolute effects still hold."""
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
