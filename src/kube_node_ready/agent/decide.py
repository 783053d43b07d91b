"""Decide what this node needs next, from its Node object and the last check run.

`verification.decide` decides about attempts, whether they are check runs of this process or worker pods of the
controller: retries, exhaustion, Karpenter, removed labels and closed gates work in the same way. In addition:

- *Initial timeout*: afterwards, retries are slow, regardless of how many there were.
- In continuous mode, verified nodes are checked again. A number of failed runs in a row closes the gate. Then the node
  has to pass an attempt.
- Most of these runs leave out checks that send requests to the API server; see `_to_omit`. Such a partial run opens and
  closes no gate. If it fails, all checks run immediately, and then in every run until they pass.
- The condition follows the record: if the process ended between the two, the next step writes the condition.
- *Rejections*: a write that the API server rejects is retried with a backoff. The Node shows it as with the controller.
"""

from datetime import datetime, timedelta
from typing import assert_never

from msgspec.structs import replace

from kube_node_ready.agent.model import (
    AgentDecision,
    AgentState,
    CheckRun,
    Effect,
    Observation,
    Rejection,
    Rules,
    RunChecks,
)
from kube_node_ready.api.contract import EventReason
from kube_node_ready.api.record import Cause, Outcome, VerificationRecord
from kube_node_ready.verification import decide as verification
from kube_node_ready.verification import schedule
from kube_node_ready.verification.attempts import ZERO, since
from kube_node_ready.verification.effects import (
    AdoptNode,
    CloseGate,
    ConfirmAttempt,
    Decision,
    DiscardAttempt,
    EmitEvent,
    OpenGate,
    RemoveNode,
    StartAttempt,
    WriteStatus,
)
from kube_node_ready.verification.effects import Effect as VerificationEffect
from kube_node_ready.verification.model import Attempt, Node, Phase, Policy, Snapshot, State

_SOON = timedelta(seconds=2)
_MAX_RUN_AGE = timedelta(minutes=1)
_MAX_UNREACHABLE_SPACING = timedelta(seconds=30)
_MAX_DOUBLINGS = 10
_RUNS_PER_FULL_RUN = 10
"""One of this many runs on a verified node includes all checks."""
_RUNS_PER_MATRIX = 3
"""One of this many includes the matrix, which lists pods."""
_SEVERAL_PACKETS = 3000
"""Bytes: more than two packets at an MTU of 1,500. Such a Node does not arrive where full-size packets are lost, so the
payload check can be left out. With jumbo frames, only runs of all checks detect that.
"""
_SHOWN = {Outcome.PASSED: "True", Outcome.FAILED: "False"}
_SHOWN_OF_REJECTIONS = "Unknown"


def decide(observation: Observation, state: AgentState, rules: Rules) -> AgentDecision:
    if state.rejection and (step := _after_rejection(observation, state, state.rejection, rules)):
        return step
    if rules.continuous and _must_close(observation, state, rules):
        return _close(observation, state, rules)
    if rules.continuous and _is_degraded(observation.node, state, rules):
        return _recheck(observation, state, rules, "its gate came back, and its last checks failed")
    policy = _current_policy(observation, rules)
    decision = verification.decide(_snapshot(observation, state), policy)
    if effects := _agent_effects(decision):
        return AgentDecision(decision.phase, decision.reason, effects, ZERO, policy)
    if _is_condition_outdated(observation):
        effects = (WriteStatus(observation.node, observation.node.record, observation.version),)
        reason = "the condition does not show what is on record"
        return AgentDecision(decision.phase, reason, effects, _recheck_after(decision, rules), policy)
    if rules.continuous and _is_open(observation.node, rules):
        return _recheck(observation, state, rules, decision.reason)
    return AgentDecision(decision.phase, decision.reason, (), _recheck_after(decision, rules), policy)


def decide_without_api(now: datetime, state: AgentState, rules: Rules) -> AgentDecision:
    """Decide while the Node cannot be read: run the checks, and log the result. It does not count as an attempt."""
    doublings = min(state.unreachable_runs, _MAX_DOUBLINGS)
    spacing = rules.interval if rules.continuous else min(timedelta(seconds=2**doublings), _MAX_UNREACHABLE_SPACING)
    left = spacing - _since(state.last, now)
    reason = "the Node cannot be read"
    if left <= ZERO:
        return AgentDecision(Phase.WAITING, reason, (RunChecks(api_reachable=False),), _SOON, rules.policy)
    return AgentDecision(Phase.WAITING, reason, (), min(left, rules.poll_interval), rules.policy)


