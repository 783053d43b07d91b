"""Leases in virtual time, on a server that exists in memory; tests/cluster/test_lease.py plays the same scenarios."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from kube_node_ready.kube.errors import AlreadyExists, Conflict, NotFound, Rejected, Unreachable
from kube_node_ready.kube.leader_election import LeaderElector, LeaseConfig, LeaseLost
from tests.support import virtual_time
from tests.support.scenarios import lease as lease_scenarios
from tests.support.scenarios.lease import Stage, holding

Scenario = Callable[[Stage], Awaitable[None]]
LATENCY = 0.02


class Memory:
    """As much of an API server as a Lease can tell from a real one. It can stop answering, or lose its answers."""

    def __init__(self) -> None:
        self._stored: dict[str, dict[str, Any]] = {}
        self._version = 0
        self._answers = asyncio.Event()
        self._answers.set()
        self.lose_answers = False
        self.refusal: Rejected | None = None
        self.calls: list[str] = []

    async def begin(self) -> None:
        self._answers.clear()

    async def end(self) -> None:
        self._answers.set()

    async def get(self, path: str) -> bytes:
        await self._travel("get")
        if path not in self._stored:
            raise NotFound(404, "NotFound", path)
        return msgspec.json.encode(self._stored[path])

    async def create(self, path: str, body: bytes) -> bytes:
        await self._travel("create")
        lease = msgspec.json.decode(body)
        path = f"{path}/{lease['metadata']['name']}"
        if path in self._stored:
            raise AlreadyExists(409, "AlreadyExists", path)
        return await self._store(path, lease)

    async def replace(self, path: str, body: bytes) -> bytes:
        await self._travel("replace")
        lease = msgspec.json.decode(body)
        if path not in self._stored:
            raise NotFound(404, "NotFound", path)
        if lease["metadata"]["resourceVersion"] != self._stored[path]["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict", path)
        return await self._store(path, lease)

    async def clear(self) -> None:
        self._stored.clear()

    async def _travel(self, call: str) -> None:
        self.calls.append(call)
        await asyncio.sleep(LATENCY)
        await self._answers.wait()
        if self.refusal:
            raise self.refusal

    async def _store(self, path: str, lease: dict[str, Any]) -> bytes:
        self._version += 1
        lease["metadata"]["resourceVersion"] = str(self._version)
        self._stored[path] = lease
        if self.lose_answers:
            raise Unreachable(0, "Unreachable", "cut")
        await asyncio.sleep(LATENCY)
        return msgspec.json.encode(lease)


def play(scenario: Callable[[Stage, Memory], Awaitable[None]]) -> None:
    async def main() -> None:
        memory = Memory()
        await scenario(Stage(memory, "here", "leader", memory.clear, memory), memory)

    virtual_time.run(main())


@pytest.mark.parametrize(
    "scenario",
    [*lease_scenarios.ALONE, lease_scenarios.a_holder_that_cannot_renew_stops_before_another_starts],
    ids=lambda scenario: scenario.__name__,
)
def test_in_virtual_time(scenario: Scenario) -> None:
    play(lambda stage, _: scenario(stage))


def test_a_renewal_counts_from_the_time_it_was_sent() -> None:
    async def scenario(stage: Stage, _: Memory) -> None:
        lease = stage.candidate("one")
        await lease.acquire()
        assert lease.seconds_left() == pytest.approx(lease_scenarios.RENEW - 2 * LATENCY)

    play(scenario)


def test_a_renewal_whose_answer_is_lost_does_not_count_and_does_not_confuse() -> None:
    async def scenario(stage: Stage, memory: Memory) -> None:
        lease = stage.candidate("one")
        async with holding(lease) as held:
            memory.lose_answers = True
            await asyncio.sleep(lease_scenarios.RENEW / 2)
            assert lease.seconds_left() < lease_scenarios.RENEW / 2 + lease_scenarios.RETRY
            memory.lose_answers = False
            await asyncio.sleep(lease_scenarios.RENEW)
            assert not held.done()
            assert lease.seconds_left() > lease_scenarios.RENEW / 2

    play(scenario)


def test_a_release_right_after_a_lost_answer_still_releases() -> None:
    async def scenario(stage: Stage, memory: Memory) -> None:
        lease = stage.candidate("one")
        async with holding(lease):
            memory.lose_answers = True
            await asyncio.sleep(1.5 * lease_scenarios.RETRY)
            memory.lose_answers = False
            await lease.release()
        assert (await stage.spec())["holderIdentity"] == ""

    play(scenario)


def test_holding_takes_one_write_per_period_and_no_read() -> None:
    async def scenario(stage: Stage, memory: Memory) -> None:
        async with holding(stage.candidate("one")):
            memory.calls.clear()
            await asyncio.sleep(10 * lease_scenarios.RETRY)
        assert set(memory.calls) == {"replace"}
        assert len(memory.calls) <= 10

    play(scenario)


def test_a_missing_permission_on_leases_is_logged_and_retried() -> None:
    async def scenario(stage: Stage, memory: Memory) -> None:
        complaints: list[str] = []
        lease = LeaderElector(memory, stage.terms("one"), on_error=complaints.append)
        memory.refusal = Rejected(403, "Forbidden", "leases is forbidden")
        waiting = asyncio.create_task(lease.acquire())
        await asyncio.sleep(10)
        assert complaints[0] == "the Lease here/leader: leases is forbidden (403 Forbidden)"
        memory.refusal = None
        await waiting

    play(scenario)


def test_releasing_what_is_not_held_does_nothing() -> None:
    async def scenario(stage: Stage, memory: Memory) -> None:
        await stage.candidate("one").release()
        assert not memory.calls

    play(scenario)


def test_a_lost_lease_can_be_acquired_again() -> None:
    async def scenario(stage: Stage, memory: Memory) -> None:
        lease = stage.candidate("one")
        async with holding(lease) as held:
            await memory.begin()
            with pytest.raises(LeaseLost):
                await held
            await memory.end()
        async with holding(lease):
            assert lease.seconds_left() > 0

    play(scenario)


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_unsafe_lease_durations_are_rejected(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="each must be longer than the next"):
        LeaseConfig("here", "leader", "one", *times)


def test_a_holder_without_a_name_is_rejected() -> None:
    with pytest.raises(ValueError, match=r'^identity: "" is invalid; expected'):
        LeaseConfig("here", "leader", "")
