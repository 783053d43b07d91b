"""DaemonSet mode as a process with the chart's settings, rights and admission policy, on a real API server."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from lightkube.resources.core_v1 import Event, NodeStatus
from lightkube.resources.core_v1 import Node as NodeObject
from lightkube.types import PatchType

import lab
from kube_node_ready.agent.node_client import COMPONENT
from kube_node_ready.api import objects
from kube_node_ready.api.contract import CONDITION
from kube_node_ready.verification.model import Gate, Node, Policy
from kube_node_ready.verification.node_reader import read_node
from lab import waiting
from tests.support.agent_model import Target, value_of
from tests.support.chart_release import Release
from tests.support.check_servers import LOOPBACK
from tests.support.controller_process import Operator, taints
from tests.support.relay import Relay
from tests.support.scenarios.agent import GATE, LABEL
from tests.support.shell import ROOT

VALUES = {
    "deploymentMode": "daemonset",
    # There is no cluster DNS without real nodes.
    "worker": {"config": {"services": ["default/kubernetes"], "dnsService": "", "dnsTestDomains": ["localhost"]}},
}
POLICY = Policy((Gate(GATE["key"], GATE["effect"]),))
PATIENCE = 180
_PROGRAM = """
import os, sys
from kube_node_ready.agent import main as process
sys.exit(process.run(sys.argv[2:], os.environ, folder=sys.argv[1]))
"""
_API_FAILURES = 'node_check_failures_total{check="api"}'
_COMPLETED = "node_check_completion_timestamp"
_LATE = {"key": "example.com/late", "effect": "NoSchedule"}
# The cluster's own, which come and go as the simulated kubelet finds the time.
_OF_THE_CLUSTER = "node.kubernetes.io/"


class Real:
    """A World: a simulated node, a pod of the chart's DaemonSet on it, and the process that would run in it."""

    def __init__(self, release: Release, prefix: str, relay: Relay, folder: Path) -> None:
        self.name = f"{prefix}-0"
        self.target = Target()
        self._release = release
        self._plane = release.plane
        self._client = release.plane.client
        self._prefix = prefix
        self._relay = relay
        self._folder = folder
        self._command: list[str] = []
        self.pod = ""
        self._runs: list[Operator] = []
        self._lost: list[str] = []

    def join(self, *listed: dict[str, str], labels: dict[str, str]) -> None:
        self._plane.simulated_nodes(1, prefix=self._prefix, taints=taints(*listed), labels=labels)
        self.pod = self._release.put_pod(self.name)

    def start(self, *words: str) -> None:
        mounted = self._folder / "serviceaccount"
        self._release.mount(mounted, pod=self.pod)
        (mounted / "ca.crt").write_bytes(self._relay.authority.certificate.read_bytes())
        target = f"--network-targets={LOOPBACK}:{self.target.port}"
        self._command = command(mounted, target, "--metrics-port=0", *words)
        self._begin()

    def restart(self) -> None:
        """As if the node had lost power for a moment."""
        self._runs[-1].kill()
        self._begin()

    def _begin(self) -> None:
        log = self._folder / f"daemonset-{len(self._runs)}.log"
        environment = environment_of(
            self._release, (LOOPBACK, self._relay.port), NODE_NAME=self.name, POD_NAME=self.pod
        )
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
        self._runs.append(Operator(process, log))
        self.until("it serves", lambda: self._runs[-1].ask("/healthz"))

    def break_network(self) -> None:
        self.target.close()

    def heal_network(self) -> None:
        self.target.open()

    def unlabel(self) -> None:
        self.write({"metadata": {"labels": {LABEL: None}}})

    def label(self) -> None:
        self.write({"metadata": {"labels": {LABEL: "true"}}})

    def add_taint(self, taint: dict[str, str]) -> None:
        self._write_json({"op": "add", "path": "/spec/taints/-", "value": taint})

    def write(self, patch: dict[str, Any]) -> None:
        """As another client."""
        self._client.patch(NodeObject, self.name, patch, patch_type=PatchType.MERGE)

    def write_condition(self, condition: dict[str, Any]) -> None:
        body = {"status": {"conditions": [condition]}}
        self._client.patch(NodeStatus, self.name, body, patch_type=PatchType.STRATEGIC)

    def _write_json(self, operation: dict[str, Any]) -> None:
        self._client.patch(NodeObject, self.name, [operation], patch_type=PatchType.JSON)

    def overtake(self) -> None:
        first = {"op": "add", "path": "/spec/taints/0", "value": _LATE}
        self._relay.before_patch.append(lambda: self._write_json(first))

    def undo_releases(self, put_back: Callable[[], None] | None) -> None:
        """Call this after every patch of ours, before we know that it was accepted. With None, no more."""
        self._relay.after_patch = put_back

    def forbid(self, resource: str) -> None:
        self._lost.append(resource)
        self._release.revoke(resource)
        self.until("the right is gone", lambda: not self._may_write(resource))

    def _may_write(self, resource: str) -> bool:
        verb, place = {"nodes/status": ("patch", ""), "events": ("create", "default")}[resource]
        return self._release.may(verb, resource, place)

    def cut_off(self) -> None:
        self._relay.is_away = True

    def reconnect(self) -> None:
        self._relay.is_away = False
        self.until("a round passed", self._a_round_passes)

    def _a_round_passes(self) -> bool:
        """The one in progress might have begun in the outage."""
        failures, completed = self.metric(_API_FAILURES), self.metric(_COMPLETED)
        self.until("another round", lambda: self.metric(_COMPLETED) > completed)
        return self.metric(_API_FAILURES) == failures

    def raw(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.get(NodeObject, self.name).to_dict()
        return found

    def node(self) -> Node:
        node = read_node(msgspec.json.decode(msgspec.json.encode(self.raw()), type=objects.Node), POLICY)
        kept = tuple(taint for taint in node.taints if not taint.key.startswith(_OF_THE_CLUSTER))
        return msgspec.structs.replace(node, taints=kept)

    def condition(self) -> dict[str, Any]:
        found = self.raw()["status"]["conditions"]
        return next((known for known in found if known["type"] == CONDITION), {})

    def events(self) -> list[str]:
        found = self._client.list(Event, namespace="default", fields={"involvedObject.name": self.name})
        return [str(event.reason) for event in found if event.reportingComponent == COMPONENT]

    def metric(self, series: str) -> float:
        return value_of(self._runs[-1].ask("/metrics"), series)

    def output(self) -> str:
        return "".join(run.output() for run in self._runs)

    def until(self, what: str, condition: Callable[[], object]) -> None:
        waiting.until(what, condition, PATIENCE, alive=self._check)

    def stays(self, condition: Callable[[], bool]) -> None:
        with pytest.raises(lab.NotReadyInTimeError):
            waiting.until("it changes", lambda: not condition(), 3, alive=self._check)

    def _check(self) -> None:
        self._plane.check()
        if self._runs:
            run = self._runs[-1]
            assert run.process.poll() is None, f"it ended:\n{run.output()}"

    def stop(self) -> int:
        """As a kubelet stops a pod."""
        return self._runs[-1].stop()

    def leave(self) -> None:
        for run in self._runs:
            with contextlib.suppress(ProcessLookupError):
                run.process.send_signal(signal.SIGKILL)
            run.process.wait()
        self.target.close()
        if self._lost:
            self._release.restore()
        for resource in self._lost:
            waiting.until("the right is back", lambda lost=resource: self._may_write(lost), PATIENCE)  # type: ignore[misc]
        if self.pod:
            self._plane.kubectl("delete", "node", self.name)
        assert not self._relay.before_patch, "somebody was to be let past"
        assert "Traceback" not in self.output(), self.output()


def command(mounted: Path, *words: str) -> list[str]:
    """DaemonSet mode, with its ServiceAccount mounted there."""
    return [sys.executable, "-c", _PROGRAM, str(mounted), *words]


def environment_of(release: Release, server: tuple[str, int], **reported: str) -> dict[str, str]:
    """As in a pod of the chart's DaemonSet."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    host, port = server
    where = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(port)}
    return inherited | release.made.variables | where | {"POD_NAMESPACE": release.namespace, **reported}


@contextlib.contextmanager
def a_world(release: Release, prefix: str, folder: Path) -> Iterator[Real]:
    with Relay(folder / "pki", release.plane).running() as relay:
        assert isinstance(relay, Relay)
        world = Real(release, prefix, relay, folder)
        try:
            yield world
        finally:
            world.leave()
