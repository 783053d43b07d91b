"""May this node be removed now? If not, the numbers that say why.

Two limits, and both must hold. The *window*: of a pool's nodes, no more than a count and a share may go within a span
of time. The *crowd*: when many nodes fail at once, the cluster is broken, and replacing nodes would only spread that.
"""

import math
from datetime import datetime

from kube_node_ready.verify.model import Crowd, Ledger, Node, Removal, RemovalPolicy, Snapshot


def held(seen: Snapshot, policy: RemovalPolicy) -> str | None:
    """Why the node has to stay, or None if it may go."""
    if seen.node.removal_paused:
        return "removal of this node is paused by its annotation"
    if seen.fleet.ledger.paused:
        return "removal of all nodes is paused"
    if seen.fleet.ledger.trouble:
        return seen.fleet.ledger.trouble
    return crowd(seen, policy) or _went_before(seen, policy) or _too_many_went(seen, policy)


def crowd(seen: Snapshot, policy: Crowd) -> str | None:
    """Whether so many nodes fail at once that the cluster must be at fault; and how many."""
    return too_many_fail(seen.fleet.failing + seen.fleet.doubtful, seen.fleet.managed, policy)


def is_booked(node: Node, ledger: Ledger, now: datetime, policy: RemovalPolicy) -> bool:
    """Whether this very node's removal was written down already: within the window it need not pay twice."""
    return any(removal.uid == node.uid and now - removal.at < policy.window for removal in ledger.removals)


def recent(seen: Snapshot, policy: RemovalPolicy) -> tuple[Removal, ...]:
    """The removals in this node's pool that still weigh."""
    return tuple(
        removal
        for removal in seen.fleet.ledger.removals
        if _is_of_pool(removal, seen.node) and seen.now - removal.at < policy.window
    )


def _is_of_pool(removal: Removal, node: Node) -> bool:
    """A pool of NodeClaims is another one than a pool of labels: kubelets choose the labels of their Nodes."""
    return removal.pool == node.pool and removal.claimed in (None, node.claimed)


def limit(in_pool: int, policy: RemovalPolicy) -> int:
    """A share is rounded up, so that it does not forbid everything in a small pool."""
    return min(policy.max_count, math.ceil(in_pool * policy.max_percent / 100))


def too_many_fail(failing: int, managed: int, policy: Crowd) -> str | None:
    allowed = max(policy.max_failing_count, math.floor(managed * policy.max_failing_percent / 100))
    if failing <= allowed:
        return None
    return (
        f"{failing} of {managed} nodes fail at once, more than the {allowed} that could be the nodes' own "
        f"fault (maxFailingCount {policy.max_failing_count}, maxFailingPercent {policy.max_failing_percent:g})"
    )


def _went_before(seen: Snapshot, policy: RemovalPolicy) -> str | None:
    """A machine that registers again after its removal must not use up one budget after another."""
    namesakes = [
        removal
        for removal in seen.fleet.ledger.removals
        if removal.node == seen.node.name and removal.uid != seen.node.uid and seen.now - removal.at < policy.window
    ]
    if not namesakes:
        return None
    ago, window = (seen.now - namesakes[-1].at).total_seconds(), policy.window.total_seconds()
    return f"a node of the same name was removed {ago:.0f} s ago, and one per {window:g} s is the limit"


def _too_many_went(seen: Snapshot, policy: RemovalPolicy) -> str | None:
    if is_booked(seen.node, seen.fleet.ledger, seen.now, policy):
        return None
    gone, allowed = len(recent(seen, policy)), limit(seen.fleet.in_pool, policy)
    if gone < allowed:
        return None
    pool = f"pool {seen.node.pool}" if seen.node.pool else "nodes without a pool"
    return (
        f"{gone} removed within {policy.window.total_seconds():g} s, and no more than {allowed} may be ({pool}: "
        f"{seen.fleet.in_pool} nodes, maxCount {policy.max_count}, maxPercent {policy.max_percent:g})"
    )
