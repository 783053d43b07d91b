"""The load, and the one who looks: a process of its own, so that its CPU is nobody else's.

usage: python -m bench.generator ORDERS

It answers with one JSON line when it is prepared, begins when it is sent a line, answers with a second JSON line when
the work is done, and ends when its input does. `bench.operator` starts it.
"""

import asyncio
import datetime as dt
import sys
import time
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

import lab
from bench import floor, journal
from bench.api import STRATEGIC_PATCH, Api, Credentials, Watch
from bench.journal import Journal, Moment
from kube_node_ready.checks.model import CHECKS
from kube_node_ready.verify import patches
from kube_node_ready.verify.model import Outcome, Record
from kube_node_ready.verify.report import CheckResult
from lab import fake_stages
from lab.fake_node import node_object
from lab.progress import say

PREFIX = "bench"
_CHECKS = tuple(CheckResult(name, ok=True, ms=12, target="10.96.0.1:443") for name in CHECKS)
_PROOF = Record(1, outcome=Outcome.PASSED, at=dt.datetime.now(dt.UTC), since=dt.datetime.now(dt.UTC), checks=_CHECKS)
"""What the controller leaves on a node it has verified."""
HEARTBEAT_SECONDS = 300
_SECONDS_BETWEEN_LINES = 5.0
_STALLED_SECONDS = 120.0
_LOOK_SECONDS = 0.1


class Orders(Struct, frozen=True):
    """What to do, to which plane."""

    role: Literal["floor", "burst", "idle"]
    nodes: int
    namespace: str
    kubernetes: str
    credentials: Credentials
    kubelets: bool = True
    """Whether something plays the nodes' kubelets. If not, they are born Ready."""
    prefix: str = PREFIX


class Result(Struct, frozen=True):
    begun: float
    moments: dict[Moment, dict[str, float]]
    pods: dict[str, str]
    """Each pod's node."""
    lost_races: int
    retries: int
    watches_resumed: int
    lists: int


class Generator:
    def __init__(self, orders: Orders, api: Api) -> None:
        self._orders = orders
        self._api = api
        self._nodes = bodies(orders)
        self._lost_races = 0
        self.seen = Journal()

    def watches(self) -> list[Watch]:
        nodes, pods = msgspec.json.Decoder(journal.Node), msgspec.json.Decoder(journal.Pod)

        def see_node(raw: Raw) -> None:
            if (node := nodes.decode(raw)).metadata.name in self._nodes:
                self.seen.see_node(node, time.time())

        def see_pod(raw: Raw) -> None:
            self.seen.see_pod(pods.decode(raw), time.time())

        return [
            self._api.watch("/api/v1/nodes", see_node),
            self._api.watch(f"/api/v1/namespaces/{self._orders.namespace}/pods", see_pod),
        ]

    async def burst(self, watches: list[Watch]) -> Result:
        """All nodes, as fast as the API server takes them, until they are released or nothing moves any more."""
        begun = time.time()
        work = asyncio.gather(*(self._one(name, body) for name, body in self._nodes.items()))
        if await self._released(work):
            await work
        else:
            work.cancel()
        return Result(
            begun=begun,
            moments=self.seen.moments,
            pods=self.seen.pods,
            lost_races=self._lost_races,
            retries=self._api.retries,
            watches_resumed=sum(watch.resumed for watch in watches),
            lists=sum(watch.listed for watch in watches),
        )

    async def create(self) -> None:
        await asyncio.gather(*(self._post(name, body) for name, body in self._nodes.items()))

    async def beat(self) -> None:
        """Every node's heartbeat in its turn, at an even rate, until cancelled."""
        pause, due = HEARTBEAT_SECONDS / len(self._nodes), time.time()
        while True:
            for name in self._nodes:
                due += pause
                await asyncio.sleep(due - time.time())
                await self._api.must("PATCH", f"/api/v1/nodes/{name}/status", heartbeat(), kind=STRATEGIC_PATCH)

    async def _one(self, name: str, body: bytes) -> None:
        node = await self._post(name, body)
        if self._orders.role == "floor":
            self._lost_races += await floor.verify(self._api, self.seen, node, self._orders.namespace)

    async def _post(self, name: str, body: bytes) -> journal.Node:
        answer = await self._api.must("POST", "/api/v1/nodes", body)
        self.seen.note(Moment.POSTED, name, time.time())
        return msgspec.json.decode(answer.body, type=journal.Node)

    async def _released(self, work: asyncio.Future[list[None]]) -> bool:
        """Wait until all nodes are released, or none has been for so long that none will be. Whether all are."""
        released, moved = 0, time.time()
        said = moved
        while (count := len(self.seen.moments[Moment.RELEASED])) < len(self._nodes):
            now = time.time()
            if count > released:
                released, moved = count, now
            if now - moved > _STALLED_SECONDS:
                say(f"no node has been released for {_STALLED_SECONDS:g} s: {progress(self.seen)}")
                return False
            if now - said > _SECONDS_BETWEEN_LINES:
                said = now
                say(progress(self.seen))
            if work.done():
                work.result()  # raises what went wrong
            await asyncio.sleep(_LOOK_SECONDS)
        return True


def progress(seen: Journal) -> str:
    return "nodes: " + ", ".join(f"{len(names)} {moment}" for moment, names in seen.moments.items())


def bodies(orders: Orders) -> dict[str, bytes]:
    """Every node's JSON by its name, made before the clock runs."""
    return {name: node_body(orders, name) for name in (f"{orders.prefix}-{number}" for number in range(orders.nodes))}


def node_body(orders: Orders, name: str) -> bytes:
    if orders.role == "idle":
        node = node_object(name, orders.kubernetes, [], {journal.VERIFIED: "true"}).to_dict()
        node["metadata"]["annotations"][patches.ANNOTATION] = patches.encode(_PROOF)
    else:
        gate = lab.Taint(journal.GATE_KEY, journal.GATE_EFFECT, journal.GATE_VALUE)
        node = node_object(name, orders.kubernetes, [gate], {}).to_dict()
    if not orders.kubelets:
        del node["metadata"]["annotations"][fake_stages.ANNOTATION]
        node["status"]["conditions"] = heartbeat()["status"]["conditions"]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Node", **node})


def heartbeat() -> dict[str, Any]:
    """What a healthy kubelet reports every five minutes."""
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
    return {"status": {"conditions": [ready]}}


async def generate(orders: Orders) -> None:
    lines = await _input()
    async with Api(orders.credentials) as api, asyncio.TaskGroup() as group:
        generator = Generator(orders, api)
        watches = generator.watches() if orders.role != "idle" else []
        tasks = [group.create_task(watch.follow()) for watch in watches]
        for watch in watches:
            await watch.begun.wait()
        _answer("prepared")
        await lines.readline()
        if orders.role == "idle":
            await generator.create()
            tasks.append(group.create_task(generator.beat()))
            _answer("created")
        else:
            _answer(await generator.burst(watches))
        await lines.read()
        for task in tasks:
            task.cancel()


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
