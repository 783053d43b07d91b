"""What this node needs next, as a function of what it shows and of what its last checks said.

An attempt here is what a worker pod is to the controller, so `verify.decide` decides about it, and everything it says
of retries, exhaustion, Karpenter, labels taken off and gates that come back holds here, too. Added are:

- the *initial timeout*: after so long, retries are slow, however many there were;
- in the continuous pattern, *rounds* over a verified node. So many in a row that fail close the gate again, and from
  there the node has to pass an attempt like any other;
- the condition follows the record: if someone ended us between the two, the next look makes up for it;
- *refusals*: a write that the API server refuses is tried again after a backoff. The Node shows it as in the
  controller's case.
"""

from datetime import datetime, timedelta
from typing import assert_never

from msgspec.structs import replace

from kube_node_ready.daemonset.model import (
    Effect,
    Forget,
    Memory,
    Refusal,
    Round,
    Rules,
    RunChecks,
    Seen,
    Step,
)
from kube_node_ready.verify import decide as verification
from kube_node_ready.verify import turns
from kube_node_ready.verify.model import (
    Adopt,
    Announce,
    Cause,
    CloseGate,
    ConfirmWorker,
    Decision,
    DropWorker,
    Node,
    Outcome,
    Phase,
    Policy,
    Record,
    Release,
    RemoveNode,
    Snapshot,
    StartWorker,
    State,
    Worker,
    WriteRecord,
)
from kube_node_ready.verify.model import Effect as ControllersEffect

_NONE = timedelta()
_SOON = timedelta(seconds=2)
_AGES = timedelta(days=36500)
_FRESH = timedelta(minutes=1)
_LONGEST_BLIND = timedelta(seconds=30)
_MOST_DOUBLINGS = 10
_OWN = "own"
_SHOWN = {Outcome.PASSED: "True", Outcome.FAILED: "False"}
_SHOWN_OF_REFUSALS = "Unknown"


def decide(seen: Seen, memory: Memory, rules: Rules) -> Step:
    if memory.refusal and (step := _after_refusal(seen, memory, memory.refusal, rules)):
        return step
    if rules.continuous and _must_close(seen, memory, rules):
        return _close(seen, memory, rules)
    if rules.continuous and _is_doubtful(seen.node, memory, rules):
        return _watch_over(seen, memory, rules, "its gate came back, and its last checks failed")
    policy = _policy_of_the_moment(seen, rules)
    decision = verification.decide(_snapshot(seen, memory), policy)
    if effects := tuple(_own_effects(decision, memory)):
        return Step(decision.phase, decision.reason, effects, _NONE, policy)
    if _is_untold(seen):
        effects = (WriteRecord(seen.node, seen.node.record, seen.version),)
        untold = "the condition does not show what is on record"
        return Step(decision.phase, untold, effects, _patience(decision, rules), policy)
    if rules.continuous and _is_open(seen.node, rules):
        return _watch_over(seen, memory, rules, decision.reason)
    return Step(decision.phase, decision.reason, (), _patience(decision, rules), policy)


def blindly(now: datetime, memory: Memory, rules: Rules) -> Step:
    """What can be done while the Node cannot be read: see what works, and say it. None of it counts as an attempt."""
    doublings = min(memory.blind, _MOST_DOUBLINGS)
    spacing = rules.interval if rules.continuous else min(timedelta(seconds=2**doublings), _LONGEST_BLIND)
    left = spacing - _since(memory.last, now)
    why = "the Node cannot be read"
    if left <= _NONE:
        return Step(Phase.WAITING, why, (RunChecks(sighted=False),), _SOON, rules.policy)
    return Step(Phase.WAITING, why, (), min(left, rules.look), rules.policy)


def _must_close(seen: Seen, memory: Memory, rules: Rules) -> bool:
    return memory.streak >= rules.threshold and seen.node.labelled and seen.node.registered and not seen.node.deleting


def _close(seen: Seen, memory: Memory, rules: Rules) -> Step:
    node = seen.node
    assert memory.last
    record = node.record
    if record.outcome is not Outcome.FAILED:
        record = _failures(seen, memory.last)
    why = f"failed {memory.streak} times in a row, so the gate is closed again: {record.reason}"
    news = Announce(node, "GateRestored", why, record.attempt, warning=True)
    return Step(Phase.VERIFYING, why, (news, CloseGate(node, record, seen.version)), _NONE, rules.policy)


def _failures(seen: Seen, last: Round) -> Record:
    """The last round, on record as the attempt it would have been. Quick retries follow, as after any first failure."""
    return Record(
        seen.node.record.attempt + 1,
        failures=1,
        outcome=Outcome.FAILED,
        at=seen.now,
        since=seen.now,
        cause=Cause.CHECKS,
        blamed=1,
        reason=last.reason,
        seconds=_seconds(last),
        checks=last.report.by_check,
    )


def _after_refusal(seen: Seen, memory: Memory, refusal: Refusal, rules: Rules) -> Step | None:
    """Show that the API server refuses a write, and wait. None when it is time to try again."""
    if seen.node.deleting or _is_moot(refusal, seen, memory):
        return None
    wait, is_due = refusal.wait(seen.now), refusal.is_due_to_report(seen.now)
    # A condition that cannot be written must not keep the gate closed, so it is not waited for.
    if wait <= _NONE and not is_due:
        return None
    decision = verification.write_rejected(Snapshot(seen.now, seen.node), refusal.effect, refusal.message)
    shows_other = seen.condition is not None and (is_due or seen.condition != _SHOWN_OF_REFUSALS)
    wanted = ((Announce,) if is_due else ()) + ((WriteRecord,) if shows_other else ())
    effects = tuple(effect for effect in _own_effects(decision, memory) if isinstance(effect, wanted))
    return Step(decision.phase, decision.reason, effects, min(wait, rules.look), rules.policy)


