"""A worker pod on a real node with the released image: the time until its verdict, and its cost.

Kubernetes reports times in whole seconds, so the container's start and end are read from containerd. The container's
usage is read from its pod's control group, which is removed soon after the container: so it is polled frequently,
and the last reading counts.
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
from bench import environment
from bench.api import Api
from demo import image
from kube_node_ready.verification import worker_pod
from kube_node_ready.verification.model import Node
from lab import cleanup

NAMESPACE = "default"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_TEMPLATE = worker_pod.WorkerPodTemplate(
    NAMESPACE, image.NAME, (), command=(image.WORKER,), pull_policy="Never", service_account="default"
)
_CONTAINERS = Path("var/lib/containerd/io.containerd.grpc.v1.cri/containers")
_LOOK_SECONDS = 0.005
_PATIENCE_SECONDS = 60
_PAUSE_SECONDS = 2.0
"""Wait until the kubelet has removed the previous pod."""


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
    """Times of a container in containerd, in nanoseconds since 1970."""

    started_at: int
    finished_at: int


@dataclass(frozen=True)
class Run:
    """Figures of one worker pod: seconds and, if the control group could be read, CPU milliseconds and MiB."""

    created_to_verdict: float
    created_to_verdict_seen: float
    start_to_verdict: float
    cpu_ms: float | None
    peak_mib: float | None


def runs(plane: lab.Plane, node: lab.Node, rounds: int) -> list[Run]:
    return asyncio.run(_runs(plane, node, rounds))


async def _runs(plane: lab.Plane, node: lab.Node, rounds: int) -> list[Run]:
    async with Api(environment.credentials(plane)) as api:
        found = msgspec.json.decode((await api.ask("GET", f"/api/v1/nodes/{node.name}")).body, type=_Object)
        ours = Node(node.name, found.metadata.uid)
        cgroup = f"{cleanup.cgroup_name(plane.run.folder)}/{node.name}"
        # The first one fills the caches.
        return [await _run(api, ours, number, node.folder, cgroup) for number in range(1, rounds + 2)][1:]


async def _run(api: Api, node: Node, number: int, folder: Path, cgroup: str) -> Run:
    pod = worker_pod.worker_pod(node, number, _TEMPLATE)
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


async def _ended(api: Api, name: str, observe: Callable[[], None]) -> _Object:
    """Return the pod when it has ended; `look` is called continuously until then."""
    last: dict[str, _Object] = {}

    def found(raw: Raw) -> None:
        pod = msgspec.json.decode(raw, type=_Object)
        if pod.metadata.name == name and pod.status.phase in ("Succeeded", "Failed"):
            last[name] = pod

    following = asyncio.create_task(api.watch(_PODS, found).follow())
    try:
        while not last:
            observe()
            await asyncio.sleep(_LOOK_SECONDS)
        return last[name]
    finally:
        following.cancel()
        await asyncio.wait([following])


@dataclass
class Meter:
    """Readings of a pod's control group, from the start of its first container to the last reading."""

    cgroup: str
    uid: str
    hierarchies: list[Path] = field(default_factory=cleanup.cgroup_hierarchies)
    _pod_ns: int | None = None
    _before_ns: dict[str, int] = field(default_factory=dict)
    """By container: the usage of the rest of the pod when the container was first seen."""
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
        """Return the peak, including the page cache of files that it has read."""
        return self._peaks[container] / 2**20 if container in self._peaks else None

    def _folders(self) -> list[Path]:
        try:
            return [
                folder
                for hierarchy in self.hierarchies
                for folder in (hierarchy / self.cgroup).glob(f"kubepods*/**/*pod{self.uid}")
            ]
        except OSError:
            # A control group was removed while they were listed.
            return []


def _containers(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.is_dir()]
    except OSError:
        return []


def _cpu_ns(folder: Path) -> int | None:
    """Return the CPU time from cgroup v1 or v2."""
    if (used := _read(folder / "cpuacct.usage")) is not None:
        return int(used)
    used = _read(folder / "cpu.stat")
    words = used.split() if used else []
    return int(words[words.index("usage_usec") + 1]) * 1000 if "usage_usec" in words else None


def _peak_bytes(folder: Path) -> int | None:
    peak = _read(folder / "memory.max_usage_in_bytes") or _read(folder / "memory.peak")
    return int(peak) if peak else None


def _read(path: Path) -> str | None:
    """Return the content, or None if the file is gone, which happens soon."""
    try:
        return path.read_text()
    except OSError:
        return None


def image_sizes(archive: Path) -> dict[str, float]:
    """Return the compressed and unpacked sizes of the OCI archive in megabytes."""
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
    """Return the manifest of the first image. An index can refer to another one that lists the architectures."""
    (first, *_) = index["manifests"]
    described: Mapping[str, Any] = first
    return _manifest(json.loads(blob(described)), blob) if "index" in described["mediaType"] else described
