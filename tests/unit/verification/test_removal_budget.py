"""The removal budget at its edges. A limit that is off by one removes a node too many."""

from datetime import UTC, datetime, timedelta

import pytest

from kube_node_ready.verification import removal_budget
from kube_node_ready.verification.model import FailureLimits, Fleet, Ledger, Node, Removal, RemovalPolicy, Snapshot

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TICK = timedelta(microseconds=1)
HOUR = timedelta(hours=1)


def removal(age: timedelta, uid: str = "other", pool: str = "p") -> Removal:
    return Removal(uid, "node", pool, NOW - age)


@pytest.mark.parametrize(("age", "weighs"), [(HOUR - TICK, True), (HOUR, False), (HOUR + TICK, False)])
def test_a_removal_weighs_until_the_window_has_passed(age: timedelta, weighs: bool) -> None:  # noqa: FBT001  a table
    ledger = Ledger((removal(age, "u"),))
    seen = Snapshot(NOW, Node("a", "u", pool="p"), fleet=Fleet(ledger=ledger))
    policy = RemovalPolicy(window=HOUR)
    assert bool(removal_budget.recent(seen, policy)) is weighs
    assert removal_budget.is_recorded(seen.node, ledger, NOW, policy) is weighs


@pytest.mark.parametrize(
    ("in_pool", "max_count", "max_percent", "allowed"),
    [
        (1, 5, 10, 1),  # rounded up, so that a small pool can lose a node
        (10, 5, 10, 1),
        (11, 5, 10, 2),
        (100, 5, 10, 5),  # the count is smaller than the share
        (100, 50, 10, 10),
        (1000, 5000, 100, 1000),
        (0, 5, 10, 0),
        (100, 0, 10, 0),
    ],
)
def test_the_smaller_of_count_and_share_is_the_limit(
    in_pool: int, max_count: int, max_percent: float, allowed: int
) -> None:
    assert removal_budget.limit(in_pool, RemovalPolicy(max_count=max_count, max_percent=max_percent)) == allowed


@pytest.mark.parametrize(
    ("failing", "managed", "is_crowd"),
    [
        (2, 5, False),  # as many as the count allows
        (3, 5, True),
        (2, 14, False),
        (3, 14, True),  # 20 % of 14 is 2.8, which is rounded down
        (3, 15, False),
        (20, 100, False),  # as many as the share allows
        (21, 100, True),
        (1000, 5000, False),
        (1001, 5000, True),
    ],
)
def test_more_failing_nodes_than_the_larger_limit_are_a_crowd(
    failing: int,
    managed: int,
    is_crowd: bool,  # noqa: FBT001  a table
) -> None:
    policy = FailureLimits(max_failing_count=2, max_failing_percent=20)
    assert (removal_budget.exceeds_failure_limits(failing, managed, policy) is not None) is is_crowd


@pytest.mark.parametrize(("pool", "named"), [("blue", "pool blue"), ("", "nodes without a pool")])
def test_a_blocked_removal_names_the_pool_with_the_exhausted_budget(pool: str, named: str) -> None:
    fleet = Fleet(managed=10, in_pool=10, ledger=Ledger((removal(TICK, pool=pool),)))
    held = removal_budget.blocked_reason(
        Snapshot(NOW, Node("a", "u", pool=pool), fleet=fleet), RemovalPolicy(window=HOUR)
    )
    assert held
    assert named in held


@pytest.mark.parametrize(("age", "held"), [(HOUR - TICK, True), (HOUR, False), (HOUR + TICK, False)])
def test_a_machine_is_removed_once_per_window(age: timedelta, held: bool) -> None:  # noqa: FBT001  a table
    # In another pool, so that the pool's own budget plays no part: labels that a kubelet can change name the pool.
    fleet = Fleet(managed=10, in_pool=10, ledger=Ledger((removal(age, "earlier", pool="other"),)))
    reason = removal_budget.blocked_reason(
        Snapshot(NOW, Node("node", "u", pool="p"), fleet=fleet), RemovalPolicy(window=HOUR)
    )
    assert (reason is not None) is held
