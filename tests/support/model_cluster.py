"""A cluster in memory, for decisions: JSON objects, patches applied as the API server applies them, time that jumps.

It is small enough to be believed, and the same scenarios run against a real API server, in
tests/cluster/test_scenarios.py.
"""

import copy
import itertools
import uuid
import zlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never

import msgspec

from kube_node_ready.api import objects
from kube_node_ready.api.contract import CONDITION
from kube_node_ready.controller import removal_ledger
from kube_node_ready.controller.state import ClusterState
from kube_node_ready.verification import patches, removal_budget
from kube_node_ready.verification.decide import decide, worker_not_genuine
from kube_node_ready.verification.effects import (
    AdoptNode,
    CloseGate,
    ConfirmAttempt,
    Decision,
    DiscardAttempt,
    Effect,
    EmitEvent,
    OpenGate,
    RemoveNode,
    StartAttempt,
    WriteStatus,
)
from kube_node_ready.verification.fingerprint import fingerprint
from kube_node_ready.verification.model import Gate, Ledger, Node, Policy, Removal, Snapshot, Worker
from kube_node_ready.verification.node_reader import read_node
from kube_node_ready.verification.worker_pod import WorkerPodTemplate, worker_name, worker_pod
from kube_node_ready.verification.worker_status import read_worker

GATE = {"key": "node-ready/unverified", "value": "true", "effect": "NoSchedule"}
POLICY = Policy((Gate("node-ready/unverified", "NoSchedule"),))
START = datetime(2026, 1, 1, tzinfo=UTC)
LABEL = "node-ready/verified"
Json = dict[str, Any]
_SOON, _LATER = timedelta(seconds=0.5), timedelta(seconds=30)


class LostRace(Exception):  # noqa: N818  as in the product
    """The patch says what is no longer so."""


