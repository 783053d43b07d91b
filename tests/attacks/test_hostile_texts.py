"""Texts and numbers of a kubelet that are to command a terminal, or to stop the command line (L1 and L2 of the review).

A kubelet can write any annotation, boot ID and Event of its own Node. Whoever looks at the fleet prints them.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.core_v1 import Event
from lightkube.resources.core_v1 import Node as NodeObject
from lightkube.types import PatchType

from kube_node_ready.verify.patches import ANNOTATION
from tests.attacks.kubelet import Kubelet, kubelets, short_name
from tests.console import Console, install, run
from tests.gated import Site
from tests.operator import operating

ESCAPES = "\x1b]0;PWNED\x07\x1b[2J\x9b31m\x7f\r\u202e\u2066\u200b\u2028\u0085\U000e0041"
AT = "2026-01-01T00:00:00Z"
COMMANDS = (
    ("status",),
    ("status", "NODE"),
    ("status", "--output=wide"),
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
    annotations = {ANNOTATION: record(**fields)}
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
def test_nothing_of_a_kubelet_commands_the_terminal(site: Site, words: tuple[str, ...]) -> None:
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
        command = console.command("__complete", "explain", kubelet.node[:4])
        done = run(command[0], "__complete", f"--kubeconfig={console.kubeconfig}", "explain", kubelet.node[:4])
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
def test_one_record_stops_neither_the_command_line_nor_the_controller(
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
        assert {each["name"] for each in console.told()} >= {kubelet.node, *nodes.names}
        for words in (("status",), ("explain", kubelet.node)):
            done = console.ask(*words)
            assert done.returncode in (0, 1), done.stderr
