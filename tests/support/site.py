"""One test's own gated nodes and namespace on a shared plane, and a way to its API server that misbehaves."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml
from lightkube.core.exceptions import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Event, Namespace, Pod, ServiceAccount
from lightkube.resources.core_v1 import Node as NodeObject

import lab
from kube_node_ready.api import objects
from kube_node_ready.kube.access import access
from kube_node_ready.verification.model import Gate, Node, Policy, Worker
from kube_node_ready.verification.node_reader import read_node
from kube_node_ready.verification.worker_status import read_worker
from lab import simulated_nodes, waiting
from lab.errors import LabError
from tests.support.controller_process import a_config
from tests.support.faulty_proxy import Proxy

PATIENCE = 180
_MAX_SHOWN = 8000


class Site:
    """Nodes with a gate that no other controller knows. Their names begin with the namespace's."""

    def __init__(self, plane: lab.Plane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace
        self.gate = lab.Taint(f"example.com/{namespace}", value="true")
        self.policy = Policy((Gate(self.gate.key, self.gate.effect),))
        self.torn: set[str] = set()
        """Nodes that were once seen with both gate and label, or with neither."""

    def join(
        self, count: int = 1, *, verdict: lab.Verdict = lab.PASSES, group: str = "", taints: tuple[lab.Taint, ...] = ()
    ) -> simulated_nodes.SimulatedNodes:
        """Nodes of one verdict; a second group needs a name."""
        return self.plane.simulated_nodes(
            count,
            prefix=f"{self.namespace}{group and '-'}{group}",
            verdict=verdict,
            taints=[*taints, self.gate],
            labels={"site": self.namespace},
        )

    def config(self, **sections: Any) -> dict[str, Any]:  # noqa: ANN401  as in YAML
        """Of a controller that cares for this site alone. Sections given are merged."""
        gate = {"key": self.gate.key, "effect": self.gate.effect}
        management = {"taints": [gate], "nodeSelector": {"site": self.namespace}}
        management |= sections.pop("nodeManagement", {})
        return a_config(self.namespace, nodeManagement=management, **sections)

    def node(self, name: str) -> Node:
        return read_node(_wire(self.plane.client.get(NodeObject, name), objects.Node), self.policy)

    def released(self, *names: str) -> bool:
        """Whether all of them are."""
        found = self.plane.client.list(NodeObject, labels={"site": self.namespace})
        known = {node.name: node for node in (read_node(_wire(one, objects.Node), self.policy) for one in found)}
        nodes = [known[name] for name in names]
        self.torn |= {node.name for node in nodes if node.labelled == self.policy.is_gated(node)}
        return all(node.labelled and not self.policy.is_gated(node) for node in nodes)

    def workers(self) -> list[Worker]:
        pods = self.plane.client.list(Pod, namespace=self.namespace)
        return [worker for pod in pods if (worker := read_worker(_wire(pod, objects.Pod)))]

    def pods_ever(self) -> list[str]:
        """Every worker that was ever bound to its node, by the scheduler's own account, as often as it was."""
        found = self.plane.client.list(Event, namespace=self.namespace, fields={"reason": "Scheduled"})
        return sorted(str(event.involvedObject.name) for event in found)

    def events(self, name: str) -> list[Event]:
        found = self.plane.client.list(Event, namespace="default", fields={"involvedObject.name": name})
        return [event for event in found if event.reportingComponent == "kube-node-ready-controller"]

    def condition(self, name: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = self.plane.client.get(NodeObject, name).to_dict()["status"]["conditions"]
        return next((known for known in found if known["type"] == "NodeVerified"), {})

    def kubectl(self, *words: str) -> str:
        return self.plane.kubectl(f"--namespace={self.namespace}", *words)

    def until(self, what: str, condition: Callable[[], object], seconds: float = PATIENCE) -> None:
        try:
            waiting.until(what, condition, seconds, alive=self.plane.check)
        except LabError as error:
            error.add_note(self._describe())
            raise

    def _describe(self) -> str:
        """What the cluster shows when a test has waited in vain."""
        shown = (
            ("get", "nodes", f"--selector=site={self.namespace}", "--output=yaml"),
            ("get", "pods", "--output=wide"),
            ("get", "events", "--sort-by=.lastTimestamp"),
        )
        return "\n".join(self._shown(*words) for words in shown)

    def _shown(self, *words: str) -> str:
        try:
            return self.kubectl(*words)[-_MAX_SHOWN:]
        except LabError as error:  # an attack can make objects that kubectl does not read
            return str(error)[-_MAX_SHOWN:]

    def leave(self) -> None:
        assert not self.torn, "the gate and the label go together"
        for node in list(self.plane.client.list(NodeObject, labels={"site": self.namespace})):
            assert node.metadata
            with contextlib.suppress(ApiError):  # it is gone
                self.plane.client.delete(NodeObject, str(node.metadata.name))


@contextlib.contextmanager
def a_site(plane: lab.Plane, name: str) -> Iterator[Site]:
    """For planes that are not the shared one: with a namespace, which goes with the plane."""
    plane.client.create(Namespace(metadata=ObjectMeta(name=name)))
    account = lambda: plane.client.get(ServiceAccount, "default", namespace=name)  # noqa: E731  it is short
    waiting.until(f"{name} has a ServiceAccount", account, 180)
    site = Site(plane, name)
    yield site
    site.leave()


def _wire(found: Any, kind: type[Any]) -> Any:  # noqa: ANN401  from lightkube's model to ours
    return msgspec.json.decode(msgspec.json.encode(found.to_dict()), type=kind)


class BadRoute:
    """A proxy that other processes can use, by its kubeconfig. It is well-behaved until it gets a plan."""

    def __init__(self, proxy: Proxy, loop: asyncio.AbstractEventLoop, kubeconfig: Path) -> None:
        self.proxy = proxy
        self.kubeconfig = kubeconfig
        self._loop = loop

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self.proxy.cut)


@contextlib.contextmanager
def bad_route(kubeconfig: Path, folder: Path) -> Iterator[BadRoute]:
    opened: list[BadRoute] = []
    is_open, leaving = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with Proxy(access(kubeconfig)) as proxy:
            file = _kubeconfig(folder / "bad-route.kubeconfig", proxy.access.server)
            opened.append(BadRoute(proxy, asyncio.get_running_loop(), file))
            is_open.set()
            await leaving.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert is_open.wait(60)
        yield opened[0]
    finally:
        if opened:
            opened[0]._loop.call_soon_threadsafe(leaving.set)
        thread.join(10)


def _kubeconfig(file: Path, server: str) -> Path:
    here = "bad-route"
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": here,
                "contexts": [{"name": here, "context": {"cluster": here, "user": here}}],
                "clusters": [{"name": here, "cluster": {"server": server}}],
                "users": [{"name": here, "user": {}}],
            }
        )
    )
    return file
