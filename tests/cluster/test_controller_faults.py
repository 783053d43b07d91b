"""The controller among rivals, vandals and bad connections, on a real API server."""

import itertools
import json
import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web
from lightkube.core.exceptions import ApiError
from lightkube.models.core_v1 import Taint
from lightkube.resources.core_v1 import Node as NodeObject

import lab
from kube_node_ready.api.record import Outcome
from tests.support.controller_process import Operator, operating
from tests.support.faulty_proxy import Cuts, Fault, Plan, Says
from tests.support.site import Site, bad_route


@pytest.fixture
def site(plane: lab.Plane, namespace: str) -> Iterator[Site]:
    mine = Site(plane, namespace)
    yield mine
    mine.leave()


class Rival(threading.Thread):
    """Rewrites a node's whole list of taints as fast as it can, in another order each time.

    It is careful itself (it never overwrites what it has not read), so a taint of its own that is missing was taken by
    another client. With `gate`, it puts that one back too, on every third round.
    """

    def __init__(self, site: Site, name: str, *, gate: lab.Taint | None = None) -> None:
        super().__init__()
        self.robbed: list[str] = []
        self.rounds = 0
        self._site, self._name, self._gate = site, name, gate
        self._leaving = threading.Event()
        self._mine: dict[str, str] = {}

    def run(self) -> None:
        while not self._leaving.is_set():
            with suppress(ApiError):  # someone else wrote since it read
                self._rewrite()

    def stop(self) -> None:
        self._leaving.set()
        self.join()

    def _rewrite(self) -> None:
        node = self._site.plane.client.get(NodeObject, self._name)
        assert node.spec
        there = node.spec.taints or []
        found = {taint.key: str(taint.value) for taint in there if taint.key.startswith("rival/")}
        if found != self._mine:
            self.robbed.append(f"round {self.rounds}: {self._mine} became {found}")
        mine = {f"rival/{letter}": str(self.rounds) for letter in random.sample("abcdef", 3)}
        listed = [taint for taint in there if not taint.key.startswith("rival/")]
        listed += [Taint(key=key, value=value, effect="PreferNoSchedule") for key, value in mine.items()]
        gate = self._gate
        if gate and self.rounds % 3 == 0 and gate.key not in [taint.key for taint in listed]:
            listed.append(Taint(key=gate.key, value=gate.value, effect=gate.effect))
        random.shuffle(listed)
        node.spec.taints = listed
        self._site.plane.client.replace(node)
        self._mine, self.rounds = mine, self.rounds + 1


def test_foreign_taints_survive_a_client_that_rewrites_taints(site: Site, tmp_path: Path) -> None:
    names = site.join(3).names
    rivals = [Rival(site, name) for name in names]
    for rival in rivals:
        rival.start()
    try:
        site.until("every rival writes", lambda: all(rival.rounds > 20 for rival in rivals))
        with operating(tmp_path, site.plane.kubeconfig(), site.config()):
            before = [rival.rounds for rival in rivals]
            site.until("released all the same", lambda: site.released(*names))
            after = [rival.rounds for rival in rivals]
    finally:
        for rival in rivals:
            rival.stop()
    assert all(now > then for now, then in zip(after, before, strict=True)), "a rival stopped before the release"
    assert [rival.robbed for rival in rivals] == [[]] * 3
    assert {site.node(name).record.attempt for name in names} == {1}


def test_a_gate_opens_after_another_client_stops_closing_it(site: Site, tmp_path: Path) -> None:
    (name,) = site.join().names
    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        site.until("released", lambda: site.released(name))
        rival = Rival(site, name, gate=site.gate)
        rival.start()
        try:
            site.until("the rival has been busy", lambda: rival.rounds > 60)
        finally:
            rival.stop()
        site.until("the gate is open", lambda: not site.policy.is_gated(site.node(name)))
    assert not rival.robbed
    node = site.node(name)
    assert node.labelled
    assert node.record.attempt > 1, "a gate that comes back needs a new proof"
    assert node.record.outcome is Outcome.PASSED


