"""A new control plane with everything a measurement needs: the generator and the controller."""

import contextlib
import http.client
import itertools
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

import msgspec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Node, Pod, ServiceAccount

import lab
from bench import measure, timeline
from bench.api import Credentials
from bench.generator import PREFIX, Orders, Role
from lab import cleanup, images, waiting
from lab.process import Process
from lab.simulated_nodes import SimulatedNodes

NAMESPACE = "kube-node-ready-bench"
_LONGEST_SECONDS = 3600.0
_QUIET_WITHIN_SECONDS = 120
_LOOK_SECONDS = 0.5
_QUEUE_METRIC = "kube_node_ready_controller_reconcile_queue_latency_seconds"

T = TypeVar("T")


class Load(TypedDict, total=False):
    """The generator's options that a scenario can set."""

    verified: int
    gated: int
    rate: float
    kubelets: bool
    patience: float


class Generator:
    """The generator's process."""

    def __init__(self, plane: lab.Plane, orders: Orders) -> None:
        self._answers = plane.run.folder / f"generator-{orders.role}.jsonl"
        self._needed = [plane.check]
        self._heard = 0
        command = [sys.executable, "-m", "bench.generator", msgspec.json.encode(orders).decode()]
        with self._answers.open("wb") as answers:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=answers,
                env=plane.run.environment(),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    def needs(self, process: Process) -> None:
        """Raise an error if the process has exited, instead of waiting for an answer."""
        self._needed.append(process.check)

    def go(self) -> None:
        assert self._popen.stdin
        self._popen.stdin.write(b"go\n")
        self._popen.stdin.flush()

    def answer(self, kind: type[T]) -> T:
        """Return the next answer."""
        line = waiting.until("the generator answers", self._line, _LONGEST_SECONDS, alive=self._check)
        self._heard += 1
        return msgspec.json.decode(line, type=kind)

    def stop(self) -> None:
        self._popen.kill()
        assert self._popen.stdin
        self._popen.stdin.close()
        self._popen.wait()

    def _line(self) -> bytes | None:
        lines = self._answers.read_bytes().splitlines(keepends=True)[self._heard :]
        return lines[0] if lines and lines[0].endswith(b"\n") else None

    def _check(self) -> None:
        for check in self._needed:
            check()
        if (code := self._popen.poll()) is not None and self._line() is None:
            raise lab.LabError(f"the generator ended too soon, with exit code {code}; its own words stand above")


class Controller(Process):
    """The operator's process and its metrics endpoint."""

    def __init__(self, argv: list[str], log: Path, environment: dict[str, str], metrics: int) -> None:
        super().__init__("the controller", argv, log, environment)
        self.metrics_url = f"http://127.0.0.1:{metrics}/metrics"

    def queue_waits(self) -> list[tuple[float, int]]:
        """Return the histogram of the workqueue latency, from its metrics."""
        buckets = re.findall(rf'^{_QUEUE_METRIC}_bucket{{le="(.+?)"}} (\S+)$', self._metrics(), re.MULTILINE)
        return [(float(bound), int(float(count))) for bound, count in buckets]

    def nodes_with_series(self) -> set[str]:
        """Return the nodes that it still has metrics for."""
        return set(re.findall(r'\bnode="(.+?)"', self._metrics()))

    def _metrics(self) -> str:
        with _opened(self.metrics_url) as answer:
            return answer.read().decode()


