"""Worker pods that another client creates or edits while the controller runs, without the admission policies.

The client can create and patch pods in the workers' namespace. Such pods must neither hold the slots of other nodes nor
strand a node.
"""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from lightkube.models.core_v1 import Container
from lightkube.resources.core_v1 import Pod

import lab
from tests.attacks.history import History
from tests.attacks.kubelet import IMAGE, WORKER_LABELS, kubelets, pod_of, worker_name
from tests.support.controller_process import Operator, operating
from tests.support.site import Site, a_site

SLOTS = 3
RETRIES = 2
PATIENCE = 60
LONG_SECONDS = 600
"""The deadline of a worker and the wait of an exhausted node: no test here lasts that long."""
MOST_DRY_RUNS = 3


@pytest.fixture(scope="module")
def shared(plane: lab.Plane) -> Iterator[Site]:
    with a_site(plane, "foreign-workers") as site:
        yield site


@pytest.fixture(scope="module")
def operator(shared: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    retries: dict[str, Any] = {"maxRetries": RETRIES, "exhaustedRetrySeconds": LONG_SECONDS}
    config = shared.config(
        worker={"timeoutSeconds": LONG_SECONDS},
        reconciliation={"intervalSeconds": 1, "maxConcurrentVerifications": SLOTS, **retries},
    )
    with operating(tmp_path_factory.mktemp("foreign"), shared.plane.kubeconfig(), config) as running:
        yield running


def unschedulable(site: Site, node: str) -> Pod:
    """A pod with the name of the node's next worker."""
    known = site.node(node)
    name = worker_name(known.uid, known.record.attempt + 1)
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": known.uid}
    metadata = {"name": name, "namespace": site.namespace, "labels": WORKER_LABELS, "ownerReferences": [owner]}
    spec = {"containers": [{"name": "worker", "image": IMAGE}], "nodeSelector": {"example.com/no": "such-node"}}
    return pod_of({"metadata": metadata, "spec": spec})


@pytest.mark.usefixtures("operator")
def test_pods_with_the_names_of_next_workers_hold_no_slots(shared: Site) -> None:
    """One pod for each of as many nodes as there are slots. None of these nodes is about to start a worker."""
    exhausted = shared.join(SLOTS, verdict=lab.fails(), group="exhausted").names

    def are_exhausted() -> bool:
        return all(shared.node(name).record.failures == RETRIES for name in exhausted)

    shared.until("these nodes are exhausted", are_exhausted, PATIENCE)
    pods = [shared.plane.client.create(unschedulable(shared, name)) for name in exhausted]
    (healthy,) = shared.join(group="healthy").names
    shared.until("a new node is verified", lambda: shared.released(healthy), PATIENCE)
    names = {str(pod.metadata.name) for pod in pods if pod.metadata}
    shared.until("the pods are deleted", lambda: not names & {worker.name for worker in shared.workers()}, PATIENCE)


@contextmanager
def stopped(operator: Operator) -> Iterator[None]:
    """The controller sees what happens in the block only after it."""
    operator.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        operator.process.send_signal(signal.SIGCONT)


def pods_created(operator: Operator) -> float:
    """By the controller, dry runs included."""
    page = operator.ask("/metrics", server=0)
    return sum(
        float(count)
        for labels, count in re.findall(r"controller_api_requests_total\{(.*)\} (\S+)", page)
        if 'verb="create"' in labels and 'resource="pods"' in labels
    )


def test_a_worker_that_was_edited_and_edited_back_does_not_strand_its_node(shared: Site, operator: Operator) -> None:
    with kubelets(shared.plane, "foreign-edited") as (kubelet,):
        kubelet.register(labels={"site": shared.namespace}, taints=[shared.gate])
        history = History(shared.plane, kubelet.node)
        pod = worker_name(kubelet.uid, 1)
        bound = lambda: pod in {worker.name for worker in shared.workers() if worker.node_name}  # noqa: E731
        shared.until("its worker is bound", bound, PATIENCE)
        image = first_container(shared.plane.client.get(Pod, pod, namespace=shared.namespace)).image
        before = pods_created(operator)
        with stopped(operator):
            for changed in (IMAGE, image):
                shared.kubectl("set", "image", f"pod/{pod}", f"worker={changed}")
            kubelet.end(pod, shared.namespace, 0)

        def is_open() -> bool:
            kubelet.run_pods(lambda _: 0)
            return shared.released(kubelet.node)

        shared.until("a later attempt has passed", is_open, PATIENCE)
        first, *_, last = history.records()
        assert (first["attempt"], first["outcome"], first["cause"]) == (1, "failed", "stopped")
        assert last["attempt"] > 1
        assert not history.was_ever_blamed()
        assert any("was changed while it ran" in str(event.message) for event in shared.events(kubelet.node))
        attempts = last["attempt"] - first["attempt"]
        assert pods_created(operator) - before <= attempts + MOST_DRY_RUNS


def first_container(pod: Pod) -> Container:
    assert pod.spec
    return pod.spec.containers[0]