def unlabel(site: Site, pod: str) -> None:
    site.kubectl("label", "pod", pod, "app-")


def change_image(site: Site, pod: str) -> None:
    site.kubectl("set", "image", f"pod/{pod}", "worker=example.com/says-yes:1")


def test_an_edited_worker_is_not_a_proof(site: Site, tmp_path: Path) -> None:
    nodes = site.join(verdict=lab.passes(seconds=8))
    (name,) = nodes.names
    with operating(tmp_path, site.plane.kubeconfig(), site.config(worker={"timeoutSeconds": 60})):
        site.until("a worker runs", lambda: [worker for worker in site.workers() if worker.node_name])
        change_image(site, site.workers()[0].name)
        nodes.decide(lab.PASSES)
        site.until("the attempt failed", lambda: [e for e in site.events(name) if e.reason == "VerificationFailed"])
        site.until("the next one counts", lambda: site.released(name))
    assert site.node(name).record.attempt == 2
    (failure,) = [event for event in site.events(name) if event.reason == "VerificationFailed"]
    assert "was changed while it ran, by another client" in str(failure.message)


def test_a_worker_without_labels_is_replaced(site: Site, tmp_path: Path) -> None:
    nodes = site.join(verdict=lab.HANGS)
    (name,) = nodes.names
    rare = site.config(reconciliation={"intervalSeconds": 300})
    with operating(tmp_path, site.plane.kubeconfig(), rare) as operator:
        site.until("a worker", site.workers)
        (first,) = site.workers()
        # Slowly, so that the first one is still there when it loses its labels.
        nodes.decide(lab.passes(seconds=5))
        unlabel(site, first.name)
        site.until("released, and not only at the next resync", lambda: site.released(name), 240)
        site.until("nothing is left", lambda: not site.workers())
        assert operator.logged("Unusable worker pod deleted", pod=first.name)
    assert site.node(name).record.attempt == 1


HOSTILE = {
    "empty": "",
    "garbage": "\x1b[2J\x07}{ not JSON at all \\ {{ .spec }} \u202egnp.exe",
    "huge": "A" * 100_000,
    "deep": "[" * 5000,
    "binary": "".join(map(chr, (*range(32), *range(160, 256)))),
    "another-shape": json.dumps({"v": 1, "checks": {"dns": True}, "error": ["x"]}),
    "a-lie": json.dumps({"v": 1, "checks": [{"name": "dns", "ok": True}], "node": "another"}),
    "many": json.dumps({"v": 1, "checks": [{"name": f"c{n}", "ok": False, "error": "é\n" * 9} for n in range(30)]}),
    "numbers": '{"v":1,"checks":[{"name":"dns","ok":false,"ms":1e300},{"name":"api","ok":false,"ms":-5}]}',
}


def test_an_invalid_report_loses_details_but_not_the_verdict(site: Site, tmp_path: Path) -> None:
    failing = {
        kind: site.join(verdict=lab.fails(output), group=f"f-{kind}").names[0] for kind, output in HOSTILE.items()
    }
    passing = {
        kind: site.join(verdict=lab.passes(output), group=f"p-{kind}").names[0] for kind, output in HOSTILE.items()
    }
    with operating(tmp_path, site.plane.kubeconfig(), site.config()) as operator:
        site.until("the good are released", lambda: site.released(*passing.values()))
        site.until("the bad failed", lambda: all(site.node(name).record.failures for name in failing.values()))
        page = operator.ask("/metrics")
    for kind, name in failing.items():
        output = site.condition(name)["message"]
        assert not site.node(name).labelled
        assert output.isprintable(), kind
        assert len(output) < 600, kind
        assert output.startswith(("the worker exited with code 1", "dns: failed", "c0: é")), kind
        for event in site.events(name):
            assert str(event.message).isprintable()
    assert 'check="c0"' not in page, "a report cannot make up series"
    assert 'check="other"' in page


