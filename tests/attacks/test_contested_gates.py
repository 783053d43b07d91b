"""Another client undoes what the controller does (D2).

The client is a policy engine or a pipeline that puts the gate back whenever it is gone. The controller must not fight
it without pause: it verifies the node again, less and less often, and shows the contest on the Node.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Node

from tests.attacks.history import RECORD
from tests.attacks.kubelet import passed_record
from tests.support.cli import Console, install
from tests.support.controller_process import Operator, operating
from tests.support.site import Site

LABEL = "node-ready/verified"
SECONDS = 12
MOST_WRITES = 80
"""A burst of 30 writes, two per second, and those of the last reconcile."""


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
def test_the_release_of_a_gate_that_returns_backs_off(site: Site, tmp_path: Path, *, changing: bool) -> None:
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
    (contested,) = re.findall(r"^kube_node_ready_gates_contested_total (\S+)$", metrics, re.MULTILINE)
    assert float(contested) > 0
    (reported,) = Console(site).status(name)
    assert reported["gated"]
    assert not reported["verified"]
    assert reported["phase"] != "verified"


def test_a_node_that_keeps_changing_does_not_occupy_the_controller(site: Site, tmp_path: Path) -> None:
    """Its kubelet undoes each write to it. Other nodes are verified meanwhile."""
    (name,) = site.join().names
    stop = threading.Event()

    def work() -> None:
        forget = {"annotations": {RECORD: None}, "labels": {LABEL: None}}
        claim = {"annotations": {RECORD: passed_record(datetime.now(UTC).isoformat())}, "labels": {LABEL: "true"}}
        while not stop.wait(0.01):
            site.plane.client.patch(Node, name, {"metadata": forget})
            site.plane.client.patch(Node, name, {"metadata": claim})

    with operating(tmp_path, site.plane.kubeconfig(), site.config()) as operator:
        thread = threading.Thread(target=work)
        thread.start()
        try:
            threading.Event().wait(SECONDS)
            written = writes(operator)
            others = site.join(3, group="others").names
            site.until("other nodes are verified", lambda: site.released(*others))
        finally:
            stop.set()
            thread.join()
    assert written <= MOST_WRITES


def writes(operator: Operator) -> float:
    """Requests of the controller that change something."""
    page = operator.ask("/metrics", server=0)
    found = re.findall(r'controller_api_requests_total\{.*verb="(\w+)"\} (\S+)', page)
    return sum(float(count) for verb, count in found if verb not in ("get", "list", "watch"))
