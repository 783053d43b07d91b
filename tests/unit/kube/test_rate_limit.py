"""A limit that really limits."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_node_ready.kube.rate_limit import TokenBucket
from tests.support import virtual_time
from tests.support.virtual_time import now


async def moments(limit: TokenBucket, count: int) -> list[float]:
    """The times at which each of several simultaneous callers proceeds."""
    began = now()
    passed: list[tuple[int, float]] = []

    async def call(number: int) -> None:
        await limit.acquire()
        passed.append((number, now() - began))

    await asyncio.gather(*(call(number) for number in range(count)))
    assert [number for number, _ in passed] == list(range(count)), "somebody was overtaken"
    return [moment for _, moment in passed]


def test_a_burst_passes_immediately_and_the_rest_at_the_rate() -> None:
    passed = virtual_time.run(moments(TokenBucket(qps=10, burst=3), 6))
    assert passed == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


def test_qps_0_disables_the_limit() -> None:
    assert virtual_time.run(moments(TokenBucket(qps=0), 1000)) == [0] * 1000


def test_an_idle_period_restores_one_burst() -> None:
    async def twice() -> list[float]:
        limit = TokenBucket(qps=10, burst=3)
        await moments(limit, 3)
        await asyncio.sleep(3600)
        return await moments(limit, 4)

    assert virtual_time.run(twice()) == pytest.approx([0, 0, 0, 0.1])


@given(st.floats(0.1, 1000), st.integers(1, 50), st.lists(st.floats(0, 5), max_size=60))
def test_no_window_of_time_holds_more_than_burst_and_rate_allow(qps: float, burst: int, pauses: list[float]) -> None:
    async def arrivals() -> list[float]:
        limit, passed = TokenBucket(qps, burst), []

        async def call() -> None:
            await limit.acquire()
            passed.append(now())

        callers = []
        for pause in pauses:
            callers.append(asyncio.create_task(call()))
            await asyncio.sleep(pause)
        await asyncio.gather(*callers)
        return passed

    passed = virtual_time.run(arrivals())
    assert len(passed) == len(pauses)
    for first, begin in enumerate(passed):
        for last, end in enumerate(passed[first:], first):
            assert last - first + 1 <= burst + (end - begin) * qps + 1e-6 * (1 + qps)


@pytest.mark.parametrize(
    ("qps", "burst", "complaint"),
    [(-1, 1, "qps: -1 is invalid; expected 0 .no limit. or more"), (5, 0, "burst: 0 is invalid; expected 1 or more")],
)
def test_an_invalid_limit_is_rejected(qps: float, burst: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        TokenBucket(qps, burst)