def test_a_node_with_an_invalid_record_starts_over(site: Site, tmp_path: Path) -> None:
    nonsense = ["}{", "", '{"attempt":-3,"failures":7}', '{"attempt":1,"outcome":"maybe"}', "[" * 9000]
    names = site.join(len(nonsense)).names
    for name, record in zip(names, nonsense, strict=True):
        site.kubectl("annotate", "node", name, f"node-ready/verification={record}")
    with operating(tmp_path, site.plane.kubeconfig(), site.config()):
        site.until("released", lambda: site.released(*names))
    assert {site.node(name).record.attempt for name in names} == {1}


def now_and_then(*faults: Fault, seed: int = 7) -> Plan:
    """Every fourth request meets one of these; which, is the same in every run for the same order of requests."""
    dice = random.Random(seed)  # noqa: S311  a test's
    return lambda _: dice.choice(faults) if dice.random() < 1 / 4 else None


def test_intermittent_request_failures_only_cause_delays(site: Site, tmp_path: Path) -> None:
    """Throttled, refused by a load balancer, cut before the server heard of it, and after it did what was asked."""
    good, bad = site.join(10).names, site.join(3, verdict=lab.fails(), group="bad")
    faults = (Says(429, b"later", {"Retry-After": "1"}), Says(500), Says(503, b"<html>"), Cuts(), Cuts(after=0))
    with bad_route(site.plane.kubeconfig(), tmp_path) as route:
        route.proxy.plan = now_and_then(*faults)
        with operating(tmp_path, route.kubeconfig, site.config()):
            site.until("the good are released", lambda: site.released(*good))
            site.until("the bad failed", lambda: all(site.node(name).record.failures for name in bad.names))
            bad.decide(lab.PASSES)
            site.until("and recovered", lambda: site.released(*bad.names))
            site.until("no worker is left", lambda: not site.workers())
    made = site.pods_ever()
    assert len(made) == len(set(made)), f"an attempt was made twice: {made}"
    assert {site.node(name).record.attempt for name in good} == {1}


def test_interrupted_and_expired_watches_lose_no_node(site: Site, tmp_path: Path) -> None:
    gone = json.dumps({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}).encode()
    faults = itertools.cycle([Says(410, gone), Cuts(after=400), Says(200), Cuts(), None])

    def on_watches(request: web.Request) -> Fault | None:
        return next(faults) if "watch" in request.query else None

    with bad_route(site.plane.kubeconfig(), tmp_path) as route:
        with operating(tmp_path, route.kubeconfig, site.config()):
            route.proxy.plan = on_watches
            for number in range(3):
                route.cut()
                (name,) = site.join(group=str(number)).names
                site.until("released", partial(site.released, name))
        watches = sum("watch=1" in asked for asked in route.proxy.asked)
    assert watches > 6


def test_a_response_that_is_not_from_kubernetes_delays_only_one_node(site: Site, tmp_path: Path) -> None:
    """A captive portal, say: 200, and a page to log in."""
    names = site.join(3).names
    portal = iter([Says(200, b"<html>please log in</html>")] * 4)

    def on_writes(request: web.Request) -> Fault | None:
        return next(portal, None) if request.method in ("POST", "PATCH") else None

    with bad_route(site.plane.kubeconfig(), tmp_path) as route:
        route.proxy.plan = on_writes
        with operating(tmp_path, route.kubeconfig, site.config()) as operator:
            site.until("released", lambda: site.released(*names))
            assert failed_looks(operator) >= 3
            assert operator.process.poll() is None
    assert {site.node(name).record.attempt for name in names} == {1}


def failed_looks(operator: Operator) -> float:
    name = "kube_node_ready_controller_reconcile_errors_total"
    (line,) = [line for line in operator.ask("/metrics").splitlines() if line.startswith(f"{name} ")]
    return float(line.partition(" ")[2])
