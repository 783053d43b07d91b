"""The queue of keys: none lost, none processed twice simultaneously, none too early."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_node_ready.kube.workqueue import WorkQueue
from tests.support import virtual_time
from tests.support.virtual_time import now


def in_virtual_time(main: Coroutine[Any, Any, None]) -> None:
    virtual_time.run(main)


async def nothing_comes(queue: WorkQueue, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await queue.get()
    except TimeoutError:
        return True
    return False


def test_a_key_added_many_times_is_handed_out_once() -> None:
    async def main() -> None:
        queue = WorkQueue()
        for _ in range(10):
            queue.add("a")
        assert len(queue) == 1
        assert await queue.get() == "a"
        queue.done("a")
        assert await nothing_comes(queue, 3600)

    in_virtual_time(main())


def test_clear_removes_waiting_keys_and_accepts_later_ones() -> None:
    async def main() -> None:
        waits: list[float] = []
        queue = WorkQueue(on_wait=waits.append)
        queue.add("old")
        await asyncio.sleep(60)
        queue.clear()
        queue.add("new")
        assert await queue.get() == "new"
        queue.done("new")
        assert await nothing_comes(queue, 3600)
        assert waits == [0]

    in_virtual_time(main())


def test_keys_come_in_the_order_they_became_due() -> None:
    async def main() -> None:
        queue = WorkQueue()
        queue.add("late", after=2)
        queue.add("one")
        queue.add("soon", after=1)
        queue.add("two")
        assert [await queue.get() for _ in range(4)] == ["one", "two", "soon", "late"]

    in_virtual_time(main())


@pytest.mark.parametrize(("first", "second"), [(60, 5), (5, 60)])
def test_a_key_keeps_its_earliest_time(first: float, second: float) -> None:
    async def main() -> None:
        queue, began = WorkQueue(), now()
        queue.add("a", after=first)
        queue.add("a", after=second)
        assert await queue.get() == "a"
        assert now() - began == pytest.approx(5)
        queue.done("a")
        assert await nothing_comes(queue, 3600)

    in_virtual_time(main())


def test_an_earlier_key_wakes_waiters_for_a_later_one() -> None:
    async def main() -> None:
        queue, began = WorkQueue(), now()
        queue.add("later", after=60)
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        queue.add("sooner", after=2)
        assert await waiting == "sooner"
        assert now() - began == pytest.approx(3)

    in_virtual_time(main())


def test_keys_that_are_due_together_are_taken_together() -> None:
    async def main() -> None:
        queue, began = WorkQueue(), now()
        crew = [asyncio.create_task(queue.get()) for _ in range(3)]
        for key in ("a", "b", "c"):
            queue.add(key, after=5)
        assert set(await asyncio.gather(*crew)) == {"a", "b", "c"}
        assert now() - began == pytest.approx(5)

    in_virtual_time(main())


def test_a_key_added_while_processing_is_requeued_when_done() -> None:
    async def main() -> None:
        queue = WorkQueue()
        queue.add("a")
        await queue.get()
        queue.add("a")
        assert await nothing_comes(queue, 60)
        queue.done("a")
        assert await queue.get() == "a"

    in_virtual_time(main())


def test_retries_back_off_to_half_a_minute_until_forgotten() -> None:
    async def main() -> None:
        queue = WorkQueue()
        queue.add("a")
        pauses = []
        for _ in range(14):
            asked = now()
            await queue.get()
            pauses.append(now() - asked)
            queue.retry("a")
            queue.done("a")
        for failures, pause in enumerate(pauses[1:]):
            longest = min(0.05 * 2**failures, 30)
            assert longest / 2 <= pause + 1e-9
            assert pause <= longest + 1e-9
        await queue.get()
        queue.forget("a")
        queue.retry("a")
        queue.done("a")
        asked = now()
        await queue.get()
        assert now() - asked <= 0.05 + 1e-9

    in_virtual_time(main())


def test_a_key_can_fail_indefinitely() -> None:
    async def main() -> None:
        queue = WorkQueue()
        for _ in range(5000):
            queue.retry("a")
            await queue.get()
            queue.done("a")

    in_virtual_time(main())


def test_depth_counts_what_is_due_and_waiting_measures_how_long() -> None:
    async def main() -> None:
        waited: list[float] = []
        queue = WorkQueue(waited.append)
        queue.add("now")
        queue.add("soon", after=1)
        queue.add("later", after=100)
        assert (queue.depth, len(queue)) == (1, 3)
        await asyncio.sleep(4)
        assert queue.depth == 2
        await queue.get()
        await queue.get()
        assert queue.depth == 0
        assert waited == pytest.approx([4, 3])

    in_virtual_time(main())


def test_a_canceled_worker_leaves_its_key_to_another() -> None:
    """It can be canceled after it was woken and before it took the key."""

    async def main() -> None:
        queue = WorkQueue()
        leaving, staying = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        queue.add("a")
        leaving.cancel()
        with suppress(asyncio.CancelledError):
            await leaving
        async with asyncio.timeout(1):
            assert await staying == "a"

    in_virtual_time(main())


def test_rescheduled_keys_do_not_grow_the_heap() -> None:
    async def main() -> None:
        queue = WorkQueue()
        for _ in range(10_000):
            queue.add("a", after=3600)
            queue.add("a")
            await queue.get()
            queue.done("a")
        assert len(queue._heap) < 200

    in_virtual_time(main())


keys = st.sampled_from("abcd")
steps = st.one_of(
    st.tuples(st.just("add"), keys, st.sampled_from([0, 0, 0.5, 1, 7])),
    st.tuples(st.just("sleep"), st.just(""), st.sampled_from([0, 0.1, 1, 3])),
    st.tuples(st.just("leave"), st.just(""), st.just(0)),
)


@given(st.lists(steps, max_size=40), st.integers(1, 3), st.lists(st.sampled_from([0, 0.2, 2]), min_size=1, max_size=5))
def test_no_key_is_lost_duplicated_or_early(
    script: list[tuple[str, str, float]], workers: int, labour: list[float]
) -> None:
    """Whatever is added when, with any number of workers, some of which are canceled."""
    in_virtual_time(_play(script, workers, labour))


async def _play(script: list[tuple[str, str, float]], workers: int, labour: list[float]) -> None:
    queue = WorkQueue()
    expected: dict[str, float] = {}
    in_work: set[str] = set()

    async def work() -> None:
        for turn in range(10_000):
            key = await queue.get()
            assert key not in in_work
            assert expected.pop(key) <= now()
            in_work.add(key)
            await asyncio.shield(asyncio.create_task(finish(key, labour[turn % len(labour)])))

    async def finish(key: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        in_work.remove(key)
        queue.done(key)

    crew = [asyncio.create_task(work()) for _ in range(workers)]
    for what, key, seconds in script:
        if what == "add":
            queue.add(key, seconds)
            expected[key] = min(expected.get(key, float("inf")), now() + seconds)
        elif what == "sleep":
            await asyncio.sleep(seconds)
        else:
            crew.append(asyncio.create_task(work()))
            crew.pop(0).cancel()
    await asyncio.sleep(200)
    assert not expected, "keys were lost"
    assert not in_work
    for worker in crew:
        assert not worker.done(), worker.exception()
        worker.cancel()
    await asyncio.gather(*crew, return_exceptions=True)
