"""One node and its API server in memory, and DaemonSet mode on it in time that jumps.

The server keeps and patches objects as a real one does, as far as one Node's own pod can tell; the checks are the real
ones, and so are the requests.
"""

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from prometheus_client.exposition import generate_latest

from kube_node_ready.agent import cluster_access, flags
from kube_node_ready.agent import main as process
from kube_node_ready.agent.agent import Agent  # noqa: TC001  as everywhere else
from kube_node_ready.agent.stop_clock import Clock
from kube_node_ready.api import objects
from kube_node_ready.api.contract import CONDITION
from kube_node_ready.api.paths import resource_of
from kube_node_ready.settings import agent as agent_settings
from kube_node_ready.verification.model import Gate, Node, Policy
from kube_node_ready.verification.node_reader import read_node
from tests.support.check_servers import LOOPBACK, FakeApi, headers_of, http_json
from tests.support.model_cluster import START, Json, LostRace, json_patched
from tests.support.scenarios.agent import GATE, LABEL

NAME = "node-1"
PATIENCE = timedelta(minutes=10)
CHECKS = {"dnsTestDomains": ["localhost"], "dnsService": ""}
_SLIGHTLY = 0.01


class _ConflictError(Exception):
    """The patch names a version that is past."""


class FakeCluster(FakeApi):
    """With Nodes, Events and pods that can be written."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.nodes: dict[str, Json] = {}
        self.events: dict[str, Json] = {}
        self.pods: list[Json] = []
        self.forbidden: set[str] = set()
        self.before_patch: list[Callable[[], None]] = []
        self.is_busy = False
        self.writes: list[str] = []
        self.is_away = False
        self._versions = 0

    def join(self, name: str, taints: list[Json], labels: dict[str, str]) -> None:
        self.nodes[name] = {
            "kind": "Node",
            "metadata": {"name": name, "uid": f"uid-{name}-{self._versions}", "labels": dict(labels)},
            "spec": {"taints": taints} if taints else {},
            "status": {"nodeInfo": {"bootID": "boot-1"}, "conditions": [{"type": "Ready", "status": "True"}]},
        }
        self.touch(name)

    def touch(self, name: str) -> None:
        self._versions += 1
        self.nodes[name]["metadata"]["resourceVersion"] = str(self._versions)

    def _serve(self, plain: socket.socket) -> None:
        if self.is_away:
            return
        with self._context.wrap_socket(plain, server_side=True) as connection, connection.makefile("rb") as stream:
            while line := stream.readline():
                method, path, _ = line.decode().split()
                headers = headers_of(stream)
                self.asked.append((path, headers))
                body = stream.read(int(headers.get("content-length", 0)))
                connection.sendall(self._reply(method, path.partition("?")[0], headers, body))

    def _reply(self, method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
        kind = resource_of(path)
        if (f"get {kind}" if method == "GET" else kind) in self.forbidden:
            return _refusal(403, "Forbidden")
        if method == "POST":
            return self._create(json.loads(body))
        if method == "PATCH":
            return self._patch(path, headers["content-type"], json.loads(body))
        name = path.rpartition("/")[2]
        if path.startswith("/api/v1/nodes/") and self.is_busy:
            return _refusal(429, "TooManyRequests")
        if path.startswith("/api/v1/nodes/"):
            return http_json(self.nodes[name]) if name in self.nodes else _refusal(404, "NotFound")
        if path.endswith("/pods"):
            return http_json({"items": self.pods})
        if "/pods/" in path:
            found = [pod for pod in self.pods if pod["metadata"]["name"] == name]
            return http_json(found[0]) if found else _refusal(404, "NotFound")
        return self._answer(path)

    def _create(self, event: Json) -> bytes:
        name = event["metadata"]["name"]
        if name in self.events:
            return _refusal(409, "AlreadyExists")
        self.writes.append(f"event {event['reason']}")
        self.events[name] = event
        return http_json(event, 201)

    def _patch(self, path: str, kind: str, patch: Any) -> bytes:  # noqa: ANN401  a list or a mapping
        name = path.removeprefix("/api/v1/nodes/").partition("/")[0]
        if self.before_patch:
            self.before_patch.pop()()
        try:
            if kind.startswith("application/json-patch"):
                self.nodes[name] = json_patched(self.nodes[name], patch)
            else:
                self._merge(self.nodes[name], patch)
        except LostRace:
            return _refusal(422, "Invalid")
        except _ConflictError:
            return _refusal(409, "Conflict")
        self.writes.append(kind.removeprefix("application/").partition("+")[0] + path.removeprefix("/api/v1/nodes/"))
        self.touch(name)
        return http_json(self.nodes[name])

    def _merge(self, node: Json, patch: Json) -> None:
        metadata = patch["metadata"]
        if metadata.get("resourceVersion") not in (None, node["metadata"]["resourceVersion"]):
            raise _ConflictError
        assert metadata["uid"] == node["metadata"]["uid"]
        node["metadata"].setdefault("annotations", {}).update(metadata.get("annotations", {}))
        for condition in patch.get("status", {}).get("conditions", []):
            others = [known for known in node["status"]["conditions"] if known["type"] != condition["type"]]
            node["status"]["conditions"] = [*others, condition]


def _refusal(code: int, reason: str) -> bytes:
    return http_json({"kind": "Status", "message": f"{reason}, as this test wants it", "reason": reason}, code)


class Target:
    """Something on the network that a node must reach."""

    def __init__(self) -> None:
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port = int(self._listener.getsockname()[1])
        self._serve()

    def open(self) -> None:
        self._listener = socket.create_server((LOOPBACK, self.port))
        self._serve()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        self._thread = threading.Thread(target=self._accept, args=(self._listener,))
        self._thread.start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                listener.accept()[0].close()


class VirtualClock(Clock):
    def __init__(self) -> None:
        super().__init__()
        self.time = START

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def wait(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class Simulated:
    """A World in which waiting advances the time."""

    def __init__(self, cluster: FakeCluster, folder: Path) -> None:
        self.cluster = cluster
        self.clock = VirtualClock()
        self.target = Target()
        self._folder = folder
        self._flags: tuple[str, ...] = ()
        self._agent: Agent | None = None
        (folder / "token").write_text(token_of_a_pod_on(NAME))
        (folder / "ca.crt").write_bytes(cluster.authority.certificate.read_bytes())

    def join(self, *taints: dict[str, str], labels: dict[str, str]) -> None:
        self.cluster.join(NAME, [dict(taint) for taint in taints], labels)

    def start(self, *words: str) -> None:
        self._flags = (*words, f"--network-targets={LOOPBACK}:{self.target.port}")
        self.restart()

    def restart(self) -> None:
        environ = {
            "NODE_NAME": NAME,
            "KUBERNETES_SERVICE_HOST": LOOPBACK,
            "KUBERNETES_SERVICE_PORT": str(self.cluster.port),
            "KUBE_NODE_READY_WORKER_CONFIG": json.dumps(CHECKS),
        }
        loaded = agent_settings.load(flags.parse(self._flags).flags, environ)
        found = cluster_access.choose(loaded, self._folder)
        assert isinstance(found, cluster_access.InCluster)
        self._agent = process.assemble(loaded, found, "pod-1", self.clock)

    def break_network(self) -> None:
        self.target.close()

    def heal_network(self) -> None:
        self.target.open()

    def unlabel(self) -> None:
        del self._object["metadata"]["labels"][LABEL]
        self.cluster.touch(NAME)

    def label(self) -> None:
        self._object["metadata"]["labels"][LABEL] = "true"
        self.cluster.touch(NAME)

    def add_taint(self, taint: dict[str, str]) -> None:
        self._object["spec"].setdefault("taints", []).append(dict(taint))
        self.cluster.touch(NAME)

    def overtake(self) -> None:
        def intrude() -> None:
            self._object["spec"].setdefault("taints", []).insert(0, {"key": "example.com/late", "effect": "NoSchedule"})
            self.cluster.touch(NAME)

        self.cluster.before_patch.append(intrude)

    def forbid(self, resource: str) -> None:
        self.cluster.forbidden.add(resource)

    def cut_off(self) -> None:
        self.cluster.is_away = True

    def reconnect(self) -> None:
        self.cluster.is_away = False

    @property
    def _object(self) -> Json:
        return self.cluster.nodes[NAME]

    def node(self) -> Node:
        policy = Policy((Gate(GATE["key"], GATE["effect"]),))
        return read_node(msgspec.convert(self._object, objects.Node), policy)

    def condition(self) -> dict[str, Any]:
        found = self._object["status"]["conditions"]
        return next((known for known in found if known["type"] == CONDITION), {})

    def events(self) -> list[str]:
        return [event["reason"] for event in self.cluster.events.values()]

    def metric(self, series: str) -> float:
        assert self._agent
        return value_of(generate_latest(self._agent.metrics.registry).decode(), series)

    def until(self, what: str, condition: Callable[[], object]) -> None:
        end = self.clock.time + PATIENCE
        while not condition():
            assert self.clock.time < end, what
            self.step()

    def stays(self, condition: Callable[[], bool]) -> None:
        end = self.clock.time + timedelta(seconds=15)
        while self.clock.time < end:
            assert condition()
            self.step()

    def step(self) -> float:
        assert self._agent
        wait = self._agent.step()
        self.clock.wait(max(wait, _SLIGHTLY))
        return wait

    def leave(self) -> None:
        self.target.close()


def token_of_a_pod_on(node: str, pod: str = "pod-1") -> str:
    """As the API server signs it for a pod, except for the signature. Without a node, as before Kubernetes 1.30."""
    bound = {"namespace": "kube-system", "pod": {"name": pod, "uid": f"uid-of-{pod}"}}
    claims = {
        "iss": "https://kubernetes.default.svc",
        "kubernetes.io": bound | ({"node": {"name": node}} if node else {}),
    }
    return ".".join(
        base64.urlsafe_b64encode(part).rstrip(b"=").decode()
        for part in (b"{}", json.dumps(claims).encode(), b"signature")
    )


def value_of(page: str, series: str) -> float:
    """What a page of metrics says of a series, such as `name` or `name{label="value"}`."""
    name, _, labels = series.partition("{")
    for line in page.splitlines():
        if line.startswith(f"{name}{{") and labels.rstrip("}") in line:
            return float(line.rpartition(" ")[2])
    raise AssertionError(f"there is no series {series}")


@contextmanager
def simulated(folder: Path) -> Iterator[Simulated]:
    with FakeCluster(folder / "pki").running() as cluster:
        assert isinstance(cluster, FakeCluster)
        world = Simulated(cluster, folder)
        try:
            yield world
        finally:
            world.leave()