@dataclass(frozen=True)
class Bench:
    """A new plane with a namespace for the workers and simulated kubelets."""

    plane: lab.Plane
    command: Sequence[str]
    simulated: SimulatedNodes
    """Set how worker pods end."""

    @contextlib.contextmanager
    def controller(self, *, remove: bool = False) -> Iterator[Controller]:
        """Start the operator and wait until it leads. With `remove`, it can remove failed nodes."""
        metrics, health = self.plane.network.ports(2)
        config = self.plane.run.folder / "controller.yaml"
        config.write_bytes(msgspec.json.encode(controller_config(metrics, health, remove=remove)))
        environment = {**self.plane.run.environment(), "KUBECONFIG": str(self.plane.kubeconfig())}
        # The operator rejects unknown variables with its prefix. If we are killed, it exits without the
        # mark, too: it loses its Lease.
        del environment[cleanup.MARK]
        argv = [*self.command, "--config", str(config)]
        process = Controller(argv, self.plane.run.folder / "controller.log", environment, metrics)
        process.start()
        try:
            ready = f"http://127.0.0.1:{health}/readyz"
            waiting.until("the controller is ready", lambda: _answers(ready), 60, alive=process.check)
            yield process
            process.check()
        finally:
            process.stop()

    @contextlib.contextmanager
    def generator(self, role: Role, **more: Unpack[Load]) -> Iterator[Generator]:
        """Start and prepare the generator: it has only started its watches."""
        orders = Orders(role, NAMESPACE, self.plane.version, credentials(self.plane), **more)
        process = Generator(self.plane, orders)
        try:
            process.answer(str)
            yield process
        finally:
            process.stop()

    def without_kubelets(self) -> None:
        """Stop the renewal of node leases, and the controller that reacts to it."""
        self.plane.simulated_kubelets.pause()
        self.plane.controller_manager.pause()  # it would declare them unreachable

    def pods(self) -> list[str]:
        """Return the existing workers."""
        return [pod.metadata.name or "" for pod in self.plane.client.list(Pod, namespace=NAMESPACE) if pod.metadata]

    def describe_pods(self) -> str:
        """Return the first of them, for display."""
        shown = self.plane.kubectl("get", "pods", f"--namespace={NAMESPACE}", "--output=wide")
        return "\n".join(shown.splitlines()[:20])

    def count_nodes(self) -> int:
        return sum(1 for _ in self.plane.client.list(Node))

    def wait_until_quiet(self) -> None:
        """Wait until the controller is done: the last worker is gone."""
        deadline = time.monotonic() + _QUIET_WITHIN_SECONDS
        while any(True for _ in self._some_pods()):
            if time.monotonic() > deadline:
                raise lab.LabError(f"workers are left after {_QUIET_WITHIN_SECONDS} s:\n{self.describe_pods()}")
            # Rarely, and one at a time: this runs while the controller's cost is measured.
            time.sleep(_LOOK_SECONDS)

    def _some_pods(self) -> Iterator[Pod]:
        first = self.plane.client.list(Pod, namespace=NAMESPACE, chunk_size=1)
        return itertools.islice(first, 1)

    @property
    def audit_log(self) -> Path:
        return self.plane.run.folder / "audit.log"

    def processes(self, **further: int) -> dict[str, int]:
        """Return all processes whose CPU time belongs to the run, including this one."""
        ours = {os.getpid(): "bench", **{pid: name for name, pid in measure.children(os.getpid()).items()}}
        ours |= {pid: name for name, pid in further.items()}
        return {name: pid for pid, name in ours.items()}


@contextlib.contextmanager
def fresh(command: Sequence[str] = ()) -> Iterator[Bench]:
    with lab.plane() as plane:
        plane.client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        simulated = plane.simulated_nodes(0, prefix=PREFIX)
        waiting.until(
            f"{NAMESPACE} has a ServiceAccount",
            lambda: plane.client.get(ServiceAccount, "default", namespace=NAMESPACE),
            30,
        )
        yield Bench(plane, command, simulated)


def credentials(plane: lab.Plane) -> Credentials:
    pair = plane.authority.sign("generator", "bench:generator", groups=["system:masters"])
    return Credentials(plane.url, *map(str, (plane.authority.certificate, pair.certificate, pair.key)))


def controller_config(metrics: int, health: int, *, remove: bool = False) -> dict[str, Any]:
    """Return the minimal configuration: the defaults are measured."""
    repository, _, tag = images.TOOLBOX.rpartition(":")
    gate = {"key": timeline.GATE_KEY, "value": timeline.GATE_VALUE, "effect": timeline.GATE_EFFECT}
    return {
        "worker": {
            "namespace": NAMESPACE,
            "serviceAccountName": "default",
            "image": {"repository": repository, "tag": tag},
        },
        "nodeManagement": {"taints": [gate], **({"deleteFailedNodes": True} if remove else {})},
        "leaderElection": {"namespace": NAMESPACE},
        "metrics": {"port": metrics},
        "health": {"port": health},
    }


def _answers(url: str) -> bool:
    with _opened(url) as answer:
        return bool(answer.status == http.HTTPStatus.OK)


def _opened(url: str) -> http.client.HTTPResponse:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    answer: http.client.HTTPResponse = opener.open(url, timeout=5)
    return answer
