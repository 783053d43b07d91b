"""One node is reconciled: what is executed, what an error leads to, and when the node is due again.

tests/cluster does the same on a real API server.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from kube_node_ready.api.contract import RECORD_ANNOTATION, EventReason
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord, encode_record
from kube_node_ready.controller.cache import ClusterCache
from kube_node_ready.controller.execution import ForeignWorker
from kube_node_ready.controller.metrics import Metrics
from kube_node_ready.controller.reconciler import Reconciler
from kube_node_ready.controller.resources import Scope
from kube_node_ready.kube.errors import Conflict, KubeError, NotFound, Rejected, Throttled, Unreachable
from kube_node_ready.kube.leader_election import LeaseLost
from kube_node_ready.kube.workqueue import WorkQueue
from kube_node_ready.verification.effects import Decision, Effect, EmitEvent, OpenGate, StartAttempt, WriteStatus
from kube_node_ready.verification.model import Phase
from tests.support.model_cluster import GATE, POLICY

_NO_SERVER: Any = None
UID = "00000000-0000-0000-0000-000000000001"


class Executor:
    """Notes effects. Those of a type in `failures` fail."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.failures: dict[type, Exception] = {}

    async def apply(self, effect: Effect) -> bool:
        self.effects.append(effect)
        if failure := self.failures.get(type(effect)):
            raise failure
        return True

    async def ensure_ledger(self) -> None: ...

    @property
    def kinds(self) -> list[type]:
        return [type(effect) for effect in self.effects]

    @property
    def events(self) -> list[EventReason]:
        return [effect.reason for effect in self.effects if isinstance(effect, EmitEvent)]


class World:
    def __init__(self) -> None:
        self.metrics = Metrics(POLICY)
        self.queue = WorkQueue()
        self.cache = ClusterCache(_NO_SERVER, POLICY, Scope("default", 10, 1), self.metrics, self.queue)
        self.executor = Executor()
        self.reconciler = Reconciler(self.cache, self.executor, self.queue, POLICY, self.metrics)
        self._version = 0

    def node(self, event: str = "ADDED", **annotations: str) -> None:
        self._version += 1
        metadata = {"name": "a", "uid": UID, "resourceVersion": str(self._version), "annotations": annotations}
        wire = {"metadata": metadata, "spec": {"taints": [GATE]}}
        self.cache._nodes._on_line(json.dumps({"type": event, "object": wire}, separators=(",", ":")).encode())

    def record(self, record: VerificationRecord, event: str = "MODIFIED") -> None:
        self.node(event, **{RECORD_ANNOTATION: encode_record(record)})

    def counted(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"kube_node_ready_controller_{name}_total", labels) or 0


