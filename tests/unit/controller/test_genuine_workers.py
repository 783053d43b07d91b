"""Which worker pods are genuine."""

from msgspec.structs import replace

from kube_node_ready.controller.genuine_workers import GenuineWorkers
from kube_node_ready.verification.model import Worker

WORKER = Worker("w", "pod-uid", "node-uid", "a", number=1, fingerprint="ours", generation=1)


def test_a_worker_is_genuine_once_the_server_created_one_like_it() -> None:
    workers = GenuineWorkers()
    assert not workers.any_admitted
    assert not workers.is_genuine(WORKER)
    assert workers.admit("ours") == ["ours"]
    assert workers.any_admitted
    assert workers.is_genuine(WORKER)
    assert not workers.is_genuine(replace(WORKER, fingerprint="another"))
    assert not workers.admit("ours"), "nothing changes"


def test_fingerprints_are_forgotten_before_they_fill_the_memory() -> None:
    workers = GenuineWorkers()
    for number in range(10_000):
        assert workers.admit(str(number)) == [str(number)]
    assert workers.admit("ours") == ["ours", "0"]
    assert workers.is_genuine(WORKER)
    assert not workers.is_genuine(replace(WORKER, fingerprint="0"))
    assert workers.is_genuine(replace(WORKER, fingerprint="1"))


def test_a_worker_that_was_edited_is_not_genuine_also_if_it_was_edited_back() -> None:
    workers = GenuineWorkers()
    workers.admit("ours")
    edited = replace(WORKER, fingerprint="another")
    workers.changed(WORKER, edited, is_known=True)
    workers.changed(edited, WORKER, is_known=True)
    assert workers.is_edited(WORKER)
    assert not workers.is_genuine(WORKER)
    assert workers.is_genuine(replace(WORKER, uid="another-pod"))


def test_a_worker_that_was_edited_while_no_controller_ran_is_not_genuine() -> None:
    workers = GenuineWorkers()
    workers.admit("ours")
    workers.changed(None, replace(WORKER, generation=2), is_known=False)
    assert not workers.is_genuine(WORKER)
    workers.forget(WORKER.uid)
    assert workers.is_genuine(WORKER)


def test_deleting_a_worker_is_not_an_edit() -> None:
    workers = GenuineWorkers()
    workers.admit("ours")
    workers.changed(None, replace(WORKER, generation=2, deleting=True), is_known=False)
    assert workers.is_genuine(WORKER)
