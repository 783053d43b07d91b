"""Later rounds of continuous DaemonSet mode on real nodes: what they ask the API server, and which faults they notice.

Most of these rounds leave checks out. Every fault of the network that the lab can inject is noticed nevertheless.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from lightkube.resources.core_v1 import Pod

import lab
from demo import image as release_image
from lab import faults
from tests import specification
from tests.support.chart_cluster import NAMESPACE, Guarded, guarded, name_of

NODES = ("a", "b")
ROUNDS = 25
MOST_PER_ROUND = specification.most_calls_per_round()
WITHIN_ROUNDS = 3
NOWHERE = "192.0.2.53"
"""An address at which no DNS server answers."""
VALUES: dict[str, Any] = {
    "deploymentMode": "daemonset",
    "image": {"repository": release_image.REPOSITORY},
    "config": {"maxRetries": 20, "retryBackoff": "linear", "logLevel": "debug"},
    "daemonset": {"mode": "continuous", "config": {"checkInterval": "2s", "failureThreshold": 3}},
}
COUNTED: dict[str, Callable[[lab.Node], faults.Fault]] = {
    "dns": lambda node: node.break_dns(),
    "loss": lambda node: node.lose_dns(0.3),
    "redirection": lambda node: node.redirect_dns(0.3, NOWHERE, 53),
}
"""The Node can be read meanwhile, so these close the gate."""
SENDS_DNS = {"dns", "network"}
"""A fault that hits some packets only is noticed first by whichever check sent the first that is lost."""
CUT_OFF: dict[str, Callable[[lab.Node], faults.Fault]] = {
    "api": lambda node: node.break_api(),
    "mtu": lambda node: node.drop_mtu(),
    "cable": lambda node: node.cut(),
}
"""The Node cannot be read, so these close no gate: the API server could be at fault."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(tmp_path_factory.mktemp("helm"), "daemonset/kube-node-ready") as made:
        made.release.install(VALUES)
        made.until("the gates are open", lambda: made.is_released(*NODES))
        yield made


@pytest.fixture
def settled(site: Guarded) -> Iterator[Guarded]:
    """Nodes whose rounds leave checks out."""
    for node in NODES:
        site.until("a later round", lambda node=node: is_later_round(rounds(site, node)[-1]))  # type: ignore[misc]
    yield site
    site.settle(*NODES)


Line = dict[str, Any]
Round = list[Line]


def rounds(site: Guarded, node: str) -> list[Round]:
    """The log of the node's pod, by round, without the one that is under way."""
    (pod,) = [pod for pod in site.guards() if pod.spec and pod.spec.nodeName == node]
    found: list[Round] = [[]]
    for text in log_of(site, pod):
        line = json.loads(text)
        if line["msg"] == "Verification started":
            found.append([])
        found[-1].append(line)
    return [one for one in found if {"total_duration"} <= {key for line in one for key in line}]


def log_of(site: Guarded, pod: Pod) -> list[str]:
    text = site.plane.kubectl("logs", name_of(pod), f"--namespace={NAMESPACE}")
    return [line for line in text.splitlines() if line.startswith("{")]


def is_later_round(one: Round) -> bool:
    return any(line["msg"] == "Checks passed, some omitted" for line in one)


def failed(one: Round) -> list[str]:
    return [name for line in one if line["msg"] == "Checks failed" for name in line["failed"]]


def now() -> str:
    """As in the log."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def noticed(site: Guarded, node: str, since: str) -> list[Round]:
    """The rounds that began after this second, up to the first that failed. Empty if none did yet.

    By time, because a count would include rounds that passed before the fault: the log takes a while to read. The round
    that was under way is left out: some of its checks had passed before the fault.
    """
    begun = [one for one in rounds(site, node) if one[0]["timestamp"] > since]
    at = next((number for number, one in enumerate(begun) if failed(one)), None)
    return begun[: at + 1] if at is not None else []


def test_a_round_asks_the_api_server_at_most_twice(settled: Guarded) -> None:
    """With the default checks. The limit is an average: of ten rounds, one runs all checks."""
    before = {node: len(rounds(settled, node)) for node in NODES}
    with settled.plane.audit.window() as calls:
        settled.until("many rounds", lambda: all(len(rounds(settled, node)) >= before[node] + ROUNDS for node in NODES))
    counted = sum(len(rounds(settled, node)) - before[node] for node in NODES)
    made = sum(calls.count(agent=agent) for agent in ("kube-node-ready", "kube-node-ready-worker"))
    assert made / counted <= MOST_PER_ROUND, f"{made} calls in {counted} rounds: {calls.by_kind}"
    assert calls.count(resource="/openapi/v2") >= len(NODES), "all checks run now and then"


@pytest.mark.parametrize("fault", COUNTED)
def test_a_fault_closes_the_gate(settled: Guarded, fault: str) -> None:
    with COUNTED[fault](settled.plane.nodes["b"]):
        since = now()
        settled.until("the gate is closed", lambda: settled.is_gated("b"))
        found = noticed(settled, "b", since)
        assert 0 < len(found) <= WITHIN_ROUNDS
        assert settled.is_released("a")
    assert set(failed(found[-1])) <= SENDS_DNS, "and no other check is blamed"


@pytest.mark.parametrize("fault", CUT_OFF)
def test_a_disconnected_node_keeps_its_gate_open(settled: Guarded, fault: str) -> None:
    closed = settled.event_messages("b", "GateRestored")
    with CUT_OFF[fault](settled.plane.nodes["b"]):
        since = now()
        if fault == "cable":  # its log cannot be read meanwhile
            settled.until("the kubelet is missed", lambda: not is_ready(settled, "b"))
        else:
            settled.until("it is noticed", lambda: noticed(settled, "b", since))
    found = settled.until("its log can be read", lambda: noticed(settled, "b", since))
    assert len(found) <= WITHIN_ROUNDS
    assert set(failed(found[-1])) & {"api", "payload"}
    assert settled.event_messages("b", "GateRestored") == closed
    assert settled.is_released("b")


def is_ready(site: Guarded, node: str) -> bool:
    path = '{.status.conditions[?(@.type=="Ready")].status}'
    return site.plane.kubectl("get", "node", node, f"--output=jsonpath={path}") == "True"
