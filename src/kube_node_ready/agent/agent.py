"""Look, decide, act. Whatever goes wrong is told and tried again: this ends only when it is told to."""

from collections.abc import Callable
from typing import assert_never

from kube_node_ready.checks.access import NoAccessError
from kube_node_ready.daemonset import telling
from kube_node_ready.daemonset.clock import Clock
from kube_node_ready.daemonset.decide import blindly, decide
from kube_node_ready.daemonset.metrics import Metrics
from kube_node_ready.daemonset.model import Effect, Forget, Memory, NodeWrite, Rules, RunChecks, Seen, Step
from kube_node_ready.daemonset.node import OwnNode
from kube_node_ready.daemonset.place import Place
from kube_node_ready.daemonset.rounds import Rounds
from kube_node_ready.kube.errors import KubeError, LostRace, Refused, Throttled
from kube_node_ready.log import log
from kube_node_ready.pace import Pace
from kube_node_ready.verify import patches
from kube_node_ready.verify.decide import is_contested
from kube_node_ready.verify.model import Announce, CloseGate, Outcome, Phase, Release, WriteRecord
from kube_node_ready.verify.report import printable

_PAUSE_SECONDS = (1.0, 30.0)
_RACE_SECONDS = (0.05, 5.0)
_MOST_DOUBLINGS = 10
_MANY_RACES = 5
_LAST_STEPS = 4
_LONGEST_REFUSAL = 500


