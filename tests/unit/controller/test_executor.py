"""How a worker is confirmed, and what happens if it cannot be. tests/attacks does the same on a real API server."""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from kube_node_ready.api.objects import Pod
from kube_node_ready.controller.execution import ExecutorContext, ForeignWorker
from kube_node_ready.controller.executor import Executor
from kube_node_ready.kube.errors import AlreadyExists, Conflict, KubeError, Rejected, Throttled
from kube_node_ready.verification.effects import ConfirmAttempt, StartAttempt
from kube_node_ready.verification.fingerprint import fingerprint
from kube_node_ready.verification.model import Node, Worker
from kube_node_ready.verification.worker_pod import WorkerPodTemplate, worker_name, worker_pod
from kube_node_ready.verification.worker_status import read_worker
from tests.support.model_cluster import POLICY

if TYPE_CHECKING:
    from kube_node_ready.controller.execution import CacheSink
    from kube_node_ready.kube.client import KubeClient

UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
NODE = Node("a", UID)
TEMPLATE = WorkerPodTemplate("workers", "registry.example/worker:1", POLICY.gates)
PODS = "/api/v1/namespaces/workers/pods"
Json = dict[str, Any]


class Server:
    """Answers creations with what `admit` makes of them, and has one other pod."""

    def __init__(self, there: Json | None = None) -> None:
        self.calls: list[tuple[str, str]] = []
        self.failure: KubeError | None = None
        self._there = there

    def admit(self, pod: Json) -> Json:
        mirrored = pod["spec"]["containers"][0]["image"].replace("registry.example", "mirror.example")
        pod["spec"]["containers"][0]["image"] = mirrored
        return pod

    async def create(self, path: str, body: bytes, **params: str) -> bytes:
        self.calls.append(("dry run" if params.get("dryRun") == "All" else "create", path))
        if self.failure:
            raise self.failure
        pod = msgspec.json.decode(body)
        pod["metadata"] |= {"uid": "pod-uid", "resourceVersion": "1"}
        pod["metadata"].setdefault("name", "generated")
        return msgspec.json.encode(self.admit(pod))

    async def get(self, path: str) -> bytes:
        self.calls.append(("get", path))
        return msgspec.json.encode(self._there)

    async def delete(self, path: str, *, uid: str, grace_seconds: int) -> None:
        assert grace_seconds == 0
        self.calls.append((f"delete {uid}", path))


class Known:
    """What was reported to the controller."""

    def __init__(self) -> None:
        self.admitted: list[str] = []
        self.written: list[str] = []

    def worker_admitted(self, known: str) -> None:
        self.admitted.append(known)

    def worker_written(self, pod: Pod) -> None:
        self.written.append(pod.metadata.name)

    worker_found = worker_written


def a_writer(server: Server, known: Known) -> Executor:
    setup = ExecutorContext(lambda: datetime.now(UTC), "test", "")
    return Executor(cast("KubeClient", server), cast("CacheSink", known), POLICY, TEMPLATE, setup)


def a_pod(server: Server, **metadata: Any) -> Json:  # noqa: ANN401  as in JSON
    pod = worker_pod(NODE, 1, TEMPLATE)
    pod["metadata"] |= {"uid": "old-uid", "resourceVersion": "1"} | metadata
    return server.admit(pod)


def a_worker(pod: Json) -> Worker:
    worker = read_worker(msgspec.convert(pod, Pod))
    assert worker
    return worker


def test_a_worker_is_confirmed_by_what_admission_makes_of_the_template() -> None:
    server, known = Server(), Known()
    worker = a_worker(a_pod(server))
    asyncio.run(a_writer(server, known).apply(ConfirmAttempt(NODE, worker)))
    assert known.admitted == [worker.fingerprint]
    assert server.calls == [("dry run", PODS)], "nothing is stored"


def test_a_worker_that_admission_did_not_make_of_the_template_is_not_confirmed() -> None:
    server, known = Server(), Known()
    worker = a_worker(worker_pod(NODE, 1, TEMPLATE))  # with the image that admission would have replaced
    with pytest.raises(ForeignWorker, match="does not match the worker template"):
        asyncio.run(a_writer(server, known).apply(ConfirmAttempt(NODE, worker)))
    assert worker.fingerprint not in known.admitted


