"""What the controller keeps of a flood of pods that pass for one node's workers."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import msgspec

from kube_node_ready.api.contract import RECORD_ANNOTATION
from kube_node_ready.api.objects import Pod
from kube_node_ready.api.record import VerificationRecord, encode_record
from kube_node_ready.controller.cache import ClusterCache
from kube_node_ready.controller.metrics import Metrics
from kube_node_ready.controller.resources import Scope
from kube_node_ready.kube.workqueue import WorkQueue
from kube_node_ready.verification.worker_pod import worker_name
from tests.support.model_cluster import POLICY

UID = "00000000-0000-0000-0000-000000000001"
PODS = 1000
REPORT = {
    "v": 1,
    "checks": [{"name": f"check-{n}", "ok": False, "target": "x" * 20, "error": "y" * 20} for n in range(40)],
}


_NO_SERVER: Any = None


def a_pod(attempt: int, version: str) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": UID}
    metadata = {"name": worker_name(UID, attempt), "uid": f"pod-{attempt}", "resourceVersion": version}
    ended = {"name": "worker", "state": {"terminated": {"exitCode": 1, "message": json.dumps(REPORT)}}}
    status = {"phase": "Failed", "containerStatuses": [ended]}
    return {"metadata": {**metadata, "ownerReferences": [owner]}, "spec": {"nodeName": "a"}, "status": status}


def watched(kind: dict[str, Any], event: str = "ADDED") -> bytes:
    return json.dumps({"type": event, "object": kind}, separators=(",", ":")).encode()


async def flooded(pods: int) -> ClusterCache:
    cache = ClusterCache(_NO_SERVER, POLICY, Scope("default", 10, 1), Metrics(POLICY), WorkQueue())
    node = {"metadata": {"name": "a", "uid": UID, "resourceVersion": "1"}}
    cache._nodes._on_line(watched(node))
    for attempt in range(pods, 0, -1):
        cache._pods._on_line(watched(a_pod(attempt, str(2 + pods - attempt))))
    return cache


def test_few_reports_of_a_flood_are_kept_and_the_one_that_is_due_is_among_them() -> None:
    """It comes last here."""
    workers = asyncio.run(flooded(PODS))._pods.objects
    assert len(workers) == PODS
    kept = {worker.number for worker in workers.values() if worker and worker.report}
    assert 1 in kept
    assert len(kept) <= 17


def test_the_pod_with_the_due_workers_name_is_kept_in_a_flood() -> None:
    """Otherwise its node would wait without end: the name is taken, and no worker is seen."""
    due = 500

    async def seen() -> list[int]:
        cache = await flooded(PODS)
        record = encode_record(VerificationRecord(attempt=due - 1))
        node = {
            "metadata": {"name": "a", "uid": UID, "resourceVersion": "9999", "annotations": {RECORD_ANNOTATION: record}}
        }
        cache._nodes._on_line(watched(node, "MODIFIED"))
        pod = msgspec.convert(a_pod(due, str(2 + PODS - due)), Pod)
        cache.worker_found(pod)
        snapshot = cache.state.snapshot("a", datetime.now(UTC))
        assert snapshot
        return [attempt.number for attempt in snapshot.attempts]

    assert due in asyncio.run(seen())
