"""Texts and numbers of a kubelet that would control a terminal, or stop the command line.

A kubelet can write any annotation, boot ID and Event of its own Node. The command line prints them.
"""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.core_v1 import Event
from lightkube.resources.core_v1 import Node as NodeObject
from lightkube.types import PatchType

from kube_node_ready.agent.api import Api
from kube_node_ready.api.contract import RECORD_ANNOTATION
from kube_node_ready.api.paths import object_path
from kube_node_ready.checks import kubeconfig
from kube_node_ready.commands import COMPLETE
from kube_node_ready.verification import events
from tests.attacks.kubelet import Kubelet, kubelets, short_name, worker_name
from tests.support.cli import PROGRAM, Console, install, run
from tests.support.controller_process import operating
from tests.support.site import Site

ESCAPES = "\x1b]0;PWNED\x07\x1b[2J\x9b31m\x7f\r\u202e\u2066\u200b\u2028\u0085\U000e0041"
AT = "2026-01-01T00:00:00Z"
COMMANDS = (
    ("status",),
    ("status", "NODE"),
    ("status", "--output=wide"),
    ("status", "--group-by=pool", "--sort-by=pool"),
    ("status", "--group-by=zone"),
    ("status", "--output=json"),
    ("status", "--output=yaml"),
    ("status", "--watch", "--timeout=1s"),
    ("explain", "NODE"),
    ("pause", "NODE"),
    ("resume", "NODE"),
    ("verify", "NODE"),
)


def record(**fields: Any) -> str:  # noqa: ANN401  as in JSON
    check = {"name": f"{ESCAPES}dns", "ok": False, "ms": 3, "target": ESCAPES, "error": ESCAPES}
    whole = {
        "attempt": 2,
        "failures": 2,
        "outcome": "failed",
        "at": AT,
        "since": AT,
        "cause": "checks",
        "boot": f"boot{ESCAPES}",
        "reason": f"a reason{ESCAPES}",
        "checks": [check, {"name": "dns", "ok": False}],
    }
    return json.dumps({**whole, **fields})


