"""Naps, and what ends them."""

import asyncio

from kube_node_ready.controller.idle_throttle import IdleThrottle
from tests.support import virtual_time
from tests.support.virtual_time import now


def test_an_idle_process_keeps_napping() -> None:
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


def test_an_event_ends_the_nap_and_delays_the_next() -> None:
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


def test_a_busy_process_does_not_nap() -> None:
    async def main() -> None:
        assert IdleThrottle(lambda: True).pause() is None

    virtual_time.run(main())
