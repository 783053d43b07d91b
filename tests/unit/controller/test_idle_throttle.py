"""Naps, and what ends them."""

import asyncio

from kube_node_ready.controller.idle_throttle import IdleThrottle
from tests.support import virtual_time
from tests.support.virtual_time import now


def test_at_rest_one_nap_follows_another() -> None:
    async def main() -> None:
        attention, begun = IdleThrottle(lambda: False), now()
        for _ in range(3):
            nap = attention.pause()
            assert nap
            await nap
            assert attention.pause() is None, "what came meanwhile is read first"
            await asyncio.sleep(0.25)
        assert now() - begun == 30.75

    virtual_time.run(main())


def test_a_ring_ends_the_nap_and_keeps_us_awake_for_a_while() -> None:
    async def main() -> None:
        attention, begun = IdleThrottle(lambda: False), now()
        nap = attention.pause()
        assert nap
        asyncio.get_running_loop().call_later(2, attention.wake)
        await nap
        assert now() - begun == 2
        assert attention.pause() is None
        await asyncio.sleep(30)
        again = attention.pause()
        assert again
        await again

    virtual_time.run(main())


def test_who_is_busy_takes_no_nap() -> None:
    async def main() -> None:
        assert IdleThrottle(lambda: True).pause() is None

    virtual_time.run(main())