def in_world(check: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        await check(World())

    asyncio.run(run())


def test_a_gated_node_gets_a_worker() -> None:
    async def check(world: World) -> None:
        world.node()
        await world.reconciler.process("a")
        assert world.executor.kinds == [StartAttempt]
        assert world.reconciler.phases == {"a": Phase.VERIFYING}

    in_world(check)


def test_a_node_that_is_gone_is_forgotten() -> None:
    async def check(world: World) -> None:
        world.node()
        await world.reconciler.process("a")
        world.node("DELETED")
        await world.reconciler.process("a")
        assert world.reconciler.phases == {}

    in_world(check)


@pytest.mark.parametrize(
    "error", [Rejected(403, "Forbidden", "no pods here"), NotFound(404, "NotFound", "no namespace")]
)
def test_a_rejected_worker_is_a_failed_attempt(error: Exception) -> None:
    async def check(world: World) -> None:
        world.executor.failures[StartAttempt] = error
        world.node()
        await world.reconciler.process("a")
        assert world.executor.kinds == [StartAttempt, EmitEvent, WriteStatus]
        (write,) = [effect for effect in world.executor.effects if isinstance(effect, WriteStatus)]
        assert (write.record.attempt, write.record.cause) == (1, Cause.REFUSED)
        assert world.reconciler.phases == {"a": Phase.FAILED}

    in_world(check)


def test_a_foreign_worker_is_a_failed_attempt() -> None:
    async def check(world: World) -> None:
        world.executor.failures[StartAttempt] = ForeignWorker("pod x runs something else")
        world.node()
        await world.reconciler.process("a")
        (write,) = [effect for effect in world.executor.effects if isinstance(effect, WriteStatus)]
        assert (write.record.cause, write.record.reason) == (Cause.STOPPED, "pod x runs something else")

    in_world(check)


def test_a_rejected_record_is_reported_on_the_node_once_per_message() -> None:
    async def check(world: World) -> None:
        world.executor.failures |= {
            StartAttempt: Rejected(403, "Forbidden", "no pods here"),
            WriteStatus: Rejected(422, "Invalid", "no records here"),
        }
        world.node()
        for _ in range(2):
            await world.reconciler.process("a")
        assert world.executor.events.count(EventReason.RECORD_REJECTED) == 1
        assert world.counted("reconcile_errors") == 2

    in_world(check)


@pytest.mark.parametrize(
    "error", [Throttled(429, "TooManyRequests", "a webhook"), Unreachable(500, "Error", "a webhook")]
)
def test_a_release_that_fails_five_times_in_a_row_is_reported(error: KubeError) -> None:
    async def check(world: World) -> None:
        world.executor.failures[OpenGate] = error
        world.node()
        snapshot = world.cache.state.snapshot("a", datetime.now(UTC))
        assert snapshot
        opening = Decision(Phase.VERIFIED, "", (OpenGate(snapshot.node, VerificationRecord(1), "1"),))
        for times in range(1, 6):
            with suppress(KubeError):
                await world.reconciler._execute(snapshot, opening)
            assert (EventReason.RELEASE_REJECTED in world.executor.events) is (times == 5)

    in_world(check)


@pytest.mark.parametrize(
    ("error", "conflicts", "errors"),
    [
        (Conflict(409, "Conflict", "it changed"), 1, 0),
        (Unreachable(0, "Timeout", "no answer"), 0, 1),
        (Throttled(429, "TooManyRequests", "later"), 0, 1),
        (ZeroDivisionError("a bug"), 0, 1),
    ],
)
def test_an_error_affects_one_node_which_is_queued_again(error: Exception, conflicts: int, errors: int) -> None:
    async def check(world: World) -> None:
        world.node()
        world.queue.clear()
        world.executor.failures[StartAttempt] = error
        await world.reconciler.process("a")
        assert "a" in world.queue
        assert (world.counted("lost_races"), world.counted("reconcile_errors")) == (conflicts, errors)

    in_world(check)


def test_a_lost_lease_ends_the_process() -> None:
    async def check(world: World) -> None:
        world.node()
        world.executor.failures[StartAttempt] = LeaseLost("it is no longer held")
        with pytest.raises(LeaseLost):
            await world.reconciler.process("a")

    in_world(check)


def test_a_record_of_another_client_is_reported() -> None:
    async def check(world: World) -> None:
        world.cache.records.expect_no_others(datetime.now(UTC))
        world.node()
        world.record(VerificationRecord(1, outcome=Outcome.PASSED))
        for _ in range(2):
            await world.reconciler.process("a")
        assert world.executor.events.count(EventReason.RECORD_CHANGED) == 1
        assert world.metrics.registry.get_sample_value("kube_node_ready_records_changed_total") == 1

    in_world(check)


def test_a_node_that_causes_too_many_writes_is_reconciled_later() -> None:
    async def check(world: World) -> None:
        world.node()
        for _ in range(100):
            world.cache.pace.wrote("a")
        world.queue.clear()
        await world.reconciler.process("a")
        assert world.executor.effects == []
        assert "a" in world.queue

    in_world(check)
