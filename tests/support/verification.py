"""What tests of the decision core share: a moment, a node's identity and gate, and workers that have ended."""

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from kube_node_ready.api.objects import Taint
from kube_node_ready.verification.model import State, Worker

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
GATE = Taint("node-ready/unverified", "NoSchedule")


def ended_worker(number: int, state: State, **facts: Any) -> Worker:  # noqa: ANN401  its own fields
    """A confirmed worker on node `a` that was created 2.5 seconds ago."""
    created = NOW - 2.5 * SECOND
    worker = Worker(
        f"w{number}", f"pod{number}", UID, "a", number=number, created=created, state=state, finished=True, genuine=True
    )
    return replace(worker, **facts)