def _must_close(observation: Observation, state: AgentState, rules: Rules) -> bool:
    return (
        state.streak >= rules.threshold
        and observation.node.labelled
        and observation.node.registered
        and not observation.node.deleting
    )


def _close(observation: Observation, state: AgentState, rules: Rules) -> AgentDecision:
    node = observation.node
    assert state.last
    record = node.record
    if record.outcome is not Outcome.FAILED:
        record = _failures(observation, state.last)
    reason = f"failed {state.streak} times in a row, so the gate is restored: {record.reason}"
    event = EmitEvent(node, EventReason.GATE_RESTORED, reason, record.attempt, warning=True)
    return AgentDecision(
        Phase.VERIFYING, reason, (event, CloseGate(node, record, observation.version)), ZERO, rules.policy
    )


def _failures(observation: Observation, last: CheckRun) -> VerificationRecord:
    """Return the record of the last run as a failed attempt. Quick retries follow, as after any first failure."""
    return VerificationRecord(
        observation.node.record.attempt + 1,
        failures=1,
        outcome=Outcome.FAILED,
        at=observation.now,
        since=observation.now,
        cause=Cause.CHECKS,
        node_failures=1,
        reason=last.reason,
        seconds=_seconds(last),
        checks=last.report.by_check,
    )


def _after_rejection(
    observation: Observation, state: AgentState, rejection: Rejection, rules: Rules
) -> AgentDecision | None:
    """Report that the API server rejects a write, and wait. None when it is time to retry."""
    if observation.node.deleting or _is_moot(rejection, observation, state):
        return None
    wait, is_due = rejection.wait(observation.now), rejection.is_due_to_report(observation.now)
    # A condition that cannot be written must not keep the gate closed, so it is not waited for.
    if wait <= ZERO and not is_due:
        return None
    decision = verification.write_rejected(
        Snapshot(observation.now, observation.node), rejection.effect, rejection.message
    )
    shows_other = observation.condition is not None and (is_due or observation.condition != _SHOWN_OF_REJECTIONS)
    wanted = ((EmitEvent,) if is_due else ()) + ((WriteStatus,) if shows_other else ())
    effects = tuple(effect for effect in _agent_effects(decision) if isinstance(effect, wanted))
    return AgentDecision(decision.phase, decision.reason, effects, min(wait, rules.poll_interval), rules.policy)


def _is_moot(rejection: Rejection, observation: Observation, state: AgentState) -> bool:
    """Whether a later run had another outcome, so that another write is due."""
    run = state.attempt
    is_undecided = run is not None and run.attempt > observation.node.record.attempt
    return bool(is_undecided and run and run.passed != rejection.is_of_release)


def _current_policy(observation: Observation, rules: Rules) -> Policy:
    """Return the policy; after the initial timeout, the next failure is the last that is retried quickly."""
    record, policy = observation.node.record, rules.policy
    if record.outcome is not Outcome.FAILED or not record.at or not record.since:
        return policy
    if record.at - record.since >= rules.initial_timeout:
        allowed = record.failures
    elif observation.now - record.since >= rules.initial_timeout:
        allowed = record.failures + 1
    else:
        return policy
    return replace(policy, max_failures=min(policy.max_failures, max(1, allowed)))


def _snapshot(observation: Observation, state: AgentState) -> Snapshot:
    run = state.attempt
    attempts = (_attempt(run),) if run and not _is_stale(run, observation) else ()
    return Snapshot(observation.now, observation.node, attempts, version=observation.version)


def _is_stale(run: CheckRun, observation: Observation) -> bool:
    """Whether the result could not be written for so long that it is outdated."""
    is_undecided = run.attempt > observation.node.record.attempt
    return is_undecided and _since(run, observation.now) > max(_MAX_RUN_AGE, 2 * (run.ended - run.started))


def _attempt(run: CheckRun) -> Attempt:
    """Return the attempt that the run decides."""
    return Attempt(
        number=run.attempt,
        created=run.started,
        state=State.PASSED if run.passed else State.FAILED,
        cause=_cause(run),
        reason=run.reason,
        report=run.report,
        finished=True,
        settled=run.released,
    )


