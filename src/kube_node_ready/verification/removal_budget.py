"""The removal budget: whether a node can be removed now, and if not, why.

There are two limits. The *window*: at most a number and a percentage of a pool's nodes are removed within a period. The
*failure limits*: if many nodes are failing, the problem is cluster-wide, and replacing nodes would not help.
"""

import math
from datetime import datetime

from kube_node_ready.verification.model import FailureLimits, Ledger, Node, Removal, RemovalPolicy, Snapshot


def blocked_reason(snapshot: Snapshot, policy: RemovalPolicy) -> str | None:
    """Return why the node cannot be removed, or None if it can."""
    if snapshot.node.removal_paused:
        return "removal of this node is paused by its annotation"
    if snapshot.fleet.ledger.paused:
        return "removal of all nodes is paused"
    if snapshot.fleet.ledger.error:
        return snapshot.fleet.ledger.error
    return fleet_failure(snapshot, policy) or _removed_before(snapshot, policy) or _window_exhausted(snapshot, policy)


def fleet_failure(snapshot: Snapshot, policy: FailureLimits) -> str | None:
    """Return how many nodes are failing, if that looks like a cluster-wide problem."""
    return exceeds_failure_limits(snapshot.fleet.failing + snapshot.fleet.degraded, snapshot.fleet.managed, policy)


def is_recorded(node: Node, ledger: Ledger, now: datetime, policy: RemovalPolicy) -> bool:
    """Whether the removal of this node is in the ledger. It counts once per window."""
    return any(removal.uid == node.uid and now - removal.at < policy.window for removal in ledger.removals)


def recent(snapshot: Snapshot, policy: RemovalPolicy) -> tuple[Removal, ...]:
    """Return the removals in this node's pool that are within the window."""
    return tuple(
        removal
        for removal in snapshot.fleet.ledger.removals
        if _same_pool(removal, snapshot.node) and snapshot.now - removal.at < policy.window
    )


def _same_pool(removal: Removal, node: Node) -> bool:
    """Pools of NodeClaims and pools of labels differ: kubelets choose the labels of their Nodes."""
    return removal.pool == node.pool and removal.claimed in (None, node.claimed)


def limit(in_pool: int, policy: RemovalPolicy) -> int:
    """Return how many nodes can be removed. A percentage is rounded up, so that it allows one in a small pool."""
    return min(policy.max_count, math.ceil(in_pool * policy.max_percent / 100))


def exceeds_failure_limits(failing: int, managed: int, policy: FailureLimits) -> str | None:
    allowed = max(policy.max_failing_count, math.floor(managed * policy.max_failing_percent / 100))
    if failing <= allowed:
        return None
    return (
        f"{failing} of {managed} nodes are failing (limit {allowed}: maxFailingCount {policy.max_failing_count}, "
        f"maxFailingPercent {policy.max_failing_percent:g}), which looks like a cluster-wide problem"
    )


def _removed_before(snapshot: Snapshot, policy: RemovalPolicy) -> str | None:
    """A machine that registers again after its removal must not use up several budgets."""
    namesakes = [
        removal
        for removal in snapshot.fleet.ledger.removals
        if removal.node == snapshot.node.name
        and removal.uid != snapshot.node.uid
        and snapshot.now - removal.at < policy.window
    ]
    if not namesakes:
        return None
    ago, window = (snapshot.now - namesakes[-1].at).total_seconds(), policy.window.total_seconds()
    return (
        f"removal budget exhausted: a node named {snapshot.node.name} was removed {ago:.0f} s ago "
        f"(limit: one per {window:g} s)"
    )


def _window_exhausted(snapshot: Snapshot, policy: RemovalPolicy) -> str | None:
    if is_recorded(snapshot.node, snapshot.fleet.ledger, snapshot.now, policy):
        return None
    gone, allowed = len(recent(snapshot, policy)), limit(snapshot.fleet.in_pool, policy)
    if gone < allowed:
        return None
    pool = f"pool {snapshot.node.pool}" if snapshot.node.pool else "nodes without a pool"
    return (
        f"removal budget exhausted: {gone} of {allowed} removals used in {policy.window.total_seconds():g} s ({pool}: "
        f"{snapshot.fleet.in_pool} nodes, maxCount {policy.max_count}, maxPercent {policy.max_percent:g})"
    )