def test_a_worker_that_cannot_be_compared_is_not_confirmed() -> None:
    server, known = Server(), Known()
    worker = a_worker(a_pod(server))
    server.failure = Rejected(400, "BadRequest", "the webhook does not support dry run")
    with pytest.raises(ForeignWorker, match=r"cannot confirm that pod .* is a worker: the webhook does not support"):
        asyncio.run(a_writer(server, known).apply(ConfirmAttempt(NODE, worker)))
    assert not known.admitted


def test_a_worker_in_progress_that_cannot_be_compared_is_left_alone() -> None:
    """Running workers can use up a quota, and then a dry run is rejected."""
    server, known = Server(), Known()
    worker = a_worker(a_pod(server))
    server.failure = Rejected(403, "Forbidden", "exceeded quota")
    assert not asyncio.run(a_writer(server, known).apply(ConfirmAttempt(NODE, worker, early=True)))
    assert not known.admitted


def test_a_worker_that_was_edited_and_edited_back_is_not_confirmed() -> None:
    """Otherwise it would be confirmed repeatedly, and its node would wait indefinitely."""
    server, known = Server(), Known()
    worker = msgspec.structs.replace(a_worker(a_pod(server)), edited=True)
    with pytest.raises(ForeignWorker, match="was changed while it ran, by another client"):
        asyncio.run(a_writer(server, known).apply(ConfirmAttempt(NODE, worker)))
    assert not server.calls


def test_a_busy_server_is_retried() -> None:
    server, known = Server(), Known()
    worker = a_worker(a_pod(server))
    server.failure = Throttled(429, "TooManyRequests", "later")
    with pytest.raises(Throttled):
        asyncio.run(a_writer(server, known).apply(ConfirmAttempt(NODE, worker)))


def test_the_answer_to_a_creation_is_what_workers_are_compared_with() -> None:
    server, known = Server(), Known()
    asyncio.run(a_writer(server, known).apply(StartAttempt(NODE, 1)))
    assert known.admitted == [fingerprint(a_pod(server)["spec"])]
    assert known.written == [worker_name(UID, 1)]


@pytest.mark.parametrize("metadata", [{"ownerReferences": []}, {"labels": {}}], ids=["owner", "labels"])
def test_a_worker_that_admission_makes_unrecognizable_is_reported(metadata: Json) -> None:
    server, known = Server(), Known()

    def admit(pod: Json) -> Json:
        pod["metadata"] |= metadata
        return pod

    server.admit = admit  # type: ignore[method-assign]
    with pytest.raises(Rejected, match="admission changed its owner or its labels"):
        asyncio.run(a_writer(server, known).apply(StartAttempt(NODE, 1)))
    assert server.calls[-1] == ("delete pod-uid", f"{PODS}/{worker_name(UID, 1)}")
    assert not known.admitted
    assert not known.written


def test_a_worker_of_a_previous_process_is_taken_over() -> None:
    server, known = Server(), Known()
    server = Server(a_pod(server))
    server.failure = AlreadyExists(409, "AlreadyExists", "it exists")
    asyncio.run(a_writer(server, known).apply(StartAttempt(NODE, 1)))
    assert known.written == [worker_name(UID, 1)]
    assert not known.admitted, "what it runs is compared when it has a result"


FOREIGN: dict[str, Json] = {
    "a mirror pod": {"annotations": {"kubernetes.io/config.mirror": "0"}},
    "of another owner": {"ownerReferences": [{"kind": "Node", "name": "b", "uid": "other"}]},
    "without labels": {"labels": {}},
}


@pytest.mark.parametrize("metadata", FOREIGN.values(), ids=FOREIGN)
def test_a_pod_that_only_has_the_name_of_a_worker_is_deleted(metadata: Json) -> None:
    known = Known()
    server = Server(a_pod(Server(), **metadata))
    server.failure = AlreadyExists(409, "AlreadyExists", "it exists")
    with pytest.raises(Conflict):
        asyncio.run(a_writer(server, known).apply(StartAttempt(NODE, 1)))
    assert server.calls[-1] == ("delete old-uid", f"{PODS}/{worker_name(UID, 1)}")
    assert not known.written


def test_a_name_held_by_a_finalizer_is_abandoned() -> None:
    known = Known()
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/hold"], "ownerReferences": []}
    server = Server(a_pod(Server(), **leaving))
    server.failure = AlreadyExists(409, "AlreadyExists", "it exists")
    with pytest.raises(ForeignWorker, match="has the name of the worker, and cannot be deleted"):
        asyncio.run(a_writer(server, known).apply(StartAttempt(NODE, 1)))
