"""A kubelet that edits the verification record and the labels of its own Node (M1 and D7).

A kubelet is allowed to write annotations and most labels of its own Node. So the record proves nothing by itself: it
opens no gate, and it removes no node.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.core_v1 import Node
from lightkube.types import PatchType

import lab
from tests.attacks.history import RECORD, History
from tests.attacks.kubelet import Kubelet, failed_record, kubelets, passed_record, short_name
from tests.support.controller_process import operating
from tests.support.removal import Claims, Fleet, nodeclaims
from tests.support.site import Site

LABEL = "node-ready/verified"
DEDICATED = lab.Taint("dedicated", value="payments")
GATE = lab.Taint("node-ready/unverified", value="true")
NO_LIMITS = {"maxCount": 100, "maxPercent": 100, "maxFailingCount": 100}
REMOVES: dict[str, Any] = {"deleteFailedNodes": True, "removal": NO_LIMITS}
QUIET_SECONDS = 3


def now() -> str:
    return datetime.now(UTC).isoformat()


def config(site: Site, management: dict[str, Any] | None = None, **reconciliation: Any) -> dict[str, Any]:  # noqa: ANN401
    return site.config(
        nodeManagement=management or {}, reconciliation={"intervalSeconds": 1, "maxRetries": 1, **reconciliation}
    )


@pytest.fixture
def kubelet(site: Site) -> Iterator[Kubelet]:
    with kubelets(site.plane, short_name("liar", site.namespace)) as (made,):
        yield made


def claim_to_be_verified(kubelet: Kubelet) -> None:
    patch = {"metadata": {"labels": {LABEL: "true"}, "annotations": {RECORD: passed_record(now())}}}
    kubelet.client.patch(Node, kubelet.node, patch, patch_type=PatchType.MERGE)


@pytest.mark.parametrize("when", ["at registration", "later"])
def test_a_kubelet_does_not_open_its_own_gate_by_a_forged_record(
    site: Site, kubelet: Kubelet, tmp_path: Path, when: str
) -> None:
    """Its workers fail, and it claims that one has passed."""
    labels = {"site": site.namespace}
    with operating(tmp_path, site.plane.kubeconfig(), config(site)) as operator:
        if when == "at registration":
            time.sleep(1.1)  # creation timestamps are whole seconds, and the Node has to be younger than this leader
            annotations = {RECORD: passed_record(now())}
            kubelet.register(labels={**labels, LABEL: "true"}, annotations=annotations, taints=[site.gate])
            history = History(site.plane, kubelet.node)
        else:
            kubelet.register(labels=labels, taints=[site.gate])
            history = History(site.plane, kubelet.node)
            site.until("a worker is bound", lambda: any(worker.node_name for worker in site.workers()))
            claim_to_be_verified(kubelet)

        def has_failed() -> bool:
            kubelet.run_pods(lambda _: 1)
            return site.node(kubelet.node).record.failures > 0 or not site.policy.is_gated(site.node(kubelet.node))

        site.until("a worker has failed", has_failed)
        assert not history.was_ever_open(site.gate.key)
        assert operator.logged("Verification record changed by another client", node=kubelet.node)
        site.until("an Event shows it", lambda: "RecordChanged" in {e.reason for e in site.events(kubelet.node)})


def test_a_forged_record_of_failures_removes_nothing(site: Site, kubelet: Kubelet, tmp_path: Path) -> None:
    """The node stays until one of its workers has failed, too."""
    with operating(tmp_path, site.plane.kubeconfig(), config(site, REMOVES)):
        kubelet.register(
            labels={"site": site.namespace}, annotations={RECORD: failed_record(now())}, taints=[site.gate]
        )
        history = History(site.plane, kubelet.node)
        until = time.monotonic() + QUIET_SECONDS
        while time.monotonic() < until:
            kubelet.annotate(**{RECORD: failed_record(now())})
            assert history.exists(), "removed by a record that no worker has earned"
            time.sleep(0.2)


def is_cordoned_and_not_removed(site: Site, kubelet: Kubelet) -> bool:
    """Of a node whose workers fail until one of both has happened."""
    history = History(site.plane, kubelet.node)

    def is_handled() -> bool:
        kubelet.run_pods(lambda _: 1)
        return not history.exists() or site.node(kubelet.node).cordoned

    site.until("it is removed or cordoned", is_handled)
    return history.exists()


def test_a_node_with_taints_of_others_is_cordoned_and_not_deleted(site: Site, kubelet: Kubelet, tmp_path: Path) -> None:
    """If its Node were deleted, its kubelet would register again without the taint, and get the payments' pods."""
    tolerant = {**config(site, REMOVES)}
    tolerant["worker"] = {**tolerant["worker"], "tolerations": [{"operator": "Exists"}]}
    with operating(tmp_path, site.plane.kubeconfig(), tolerant):
        kubelet.register(labels={"site": site.namespace}, taints=[site.gate, DEDICATED])
        assert is_cordoned_and_not_removed(site, kubelet)
        reported = {event.reason: event.message or "" for event in site.events(kubelet.node)}
        assert "a new registration would lose its taint dedicated" in reported["Cordoned"]
        assert "Removing" not in reported


