"""Mirror pods that pass for the workers of other nodes.

The attacker holds one kubelet's credentials, and knows the UIDs of other nodes. It creates mirror pods on its own node
that have the names and labels of their workers, and writes the status of these pods.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Node

import lab
from tests.attacks.history import History
from tests.attacks.kubelet import Kubelet, kubelets, short_name, worker_name
from tests.support.controller_process import operating
from tests.support.site import Site

NO_LIMITS = {"maxCount": 100, "maxPercent": 100, "maxFailingCount": 100}
REMOVES: dict[str, Any] = {"deleteFailedNodes": True, "removal": NO_LIMITS}
HARSH = {"intervalSeconds": 1, "maxRetries": 1}
SLOTS = 5
PATIENCE = 120
NO_FINALIZERS = '{"metadata":{"finalizers":null}}'


@pytest.fixture
def attacker(site: Site) -> Iterator[Kubelet]:
    """A kubelet that no longer obeys, of a node that the controller knows."""
    with kubelets(site.plane, short_name("attacker", site.namespace)) as (kubelet,):
        kubelet.register(labels={"site": site.namespace})
        yield kubelet


def config(site: Site, *, management: dict[str, Any] | None = None, **reconciliation: Any) -> dict[str, Any]:  # noqa: ANN401
    """Of a controller that removes whatever fails twice, unless given otherwise."""
    return site.config(
        nodeManagement=REMOVES if management is None else management,
        reconciliation={**HARSH, **reconciliation},
        worker={"timeoutSeconds": 25},
    )


def forge(attacker: Kubelet, site: Site, node_uid: str, attempts: range, exit_code: int | None) -> None:
    """Mirror pods with the names of the node's workers that ended with this code; with None, they are pending."""
    for attempt in attempts:
        name = attacker.mirror(worker_name(node_uid, attempt), site.namespace)
        if exit_code is not None:
            attacker.end(name, site.namespace, exit_code)


def take_slots(attacker: Kubelet, site: Site, count: int) -> None:
    """Pending mirror pods with the names of workers of nodes that do not exist."""
    for _ in range(count):
        forge(attacker, site, str(uuid.uuid4()), range(1, 2), None)


def released_or_gone(site: Site, history: History, name: str) -> bool:
    return not history.exists() or site.released(name)


def test_forged_mirror_pods_do_not_close_another_nodes_gate(site: Site, attacker: Kubelet, tmp_path: Path) -> None:
    """The victims are checked again by workers of their own meanwhile, under the very names that were forged."""
    names = site.join(5).names
    victims = names[:2]
    reverification: dict[str, Any] = {"reverifyIntervalSeconds": 10, "reverifyFailureThreshold": 2}
    with operating(tmp_path, site.plane.kubeconfig(), config(site, **reverification)):
        site.until("all are verified", lambda: site.released(*names))
        histories = {name: History(site.plane, name) for name in victims}
        before = {name: site.node(name).record.attempt for name in victims}
        for name, history in histories.items():
            # The controller might be starting the next worker right now: then that name is taken.
            with suppress(ApiError):
                forge(attacker, site, history.uid, range(before[name] + 1, before[name] + 2), 1)
            forge(attacker, site, history.uid, range(before[name] + 2, before[name] + 6), 1)
        later = site.join(group="later").names[0]
        site.until("the controller has seen the forged pods, and what came later", lambda: site.released(later))
        site.until(
            "the victims were checked again",
            lambda: all(
                not history.exists() or site.node(name).record.attempt > before[name] + 1
                for name, history in histories.items()
            ),
            PATIENCE,
        )
    assert [harm(site, history) for history in histories.values()] == ["", ""]


def harm(site: Site, history: History) -> str:
    """What was done to a verified node."""
    done = {
        "blamed": history.was_ever_blamed(),
        "gate closed": history.was_ever_gated(site.gate.key),
        "removed": not history.exists(),
    }
    return ", ".join(what for what, happened in done.items() if happened)


def test_pending_mirror_pods_do_not_stop_verification(site: Site, attacker: Kubelet, tmp_path: Path) -> None:
    take_slots(attacker, site, 300)
    with operating(tmp_path, site.plane.kubeconfig(), config(site, maxConcurrentVerifications=SLOTS)):
        (name,) = site.join().names
        site.until("a healthy node is verified", lambda: site.released(name), PATIENCE)