def _is_moot(refusal: Refusal, seen: Seen, memory: Memory) -> bool:
    """Whether the checks ended otherwise since, so that something else is to be written than what was refused."""
    done = memory.attempt
    is_undecided = done is not None and done.attempt > seen.node.record.attempt
    return bool(is_undecided and done and done.passed != refusal.is_of_release)


def _policy_of_the_moment(seen: Seen, rules: Rules) -> Policy:
    """When the initial timeout is over, the next failure is the last that counts as a quick one."""
    record, policy = seen.node.record, rules.policy
    if record.outcome is not Outcome.FAILED or not record.at or not record.since:
        return policy
    if record.at - record.since >= rules.initial_timeout:
        allowed = record.failures
    elif seen.now - record.since >= rules.initial_timeout:
        allowed = record.failures + 1
    else:
        return policy
    return replace(policy, max_failures=min(policy.max_failures, max(1, allowed)))


def _snapshot(seen: Seen, memory: Memory) -> Snapshot:
    done = memory.attempt
    workers = (_worker(seen.node, done),) if done and not _is_stale(done, seen) else ()
    return Snapshot(seen.now, seen.node, workers, version=seen.version)


def _is_stale(done: Round, seen: Seen) -> bool:
    """What could not be written for so long is no longer known to be true."""
    is_undecided = done.attempt > seen.node.record.attempt
    return is_undecided and _since(done, seen.now) > max(_FRESH, 2 * (done.ended - done.begun))


def _worker(node: Node, done: Round) -> Worker:
    """An attempt of ours, as the controller would see it if a pod had made it."""
    return Worker(
        name=_OWN,
        uid=_OWN,
        node_uid=node.uid,
        attempt=done.attempt,
        node_name=node.name,
        created=done.begun,
        state=State.PASSED if done.passed else State.FAILED,
        cause=Cause.NONE if done.passed else Cause.CHECKS,
        reason=done.reason,
        report=done.report,
        finished=True,
        genuine=True,
        settled=done.released,
    )


def _own_effects(decision: Decision, memory: Memory) -> list[Effect]:
    found = (_truthful(_own_effect(effect), memory.attempt) for effect in decision.effects)
    # To run the checks takes a while, and what else there is need not wait for it.
    return sorted((effect for effect in found if effect), key=lambda effect: isinstance(effect, RunChecks))


def _own_effect(effect: ControllersEffect) -> Effect | None:
    match effect:
        case StartWorker(_, attempt):
            return RunChecks(attempt)
        case DropWorker():
            return Forget()
        case Announce(reason="Verifying"):
            return None  # an attempt of ours takes seconds, and its outcome is told
        case Release() | WriteRecord() | Announce():
            return effect
        case Adopt():
            return None  # whatever is unlabelled here is to be verified, note or no note
        case RemoveNode() | CloseGate() | ConfirmWorker():
            raise AssertionError(f"{effect} is the controller's alone")
        case _:
            assert_never(effect)


def _truthful(effect: Effect | None, done: Round | None) -> Effect | None:
    """What is written about a proof: the checks that passed, and apart from them those that had nothing to check."""
    if done is None or not done.passed or not done.not_applicable:
        return effect
    if isinstance(effect, Release) and effect.record.attempt == done.attempt:
        return replace(effect, record=replace(effect.record, checks=done.proved))
    if isinstance(effect, Announce) and effect.reason == "Verified" and effect.attempt == done.attempt:
        return replace(effect, message=f"{effect.message}; not applicable: {', '.join(done.not_applicable)}")
    return effect


def _is_untold(seen: Seen) -> bool:
    if seen.condition is None or seen.node.deleting:
        return False
    return seen.condition != _SHOWN.get(seen.node.record.outcome, seen.condition)


def _is_open(node: Node, rules: Rules) -> bool:
    return node.labelled and not rules.policy.gated(node) and not node.deleting


def _is_doubtful(node: Node, memory: Memory, rules: Rules) -> bool:
    """Whether another client closed the gate while rounds were failing. They go on, and either pass or close it."""
    return memory.streak > 0 and node.labelled and rules.policy.gated(node) and not node.deleting


def _watch_over(seen: Seen, memory: Memory, rules: Rules, reason: str) -> Step:
    left = _until_next_round(seen, memory.last, rules.interval)
    if left <= _NONE:
        return Step(Phase.VERIFIED, reason, (RunChecks(),), _NONE, rules.policy)
    return Step(Phase.VERIFIED, reason, (), min(left, rules.look), rules.policy)


def _until_next_round(seen: Seen, last: Round | None, interval: timedelta) -> timedelta:
    """Not all nodes at the same moment, though their pods start together."""
    if _since(last, seen.now) >= interval * 1.5:
        return _NONE
    assert last
    return turns.next_turn(seen.node.uid, interval, last.begun + interval / 2) - seen.now


def _patience(decision: Decision, rules: Rules) -> timedelta:
    if decision.phase is Phase.WAITING:  # for Karpenter, which takes a moment
        return _SOON
    return min(decision.recheck or rules.look, rules.look)


def _since(last: Round | None, now: datetime) -> timedelta:
    """For ever, if the clock was set back: to wait for its old time to come again could take years."""
    return now - last.begun if last and last.begun <= now else _AGES


def _seconds(done: Round) -> float:
    return max(0.0, round((done.ended - done.begun).total_seconds(), 3))
