"""A worker pod on a real node, in the image as it is released: how long until its verdict, and at what cost.

Kubernetes tells times in whole seconds, so the container's start and end are read where containerd keeps them. What the
container used is read from its pod's control group, which goes soon after the container does: so it is looked at often,
and the last look counts.
"""

import asyncio
import gzip
import json
import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

import lab
from bench import rig
from bench.api import Api
from demo import image
from kube_node_ready.verify import workerpod
from kube_node_ready.verify.model import Node
from lab import remains

NAMESPACE = "default"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_TEMPLATE = workerpod.PodTemplate(
    NAMESPACE, image.NAME, (), command=(image.WORKER,), pull_policy="Never", service_account="default"
)
_CONTAINERS = Path("var/lib/containerd/io.containerd.grpc.v1.cri/containers")
_LOOK_SECONDS = 0.005
_PATIENCE_SECONDS = 60
_PAUSE_SECONDS = 2.0
"""Until the kubelet is done with the pod before."""


class _Meta(Struct, frozen=True):
    name: str
    uid: str = ""


class _Container(Struct, frozen=True, rename={"id": "containerID"}):
    id: str = ""


class _Status(Struct, frozen=True, rename="camel"):
    phase: str = ""
    container_statuses: list[_Container] = []


class _Object(Struct, frozen=True):
    metadata: _Meta
    status: _Status = _Status()


class _Lifetime(Struct, frozen=True, rename="pascal"):
    """What containerd remembers of a container: nanoseconds since 1970."""

    started_at: int
    finished_at: int


@dataclass(frozen=True)
class Run:
    """One worker pod, in seconds and, where the control group could tell, CPU milliseconds and MiB."""

    created_to_verdict: float
    created_to_verdict_seen: float
    start_to_verdict: float
    cpu_ms: float | None
    peak_mib: float | None


def runs(plane: lab.Plane, node: lab.Node, rounds: int) -> list[Run]:
    return asyncio.run(_runs(plane, node, rounds))


async def _runs(plane: lab.Plane, node: lab.Node, rounds: int) -> list[Run]:
    async with Api(rig.credentials(plane)) as api:
        found = msgspec.json.decode((await api.ask("GET", f"/api/v1/nodes/{node.name}")).body, type=_Object)
        ours = Node(node.name, found.metadata.uid)
        cgroup = f"{remains.cgroup_name(plane.run.folder)}/{node.name}"
        # The first one fills caches that every later one finds full.
        return [await _run(api, ours, number, node.folder, cgroup) for number in range(1, rounds + 2)][1:]


async def _run(api: Api, node: Node, number: int, folder: Path, cgroup: str) -> Run:
    pod = workerpod.worker_pod(node, number, _TEMPLATE)
    name = pod["metadata"]["name"]
    created = time.time()
    answer = await api.must("POST", _PODS, pod)
    meter = Meter(cgroup, msgspec.json.decode(answer.body, type=_Object).metadata.uid)
    ended = await asyncio.wait_for(_ended(api, name, meter.look), _PATIENCE_SECONDS)
    seen = time.time()
    if ended.status.phase != "Succeeded":
        log = (await api.ask("GET", f"{_PODS}/{name}/log")).body.decode()
        raise lab.LabError(f"the worker pod {name} has failed:\n{log}")
    container = ended.status.container_statuses[0].id.rpartition("/")[2]
    times = msgspec.json.decode((folder / _CONTAINERS / container / "status").read_bytes(), type=_Lifetime)
    await api.must("DELETE", f"{_PODS}/{name}", {"gracePeriodSeconds": 0})
    await asyncio.sleep(_PAUSE_SECONDS)
    finished = times.finished_at / 1e9
    return Run(
        created_to_verdict=finished - created,
        created_to_verdict_seen=seen - created,
        start_to_verdict=finished - times.started_at / 1e9,
        cpu_ms=meter.cpu_ms(container),
        peak_mib=meter.peak_mib(container),
    )


