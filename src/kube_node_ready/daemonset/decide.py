"""What this node needs next, as a function of what it shows and of what its last checks said.

An attempt here is what a worker pod is to the controller, so `verify.decide` decides about it, and everything it says
of retries, exhaustion, Karpenter, labels taken off and gates that come back holds here, too. Added are:

- the *initial timeout*: after so long, retries are slow, however many there were;
- in the continuous pattern, *rounds* over a verified node. So many in a row that fail close the gate again, and from
  there the node has to pass an attempt like any other;
- the condition follows the record: if someone ended us between the two, the next look makes up for it;
- *setbacks*: a release that another client undoes, or that the API server refuses, is tried again after a backoff. A
  gate that was put back twice is contested, and is opened only after checks that passed since.
"""

from datetime import datetime, timedelta
from typing import assert_never

from msgspec.structs import replace

from kube_node_ready.daemonset.model import (
    LONGEST_WAIT,
    Effect,
    Forget,
    Memory,
    Releases,
    Round,
    Rules,
    RunChecks,
    Seen,
    ShowTrouble,
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


def decide(seen: Seen, memory: Memory, rules: Rules) -> Step:
    if rules.continuous and _must_close(seen, memory, rules):
        return _close(seen, memory, rules)
    if rules.continuous and _is_doubtful(seen.node, memory, rules):
        return _watch_over(seen, memory, rules, "its gate came back, and its last checks failed")
    if step := _after_setback(seen, memory, rules):
        return step
    policy = _policy_of_the_moment(seen, rules)
    decision = verification.decide(_snapshot(seen, memory), policy)
    if effects := tuple(_own_effects(decision, memory)):
        return Step(decision.phase, decision.reason, effects, _after(effects, memory, rules), policy)
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


def _after_setback(seen: Seen, memory: Memory, rules: Rules) -> Step | None:
    """Wait, or check again, before the next release. None if nothing went wrong with the last ones."""
    releases = memory.releases
    if not (releases.undone or releases.refused) or seen.node.deleting or _is_open(seen.node, rules):
        return None
    last = memory.last
    if failed := _failed_since(last, releases):
        if not releases.contested:
            return None  # a failure like any other, with retries of its own
        releases = replace(releases, last=failed.ended)
    wait = releases.wait(seen.now)
    why = f"the gate is contested, and the last checks failed: {failed.reason}" if failed else setback(releases)
    # A condition that cannot be written must not keep the gate closed, so it is not waited for.
    if wait > _NONE or releases.is_due_to_tell(seen.now):
        news = tuple(_of_setback(seen, releases, why))
        return Step(Phase.BACKING_OFF, why, news, min(wait, rules.look), rules.policy)
    if releases.contested and not _is_proved_since(last, releases):
        return Step(Phase.VERIFYING, why, (RunChecks(),), _NONE, rules.policy)
    return None


def setback(releases: Releases) -> str:
    """Why the gate is closed though the checks passed, for a person to act on."""
    if releases.refused:
        return f"the checks passed, but the API server refuses to open the gate: {releases.refusal}"
    if releases.contested:
        return (
            f"the checks passed, but another client put the gate back {releases.put_back} times; it is opened again "
            f"after a backoff of up to {_minutes(LONGEST_WAIT)} minutes. Find the client that adds the taint"
        )
    return "the last release was undone"


def _minutes(span: timedelta) -> int:
    return int(span.total_seconds() // 60)


def _of_setback(seen: Seen, releases: Releases, why: str) -> list[Effect]:
    if not releases.in_trouble:
        return []
    node, attempt = seen.node, max(1, seen.node.record.attempt)
    is_due = releases.is_due_to_tell(seen.now)
    shows_other = seen.condition is not None and (is_due or seen.condition != _SHOWN[Outcome.FAILED])
    reason = "ReleaseRefused" if releases.refused else "GateContested"
    effects: list[Effect] = []
    if is_due and releases.refused:
        effects.append(Announce(node, "ReleaseRefused", why, attempt, warning=True))
    elif is_due:
        effects.append(Announce(node, "GateContested", why, attempt, warning=True))
    if shows_other:
        effects.append(ShowTrouble(node, reason, why, seen.now))
    return effects


def _failed_since(last: Round | None, releases: Releases) -> Round | None:
    return last if last and not last.passed and releases.last and last.ended > releases.last else None


def _is_proved_since(last: Round | None, releases: Releases) -> bool:
    return bool(last and last.passed and releases.last and last.begun >= releases.last)


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


def _after(effects: tuple[Effect, ...], memory: Memory, rules: Rules) -> timedelta:
    """Look again at once to see what follows; but a gate that comes back time and again is not fought without pause."""
    is_fight = any(isinstance(effect, Release) for effect in effects) and not memory.attempt
    return rules.look if is_fight else _NONE


def _is_untold(seen: Seen) -> bool:
    if seen.condition is None or seen.node.deleting:
        return False
    return seen.condition != _SHOWN.get(seen.node.record.outcome, seen.condition)


def _is_open(node: Node, rules: Rules) -> bool:
    return node.labelled and not rules.policy.gated(node) and not node.deleting


def _is_doubtful(node: Node, memory: Memory, rules: Rules) -> bool:
    """The proof on record is older than the failure we know of, so it opens no gate."""
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
