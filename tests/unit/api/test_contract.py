"""The contract: names never change. tests/contract has the values that users see."""

from kube_node_ready.api import contract
from kube_node_ready.api.contract import EventReason


def test_the_selector_selects_by_the_labels_of_worker_pods() -> None:
    assert f"app={contract.APP},component={contract.WORKER_COMPONENT}" == contract.WORKER_SELECTOR
    assert contract.WORKER_SELECTOR == "app=kube-node-ready,component=worker"


def test_reasons_of_events_never_change() -> None:
    assert [*EventReason] == [
        "Verifying",
        "Verified",
        "VerificationFailed",
        "VerificationExhausted",
        "GateRestored",
        "GateKeptOpen",
        "RemovalBlocked",
        "Removing",
        "Cordoned",
        "GateContested",
        "ReleaseRejected",
        "RecordRejected",
        "RecordChanged",
    ]
