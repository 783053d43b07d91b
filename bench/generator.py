"""The load generator and observer: a separate process, so that its CPU time is counted separately.

usage: python -m bench.generator ORDERS

It prints a JSON line when it is prepared, and starts when it receives a line. It creates verified nodes first, if there
are any, and prints a line; when it receives another line, it creates gated ones, and prints a line when all are
released. It exits when its input closes. `bench.environment` starts it.
"""

import asyncio
import datetime as dt
import http
import sys
import time
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

import lab
from bench import baseline, timeline
from bench.api import STRATEGIC_PATCH, Api, Credentials, Watch
from bench.timeline import Moment, Timeline
from kube_node_ready.api.contract import RECORD_ANNOTATION
from kube_node_ready.api.record import Outcome, VerificationRecord, encode_record
from kube_node_ready.api.report import CheckResult
from kube_node_ready.checks.check import CHECKS
from lab import simulated_stages
from lab.progress import say
from lab.simulated_node import node_object

PREFIX = "bench"
"""The prefix of gated nodes, whose pods are simulated."""
_PREFIX_OF_VERIFIED = "verified"
_CHECKS = tuple(CheckResult(name, ok=True, ms=12, target="10.96.0.1:443") for name in CHECKS)
_PROOF = VerificationRecord(
    1, outcome=Outcome.PASSED, at=dt.datetime.now(dt.UTC), since=dt.datetime.now(dt.UTC), checks=_CHECKS
)
"""The annotations and labels of a verified node."""
HEARTBEAT_SECONDS = 300
PATIENCE_SECONDS = 120.0
_SECONDS_BETWEEN_LINES = 5.0
_LOOK_SECONDS = 0.1
_YOUNG_ONE_IN = 5
"""In a churn, one in this many deleted nodes is new and is deleted while it is being verified."""

Role = Literal["floor", "burst", "trickle", "outage", "churn", "idle"]


class Orders(Struct, frozen=True):
    """The options of the generator."""

    role: Role
    namespace: str
    kubernetes: str
    credentials: Credentials
    verified: int = 0
    """How many verified nodes exist before the measurement."""
    gated: int = 0
    """How many gated nodes are created."""
    rate: float | None = None
    """How many of them per second; None creates all immediately."""
    kubelets: bool = True
    """Whether the nodes' kubelets are simulated. If not, nodes are created Ready."""
    patience: float = PATIENCE_SECONDS
    """Seconds without a release after which waiting stops."""


class Result(Struct, frozen=True):
    begun: float
    moments: dict[Moment, dict[str, float]]
    pods: dict[str, str]
    """Each pod's node."""
    expected: int
    """How many nodes were expected to be released: those that were created and not deleted."""
    left: list[str]
    """The nodes that were deleted during the run."""
    lost_races: int
    retries: int
    watches_resumed: int
    lists: int


class Generator:
    def __init__(self, orders: Orders, api: Api) -> None:
        self._orders = orders
        self._api = api
        self._verified = verified(orders)
        self._gated = gated(orders)
        self._leaving = departures(list(self._verified), list(self._gated), orders.rate or 0)
        self._left: set[str] = set()
        self._lost_races = 0
        self.seen = Timeline()

    def watches(self) -> list[Watch]:
        nodes, pods = msgspec.json.Decoder(timeline.Node), msgspec.json.Decoder(timeline.Pod)

        def see_node(raw: Raw) -> None:
            if (node := nodes.decode(raw)).metadata.name in self._gated:
                self.seen.see_node(node, time.time())

        def see_pod(raw: Raw) -> None:
            self.seen.see_pod(pods.decode(raw), time.time())

        return [
            self._api.watch("/api/v1/nodes", see_node),
            self._api.watch(f"/api/v1/namespaces/{self._orders.namespace}/pods", see_pod),
        ]

    async def work(self, watches: list[Watch]) -> Result:
        """Create all gated nodes at their times, and wait until they are released or no progress is made."""
        begun = time.time()
        work = asyncio.ensure_future(self._arrive(begun))
        if await self._released(work):
            await work
        else:
            work.cancel()
        return Result(
            begun=begun,
            moments=self.seen.moments,
            pods=self.seen.pods,
            expected=len(self._staying),
            left=sorted(self._left),
            lost_races=self._lost_races,
            retries=self._api.retries,
            watches_resumed=sum(watch.resumed for watch in watches),
            lists=sum(watch.listed for watch in watches),
        )

    async def create_verified(self) -> None:
        await asyncio.gather(*(self._post(name, body) for name, body in self._verified.items()))

    async def beat(self) -> None:
        """Send the heartbeats of all verified nodes at an even rate, until canceled."""
        pause, due = HEARTBEAT_SECONDS / len(self._verified), time.time()
        while True:
            for name in self._verified:
                due += pause
                await asyncio.sleep(due - time.time())
                if name not in self._left:
                    await self._beat_once(name)

    async def _beat_once(self, name: str) -> None:
        path, body = f"/api/v1/nodes/{name}/status", msgspec.json.encode(heartbeat())
        answer = await self._api.ask("PATCH", path, body, STRATEGIC_PATCH)
        gone = answer.status == http.HTTPStatus.NOT_FOUND and name in self._left
        if not answer.ok and not gone:
            raise RuntimeError(f"PATCH {path} was answered {answer.status}: {answer.body.decode(errors='replace')}")

    async def _arrive(self, begun: float) -> None:
        """Create nodes open-loop: each at its time, regardless of pending responses."""
        pause = 1 / self._orders.rate if self._orders.rate else 0.0
        async with asyncio.TaskGroup() as group:
            for number, name in enumerate(self._gated):
                await asyncio.sleep(max(begun + number * pause - time.time(), 0))
                group.create_task(self._one(number, name))

    async def _one(self, number: int, name: str) -> None:
        node = await self._post(name, self._gated[name])
        if self._orders.role == "floor":
            self._lost_races += await baseline.verify(self._api, self.seen, node, self._orders.namespace)
        if self._orders.role == "churn":
            await self._take_away(self._leaving[number])

    async def _take_away(self, name: str) -> None:
        if name in self._gated:
            await self.seen.reached(Moment.POSTED, name)
        self._left.add(name)
        await self._api.must("DELETE", f"/api/v1/nodes/{name}", {})

    async def _post(self, name: str, body: bytes) -> timeline.Node:
        answer = await self._api.must("POST", "/api/v1/nodes", body)
        if name in self._gated:
            self.seen.note(Moment.POSTED, name, time.time())
        return msgspec.json.decode(answer.body, type=timeline.Node)

    @property
    def _staying(self) -> set[str]:
        return self._gated.keys() - self._left

    async def _released(self, work: asyncio.Future[None]) -> bool:
        """Wait until all nodes are released or no progress is made. Returns whether all are released."""
        released, moved = 0, time.time()
        said = moved
        while self._staying - self.seen.moments[Moment.RELEASED].keys():
            now, count = time.time(), len(self.seen.moments[Moment.RELEASED])
            if count > released:
                released, moved = count, now
            if now - moved > self._orders.patience:
                say(f"no node has been released for {self._orders.patience:g} s: {progress(self.seen)}")
                return False
            if now - said > _SECONDS_BETWEEN_LINES:
                said = now
                say(progress(self.seen))
            if work.done():
                work.result()  # raises errors of the task
            await asyncio.sleep(_LOOK_SECONDS)
        return True


