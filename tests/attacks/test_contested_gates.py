"""Another client undoes what the controller does (D2).

The client is a policy engine or a pipeline that puts the gate back whenever it is gone. The controller must not fight
it without pause: it verifies the node again, less and less often, and shows the contest on the Node.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Node

from tests.console import Console, install
from tests.gated import Site
from tests.operator import operating

SECONDS = 12
MOST_WRITES = 45
"""Of the controller, to one Node. Without a pause there are about 40 per second."""


@contextmanager
def opponent(site: Site, name: str, *, changing: bool) -> Iterator[list[int]]:
    """Puts the gate back whenever it is gone, if `changing` with a new value each time. Counts how often."""
    stop, count = threading.Event(), [0]

    def work() -> None:
        while not stop.wait(0.02):
            node = site.plane.client.get(Node, name)
            assert node.spec
            if any(taint.key == site.gate.key for taint in node.spec.taints or []):
                continue
            count[0] += 1
            value = str(count[0]) if changing else "true"
            taints = [*(taint.to_dict() for taint in node.spec.taints or []), {**site.gate.as_dict(), "value": value}]
            with suppress(ApiError):  # the Node has changed meanwhile
                site.plane.client.patch(Node, name, {"spec": {"taints": taints}})

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("changing", [False, True], ids=["same value", "new values"])
def test_a_gate_that_comes_back_is_not_fought_without_pause(site: Site, tmp_path: Path, *, changing: bool) -> None:
    (name,) = site.join().names
    config = site.config(reconciliation={"intervalSeconds": 1})
    install(site, config)
    with (
        opponent(site, name, changing=changing) as put_back,
        operating(tmp_path, site.plane.kubeconfig(), config) as operator,
    ):
        site.until("the contest is reported", lambda: site.condition(name).get("reason") == "GateContested")
        site.until("so it is by an Event", lambda: "GateContested" in {event.reason for event in site.events(name)})
        threading.Event().wait(SECONDS)
        lines = [line for line in operator.lines() if line["msg"] == "Node verified"]
        assert len(lines) <= 6, "each is a release: at 0, 0, 2, 4, 8 s, …"
        assert put_back[0] <= 7
        metrics = operator.ask("/metrics", server=0)
    assert "kube_node_ready_gates_contested_total" in metrics
    (told,) = Console(site).told(name)
    assert told["gated"]
    assert not told["verified"]
    assert told["phase"] != "verified"


def test_a_node_that_keeps_changing_does_not_take_the_controllers_time(site: Site, tmp_path: Path) -> None:
    """Its kubelet asks for a new proof again and again. Other nodes are verified meanwhile."""
    (name,) = site.join().names
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.01):
            site.plane.client.patch(Node, name, {"metadata": {"annotations": {"node-ready/verification": None}}})
            site.plane.client.patch(Node, name, {"metadata": {"labels": {"node-ready/verified": None}}})

    with operating(tmp_path, site.plane.kubeconfig(), site.config()) as operator:
        thread = threading.Thread(target=work)
        thread.start()
        try:
            threading.Event().wait(SECONDS)
            created = sum(line["msg"] == "Creating worker pod" for line in operator.lines())
            others = site.join(3, group="others").names
            site.until("other nodes are verified", lambda: site.released(*others))
        finally:
            stop.set()
            thread.join()
    assert created <= MOST_WRITES