def test_pending_mirror_pods_made_later_do_not_stop_verification(site: Site, attacker: Kubelet, tmp_path: Path) -> None:
    with operating(tmp_path, site.plane.kubeconfig(), config(site, maxConcurrentVerifications=SLOTS)):
        first = site.join(group="first").names[0]
        site.until("a node is verified", lambda: site.released(first))
        take_slots(attacker, site, 2 * SLOTS)
        second = site.join(group="second").names[0]
        site.until("another one, too", lambda: site.released(second), PATIENCE)


def test_nodes_that_are_deleted_give_their_slots_back(site: Site, tmp_path: Path) -> None:
    """Their workers are still there, or are being deleted (D8)."""
    settings = config(site, management={}, maxConcurrentVerifications=SLOTS)
    with operating(tmp_path, site.plane.kubeconfig(), settings):
        hanging = site.join(SLOTS, group="hanging", verdict=lab.HANGS).names
        site.until("all slots are in use", lambda: {worker.node_name for worker in site.workers()} == set(hanging))
        (name,) = site.join(group="new").names
        time.sleep(2)
        assert not site.released(name), "no slot is free"
        for node in hanging:
            site.plane.client.delete(Node, node)
        site.until("a new node is verified", lambda: site.released(name), 10)


def test_forged_mirror_pods_do_not_remove_a_new_node(site: Site, attacker: Kubelet, tmp_path: Path) -> None:
    take_slots(attacker, site, 2 * SLOTS)
    (victim,), others = site.join(group="victim").names, site.join(3, group="others").names
    history = History(site.plane, victim)
    forge(attacker, site, history.uid, range(1, 6), 1)
    with operating(tmp_path, site.plane.kubeconfig(), config(site, maxConcurrentVerifications=SLOTS)):
        site.until("it is verified", lambda: released_or_gone(site, history, victim), PATIENCE)
        assert history.exists(), "it was removed, and was never checked"
        site.until("the others are verified", lambda: site.released(*others), PATIENCE)
    assert not history.was_ever_blamed(), history.records()
    assert "VerificationFailed" not in {event.reason for event in site.events(victim)}


@pytest.mark.parametrize("exit_code", [None, 1], ids=["pending", "failed"])
def test_a_node_whose_workers_name_is_taken_is_verified_by_a_worker_of_its_own(
    site: Site, attacker: Kubelet, tmp_path: Path, exit_code: int | None
) -> None:
    """The attacker is faster than the controller: here the controller starts when the pod is there."""
    (victim,) = site.join().names
    history = History(site.plane, victim)
    forge(attacker, site, history.uid, range(1, 2), exit_code)
    with operating(tmp_path, site.plane.kubeconfig(), config(site, management={})):
        site.until("it is verified", lambda: site.released(victim), PATIENCE)
    assert [pod for pod in site.pods_ever() if history.uid in pod], "a worker of its own ran"
    assert history.records()[-1]["outcome"] == "passed"
    assert not history.was_ever_blamed(), history.records()


def test_a_name_that_a_finalizer_keeps_does_not_strand_a_node(
    site: Site, attacker: Kubelet, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The pod cannot be deleted, so the name of the first attempt stays taken. The next one has another name."""
    (victim,) = site.join().names
    history = History(site.plane, victim)
    name = attacker.mirror(worker_name(history.uid, 1), site.namespace, finalizers=["example.com/hold"])
    request.addfinalizer(lambda: site.kubectl("patch", "pod", name, "--type=merge", "--patch", NO_FINALIZERS))
    with operating(tmp_path, site.plane.kubeconfig(), config(site, management={})):
        site.until("it is verified", lambda: site.released(victim), PATIENCE)
    assert history.records()[-1]["attempt"] == 2
    assert not history.was_ever_blamed(), history.records()
    assert any("cannot be deleted" in str(event.message) for event in site.events(victim))


def test_a_forged_success_does_not_open_another_nodes_gate(site: Site, attacker: Kubelet, tmp_path: Path) -> None:
    (victim,) = site.join(verdict=lab.fails("dns: no answer")).names
    history = History(site.plane, victim)
    forge(attacker, site, history.uid, range(1, 4), 0)
    with operating(tmp_path, site.plane.kubeconfig(), config(site, management={})):
        site.until("a worker of its own has failed", lambda: failed_checks(history), PATIENCE)
    assert not history.was_ever_open(site.gate.key)


def failed_checks(history: History) -> bool:
    return any(record.get("cause") == "checks" for record in history.records())
