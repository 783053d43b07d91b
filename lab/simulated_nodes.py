"""Simulated nodes: KWOK simulates the kubelets, and pods end as the test chooses.

A group of nodes shares a verdict, which becomes KWOK stages that match the group's node names. Two KWOK processes run:
one keeps the nodes Ready and renews their leases, the other runs the pods. (One alone drops pods that are bound to a
node before its own lease cache has seen that node.)
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx2
from lightkube import AsyncClient, Client, KubeConfig
from lightkube.generic_resource import create_global_resource
from lightkube.resources.core_v1 import Node as NodeObject

from lab import addons, build, runs, simulated_stages, waiting
from lab.errors import LabError
from lab.process import Process
from lab.simulated_node import node_object
from lab.simulated_stages import PASSES, Verdict
from lab.taints import Taint

Stage = create_global_resource("kwok.x-k8s.io", "v1alpha1", "Stage", "stages")
_IN_FLIGHT = 50
_LEASE_SECONDS = 40


@dataclass(frozen=True)
class SimulatedNodes:
    """A group of simulated nodes."""

    names: tuple[str, ...]
    prefix: str
    _client: Client

    def decide(self, verdict: Verdict) -> None:
        """Set the verdict of pods on these nodes."""
        for stage in simulated_stages.of_group(self.prefix, verdict):
            self._client.apply(Stage.from_dict(stage), field_manager=addons.FIELD_MANAGER, force=True)

    def delete(self) -> None:
        """Delete the nodes, like an autoscaler. Their names are not reused."""
        for name in self.names:
            self._client.delete(NodeObject, name)
        for stage in simulated_stages.of_group(self.prefix, PASSES):
            self._client.delete(Stage, stage["metadata"]["name"])


def group_of(client: Client, node: str) -> SimulatedNodes | None:
    """Return the group of a simulated node; None if there is no simulated node of that name."""
    simulated = {simulated_stages.ANNOTATION: simulated_stages.ANNOTATED}.items()
    for found in client.list(NodeObject, fields={"metadata.name": node}):
        assert found.metadata
        if simulated <= (found.metadata.annotations or {}).items():
            return SimulatedNodes((node,), node.rpartition("-")[0], client)
    return None


class Simulation:
    """The two KWOK processes of a plane."""

    def __init__(self, run: runs.Run, programs: build.Programs, client: Client, kubeconfig: Path, version: str) -> None:
        self._prefixes: set[str] = set()
        self._version = version
        self._programs = programs
        self._client = client
        self._kubeconfig = kubeconfig
        node_stages = run.folder / "kwok-nodes.json"
        node_stages.write_text("\n---\n".join(json.dumps(stage) for stage in simulated_stages.FOR_NODES))
        nothing = run.folder / "kwok-pods.json"
        nothing.write_text("")
        common = [str(programs.path("kwok")), f"--kubeconfig={kubeconfig}"]
        common += [
            f"--manage-nodes-with-annotation-selector={simulated_stages.ANNOTATION}={simulated_stages.ANNOTATED}"
        ]
        nodes = [*common, f"--config={node_stages}", f"--node-lease-duration-seconds={_LEASE_SECONDS}"]
        pods = [*common, f"--config={nothing}", "--node-lease-duration-seconds=0", "--enable-crds=Stage"]
        environment = run.environment()
        self.processes = (
            Process("kwok for nodes", nodes, run.folder / "kwok-nodes.log", environment),
            Process("kwok for pods", pods, run.folder / "kwok-pods.log", environment),
        )

    def start(self) -> None:
        addons.apply(self._client, self._programs.path("kwok.x-k8s.io_stages.yaml").read_text())
        waiting.until("the API serves KWOK's stages", self._stages_are_served, 60)
        for stage in simulated_stages.FOR_ALL_PODS:
            self._client.apply(Stage.from_dict(stage), field_manager=addons.FIELD_MANAGER, force=True)
        for process in self.processes:
            process.start()

    def nodes(
        self, count: int, prefix: str, verdict: Verdict, taints: Sequence[Taint], labels: Mapping[str, str]
    ) -> SimulatedNodes:
        if prefix in self._prefixes:
            raise LabError(f"there are simulated nodes called {prefix}-… already")
        self._prefixes.add(prefix)
        group = SimulatedNodes(tuple(f"{prefix}-{number}" for number in range(count)), prefix, self._client)
        group.decide(verdict)
        asyncio.run(self._create([node_object(name, self._version, taints, labels) for name in group.names]))
        return group

    async def _create(self, nodes: Sequence[NodeObject]) -> None:
        config, limits = KubeConfig.from_file(self._kubeconfig), httpx2.Timeout(60)
        async with AsyncClient(config, timeout=limits, trust_env=False) as client:
            turn = asyncio.Semaphore(_IN_FLIGHT)

            async def create(node: NodeObject) -> None:
                async with turn:
                    await client.create(node)

            await asyncio.gather(*(create(node) for node in nodes))

    def _stages_are_served(self) -> bool:
        for _ in self._client.list(Stage):  # this also requests them
            pass
        return True