def _cause(run: CheckRun) -> Cause:
    if run.passed:
        return Cause.NONE
    return Cause.CHECKS if run.report.blames_node else Cause.NOT_JUDGED


def _agent_effects(decision: Decision) -> tuple[Effect, ...]:
    """Return what the agent executes, in the same order."""
    effects = (_agent_effect(effect) for effect in decision.effects)
    return tuple(effect for effect in effects if effect)


def _agent_effect(effect: VerificationEffect) -> Effect | None:
    match effect:
        case StartAttempt(_, number):
            return RunChecks(number)
        case EmitEvent(reason=EventReason.VERIFYING):
            return None  # an attempt takes seconds, and its outcome is announced
        case OpenGate() | WriteStatus() | EmitEvent() | DiscardAttempt():
            return effect
        case AdoptNode():
            return None  # a node without the label is verified in any case
        case RemoveNode() | CloseGate() | ConfirmAttempt():
            raise AssertionError(f"{effect} is the controller's alone")
        case _:
            assert_never(effect)


def _is_condition_outdated(observation: Observation) -> bool:
    if observation.condition is None or observation.node.deleting:
        return False
    return observation.condition != _SHOWN.get(observation.node.record.outcome, observation.condition)


def _is_open(node: Node, rules: Rules) -> bool:
    return node.labelled and not rules.policy.is_gated(node) and not node.deleting


def _is_degraded(node: Node, state: AgentState, rules: Rules) -> bool:
    """Whether another client closed the gate during a streak of failures. The runs continue."""
    return state.streak > 0 and node.labelled and rules.policy.is_gated(node) and not node.deleting


def _recheck(observation: Observation, state: AgentState, rules: Rules, reason: str) -> AgentDecision:
    left = _until_next_run(observation.node.uid, observation.now, state.last, rules.interval)
    # Not within a streak: its runs include all checks anyway, and must keep their interval.
    if left <= ZERO or (state.run_all_now and not state.streak):
        return AgentDecision(
            Phase.VERIFIED, reason, (RunChecks(omit=_to_omit(observation, state, rules)),), ZERO, rules.policy
        )
    return AgentDecision(Phase.VERIFIED, reason, (), min(left, rules.poll_interval), rules.policy)


def _to_omit(observation: Observation, state: AgentState, rules: Rules) -> tuple[str, ...]:
    """Return the checks that the next run on a verified node leaves out; none unless the last runs passed."""
    if state.full is None or state.streak or not _is_open(observation.node, rules):
        return ()
    if _is_full_run_due(observation, state.full, rules.interval):
        return ()
    payload = ("payload",) if observation.size >= _SEVERAL_PACKETS else ()
    matrix = () if (state.partial + 1) % _RUNS_PER_MATRIX == 0 else ("matrix",)
    return ("services", *payload, *matrix)


def _is_full_run_due(observation: Observation, full: CheckRun, interval: timedelta) -> bool:
    """Whether a run of all checks is due. Each node has its own offset, so that a fleet's full runs are spread."""
    period = _RUNS_PER_FULL_RUN * interval
    if _since(full, observation.now) >= period:
        return True
    return schedule.next_turn(observation.node.uid, period, full.started + interval / 2) <= observation.now


def wait_after_run(uid: str, now: datetime, state: AgentState, rules: Rules) -> timedelta:
    """Return the time until the next step after a run on a verified node: at the next run, unless this one failed."""
    if state.last is None or not state.last.clean:
        return ZERO
    return min(max(ZERO, _until_next_run(uid, now, state.last, rules.interval)), rules.poll_interval)


def _until_next_run(uid: str, now: datetime, last: CheckRun | None, interval: timedelta) -> timedelta:
    """Return the time until the next run. Nodes have different offsets, even if their pods start together."""
    if _since(last, now) >= interval * 1.5:
        return ZERO
    assert last
    return schedule.next_turn(uid, interval, last.started + interval / 2) - now


def _recheck_after(decision: Decision, rules: Rules) -> timedelta:
    if decision.phase is Phase.WAITING:  # for Karpenter, which takes seconds
        return _SOON
    return min(decision.recheck or rules.poll_interval, rules.poll_interval)


def _since(last: CheckRun | None, now: datetime) -> timedelta:
    return since(last.started if last else None, now)


def _seconds(run: CheckRun) -> float:
    return max(0.0, round((run.ended - run.started).total_seconds(), 3))
