"""The agent's loop: read the Node, decide, act. Every failure is logged and retried until the process is stopped."""

from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from kube_node_ready.agent import transition_log
from kube_node_ready.agent.check_runs import CheckRunner
from kube_node_ready.agent.decide import decide, decide_without_api, wait_after_run
from kube_node_ready.agent.metrics import Metrics
from kube_node_ready.agent.model import (
    AgentDecision,
    AgentState,
    Effect,
    NodeWrite,
    Observation,
    Rules,
    RunChecks,
)
from kube_node_ready.agent.node_client import NodeClient
from kube_node_ready.agent.place import Place
from kube_node_ready.agent.stop_clock import Clock
from kube_node_ready.api.record import Outcome
from kube_node_ready.api.report import printable
from kube_node_ready.checks.access import NoAccessError
from kube_node_ready.kube.errors import Conflict, KubeError, Rejected, Throttled
from kube_node_ready.kube.pace import Pace
from kube_node_ready.log import log
from kube_node_ready.verification import messages
from kube_node_ready.verification.effects import CloseGate, DiscardAttempt, EmitEvent, OpenGate, WriteStatus

if TYPE_CHECKING:
    from kube_node_ready.verification.model import Phase

_PAUSE_SECONDS = (1.0, 30.0)
_CONFLICT_SECONDS = (0.05, 5.0)
_MAX_DOUBLINGS = 10
_MANY_CONFLICTS = 5
_LAST_STEPS = 4
_MAX_REJECTION_LENGTH = 500