class Agent:
    def __init__(
        self, rules: Rules, node: OwnNode, place: Place, rounds: Rounds, clock: Clock, metrics: Metrics
    ) -> None:
        self._rules = rules
        self._node = node
        self._place = place
        self._rounds = rounds
        self._clock = clock
        self.metrics = metrics
        self._pace = Pace(clock.monotonic)
        self._memory = Memory()
        self._phase: Phase | None = None
        self._trouble = ""
        self._mishaps = 0
        self._is_verified: bool | None = None
        self._uid = ""

    def not_ready(self) -> str | None:
        """Ready is whose node is well: other nodes try to reach only those, and an update that breaks nodes stops."""
        last = self._memory.last
        if self._is_verified is None:
            return "the Node has not been read yet"
        if last and not last.passed:
            return f"the last checks failed: {last.reason}"
        return None if last or self._is_verified else "nothing has been checked yet"

    def stop(self) -> None:
        """Make `live` end soon. May be called from any thread."""
        self._clock.stop()
        self._rounds.stop()

    def live(self, beat: Callable[[], None]) -> None:
        """Until the clock stops. `beat` is called whenever we are alive."""
        while not self._clock.stopping:
            self._clock.wait(self.step())
            beat()
        log("Stopping")
        for _ in range(_LAST_STEPS):
            if self._has_news():
                self.step()
        log("Stopped")

    def step(self) -> float:
        """Look, decide, act, once. Returns in how many seconds to look again.

        Raises a NotProvedError if this is not a pod on that node. Nothing has been written to the Node then.
        """
        if (wait := self._pace.wait(self._node.name)) > 0:  # another client undoes writes, or causes them
            return wait
        try:
            seen = self._node.look()
            self._place.confirm()
        except Throttled as why:  # checks would ask a server that just asked us not to
            self._complain(why)
            return max(why.retry_after, self._pause(*_PAUSE_SECONDS))
        except (KubeError, NoAccessError) as why:
            self._complain(why)
            return self._carry_out(blindly(self._clock.now(), self._memory, self._rules))
        self._recall(seen)
        self._show(seen)
        wait = self._carry_out(decide(seen, self._memory, self._rules))
        if not self._mishaps:
            self._trouble = ""
        return wait

    def _recall(self, seen: Seen) -> None:
        """What is remembered is about one Node, not a new one of the same name; a streak is about a verified one."""
        node = seen.node
        if node.uid != self._uid:
            self._memory, self._uid = Memory(), node.uid
        elif not node.labelled:
            self._memory = self._memory.without_streak()
        if node.labelled and not self._rules.policy.gated(node):
            self._memory = self._memory.without_refused_release()

    def _has_news(self) -> bool:
        """Whether a node passed, and not everyone was told. It is the label we set that ends this pod, so the end comes
        while the news are on their way.
        """
        return bool(self._memory.attempt and self._memory.attempt.passed)

    def _carry_out(self, step: Step) -> float:
        telling.decided(self._node.name, self._phase, step)
        self._phase = step.phase
        for effect in step.effects:
            try:
                self._do(effect, step)
            except (KubeError, NoAccessError) as error:
                return self._after_failure(effect, error)
        self._mishaps = 0
        return step.recheck.total_seconds()

    def _after_failure(self, effect: Effect, error: KubeError | NoAccessError) -> float:
        """In how many seconds to look again, and decide again."""
        if isinstance(effect, NodeWrite) and isinstance(error, KubeError) and self._is_refusal(effect, error):
            self._note_refusal(effect, error)
            return 0
        if isinstance(error, LostRace):  # someone else changed the Node
            pause = self._pause(*_RACE_SECONDS)
            if self._mishaps >= _MANY_RACES:
                self._complain(error)
            return pause
        self._complain(error)
        least = error.retry_after if isinstance(error, Throttled) else 0
        return max(least, self._pause(*_PAUSE_SECONDS))

    def _is_refusal(self, effect: NodeWrite, error: KubeError) -> bool:
        """A webhook can refuse a release in a way that looks like a lost race, or fail for good, which is a 5xx."""
        is_lasting = bool(error.status) and not isinstance(error, Throttled) and self._mishaps + 1 >= _MANY_RACES
        return isinstance(error, Refused) or (isinstance(effect, Release) and is_lasting)

    def _note_refusal(self, effect: NodeWrite, error: KubeError) -> None:
        if isinstance(effect, Release):
            self.metrics.refused.inc()
        message, before = printable(error.message, _LONGEST_REFUSAL), self._memory.refusal
        if before is None or message != before.message:
            log("Node write rejected", level="warn", node=self._node.name, error=message, status=error.status)
        self._mishaps = 0
        self._memory = self._memory.after_refusal(effect, message, self._clock.now())

    def _do(self, effect: Effect, step: Step) -> None:
        match effect:
            case RunChecks():
                self._run_checks(effect)
            case Forget():
                self._memory = self._memory.without_attempt()
            case Release() | WriteRecord() | CloseGate() | Announce():
                self._node.write(effect, step.policy)
                self._pace.wrote(self._node.name)
                telling.done(effect, step)
                self._remember(effect)
            case _:
                assert_never(effect)

    def _remember(self, written: NodeWrite | Announce) -> None:
        if isinstance(written, Announce):
            if written.reason in patches.REFUSALS:
                self._memory = self._memory.after_report(self._clock.now())
            return
        self._memory = self._memory.after_write(written)
        if isinstance(written, CloseGate):
            self.metrics.restored.inc()
        elif isinstance(written, WriteRecord) and written.record.outcome is Outcome.PENDING:
            self.metrics.contested.inc(is_contested(written.record))

    def _run_checks(self, wanted: RunChecks) -> None:
        if done := self._rounds.run(wanted):
            self._memory = self._memory.after(done)
            self.metrics.checked(done)
            telling.checked(self._node.name, done, self._memory, self._rules)

    def _show(self, seen: Seen) -> None:
        self._is_verified = seen.node.labelled and not self._rules.policy.gated(seen.node)
        self.metrics.status.set(self._is_verified)

    def _pause(self, first: float, longest: float) -> float:
        """Longer each time."""
        self._mishaps += 1
        return min(first * 2.0 ** min(self._mishaps - 1, _MOST_DOUBLINGS), longest)

    def _complain(self, why: Exception) -> None:
        """Once for each new kind of trouble."""
        if str(why) != self._trouble:
            self._trouble = str(why)
            log("Kubernetes does not answer as it should", level="warn", trouble=self._trouble)
