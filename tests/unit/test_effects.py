"""The writer and the Lease: a slow write is no reason to stop, a lost Lease is."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from kube_node_ready.effects import Setup, Writer
from kube_node_ready.kube.lease import LeaseLost
from kube_node_ready.verify.model import DropWorker
from kube_node_ready.verify.workerpod import PodTemplate
from tests.model import POLICY


class SlowKube:
    """Deletes, in its own time."""

    def __init__(self) -> None:
        self.deleted = False

    async def delete(self, *_: object, **__: object) -> None:
        await asyncio.sleep(0.2)
        self.deleted = True


class Stores:
    def worker_dropped(self, uid: str) -> None:
        pass


def a_writer(kube: SlowKube, lease: list[float]) -> Writer:
    """`lease`: what is left of it, each time someone asks; the last stays."""

    def left() -> float:
        return lease.pop(0) if len(lease) > 1 else lease[0]

    setup = Setup(lambda: datetime.now(UTC), left, "me", "/ledger")
    return Writer(cast("Any", kube), cast("Any", Stores()), POLICY, PodTemplate("ns", "image", ()), setup)


def test_a_write_that_takes_longer_than_the_lease_had_left_goes_on_while_it_is_renewed() -> None:
    kube = SlowKube()
    assert asyncio.run(a_writer(kube, [0.05, 0.05, 10]).apply(DropWorker("pod", "uid")))
    assert kube.deleted


@pytest.mark.parametrize("lease", [[0.0], [0.05, 0.0]], ids=["lost before", "lost meanwhile"])
def test_nothing_is_written_once_the_lease_is_lost(lease: list[float]) -> None:
    kube = SlowKube()
    with pytest.raises(LeaseLost):
        asyncio.run(a_writer(kube, lease).apply(DropWorker("pod", "uid")))
    assert not kube.deleted
