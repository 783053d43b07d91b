"""Floods of changes by one kubelet: what the controller writes and logs follows its own pace, not the kubelet's.

All nodes share the controller's rate limit, so none of them can be allowed to use it up.
"""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from lightkube.resources.core_v1 import Node
from lightkube.types import PatchType

import lab
from tests.attacks.history import RECORD
from tests.attacks.kubelet import Kubelet, kubelets
from tests.attacks.test_contested_gates import writes
from tests.attacks.test_refused_writes import frozen_taints, is_frozen
from tests.support.controller_process import Operator, operating
from tests.support.site import Site, a_site

EDITS = 300
BURST = 30
PER_SECOND = 2
OF_ONE_RECONCILE = 10


@pytest.fixture(scope="module")
def shared(plane: lab.Plane) -> Iterator[Site]:
    with a_site(plane, "floods") as site:
        yield site


@pytest.fixture(scope="module")
def operator(shared: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    quiet = {"intervalSeconds": 30, "backoffSeconds": 30, "maxBackoffSeconds": 30}
    config = shared.config(reconciliation=quiet)
    with operating(tmp_path_factory.mktemp("floods"), shared.plane.kubeconfig(), config) as running:
        yield running


class Bounds:
    """What one node is allowed to cause from now on."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._begun = time.monotonic()
        self._before = writes(operator)

    def written(self) -> float:
        return writes(self._operator) - self._before

    @property
    def most(self) -> float:
        return BURST + PER_SECOND * (time.monotonic() - self._begun) + OF_ONE_RECONCILE


def test_rewritten_records_cause_few_events_writes_and_log_lines(shared: Site, operator: Operator) -> None:
    """Each record differs in its attempt. None needs an answer: in all of them the node has just failed."""
    with kubelets(shared.plane, "flood-records") as (kubelet,):
        kubelet.register(labels={"site": shared.namespace}, taints=[shared.gate])
        shared.until("its worker is bound", lambda: any(w.node_name == kubelet.node for w in shared.workers()))
        bounds = Bounds(operator)
        for attempt in range(10, 10 + EDITS):
            kubelet.annotate(**{RECORD: just_failed(attempt)})
        shared.until("the controller has seen it", lambda: reported(shared, kubelet))
        written, most = bounds.written(), bounds.most
        assert written <= most
        assert reported(shared, kubelet) <= 2, "one per hour"
        lines = [line for line in operator.lines() if line.get("node") == kubelet.node]
        assert len(lines) <= most


def just_failed(attempt: int) -> str:
    now = datetime.now(UTC).isoformat()
    counts = {"attempt": attempt, "failures": 2}
    return json.dumps({**counts, "outcome": "failed", "at": now, "since": now, "cause": "checks", "reason": "forged"})


def reported(site: Site, kubelet: Kubelet) -> int:
    return sum(event.reason == "RecordChanged" for event in site.events(kubelet.node))


def test_rejected_releases_follow_the_backoff_and_not_the_edits_of_a_node(shared: Site, operator: Operator) -> None:
    with frozen_taints(shared), kubelets(shared.plane, "flood-labels") as (kubelet,):
        labels = {"site": shared.namespace, "karpenter.sh/registered": "true"}
        kubelet.register(labels=labels, taints=[shared.gate])
        shared.until("the policy is in force", lambda: is_frozen(shared, kubelet.node))

        def is_rejected() -> bool:
            kubelet.run_pods(lambda _: 0)
            return shared.condition(kubelet.node).get("reason") == "ReleaseRejected"

        shared.until("a release is rejected", is_rejected)
        bounds = Bounds(operator)
        for number in range(EDITS):
            join_pool(kubelet, f"pool-{number}")
        written, most = bounds.written(), bounds.most
        assert written <= most


def join_pool(kubelet: Kubelet, pool: str) -> None:
    """An edit that the controller has to look at."""
    patch = {"metadata": {"labels": {"karpenter.sh/nodepool": pool}}}
    kubelet.client.patch(Node, kubelet.node, patch, patch_type=PatchType.MERGE)


@pytest.mark.parametrize(
    ("label", "gated"), [("node-ready/verified", False), ("karpenter.sh/nodepool", True)], ids=["verified", "pool"]
)
def test_labels_that_come_and_go_cause_few_log_lines(
    shared: Site, operator: Operator, label: str, *, gated: bool
) -> None:
    """Neither needs a write: without its label, an open node is to be verified; with a pool, Karpenter's turn comes."""
    with kubelets(shared.plane, f"flood-{'pool' if gated else 'label'}") as (kubelet,):
        taints = [shared.gate] if gated else []
        kubelet.register(
            labels={"site": shared.namespace, "node-ready/verified": "true"},
            annotations={RECORD: just_failed(5)},
            taints=taints,
        )
        bounds = Bounds(operator)
        for number in range(EDITS):
            patch = {"metadata": {"labels": {label: "true" if number % 2 else None}}}
            kubelet.client.patch(Node, kubelet.node, patch, patch_type=PatchType.MERGE)
        time.sleep(1)
        lines = [line for line in operator.lines() if line.get("node") == kubelet.node]
        assert len(lines) <= bounds.most