class Cluster:
    """Nodes and worker pods. `verdict` says how a node's workers end: passes, fails, hangs, or is stuck."""

    def __init__(self, policy: Policy = POLICY, slots: int = 100) -> None:
        self.policy = policy
        self.now = START
        self.nodes: dict[str, Json] = {}
        self.pods: dict[str, Json] = {}
        self.news: dict[str, EmitEvent] = {}
        self.removed: list[Removal] = []
        self.ledger = Ledger()
        self.verdicts: dict[str, str] = {}
        self.writes = 0
        self._slots = slots
        self._uids = (str(uuid.UUID(int=number)) for number in itertools.count(1))
        self._template = WorkerPodTemplate("kube-system", "image:1", policy.gates)
        self._admitted: set[str] = set()
        self._witnessed: dict[str, int] = {}

    # What others do.

    def join(self, name: str, *, taints: Iterable[Json] = (GATE,), verdict: str = "passes", **metadata: object) -> None:
        self.nodes[name] = {
            "metadata": {"name": name, "uid": next(self._uids), "labels": {}, "annotations": {}, **metadata},
            "spec": {"taints": copy.deepcopy(list(taints))},
            "status": {"nodeInfo": {"bootID": "boot-1"}, "conditions": []},
        }
        self.verdicts[name] = verdict

    def leave(self, name: str) -> None:
        del self.nodes[name]

    def unlabel(self, name: str) -> None:
        self.nodes[name]["metadata"]["labels"].pop(LABEL, None)

    def pass_time(self, span: timedelta) -> None:
        """Workers that were started end, a second after their creation. Garbage is collected."""
        self.now += span
        uids = {node["metadata"]["uid"] for node in self.nodes.values()}
        self.pods = {key: pod for key, pod in self.pods.items() if pod["metadata"]["ownerReferences"][0]["uid"] in uids}
        for pod in self.pods.values():
            age = self.now - datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
            if pod["status"]["phase"] == "Pending" and age >= timedelta(seconds=1):
                self._end(pod, self.verdicts.get(pod["metadata"]["annotations"]["kube-node-ready/target-node"], ""))

    def _end(self, pod: Json, verdict: str) -> None:
        target = pod["metadata"]["annotations"]["kube-node-ready/target-node"]
        if verdict != "unschedulable":
            pod["spec"]["nodeName"] = target
        codes = {"passes": 0, "fails": 1, "misconfigured": 2}
        if verdict in codes:
            pod["status"]["phase"] = "Succeeded" if not codes[verdict] else "Failed"
            state = {"terminated": {"exitCode": codes[verdict]}}
            pod["status"]["containerStatuses"] = [{"name": "worker", "state": state}]
        elif verdict == "stuck":
            stuck = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
            pod["status"]["containerStatuses"] = [{"name": "worker", "state": stuck}]

    # What the controller sees.

    def node(self, name: str) -> Node:
        return read_node(msgspec.convert(self.nodes[name], objects.Node), self.policy)

    def workers(self) -> list[Worker]:
        found = (read_worker(msgspec.convert(pod, objects.Pod)) for pod in self.pods.values())
        return [worker for worker in found if worker]

    def decide(self, name: str) -> Decision:
        return decide(self._snapshot(name), self.policy)

    def _snapshot(self, name: str) -> Snapshot:
        nodes = {other: self.node(other) for other in self.nodes}
        view = ClusterState(self.policy, nodes, self._slots, lambda name: _version(self.nodes[name]))
        view.ledger = self.ledger
        for node in nodes.values():
            view.node_changed(None, node)
        for worker in self.workers():
            view.worker_changed(None, worker)
        for known in self._admitted:
            view.admitted(known)
        if attempt := self._witnessed.get(nodes[name].uid):
            view.witnessed(nodes[name], attempt)
        seen = view.snapshot(name, self.now)
        assert seen
        return seen

    def step(self, name: str, *, only: int | None = None) -> Decision:
        """One look at one node. With `only`, the controller is killed after so many effects."""
        decision = self.decide(name)
        try:
            for effect in decision.effects[:only]:
                self.apply(effect)
                if isinstance(effect, WriteStatus) and decision.verdict and effect.record.cause.blames_node:
                    self._witnessed[effect.node.uid] = effect.record.attempt
        except LostRace:
            pass  # the next look decides again
        if only is not None:
            self._admitted.clear()
            self._witnessed.clear()
        return decision

    def settle(self, seconds: float, *, stop: Callable[[], bool] = lambda: False) -> None:
        """Let the controller work for so long. Time jumps to the next moment at which something is due."""
        end = self.now + timedelta(seconds=seconds)
        while self.now < end and not stop():
            looks = [self.step(name) for name in list(self.nodes) if name in self.nodes]
            busy = any(look.effects for look in looks) or any(not worker.ended for worker in self.workers())
            waits = [look.recheck for look in looks if look.recheck]
            self.pass_time(_SOON if busy else max(_SOON, min(waits, default=_LATER)))

    # What the controller does.

    def apply(self, effect: Effect) -> None:
        self.writes += 1
        match effect:
            case StartAttempt(node, number):
                self._create(node, number)
            case ConfirmAttempt(node, worker):
                self._confirm(node, worker)
            case OpenGate(node, record, version):
                self._patch(node, patches.open_gate(node, record, self.policy, version))
            case CloseGate(node, record, version):
                assert self.policy.reverification
                patch = patches.close_gate(node, record, self.policy, self.policy.reverification.gate, version)
                self._patch(node, patch)
            case WriteStatus(node, record, version):
                self._merge(node, patches.write_status(node, record, self.policy, version))
            case AdoptNode(node, record, version):
                self._annotate(node, patches.adopt_node(node, record, version))
            case EmitEvent():
                self.news.setdefault(f"{effect.node.uid}.{effect.attempt}.{effect.reason}", effect)
            case DiscardAttempt(worker):
                assert isinstance(worker, Worker)
                self._drop(worker.name, worker.uid)
            case RemoveNode(node, _, known, _):
                self._remove(node, known)
            case _:
                assert_never(effect)

    def _create(self, node: Node, attempt: int) -> None:
        if worker_name(node.uid, attempt) in self.pods:
            return
        pod = worker_pod(node, attempt, self._template)
        pod["metadata"] |= {"uid": next(self._uids), "creationTimestamp": self.now.isoformat()}
        pod["status"] = {"phase": "Pending"}
        self.pods[pod["metadata"]["name"]] = pod
        self._admitted.add(fingerprint(pod["spec"]))

    def _drop(self, name: str, uid: str) -> None:
        if name in self.pods and self.pods[name]["metadata"]["uid"] == uid:
            del self.pods[name]

    def _confirm(self, node: Node, worker: Worker) -> None:
        expected = fingerprint(worker_pod(node, worker.number, self._template)["spec"])
        self._admitted.add(expected)
        if worker.fingerprint != expected:
            seen = self._snapshot(node.name)
            for effect in worker_not_genuine(seen, worker.number, self.policy, "not a worker of ours").effects:
                self.apply(effect)

    def _find(self, node: Node) -> Json:
        if node.name not in self.nodes:
            raise LostRace
        return self.nodes[node.name]

    def _patch(self, node: Node, patch: patches.JsonPatch) -> None:
        found = self._find(node)
        versioned = {**found, "metadata": {**found["metadata"], "resourceVersion": _version(found)}}
        self.nodes[node.name] = json_patched(versioned, patch)
        del self.nodes[node.name]["metadata"]["resourceVersion"]

    def _annotate(self, node: Node, patch: Json) -> Json:
        found = self._find(node)
        version = patch["metadata"].get("resourceVersion", _version(found))
        if found["metadata"]["uid"] != patch["metadata"]["uid"] or version != _version(found):
            raise LostRace
        found["metadata"]["annotations"] |= patch["metadata"].get("annotations", {})
        return found

    def _merge(self, node: Node, patch: Json) -> None:
        found = self._annotate(node, patch)
        (condition,) = patch["status"]["conditions"]
        others = [known for known in found["status"]["conditions"] if known["type"] != condition["type"]]
        found["status"]["conditions"] = [*others, condition]

    def _remove(self, node: Node, known: Ledger) -> None:
        assert self.policy.removal
        if not removal_budget.is_recorded(node, known, self.now, self.policy.removal):
            if known != self.ledger:
                raise LostRace
            removal = Removal(node.uid, node.name, node.pool, self.now)
            entries = removal_ledger.with_removal(known.removals, removal, self.policy.removal.window, self.now)
            self.ledger = msgspec.structs.replace(known, removals=tuple(entries))
            self.removed.append(removal)
        self.leave(node.name)

    def condition(self, name: str) -> Json:
        found = self.nodes[name]["status"]["conditions"]
        return next((known for known in found if known["type"] == CONDITION), {})


def json_patched(target: Json, patch: patches.JsonPatch) -> Json:
    """All or nothing, as RFC 6902 says."""
    result = copy.deepcopy(target)
    for step in patch:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        where: Any = result
        for part in way:
            where = _at(where, part)
        if step["op"] == "test":
            if _at(where, last) != step["value"]:
                raise LostRace
        elif step["op"] == "remove":
            del where[int(last) if isinstance(where, list) else last]
        elif isinstance(where, list):
            where.insert(len(where) if last == "-" else int(last), step["value"])
        else:
            where[last] = step["value"]
    return result


def _version(node: Json) -> str:
    """A new one after each change by any client."""
    return str(zlib.crc32(msgspec.json.encode(node)))


def _at(where: Any, part: str) -> Any:  # noqa: ANN401  any JSON
    try:
        return where[int(part)] if isinstance(where, list) else where.get(part)
    except (IndexError, ValueError):
        raise LostRace from None