def test_a_cordon_is_not_lost_by_a_failure_that_the_kubelet_withholds(
    site: Site, kubelet: Kubelet, tmp_path: Path
) -> None:
    """Its last attempt was bound before the node was cordoned, and ends after that."""
    with operating(tmp_path, site.plane.kubeconfig(), config(site, REMOVES)):
        kubelet.register(labels={"site": site.namespace}, taints=[site.gate])
        history = History(site.plane, kubelet.node)

        def last_is_bound() -> bool:
            kubelet.run_pods(lambda pod: None if str(pod.metadata and pod.metadata.name).endswith("-2") else 1)
            return any(worker.number == 2 and worker.node_name for worker in site.workers())

        site.until("its last attempt is bound", last_is_bound)
        site.plane.kubectl("cordon", kubelet.node)

        def is_handled() -> bool:
            kubelet.run_pods(lambda _: 1)
            reported = {event.reason for event in site.events(kubelet.node)} if history.exists() else set()
            return not history.exists() or "RemovalBlocked" in reported

        site.until("it is removed or held", is_handled)
        assert history.exists(), "its kubelet would register it without the cordon"


def test_nodes_without_a_claim_are_cordoned_if_configured(site: Site, kubelet: Kubelet, tmp_path: Path) -> None:
    cordons = {"deleteFailedNodes": True, "removal": {**NO_LIMITS, "withoutClaim": "cordon"}}
    with operating(tmp_path, site.plane.kubeconfig(), config(site, cordons)):
        kubelet.register(labels={"site": site.namespace}, taints=[site.gate])
        assert is_cordoned_and_not_removed(site, kubelet)


@pytest.fixture
def fleet(plane: lab.Plane, namespace: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(plane, namespace, tmp_path)
    yield fleet
    fleet.forget()


@pytest.fixture(scope="module")
def claims(plane: lab.Plane) -> Iterator[Claims]:
    with nodeclaims(plane) as served:
        yield served


def register_in(fleet: Fleet, kubelet: Kubelet, pool: str) -> History:
    labels = {"case": fleet.namespace, "karpenter.sh/nodepool": pool, "karpenter.sh/registered": "true"}
    kubelet.register(labels=labels, taints=[GATE])
    return History(fleet.plane, kubelet.node)


@pytest.fixture
def spender(fleet: Fleet) -> Iterator[Kubelet]:
    """A kubelet whose workers fail, in a cluster where one node per pool is removed."""
    account = fleet.account("get", "list", "delete")
    with (
        kubelets(fleet.plane, short_name("spender", fleet.namespace)) as (kubelet,),
        fleet.operating({"maxCount": 1}, kubeconfig=account),
    ):
        yield kubelet


def be_removed(fleet: Fleet, spender: Kubelet, pool: str) -> None:
    history = register_in(fleet, spender, pool)

    def is_gone() -> bool:
        spender.run_pods(lambda _: 1)
        return not history.exists()

    fleet.until(f"its Node of {pool} is removed", is_gone)


@pytest.mark.usefixtures("claims")
def test_one_kubelet_does_not_spend_the_budgets_of_other_pools(fleet: Fleet, spender: Kubelet) -> None:
    """It registers again after each removal, each time in another pool."""
    be_removed(fleet, spender, "pool-a")
    second = register_in(fleet, spender, "pool-b")

    def is_handled() -> bool:
        spender.run_pods(lambda _: 1)
        reasons = fleet.event_messages(spender.node, "RemovalBlocked")
        return not second.exists() or any("was removed" in reason for reason in reasons)

    fleet.until("its second Node is handled", is_handled)
    assert second.exists(), "and pool-b has paid for it"


def test_a_label_does_not_spend_the_budget_of_a_pool_of_claims(fleet: Fleet, claims: Claims, spender: Kubelet) -> None:
    be_removed(fleet, spender, "pool-a")
    (broken,) = fleet.join(pool="pool-a")
    claim = claims.make(broken, by="owner")
    fleet.until("the broken node of pool-a is removed, too", lambda: claim not in claims.names())
