"""Log one line per transition of a node."""

from kube_node_ready.log import log
from kube_node_ready.verification.effects import CloseGate, Decision, Effect, OpenGate, StartAttempt, WriteStatus
from kube_node_ready.verification.model import Node, Phase, Policy, Snapshot
from kube_node_ready.verification.worker_pod import worker_name

_WARNINGS_BY_PHASE = {
    Phase.FAILED: "Verification failed",
    Phase.EXHAUSTED: "Node exhausted",
    Phase.HELD: "Removal blocked",
    Phase.REMOVING: "Node removal started",
}


def node_queued(before: Node | None, after: Node | None, policy: Policy, *, quiet: bool = False) -> bool:
    """Log a node that has to be verified and did not have to before. Return whether it was logged."""
    is_news = after and policy.guards(after) and not (before and before.uid == after.uid and policy.guards(before))
    if not after or not is_news or quiet:
        return False
    log("Node added to queue", node=after.name, state="unverified")
    return True


def worker_starting(node: Node, attempt: int) -> None:
    log("Creating worker pod", node=node.name, pod=worker_name(node.uid, attempt), attempt=attempt)


def phase_changed(before: Phase | None, snapshot: Snapshot, decision: Decision, policy: Policy) -> None:
    node, phase = snapshot.node.name, decision.phase
    if before is phase or any(isinstance(effect, StartAttempt) for effect in decision.effects):
        return  # the creation of the worker is logged
    if phase is Phase.VERIFIED and decision.verdict:
        if _is_proved(decision):
            log("Worker completed successfully", node=node, duration=_duration(snapshot, decision))
        else:
            _reverification_failed(node, decision, policy)
    elif text := _WARNINGS_BY_PHASE.get(phase):
        log(text, level="warn", node=node, reason=decision.reason)
    elif phase is Phase.WAITING:
        log("Node waiting", node=node, reason=decision.reason)
    else:
        log("Node phase changed", level="debug", node=node, phase=phase, reason=decision.reason)


def _reverification_failed(node: str, decision: Decision, policy: Policy) -> None:
    writes = (effect.record.failures for effect in decision.effects if isinstance(effect, WriteStatus))
    log(
        "Re-verification failed",
        level="warn",
        node=node,
        failures=max(writes, default=0),
        threshold=policy.reverification.threshold if policy.reverification else None,
        error=decision.reason,
    )


def effect_applied(effect: Effect, decision: Decision, policy: Policy) -> None:
    if isinstance(effect, OpenGate):
        label = f"{policy.label}={policy.label_value}"
        log("Node verified", node=effect.node.name, label=label, reason=decision.reason)
    elif isinstance(effect, CloseGate):
        log("Gate closed", level="warn", node=effect.node.name, reason=effect.record.reason)


def _is_proved(decision: Decision) -> bool:
    return all(effect.record.is_proof for effect in decision.effects if isinstance(effect, OpenGate | WriteStatus))


def _duration(snapshot: Snapshot, decision: Decision) -> str | None:
    created = decision.verdict.created if decision.verdict else None
    return f"{(snapshot.now - created).total_seconds():.1f}s" if created else None