class Agent:
    def __init__(
        self, rules: Rules, node: NodeClient, place: Place, runner: CheckRunner, clock: Clock, metrics: Metrics
    ) -> None:
        self._rules = rules
        self._node = node
        self._place = place
        self._check_runner = runner
        self._clock = clock
        self.metrics = metrics
        self._pace = Pace(clock.monotonic)
        self._state = AgentState()
        self._phase: Phase | None = None
        self._last_error = ""
        self._failures = 0
        self._is_verified: bool | None = None
        self._uid = ""

    def readiness_problem(self) -> str | None:
        """Return why the pod is not ready. Only ready pods are peers of other nodes, and a rollout waits for them."""
        last = self._state.last
        if self._is_verified is None:
            return "the Node has not been read yet"
        if last and not last.clean:
            return f"the last checks failed: {last.reason}"
        return None if last or self._is_verified else "nothing has been checked yet"

    def stop(self) -> None:
        """Make `run` end soon. Any thread can call this."""
        self._clock.stop()
        self._check_runner.stop()

    def run(self, beat: Callable[[], None]) -> None:
        """Run until the clock is stopped. `beat` is called after each step."""
        while not self._clock.stopping:
            self._clock.wait(self.step())
            beat()
        log("Agent stopping")
        for _ in range(_LAST_STEPS):
            if self._has_pending_announcements():
                self.step()
        log("Agent stopped")

    def step(self) -> float:
        """Read the Node, decide and act, once. Return the seconds until the next step.

        Raises a NotProvedError if this is not a pod on that node. Nothing has been written to the Node then.
        """
        if (wait := self._pace.wait(self._node.name)) > 0:  # another client undoes writes, or causes them
            return wait
        try:
            observation = self._node.read()
            self._place.confirm(observation.node)
        except Throttled as error:  # checks would send more requests
            self._log_api_error(error)
            return max(error.retry_after, self._backoff_seconds(*_PAUSE_SECONDS))
        except (KubeError, NoAccessError) as error:
            self._log_api_error(error)
            return self._execute(decide_without_api(self._clock.now(), self._state, self._rules))
        self._update_state(observation)
        self._export_status(observation)
        wait = self._execute(decide(observation, self._state, self._rules))
        if not self._failures:
            self._last_error = ""
        return wait

    def _update_state(self, observation: Observation) -> None:
        """Reset the state for a new Node of the same name, and the streak for a node that is not verified."""
        node = observation.node
        if node.uid != self._uid:
            self._state, self._uid = AgentState(), node.uid
        elif not node.labelled:
            self._state = self._state.without_streak()
        if node.labelled and not self._rules.policy.is_gated(node):
            self._state = self._state.without_rejected_release()
        self._state = self._state.after_read(
            tuple(taint for taint in node.taints if not self._rules.policy.is_gate(taint))
        )

    def _has_pending_announcements(self) -> bool:
        """Whether the node passed, and the announcement is not complete. The label ends this pod, so that is common."""
        return bool(self._state.attempt and self._state.attempt.passed)

    def _execute(self, decision: AgentDecision) -> float:
        transition_log.phase_changed(self._node.name, self._phase, decision)
        self._phase = decision.phase
        for effect in decision.effects:
            try:
                self._execute_effect(effect, decision)
            except (KubeError, NoAccessError) as error:
                return self._after_failure(effect, error)
        self._failures = 0
        if any(
            isinstance(effect, RunChecks) and effect.api_reachable and not effect.attempt for effect in decision.effects
        ):
            return wait_after_run(self._uid, self._clock.now(), self._state, self._rules).total_seconds()
        return decision.recheck.total_seconds()

    def _after_failure(self, effect: Effect, error: KubeError | NoAccessError) -> float:
        """Return the seconds until the next step."""
        if isinstance(effect, NodeWrite) and isinstance(error, KubeError) and self._is_rejection(effect, error):
            self._note_rejection(effect, error)
            return 0
        if isinstance(error, Conflict):  # another client changed the Node
            pause = self._backoff_seconds(*_CONFLICT_SECONDS)
            if self._failures >= _MANY_CONFLICTS:
                self._log_api_error(error)
            return pause
        self._log_api_error(error)
        least = error.retry_after if isinstance(error, Throttled) else 0
        return max(least, self._backoff_seconds(*_PAUSE_SECONDS))

    def _is_rejection(self, effect: NodeWrite, error: KubeError) -> bool:
        """Return whether the API server rejects this write, immediately or several times in a row.

        A webhook can reject the patch with a response that looks like a conflict, or always fail with 429 or 5xx.
        """
        is_lasting = bool(error.status) and self._failures + 1 >= _MANY_CONFLICTS
        return isinstance(error, Rejected) or (isinstance(effect, OpenGate) and is_lasting)

    def _note_rejection(self, effect: NodeWrite, error: KubeError) -> None:
        if isinstance(effect, OpenGate):
            self.metrics.rejected.inc()
        message, before = printable(error.message, _MAX_REJECTION_LENGTH), self._state.rejection
        if before is None or message != before.message:
            log("Node write rejected", level="warn", node=self._node.name, error=message, status=error.status)
        self._failures = 0
        self._state = self._state.after_rejection(effect, message, self._clock.now())

    def _execute_effect(self, effect: Effect, decision: AgentDecision) -> None:
        match effect:
            case RunChecks():
                self._run_checks(effect)
            case DiscardAttempt(attempt):
                self._state = self._state.without_attempt(attempt.number)
            case OpenGate() | WriteStatus() | CloseGate() | EmitEvent():
                self._pace.wrote(self._node.name)  # before the write, so that one that fails counts, too
                self._node.write(effect, decision.policy)
                transition_log.effect_applied(effect, decision)
                self._remember(effect)
            case _:
                assert_never(effect)

    def _remember(self, written: NodeWrite | EmitEvent) -> None:
        if isinstance(written, EmitEvent):
            if written.reason in messages.REJECTIONS:
                self._state = self._state.after_report(self._clock.now())
            return
        self._state = self._state.after_write(written)
        if isinstance(written, CloseGate):
            self.metrics.gates_closed.inc()
        elif isinstance(written, WriteStatus) and written.record.outcome is Outcome.PENDING:
            self.metrics.contested.inc(written.record.is_contested)

    def _run_checks(self, wanted: RunChecks) -> None:
        if run := self._check_runner.run(wanted, self._node.response):
            self._state = self._state.after_run(run)
            if run.omitted and not run.clean:
                log("Partial run failed", level="warn", node=self._node.name, error=run.reason)
                return
            self.metrics.checked(run)
            transition_log.run_completed(self._node.name, run, self._state, self._rules)

    def _export_status(self, observation: Observation) -> None:
        self._is_verified = observation.node.labelled and not self._rules.policy.is_gated(observation.node)
        self.metrics.status.set(self._is_verified)

    def _backoff_seconds(self, first: float, longest: float) -> float:
        """Return a backoff that doubles each time."""
        self._failures += 1
        return min(first * 2.0 ** min(self._failures - 1, _MAX_DOUBLINGS), longest)

    def _log_api_error(self, error: Exception) -> None:
        """Log each new error once."""
        if str(error) != self._last_error:
            self._last_error = str(error)
            fields = error.fields if isinstance(error, KubeError) else {"error": self._last_error}
            log("API request failed", level="warn", **fields)
