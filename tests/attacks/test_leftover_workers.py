"""Workers whose verdict was used before (D6).

Every field of such a pod is right: the controller created it. But it does not answer the question that is asked now.
"""

from pathlib import Path
from typing import Any

from lightkube.resources.core_v1 import Node

import lab
from tests.attacks.history import RECORD, History
from tests.attacks.kubelet import kubelets, short_name, worker_name
from tests.support.controller_process import operating
from tests.support.site import Site

PATIENCE = 120
RUSH = 40


def config(site: Site, **reconciliation: Any) -> dict[str, Any]:  # noqa: ANN401  as in YAML
    return site.config(reconciliation={"intervalSeconds": 1, "maxRetries": 9, **reconciliation})


def test_an_earlier_pass_is_not_a_new_proof(site: Site, tmp_path: Path) -> None:
    """The record and the label are removed and the gate is restored, which requires a new proof.

    While many nodes are verified, a worker that has passed stays for up to a minute.
    """
    site.join(RUSH, verdict=lab.HANGS)
    with (
        kubelets(site.plane, short_name("node", site.namespace)) as (kubelet,),
        operating(tmp_path, site.plane.kubeconfig(), config(site)),
    ):
        site.until("many nodes are verified", lambda: len(site.workers()) == RUSH)
        kubelet.register(labels={"site": site.namespace}, taints=[site.gate])

        def is_open() -> bool:
            kubelet.run_pods(lambda _: 0)
            return site.released(kubelet.node)

        site.until("it is verified", is_open)
        assert worker_name(kubelet.uid, 1) in {worker.name for worker in site.workers()}, "it is still there"
        forget: dict[str, Any] = {"annotations": {RECORD: None}, "labels": {"node-ready/verified": None}}
        gated = {"metadata": forget, "spec": {"taints": [site.gate.as_dict()]}}
        site.plane.client.patch(Node, kubelet.node, gated)
        history = History(site.plane, kubelet.node)

        def has_failed() -> bool:
            kubelet.run_pods(lambda _: 1)
            return site.node(kubelet.node).record.failures > 0 or not site.policy.is_gated(site.node(kubelet.node))

        site.until("there is a new verdict", has_failed, PATIENCE)
        assert not history.was_ever_open(site.gate.key), "opened by a worker that had passed before"
