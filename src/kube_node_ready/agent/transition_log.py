"""Log one line per transition of the agent's node."""

from kube_node_ready.agent.model import AgentDecision, AgentState, CheckRun, Effect, Rules
from kube_node_ready.api.contract import EventReason
from kube_node_ready.log import log
from kube_node_ready.verification.effects import CloseGate, EmitEvent, OpenGate
from kube_node_ready.verification.model import Phase


def phase_changed(node: str, before: Phase | None, decision: AgentDecision) -> None:
    if decision.phase is before:
        return
    if decision.phase is Phase.FAILED:
        log("Verification failed", level="warn", node=node, reason=decision.reason)
    elif decision.phase is Phase.EXHAUSTED:
        log("Node exhausted", level="warn", node=node, reason=decision.reason)
    elif decision.phase is Phase.WAITING:
        log("Node waiting", node=node, reason=decision.reason)
    else:
        log("Node phase changed", level="debug", node=node, phase=decision.phase, reason=decision.reason)


def effect_applied(effect: Effect, decision: AgentDecision) -> None:
    if isinstance(effect, OpenGate):
        label = f"{decision.policy.label}={decision.policy.label_value}"
        log("Node verified", node=effect.node.name, label=label, reason=decision.reason)
    elif isinstance(effect, CloseGate):
        log("Gate closed", level="warn", node=effect.node.name, reason=decision.reason)
    elif isinstance(effect, EmitEvent) and effect.reason is EventReason.GATE_CONTESTED:
        log("Gate contested", level="warn", node=effect.node.name, reason=effect.message)


def run_completed(node: str, run: CheckRun, state: AgentState, rules: Rules) -> None:
    """Log a failed run on a verified node, and how many failures close the gate."""
    if run.api_reachable and not run.attempt and not run.clean:
        log(
            "Re-verification failed",
            level="warn",
            node=node,
            failures=state.streak,
            threshold=rules.threshold,
            error=run.reason,
        )