async def _ended(api: Api, name: str, look: Callable[[], None]) -> _Object:
    """The pod when it has ended; `look` is called all the time until then."""
    last: dict[str, _Object] = {}

    def found(raw: Raw) -> None:
        pod = msgspec.json.decode(raw, type=_Object)
        if pod.metadata.name == name and pod.status.phase in ("Succeeded", "Failed"):
            last[name] = pod

    following = asyncio.create_task(api.watch(_PODS, found).follow())
    try:
        while not last:
            look()
            await asyncio.sleep(_LOOK_SECONDS)
        return last[name]
    finally:
        following.cancel()
        await asyncio.wait([following])


@dataclass
class Meter:
    """What a pod's control group says, from its first container's start to the last look."""

    cgroup: str
    uid: str
    hierarchies: list[Path] = field(default_factory=remains.cgroup_hierarchies)
    _pod_ns: int | None = None
    _before_ns: dict[str, int] = field(default_factory=dict)
    """By container: what the rest of the pod had used when the container was first seen."""
    _peaks: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        for folder in self._folders():
            if (used := _cpu_ns(folder)) is not None:
                self._pod_ns = used
                for container in _containers(folder):
                    if container.name not in self._before_ns and (own := _cpu_ns(container)) is not None:
                        self._before_ns[container.name] = used - own
            for container in _containers(folder):
                if (peak := _peak_bytes(container)) is not None:
                    self._peaks[container.name] = peak

    def cpu_ms(self, container: str) -> float | None:
        if self._pod_ns is None or container not in self._before_ns:
            return None
        return (self._pod_ns - self._before_ns[container]) / 1e6

    def peak_mib(self, container: str) -> float | None:
        """With the files it has read, as far as the kernel keeps them for it."""
        return self._peaks[container] / 2**20 if container in self._peaks else None

    def _folders(self) -> list[Path]:
        try:
            return [
                folder
                for hierarchy in self.hierarchies
                for folder in (hierarchy / self.cgroup).glob(f"kubepods*/**/*pod{self.uid}")
            ]
        except OSError:
            # A control group went while they were being listed.
            return []


def _containers(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.is_dir()]
    except OSError:
        return []


def _cpu_ns(folder: Path) -> int | None:
    """By cgroup v1, or by v2."""
    if (used := _read(folder / "cpuacct.usage")) is not None:
        return int(used)
    used = _read(folder / "cpu.stat")
    words = used.split() if used else []
    return int(words[words.index("usage_usec") + 1]) * 1000 if "usage_usec" in words else None


def _peak_bytes(folder: Path) -> int | None:
    peak = _read(folder / "memory.max_usage_in_bytes") or _read(folder / "memory.peak")
    return int(peak) if peak else None


def _read(path: Path) -> str | None:
    """None of what is gone, as these files soon are."""
    try:
        return path.read_text()
    except OSError:
        return None


def image_sizes(archive: Path) -> dict[str, float]:
    """Of the OCI archive, in megabytes: what a node pulls, and what it then has."""
    with tarfile.open(archive) as tar:

        def blob(described: Mapping[str, Any]) -> bytes:
            found = tar.extractfile("blobs/" + described["digest"].replace(":", "/"))
            assert found
            return found.read()

        index = tar.extractfile("index.json")
        assert index
        layers = json.loads(blob(_manifest(json.loads(index.read()), blob)))["layers"]
        unpacked = sum(len(gzip.decompress(blob(layer))) for layer in layers)
    pulled = sum(layer["size"] for layer in layers)
    return {"compressed_megabytes": pulled / 1e6, "unpacked_megabytes": unpacked / 1e6}


def _manifest(index: Mapping[str, Any], blob: Callable[[Mapping[str, Any]], bytes]) -> Mapping[str, Any]:
    """The first image's. An index may lead to another that lists the architectures."""
    (first, *_) = index["manifests"]
    described: Mapping[str, Any] = first
    return _manifest(json.loads(blob(described)), blob) if "index" in described["mediaType"] else described
