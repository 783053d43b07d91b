"""The log: one line a transition, in the words of the documentation."""

from kube_node_ready.log import log
from kube_node_ready.verify.model import (
    CloseGate,
    Decision,
    Effect,
    Node,
    Phase,
    Policy,
    Release,
    Snapshot,
    StartWorker,
    WriteRecord,
)
from kube_node_ready.verify.workerpod import name_of


def noticed(before: Node | None, after: Node | None, policy: Policy) -> None:
    """A node has something to prove that had not before."""
    if after and policy.guards(after) and not (before and before.uid == after.uid and policy.guards(before)):
        log("Node added to queue", node=after.name, state="unverified")


def decided(before: Phase | None, seen: Snapshot, decision: Decision) -> None:
    node, phase = seen.node.name, decision.phase
    if attempt := _started(decision):
        log("Creating worker pod", node=node, pod=name_of(seen.node.uid, attempt), attempt=attempt)
    elif before is phase:
        return
    elif phase is Phase.VERIFIED and decision.verdict:
        if _is_proved(decision):
            log("Worker completed successfully", node=node, duration=_duration(seen, decision))
        else:
            log("Verified node did not pass again", level="warn", node=node, reason=decision.reason)
    elif phase is Phase.FAILED:
        log("Verification failed", level="warn", node=node, reason=decision.reason)
    elif phase in (Phase.EXHAUSTED, Phase.HELD, Phase.REMOVING):
        log(f"Node {phase}", level="warn", node=node, reason=decision.reason)
    elif phase is Phase.WAITING:
        log("Node waits", node=node, reason=decision.reason)
    else:
        log(f"Node {phase}", level="debug", node=node, reason=decision.reason)


def done(effect: Effect, decision: Decision, policy: Policy) -> None:
    if isinstance(effect, Release):
        label = f"{policy.label}={policy.label_value}"
        log("Node verified", node=effect.node.name, label=label, reason=decision.reason)
    elif isinstance(effect, CloseGate):
        log("Gate closed again", level="warn", node=effect.node.name, reason=effect.record.reason)


def _started(decision: Decision) -> int | None:
    return next((effect.attempt for effect in decision.effects if isinstance(effect, StartWorker)), None)


def _is_proved(decision: Decision) -> bool:
    return all(effect.record.is_proof for effect in decision.effects if isinstance(effect, Release | WriteRecord))


def _duration(seen: Snapshot, decision: Decision) -> str | None:
    created = decision.verdict.created if decision.verdict else None
    return f"{(seen.now - created).total_seconds():.1f}s" if created else None
