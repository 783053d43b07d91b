"""Naps, and what ends them."""

import asyncio

from kube_node_ready.attention import Attention
from tests import virtual_time
from tests.virtual_time import now


def test_at_rest_one_nap_follows_another() -> None:
    async def main() -> None:
        attention, begun = Attention(lambda: False), now()
        for _ in range(3):
            nap = attention.nap()
            assert nap
            await nap
            assert attention.nap() is None, "what came meanwhile is read first"
            await asyncio.sleep(0.25)
        assert now() - begun == 30.75

    virtual_time.run(main())


def test_a_ring_ends_the_nap_and_keeps_us_awake_for_a_while() -> None:
    async def main() -> None:
        attention, begun = Attention(lambda: False), now()
        nap = attention.nap()
        assert nap
        asyncio.get_running_loop().call_later(2, attention.ring)
        await nap
        assert now() - begun == 2
        assert attention.nap() is None
        await asyncio.sleep(30)
        again = attention.nap()
        assert again
        await again

    virtual_time.run(main())


def test_who_is_busy_takes_no_nap() -> None:
    async def main() -> None:
        assert Attention(lambda: True).nap() is None

    virtual_time.run(main())