def progress(seen: Timeline) -> str:
    return "nodes: " + ", ".join(f"{len(names)} {moment}" for moment, names in seen.moments.items())


def verified(orders: Orders) -> dict[str, bytes]:
    """Return the JSON of every verified node by name, prepared before the measurement."""
    body = {"labels": {timeline.VERIFIED: "true"}, "annotations": {RECORD_ANNOTATION: encode_record(_PROOF)}}
    names = (f"{_PREFIX_OF_VERIFIED}-{number}" for number in range(orders.verified))
    return {name: _encoded(orders, name, [], **body) for name in names}


def gated(orders: Orders) -> dict[str, bytes]:
    gate = lab.Taint(timeline.GATE_KEY, timeline.GATE_EFFECT, timeline.GATE_VALUE)
    return {name: _encoded(orders, name, [gate]) for name in map(gated_name, range(orders.gated))}


def gated_name(number: int) -> str:
    return f"{PREFIX}-{number}"


def departures(old: Sequence[str], new: Sequence[str], rate: float) -> list[str]:
    """Return which node each new one replaces: the oldest, or occasionally one that was created a second ago."""
    waiting, leaving = iter([*old, *new]), list[str]()
    for number in range(len(new) if old else 0):
        young = number - round(rate)
        if young >= 0 and number % _YOUNG_ONE_IN == _YOUNG_ONE_IN - 1 and new[young] not in leaving:
            leaving.append(new[young])
        else:
            leaving.append(next(name for name in waiting if name not in leaving))
    return leaving


def _encoded(
    orders: Orders,
    name: str,
    taints: Sequence[lab.Taint],
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> bytes:
    node = node_object(name, orders.kubernetes, taints, labels or {}).to_dict()
    node["metadata"]["annotations"] |= annotations or {}
    if not orders.kubelets:
        node["status"]["conditions"] = heartbeat()["status"]["conditions"]
        if not taints:  # the pods of gated ones are simulated anyway
            del node["metadata"]["annotations"][simulated_stages.ANNOTATION]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Node", **node})


def heartbeat() -> dict[str, Any]:
    """Return the status that a healthy kubelet reports every five minutes."""
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
    return {"status": {"conditions": [ready]}}


async def generate(orders: Orders) -> None:
    lines = await _input()
    async with Api(orders.credentials) as api, asyncio.TaskGroup() as group:
        generator = Generator(orders, api)
        watches = generator.watches() if orders.gated else []
        tasks = [group.create_task(watch.follow()) for watch in watches]
        for watch in watches:
            await watch.begun.wait()
        _answer("prepared")
        await lines.readline()
        if orders.verified:
            await generator.create_verified()
            tasks.append(group.create_task(generator.beat()))
            _answer("created")
            await lines.readline()
        if orders.gated:
            if orders.role == "outage":
                tasks.append(group.create_task(_tell_of_first_failure(generator.seen)))
            _answer(await generator.work(watches))
            await lines.read()
        for task in tasks:
            task.cancel()


async def _tell_of_first_failure(seen: Timeline) -> None:
    await seen.reached_by_any(Moment.POD_FAILED)
    _answer("failed")


async def _input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _answer(value: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    asyncio.run(generate(msgspec.json.decode(sys.argv[1], type=Orders)))


if __name__ == "__main__":
    main()
