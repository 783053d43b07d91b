"""One node as JSON: the objects of `status -o json`. Keys are added, and never change their meaning."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from kube_node_ready.api.report import printable
from kube_node_ready.cli import words
from kube_node_ready.cli.fleet import NodeStatus

_LONGEST_NAME = 253


class Check(Struct, frozen=True):
    name: Annotated[str, Meta(description="`dns`, `api`, …")]
    ok: Annotated[bool, Meta(description="whether it passed")]
    ms: Annotated[int, Meta(description="how long it took, in milliseconds")]
    applies: Annotated[bool, Meta(description="`false` if there was nothing to check, such as too few peers")] = True


class Next(Struct, frozen=True):
    seconds: Annotated[float, Meta(description="from now")]
    at: Annotated[datetime, Meta(description="the same as a time")]


class WorkerPod(Struct, frozen=True):
    name: Annotated[str, Meta(description="of the pod")]
    namespace: Annotated[str, Meta(description="of the pod")]
    attempt: Annotated[int, Meta(description="which attempt it makes, or made")]
    state: Annotated[str, Meta(description="`pending`, `running`, `passed` or `failed`")]
    reason: Annotated[str, Meta(description="why it failed, or what it waits for")]


class NodeStatusJson(Struct, frozen=True, rename="camel"):
    """`NodeStatusJson` of a `NodeStatus`."""

    name: Annotated[str, Meta(description="of the node")]
    phase: Annotated[str, Meta(description="see [operator.md](reference/operator.md#a-nodes-life)")]
    reason: Annotated[str, Meta(description="why it is in this phase, in the controller's words")]
    waits_for: Annotated[str, Meta(description="the last column of the table; empty if all is well")]
    verified: Annotated[bool, Meta(description="whether the node is open, and passed")]
    gated: Annotated[bool, Meta(description="whether a gate taint is on it")]
    labelled: Annotated[bool, Meta(description="whether the label of verified nodes is on it")]
    attempt: Annotated[int, Meta(description="the attempt that runs, or the last one; 0 before the first")]
    failures: Annotated[int, Meta(description="in a row, up to the last attempt")]
    outcome: Annotated[str, Meta(description="of the last attempt: `pending`, `passed` or `failed`")]
    error: Annotated[str, Meta(description="why the last attempt did not pass")]
    checks: Annotated[tuple[Check, ...], Meta(description="of the last attempt that ended")]
    next: Annotated[
        Next | None, Meta(description="when something happens by itself: a retry, a deadline, the next check")
    ]
    worker: Annotated[WorkerPod | None, Meta(description="the worker pod, if there is one")]
    since: Annotated[datetime | None, Meta(description="since when the outcome is what it is")]
    at: Annotated[datetime | None, Meta(description="when the last attempt ended")]
    created: Annotated[datetime | None, Meta(description="when the node joined")]
    gates: Annotated[tuple[str, ...], Meta(description="its gate taints, as `key:effect`")]
    pool: Annotated[str, Meta(description="its NodePool or node group")]
    boot: Annotated[str, Meta(description="the boot it runs in")]
    removal_paused: Annotated[bool, Meta(description="whether the removal of this node is paused")]
    deleting: Annotated[bool, Meta(description="whether it is being deleted")]


def to_json(status: NodeStatus, namespace: str) -> NodeStatusJson:
    """`namespace` is that of worker pods."""
    node, record = status.node, status.node.record
    return NodeStatusJson(
        name=printable(node.name, _LONGEST_NAME),
        phase=status.phase.value,
        reason=printable(status.decision.reason, words.LONGEST),
        waits_for=status.waits_for,
        verified=status.verified,
        gated=bool(status.gates),
        labelled=node.labelled,
        attempt=status.attempt,
        failures=record.failures,
        outcome=record.outcome.value,
        error=printable(record.reason, words.LONGEST),
        checks=tuple(Check(check.name, check.ok, check.ms, check.applies) for check in record.checks),
        next=_next(status),
        worker=_worker(status, namespace),
        since=record.since,
        at=record.at,
        created=status.known.created,
        gates=tuple(printable(gate, words.LONGEST) for gate in status.gates),
        pool=printable(node.pool),
        boot=node.boot,
        removal_paused=node.removal_paused,
        deleting=node.deleting,
    )


def _next(status: NodeStatus) -> Next | None:
    due = status.due
    return Next(round((due - status.seen.now).total_seconds(), 3), due) if due else None


def _worker(status: NodeStatus, namespace: str) -> WorkerPod | None:
    worker = status.worker
    if worker is None:
        return None
    return WorkerPod(
        printable(worker.name), namespace, worker.number, worker.state.value, printable(worker.reason, words.LONGEST)
    )
