"""The Lease and what is written: whoever lost the one must not do the other."""

import asyncio
import ssl

import pytest

from kube_node_ready.kube.access import Access
from kube_node_ready.kube.client import Kube
from kube_node_ready.kube.errors import Unreachable
from kube_node_ready.kube.lease import LeaseLost
from kube_node_ready.kube.limits import Limit

NOWHERE = Access("https://127.0.0.1:1", "default", ssl.create_default_context())


def test_a_write_that_waited_for_its_turn_is_not_sent_once_the_lease_is_lost() -> None:
    held = True

    def permit() -> None:
        if not held:
            raise LeaseLost("the Lease is no longer ours")

    async def write_twice() -> None:
        nonlocal held
        async with Kube(NOWHERE, limit=Limit(qps=10, burst=1), permit=permit) as kube:
            with pytest.raises(Unreachable):  # it was sent, and there is no server
                await kube.delete("/api/v1/nodes/a")
            waiting = asyncio.create_task(kube.delete("/api/v1/nodes/b"))
            await asyncio.sleep(0)
            held = False
            with pytest.raises(LeaseLost):
                await waiting

    asyncio.run(write_twice())


def test_whoever_lost_the_lease_may_still_look() -> None:
    def permit() -> None:
        raise LeaseLost("the Lease is no longer ours")

    async def look() -> None:
        async with Kube(NOWHERE, permit=permit) as kube:
            with pytest.raises(Unreachable):
                await kube.get("/api/v1/nodes/a")

    asyncio.run(look())
