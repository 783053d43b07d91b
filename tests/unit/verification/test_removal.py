"""What a failure counts for, and when it leads to a removal, at the edges."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from kube_node_ready.api.contract import EventReason
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.verification.decide import decide
from kube_node_ready.verification.effects import (
    Decision,
    DiscardAttempt,
    EmitEvent,
    RemoveNode,
    StartAttempt,
    WriteStatus,
)
from kube_node_ready.verification.model import (
    Fleet,
    Gate,
    Ledger,
    Node,
    Phase,
    Policy,
    Removal,
    RemovalPolicy,
    Reverification,
    Snapshot,
    State,
    Worker,
)
from tests.support.verification import GATE, HOUR, MINUTE, NOW, SECOND, TICK, UID

POLICY = Policy((Gate(GATE.key, GATE.effect),), max_failures=5, removal=RemovalPolicy(max_failing_count=2))
WATCHING = Policy(POLICY.gates, reverification=Reverification(interval=timedelta(hours=1), threshold=3))


def written(seen: Snapshot, policy: Policy) -> VerificationRecord:
    (effect,) = (effect for effect in decide(seen, policy).effects if isinstance(effect, WriteStatus))
    return effect.record


def a_worker(number: int, **facts: object) -> Worker:
    made: dict[str, object] = {"node_name": "a", "created": NOW - TICK, "genuine": True, "finished": True}
    return Worker(f"w{number}", f"pod{number}", UID, number=number, **(made | facts))  # type: ignore[arg-type]


def after_failure(record: VerificationRecord, cause: Cause, failing: int = 0) -> VerificationRecord:
    worker = a_worker(record.attempt + 1, state=State.FAILED, cause=cause, reason="dns")
    node = Node("a", UID, taints=(GATE,), record=record)
    return written(Snapshot(NOW, node, (worker,), fleet=Fleet(managed=3, failing=failing)), POLICY)


def failed(times: int, **facts: object) -> VerificationRecord:
    made: dict[str, object] = {"failures": times, "node_failures": times, "outcome": Outcome.FAILED, "at": NOW - TICK}
    return VerificationRecord(times, **(made | facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cause", "blamed"),
    [
        (Cause.CHECKS, 3),
        (Cause.LATE, 3),
        (Cause.STOPPED, 0),
        (Cause.NOT_STARTED, 0),
        (Cause.MISCONFIGURED, 0),
        (Cause.REFUSED, 0),
    ],
)
def test_only_failures_in_a_row_of_the_node_itself_blame_it(cause: Cause, blamed: int) -> None:
    record = after_failure(failed(2), cause)
    assert (record.failures, record.node_failures, record.cause) == (3, blamed, cause)


@pytest.mark.parametrize(
    ("failing", "was_in_crowd", "blamed"),
    [
        (2, False, 6),
        (3, False, 5),  # many nodes fail now
        (2, True, 5),  # many failed when the last attempt ended, so this one can have begun before the end
        (3, True, 5),
    ],
)
def test_a_failure_in_a_crowd_is_not_the_one_before_a_removal(
    failing: int,
    was_in_crowd: bool,  # noqa: FBT001  a table
    blamed: int,
) -> None:
    record = after_failure(failed(5, during_outage=was_in_crowd), Cause.CHECKS, failing)
    assert (record.node_failures, record.during_outage) == (blamed, failing == 3)


def test_the_condition_changed_when_the_node_first_failed() -> None:
    began = NOW - timedelta(hours=3)
    assert after_failure(failed(2, since=began), Cause.CHECKS).since == began
    assert after_failure(VerificationRecord(2, outcome=Outcome.PENDING, since=began), Cause.CHECKS).since == NOW


@pytest.mark.parametrize(
    ("state", "boot", "failures"),
    [(State.PASSED, "new", 0), (State.FAILED, "old", 1)],
)
def test_a_verified_node_is_proved_for_the_boot_in_which_it_passed(state: State, boot: str, failures: int) -> None:
    record = VerificationRecord(1, outcome=Outcome.PASSED, at=NOW - TICK, since=NOW - TICK, boot="old")
    cause = Cause.CHECKS if state is State.FAILED else Cause.NONE
    node = Node("a", UID, labelled=True, record=record, boot="new")
    worker = a_worker(2, state=state, cause=cause, reason="dns" if cause else "")
    now = written(Snapshot(NOW, node, (worker,), fleet=Fleet(managed=3)), WATCHING)
    assert (now.attempt, now.boot, now.failures, now.node_failures, now.since) == (
        2,
        boot,
        failures,
        failures,
        NOW - TICK,
    )


HELD = Ledger(paused=True)
"""While removals are paused, every node is held."""


def look(
    record: VerificationRecord, *, policy: Policy = POLICY, ledger: Ledger | None = None, gated: bool = True
) -> Decision:
    """At a node whose last failure was witnessed."""
    node = Node("a", UID, taints=(GATE,) if gated else (), record=record)
    fleet = Fleet(managed=10, failing=1, in_pool=10, ledger=ledger or Ledger())
    return decide(Snapshot(NOW, node, fleet=fleet, witnessed=record.attempt, version="7"), policy)


def begins(decision: Decision) -> bool:
    return any(isinstance(effect, StartAttempt) for effect in decision.effects)


def exhausted(ago: timedelta, times: int = 6, **facts: object) -> VerificationRecord:
    return failed(times, at=NOW - ago, reason="dns: timeout", **facts)


@pytest.mark.parametrize(
    ("ago", "removed"),
    [
        (timedelta(), True),
        (MINUTE - TICK, True),
        (MINUTE, False),
        (MINUTE + TICK, False),
        (-TICK, False),  # a record from the future: its age is not known
    ],
)
def test_a_node_is_removed_only_within_a_minute_of_its_last_failure(
    ago: timedelta,
    removed: bool,  # noqa: FBT001  a table
) -> None:
    decision = look(exhausted(ago))
    assert (decision.phase is Phase.REMOVING) is removed
    assert any(isinstance(effect, RemoveNode) for effect in decision.effects) is removed


def test_a_removal_states_the_failure_and_the_ledger_that_allows_it_and_is_reconciled_again() -> None:
    ledger = Ledger((Removal("other", "b", "another pool", NOW),), version="12")
    record = exhausted(SECOND)
    decision = look(record, ledger=ledger)
    node = Node("a", UID, taints=(GATE,), record=record)
    assert decision == Decision(
        Phase.REMOVING, "dns: timeout", (RemoveNode(node, "dns: timeout", ledger, "7"),), POLICY.resync
    )


@pytest.mark.parametrize(
    ("witnessed", "booked", "removed"),
    [
        (6, None, True),
        (0, None, False),
        (5, None, False),
        (0, Removal(UID, "a", "", NOW - TICK), True),  # a previous process witnessed it, and wrote the removal down
        (0, Removal(UID, "a", "", NOW - HOUR), False),  # too long ago
        (0, Removal("other", "b", "another pool", NOW - TICK), False),
    ],
)
def test_a_removal_takes_a_witnessed_failure_or_an_entry_in_the_ledger(
    witnessed: int,
    booked: Removal | None,
    removed: bool,  # noqa: FBT001  a table
) -> None:
    node = Node("a", UID, taints=(GATE,), record=exhausted(SECOND))
    fleet = Fleet(managed=10, failing=1, in_pool=10, ledger=Ledger((booked,) if booked else ()))
    decision = decide(Snapshot(NOW, node, fleet=fleet, witnessed=witnessed), POLICY)
    assert (decision.phase is Phase.REMOVING) is removed


@pytest.mark.parametrize(
    ("blamed", "removed"),
    [(4, False), (5, False), (6, True), (7, True)],
)
def test_a_removal_takes_one_failure_of_the_node_more_than_the_limit(
    blamed: int,
    removed: bool,  # noqa: FBT001  a table
) -> None:
    assert (look(exhausted(SECOND, 7, node_failures=blamed)).phase is Phase.REMOVING) is removed


def test_a_node_is_checked_once_more_before_its_removal_after_its_usual_backoff() -> None:
    waiting = look(exhausted(timedelta(), 5))
    assert waiting.phase is Phase.EXHAUSTED
    assert waiting.reason == "to be checked once more before removal: dns: timeout"
    assert waiting.recheck
    assert 16 * SECOND <= waiting.recheck <= 17.6 * SECOND
    assert not begins(look(exhausted(waiting.recheck - TICK, 5)))
    assert begins(look(exhausted(waiting.recheck, 5)))


@pytest.mark.parametrize(
    ("slow_retry", "spacing"),
    [
        (5 * MINUTE, 5 * MINUTE),
        (None, HOUR),  # the window: nodes that are not retried otherwise are checked again before a later removal
    ],
)
def test_a_node_that_was_not_removed_in_time_is_checked_again_later(
    slow_retry: timedelta | None, spacing: timedelta
) -> None:
    policy = replace(POLICY, slow_retry=slow_retry)
    waiting = look(exhausted(2 * MINUTE), policy=policy)
    assert (waiting.phase, waiting.recheck) == (Phase.EXHAUSTED, spacing - 2 * MINUTE)
    assert not begins(look(exhausted(spacing - TICK), policy=policy))
    assert begins(look(exhausted(spacing), policy=policy))


@pytest.mark.parametrize(
    ("blamed", "phase", "recheck"),
    [
        (4, Phase.EXHAUSTED, 4 * MINUTE),  # not the node's own failures: retried slowly, whatever the removal budget
        (5, Phase.HELD, POLICY.resync),
        (6, Phase.HELD, POLICY.resync),
    ],
)
def test_only_nodes_to_be_removed_are_held(blamed: int, phase: Phase, recheck: timedelta) -> None:
    decision = look(exhausted(MINUTE, node_failures=blamed), ledger=HELD)
    assert (decision.phase, decision.recheck) == (phase, recheck)


def test_failures_of_others_make_a_node_wait_for_the_slow_retry() -> None:
    decision = look(exhausted(MINUTE, node_failures=0))
    assert (decision.phase, decision.recheck) == (Phase.EXHAUSTED, 4 * MINUTE)
    assert decision.reason == "failed 6 times in a row: dns: timeout"


def test_a_node_that_was_opened_by_hand_is_retried_slowly() -> None:
    decision = look(exhausted(SECOND), gated=False)
    assert (decision.phase, decision.recheck) == (Phase.EXHAUSTED, 5 * MINUTE - SECOND)


def test_a_held_node_has_a_warning_event_with_the_reason() -> None:
    record = exhausted(SECOND)
    decision = look(record, ledger=HELD)
    node = Node("a", UID, taints=(GATE,), record=record)
    why = "removal of all nodes is paused"
    assert decision.reason == why
    assert decision.effects == (EmitEvent(node, EventReason.REMOVAL_BLOCKED, why, 6, warning=True),)


@pytest.mark.parametrize(
    ("slow_retry", "ago", "recheck"),
    [
        (5 * MINUTE, SECOND, POLICY.resync),  # a budget that is free again is used soon
        (5 * MINUTE, 5 * MINUTE - SECOND, SECOND),
        (5 * MINUTE, 5 * MINUTE - TICK, TICK),
        (None, SECOND, POLICY.resync),
        (None, 9 * HOUR, POLICY.resync),
    ],
)
def test_a_held_node_is_reconciled_no_later_than_any_other(
    slow_retry: timedelta | None, ago: timedelta, recheck: timedelta
) -> None:
    decision = look(exhausted(ago), policy=replace(POLICY, slow_retry=slow_retry), ledger=HELD)
    assert (decision.phase, decision.recheck) == (Phase.HELD, recheck)


def test_a_held_node_is_verified_again_at_its_slow_retry() -> None:
    assert begins(look(exhausted(5 * MINUTE), ledger=HELD))


@pytest.mark.parametrize("ledger", [Ledger(), HELD], ids=["waiting", "held"])
def test_an_exhausted_node_keeps_the_logs_of_its_last_failure_only(ledger: Ledger) -> None:
    node = Node("a", UID, taints=(GATE,), record=exhausted(2 * MINUTE))
    workers = (a_worker(5, state=State.FAILED), a_worker(6, state=State.FAILED))
    decision = decide(Snapshot(NOW, node, workers, fleet=Fleet(10, 1, in_pool=10, ledger=ledger)), POLICY)
    assert [effect for effect in decision.effects if not isinstance(effect, EmitEvent)] == [DiscardAttempt(workers[0])]


def test_an_exhausted_node_without_removal_keeps_the_logs_of_its_last_failure_only() -> None:
    node = Node("a", UID, taints=(GATE,), record=exhausted(2 * MINUTE))
    workers = (a_worker(5, state=State.FAILED), a_worker(6, state=State.FAILED))
    decision = decide(Snapshot(NOW, node, workers), replace(POLICY, removal=None))
    assert (decision.phase, decision.effects) == (Phase.EXHAUSTED, (DiscardAttempt(workers[0]),))
