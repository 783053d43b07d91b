"""What must hold of a Lease, shared: tests/unit plays it in virtual time, tests/cluster against a real API server.

Each scenario gets a Stage. Its times are short, and what a scenario asserts leaves room for a slow machine.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
import pytest

from kube_node_ready.kube.errors import KubeError
from kube_node_ready.kube.leader_election import LeaderElector, LeaseClient, LeaseConfig, LeaseLost

DURATION, RENEW, RETRY = 4.0, 2.5, 0.5


class Outage(Protocol):
    """The API server does not respond until the outage ends."""

    async def begin(self) -> None: ...
    async def end(self) -> None: ...


@dataclass
class Stage:
    kube: LeaseClient
    namespace: str
    name: str
    remove: Callable[[], Awaitable[None]]
    outage: Outage | None = None
    transitions: list[str] = field(default_factory=list)

    def candidate(self, identity: str) -> LeaderElector:
        return LeaderElector(self.kube, self.terms(identity), on_transition=self.transitions.append)

    def terms(self, identity: str) -> LeaseConfig:
        return LeaseConfig(self.namespace, self.name, identity, DURATION, RENEW, RETRY)

    async def spec(self) -> dict[str, Any]:
        decoded = msgspec.json.decode(await self.kube.get(self.terms("anyone").path))
        assert isinstance(decoded["spec"], dict)
        return decoded["spec"]

    async def write(self, spec: dict[str, Any], **metadata: object) -> None:
        """As another client would, unconditionally."""
        terms = self.terms("anyone")
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self.name}, "spec": spec}
        try:
            found = msgspec.json.decode(await self.kube.get(terms.path))
        except KubeError:
            await self.kube.create(terms.collection, msgspec.json.encode(lease))
            return
        await self.kube.replace(terms.path, msgspec.json.encode(lease | {"metadata": found["metadata"] | metadata}))


@asynccontextmanager
async def holding(lease: LeaderElector) -> AsyncIterator[asyncio.Task[Any]]:
    """The Lease is held meanwhile, then abandoned without a release, as by a killed process."""
    await lease.acquire()
    task = asyncio.create_task(lease.renew_until_lost())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def at_most_one(leases: Iterable[LeaderElector]) -> AsyncIterator[None]:
    """At any time, at most one of them is allowed to write."""
    watched, clashes = list(leases), []

    async def watch() -> None:
        while True:
            if sum(lease.seconds_left() > 0 for lease in watched) > 1:
                clashes.append(now())
            await asyncio.sleep(0.01)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
    assert not clashes


def now() -> float:
    return asyncio.get_running_loop().time()


async def two_candidates_take_turns_and_never_write_simultaneously(stage: Stage) -> None:
    one, other = stage.candidate("one"), stage.candidate("other")
    turns: list[str] = []

    async def live(lease: LeaderElector, name: str) -> None:
        for _ in range(3):
            async with holding(lease):
                turns.append(name)
                await asyncio.sleep(2 * RETRY)
                await lease.release()
            await asyncio.sleep(RETRY)

    async with at_most_one([one, other]):
        await asyncio.gather(live(one, "one"), live(other, "other"))
    assert sorted(turns) == ["one"] * 3 + ["other"] * 3
    assert (await stage.spec())["leaseTransitions"] >= 1


async def the_holder_keeps_what_it_renews(stage: Stage) -> None:
    one, other = stage.candidate("one"), stage.candidate("other")
    async with holding(one) as held:
        waiting = asyncio.create_task(other.acquire())
        await asyncio.sleep(2.5 * DURATION)
        assert not held.done()
        assert not waiting.done()
        assert one.seconds_left() > 0
        assert other.holder == "one"
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def after_a_killed_holder_the_next_one_waits_for_the_duration(stage: Stage) -> None:
    one, other = stage.candidate("one"), stage.candidate("other")
    async with at_most_one([one, other]):
        async with holding(one):
            waiting = asyncio.create_task(other.acquire())
            await asyncio.sleep(3 * RETRY)
        killed = now()
        await waiting
        assert now() - killed > RENEW
        assert now() - killed < DURATION + 4 * RETRY + 5
    assert stage.transitions[-1] == "other"
    assert (await stage.spec())["holderIdentity"] == "other"


async def a_holder_that_cannot_renew_stops_before_another_starts(stage: Stage) -> None:
    assert stage.outage
    one, other = stage.candidate("one"), stage.candidate("other")
    async with at_most_one([one, other]), holding(one) as held:
        waiting = asyncio.create_task(other.acquire())
        await asyncio.sleep(3 * RETRY)
        began = now()
        await stage.outage.begin()
        with pytest.raises(LeaseLost, match=f"not renewed within {RENEW:g} s"):
            await held
        assert now() - began < DURATION
        assert one.seconds_left() == 0
        assert not waiting.done()
        await asyncio.sleep(DURATION)
        await stage.outage.end()
        await waiting
        assert other.seconds_left() > 0


async def a_released_lease_is_acquired_immediately(stage: Stage) -> None:
    one, other = stage.candidate("one"), stage.candidate("other")
    async with at_most_one([one, other]):
        async with holding(one):
            waiting = asyncio.create_task(other.acquire())
            await asyncio.sleep(3 * RETRY)
            await one.release()
            assert one.seconds_left() == 0
            left = await stage.spec()
            # The other might have been as quick as this read.
            assert (left["holderIdentity"], left["leaseDurationSeconds"]) in {("", 1), ("other", DURATION)}
        released = now()
        await waiting
    assert now() - released < RENEW


async def a_holder_that_restarts_with_the_same_name_continues_immediately(stage: Stage) -> None:
    async with holding(stage.candidate("one")):
        pass
    before, returned = await stage.spec(), now()
    async with holding(stage.candidate("one")):
        assert now() - returned < RENEW
    after = await stage.spec()
    assert after["leaseTransitions"] == before["leaseTransitions"]
    assert after["acquireTime"] == before["acquireTime"]
    assert after["renewTime"] > before["renewTime"]


GARBAGE: list[dict[str, Any]] = [
    {},
    {"holderIdentity": ""},
    {"holderIdentity": "ghost"},
    {"holderIdentity": "ghost", "leaseDurationSeconds": 2**31 - 1, "renewTime": "2999-01-01T00:00:00.000000Z"},
    {"holderIdentity": "ghost", "leaseDurationSeconds": 1, "leaseTransitions": 7},
]


async def an_expired_lease_is_acquired_with_any_content(stage: Stage) -> None:
    for spec in GARBAGE:
        await stage.write(spec)
        lease, began = stage.candidate("one"), now()
        async with holding(lease):
            assert now() - began < DURATION + 4 * RETRY + 5
            if spec.get("holderIdentity"):
                assert now() - began > min(DURATION, spec.get("leaseDurationSeconds", DURATION))
            assert (await stage.spec())["leaseTransitions"] == spec.get("leaseTransitions", 0) + 1
        await lease.release()


async def edits_by_others_are_kept(stage: Stage) -> None:
    one = stage.candidate("one")
    async with holding(one) as held:
        await stage.write(await stage.spec(), labels={"team": "net"})
        await asyncio.sleep(RENEW + 2 * RETRY)
        assert not held.done()
        found = msgspec.json.decode(await stage.kube.get(stage.terms("one").path))
        assert found["metadata"]["labels"] == {"team": "net"}


async def a_holder_that_was_replaced_stops_at_its_next_renewal(stage: Stage) -> None:
    one = stage.candidate("one")
    async with holding(one) as held:
        await stage.write(await stage.spec() | {"holderIdentity": "usurper"})
        with pytest.raises(LeaseLost, match="usurper holds it now"):
            await held
        assert one.seconds_left() == 0


async def a_deleted_lease_stays_with_its_holder(stage: Stage) -> None:
    one, other = stage.candidate("one"), stage.candidate("other")
    async with at_most_one([one, other]), holding(one) as held:
        waiting = asyncio.create_task(other.acquire())
        await asyncio.sleep(3 * RETRY)
        await stage.remove()
        await asyncio.sleep(2 * DURATION)
        assert not held.done()
        assert not waiting.done()
        assert (await stage.spec())["holderIdentity"] == "one"
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def a_lease_deleted_with_its_holder_is_made_again_after_the_duration(stage: Stage) -> None:
    one, other = stage.candidate("one"), stage.candidate("other")
    async with at_most_one([one, other]):
        async with holding(one):
            waiting = asyncio.create_task(other.acquire())
            await asyncio.sleep(3 * RETRY)
        killed = now()
        await stage.remove()
        await waiting
        assert now() - killed > RENEW


ALONE = [
    two_candidates_take_turns_and_never_write_simultaneously,
    the_holder_keeps_what_it_renews,
    after_a_killed_holder_the_next_one_waits_for_the_duration,
    a_released_lease_is_acquired_immediately,
    a_holder_that_restarts_with_the_same_name_continues_immediately,
    an_expired_lease_is_acquired_with_any_content,
    edits_by_others_are_kept,
    a_holder_that_was_replaced_stops_at_its_next_renewal,
    a_deleted_lease_stays_with_its_holder,
    a_lease_deleted_with_its_holder_is_made_again_after_the_duration,
]
