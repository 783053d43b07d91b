"""The log: one line a transition, in the words of the documentation."""

from kube_node_ready.daemonset.model import Effect, Memory, Round, Rules, Step
from kube_node_ready.log import log
from kube_node_ready.verify.model import Announce, CloseGate, Phase, Release


def decided(node: str, before: Phase | None, step: Step) -> None:
    if step.phase is before:
        return
    if step.phase is Phase.FAILED:
        log("Verification failed", level="warn", node=node, reason=step.reason)
    elif step.phase is Phase.EXHAUSTED:
        log("Node exhausted", level="warn", node=node, reason=step.reason)
    elif step.phase is Phase.WAITING:
        log("Node waits", node=node, reason=step.reason)
    else:
        log(f"Node {step.phase}", level="debug", node=node, reason=step.reason)


def done(effect: Effect, step: Step) -> None:
    if isinstance(effect, Release):
        label = f"{step.policy.label}={step.policy.label_value}"
        log("Node verified", node=effect.node.name, label=label, reason=step.reason)
    elif isinstance(effect, CloseGate):
        log("Gate closed again", level="warn", node=effect.node.name, reason=step.reason)
    elif isinstance(effect, Announce) and effect.reason == "GateContested":
        log("Gate contested", level="warn", node=effect.node.name, reason=effect.message)


def checked(node: str, ended: Round, memory: Memory, rules: Rules) -> None:
    """How far a verified node is from having its gate closed again."""
    if ended.sighted and not ended.attempt and not ended.passed:
        log("A verified node fails", level="warn", node=node, in_a_row=memory.streak, threshold=rules.threshold)