def hostile(kubelet: Kubelet, site: Site, **fields: Any) -> None:  # noqa: ANN401  as in JSON
    """Register with such a record, boot ID and Event."""
    annotations = {RECORD_ANNOTATION: record(**fields)}
    kubelet.register(labels={"site": site.namespace}, annotations=annotations, taints=[site.gate])
    boot = {"status": {"nodeInfo": {"bootID": f"boot{ESCAPES}"}}}
    kubelet.client.patch(NodeObject.Status, kubelet.node, boot, patch_type=PatchType.MERGE)
    event = {
        "metadata": {"name": f"{kubelet.node}.1", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": kubelet.node, "uid": kubelet.uid},
        "reason": f"Reason{ESCAPES}",
        "message": f"message{ESCAPES}",
        "type": "Normal",
        "source": {"component": f"kubelet{ESCAPES}"},
    }
    made = Event.from_dict(event)
    assert isinstance(made, Event)
    kubelet.client.create(made)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_text_of_a_kubelet_controls_the_terminal(site: Site, words: tuple[str, ...]) -> None:
    install(site, site.config())
    with kubelets(site.plane, short_name("attacker", site.namespace)) as (kubelet,):
        hostile(kubelet, site)
        verb, *others = (kubelet.node if word == "NODE" else word for word in words)
        done = Console(site).ask(verb, *others)
    assert kubelet.node in done.stdout or verb in ("pause", "resume")
    for stream in (done.stdout, done.stderr):
        assert all(line.isprintable() for line in stream.split("\n")), ascii(stream)
    assert done.returncode in (0, 1), done.stderr


def test_completion_offers_plain_names(site: Site) -> None:
    with kubelets(site.plane, short_name("attacker", site.namespace)) as (kubelet,):
        hostile(kubelet, site)
        console = Console(site)
        kubeconfig = f"--kubeconfig={console.kubeconfig}"
        done = run(str(PROGRAM), COMPLETE, "explain", kubeconfig, kubelet.node[:4])
    assert kubelet.node in done.stdout.splitlines()
    assert all(line.isprintable() for line in done.stdout.split("\n")), ascii(done.stdout)


@pytest.mark.parametrize(
    "fields",
    [
        {"seconds": 1e300, "outcome": "passed", "failures": 0},
        {"at": "0001-01-01T00:00:00+14:00", "since": "9999-12-31T23:59:59-14:00"},
        {"attempt": 10**30, "failures": 10**29},
        {"checks": [{"name": "dns", "ok": True, "ms": 10**40}]},
    ],
    ids=["seconds", "times", "attempts", "milliseconds"],
)
def test_a_hostile_record_stops_neither_the_command_line_nor_the_controller(
    site: Site, tmp_path: Path, fields: dict[str, Any]
) -> None:
    config = site.config(reconciliation={"reverifyIntervalSeconds": 3600})
    install(site, config)
    console = Console(site)
    with kubelets(site.plane, short_name("attacker", site.namespace)) as (kubelet,):
        hostile(kubelet, site, **fields)
        site.plane.client.patch(NodeObject, kubelet.node, {"metadata": {"labels": {"node-ready/verified": "true"}}})
        site.plane.client.patch(NodeObject, kubelet.node, {"spec": {"taints": None}})
        nodes = site.join(1)
        with operating(tmp_path, site.plane.kubeconfig(), config) as operator:
            site.until("another node is verified", lambda: site.released(*nodes.names))
            assert "OverflowError" not in operator.output()
        assert {each["name"] for each in console.status()} >= {kubelet.node, *nodes.names}
        for words in (("status",), ("explain", kubelet.node)):
            done = console.ask(*words)
            assert done.returncode in (0, 1), done.stderr


YEAR_10000 = "9999-12-31T23:59:59.000000-14:00"
"""In UTC, as the API server stores it. It accepts the time, and Python has no such year."""


def create(credentials: Path, path: str, body: dict[str, Any]) -> None:
    """As JSON: the client's models have no such times either."""
    Api(lambda: kubeconfig.load(credentials)).create(path, json.dumps(body).encode())


def write_event(site: Site, kubelet: Kubelet, node: str, name: str, **fields: str) -> None:
    """With the kubelet's credentials, about any node."""
    event = {
        "metadata": {"name": f"{node}.{name}", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node},
        **fields,
    }
    create(site.plane.kubelet_kubeconfig(kubelet.node), events.PATH, event)


@pytest.fixture
def hostile_kubelet(site: Site) -> Iterator[Kubelet]:
    with kubelets(site.plane, short_name("attacker", site.namespace)) as (kubelet,):
        kubelet.register()
        yield kubelet


def test_unreadable_events_hide_no_other_output(site: Site, hostile_kubelet: Kubelet) -> None:
    """A kubelet can write them about every node."""
    install(site, site.config())
    (victim,) = site.join().names
    write_event(site, hostile_kubelet, victim, "a", lastTimestamp=YEAR_10000)
    reporter = {"reportingComponent": "a", "reportingInstance": "a", "action": "a", "reason": "a"}
    write_event(site, hostile_kubelet, victim, "b", eventTime=YEAR_10000, **reporter)
    write_event(site, hostile_kubelet, victim, "c", lastTimestamp="0000-01-01T00:00:00Z")
    write_event(site, hostile_kubelet, victim, "d", reason="Readable", lastTimestamp=AT)
    done = Console(site).ask("explain", victim)
    assert done.returncode in (0, 1), done.stderr
    assert "Readable" in done.stdout
    assert "note: Events that could not be read: 3\n" in done.stderr


def test_many_events_are_read_in_pages(site: Site, hostile_kubelet: Kubelet) -> None:
    install(site, site.config())
    (victim,) = site.join().names
    for number in range(101):
        write_event(site, hostile_kubelet, victim, f"{number:03}", reason=f"Reason{number}", lastTimestamp=AT)
    assert "Reason100" in Console(site).ask("explain", victim).stdout


def test_too_many_events_do_not_interrupt_explain(site: Site, hostile_kubelet: Kubelet) -> None:
    install(site, site.config())
    (victim,) = site.join().names
    try:
        for number in range(48):  # 69 MB, and 64 MiB are read of one answer
            write_event(site, hostile_kubelet, victim, f"{number}", message="x" * 1_450_000)
        done = Console(site).ask("explain", victim)
    finally:
        site.plane.kubectl("delete", "events", f"--field-selector=involvedObject.name={victim}")
    assert done.returncode in (0, 1), done.stderr
    assert victim in done.stdout
    assert "note: cannot list Events: " in done.stderr


def test_a_worker_that_started_in_no_possible_year_hides_nothing(site: Site, hostile_kubelet: Kubelet) -> None:
    """Its kubelet writes when it started. A mirror pod stands for it."""
    install(site, site.config())
    (name,) = site.join().names
    worker = hostile_kubelet.mirror(worker_name(str(uuid.uuid4()), 1), site.namespace)
    started = {"containerStatuses": [{"name": "worker", "state": {"running": {"startedAt": YEAR_10000}}}]}
    path = object_path("v1", "pods", worker, namespace=site.namespace)
    body = json.dumps({"status": {"phase": "Running", **started}}).encode()
    Api(lambda: kubeconfig.load(site.plane.kubelet_kubeconfig(hostile_kubelet.node))).patch(
        f"{path}/status", body, "application/merge-patch+json"
    )
    for words in (("status",), ("explain", name), ("verify", name)):
        done = Console(site).ask(*words)
        assert done.returncode in (0, 1), done.stderr


def test_an_unreadable_lease_does_not_interrupt_explain(site: Site) -> None:
    config = site.config(leaderElection={"enabled": True, "id": "hostile", "namespace": site.namespace})
    install(site, config)
    (node,) = site.join().names
    path = object_path("coordination.k8s.io/v1", "leases", "hostile", namespace=site.namespace)
    lease = {"metadata": {"name": "hostile"}, "spec": {"holderIdentity": "a", "renewTime": YEAR_10000}}
    create(site.plane.kubeconfig(), path.removesuffix("/hostile"), lease)
    done = Console(site).ask("explain", node)
    assert done.returncode in (0, 1), done.stderr
    assert "note: cannot read the Lease: " in done.stderr
