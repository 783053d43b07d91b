"""Data types of DaemonSet mode, in addition to those in `verification.model`."""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from kube_node_ready.api.objects import Taint
from kube_node_ready.api.report import Report
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.verification.attempts import ZERO
from kube_node_ready.verification.effects import CloseGate, DiscardAttempt, EmitEvent, OpenGate, WriteStatus
from kube_node_ready.verification.model import Node, Phase, Policy

_FIRST_WAIT = timedelta(seconds=1)
_MAX_WAIT = timedelta(minutes=5)
_MAX_DOUBLINGS = 30
_EVENT_LIFETIME = timedelta(hours=1)

NodeWrite = OpenGate | CloseGate | WriteStatus
"""Writes to the Node and its record, which can be rejected."""


class AgentPolicy(Policy, frozen=True):
    """The controller ignores nodes that were never gated. A node with an agent's pod is always to be verified."""

    def guards(self, node: Node) -> bool:
        return not node.labelled or self.is_gated(node)


class Rules(Struct, frozen=True):
    """The part of the settings that decisions depend on."""

    policy: AgentPolicy
    gate: Taint
    """The taint that closes the gate, in continuous mode."""
    initial_timeout: timedelta = timedelta(seconds=300)
    """How long failures in a row are retried quickly."""
    continuous: bool = False
    interval: timedelta = timedelta(seconds=60)
    threshold: int = 3
    poll_interval: timedelta = timedelta(seconds=10)
    """How often the Node is read while nothing is to be done."""


class CheckRun(Struct, frozen=True):
    """One run of all checks, or of those that a partial run on a verified node includes."""

    started: datetime
    ended: datetime
    report: Report
    attempt: int = 0
    """The attempt that this run decides; 0 if it checks a verified node again."""
    api_reachable: bool = True
    """Whether the Node could be read right before. If not, the API server might be at fault."""

    skipped: int = 0
    """How many targets could not be checked from where this process runs."""
    released: bool = False
    """Whether it opened the gate. It counts once, even if another client deletes the record."""
    omitted: tuple[str, ...] = ()
    """The checks that were left out, to send fewer requests to the API server."""
    verdicts: tuple[Verdict, ...] = ()
    """The verdict of every target. The report can have fewer."""

    @property
    def failed(self) -> bool:
        return not self.report.checks or bool(self.report.failed or self.report.error)

    @property
    def clean(self) -> bool:
        """Whether every check that was planned ran and passed."""
        return not self.failed and not self.skipped and any(check.proves for check in self.report.checks)

    @property
    def passed(self) -> bool:
        """Whether this is a proof. A skipped or omitted check proves nothing, so such a run opens no gate."""
        return self.clean and not self.omitted

    @property
    def reason(self) -> str:
        """Why this run is not a proof."""
        if self.report.reason or not self.skipped:
            return self.report.reason
        return f"{self.skipped} checks could not be tried from here, and a skipped check proves nothing"

    @property
    def not_applicable(self) -> tuple[str, ...]:
        """The checks for which there was nothing to check, such as other nodes to reach."""
        return tuple(check.name for check in self.report.by_check if not check.applies)


class Rejection(Struct, frozen=True):
    """A write to the Node that the API server rejects. It is retried with a backoff."""

    effect: NodeWrite
    message: str
    """The API server's message."""
    at: datetime
    times: int = 1
    """Rejections in a row."""
    reported: datetime | None = None
    """When the Event about it was written."""

    @property
    def is_of_release(self) -> bool:
        return isinstance(self.effect, OpenGate)

    def wait(self, now: datetime) -> timedelta:
        """Return the time until the next retry; zero if the clock was set back."""
        spacing: timedelta = min(_FIRST_WAIT * 2 ** min(self.times - 1, _MAX_DOUBLINGS), _MAX_WAIT)
        return max(ZERO, spacing - (now - self.at)) if self.at <= now else ZERO

    def is_due_to_report(self, now: datetime) -> bool:
        """Whether to emit an Event: once, and again when it might have expired."""
        return self.reported is None or not ZERO <= now - self.reported < _EVENT_LIFETIME


class AgentState(Struct, frozen=True):
    """The state of this process. If it is lost, the node is checked again."""

    last: CheckRun | None = None
    attempt: CheckRun | None = None
    """The last run that decides an attempt, until everything that follows from it is written."""
    streak: int = 0
    """Failed runs in a row on a verified node that could be read. Attempts do not count: they follow one another within
    seconds, and a short problem must not close a gate.
    """
    unreachable_runs: int = 0
    """Runs in a row before which the Node could not be read."""
    rejection: Rejection | None = None
    full: CheckRun | None = None
    """The last run of all checks, if it passed and is not in doubt. Without it, the next run includes all checks.
    """
    partial: int = 0
    """Partial runs since then."""
    run_all_now: bool = False
    """Whether all checks are to run now, instead of at the node's next turn."""
    taints: tuple[Taint, ...] | None = None
    """The Node's taints without the gate, when it was last read."""

    def after_run(self, run: CheckRun) -> "AgentState":
        """Record a run. A partial run changes no streak; if it fails, all checks run immediately, and they count."""
        if run.omitted and run.clean:
            return replace(self, last=run, partial=self.partial + 1)
        if run.omitted:
            return replace(self, last=run, full=None, run_all_now=True)
        attempt = run if run.attempt else self.attempt
        counts = run.api_reachable and not run.attempt and run.report.blames_node
        streak = 0 if run.passed else self.streak + counts
        unreachable_runs = 0 if run.api_reachable else self.unreachable_runs + 1
        full = run if run.passed and run.api_reachable else None
        return replace(
            self,
            last=run,
            attempt=attempt,
            streak=streak,
            unreachable_runs=unreachable_runs,
            full=full,
            partial=0,
            run_all_now=False,
        )

    def after_read(self, taints: tuple[Taint, ...]) -> "AgentState":
        """Changed taints are a hint that something happened to the node, so all checks run."""
        if self.taints is None or taints == self.taints:
            return replace(self, taints=taints)
        return replace(self, taints=taints, full=None, run_all_now=True)

    def without_streak(self) -> "AgentState":
        return replace(self, streak=0)

    def without_attempt(self, number: int) -> "AgentState":
        return replace(self, attempt=None) if self.attempt and self.attempt.attempt == number else self

    def after_write(self, effect: NodeWrite) -> "AgentState":
        """The server accepted a write. A condition alone does not show that it accepts records."""
        if isinstance(effect, WriteStatus) and not effect.version:
            return self
        attempt = self.attempt
        if attempt and isinstance(effect, OpenGate) and effect.record.attempt == attempt.attempt:
            attempt = replace(attempt, released=True)
        return replace(self, attempt=attempt, rejection=None)

    def after_rejection(self, effect: NodeWrite, message: str, now: datetime) -> "AgentState":
        """Record a rejection. It is reported once per message."""
        rejection, before = Rejection(effect, message, now), self.rejection
        if before and before.is_of_release == rejection.is_of_release:
            reported = before.reported if before.message == message else None
            rejection = replace(rejection, times=before.times + 1, reported=reported)
        return replace(self, rejection=rejection)

    def after_report(self, now: datetime) -> "AgentState":
        """The Event about the rejection was written."""
        return replace(self, rejection=replace(self.rejection, reported=now)) if self.rejection else self

    def without_rejected_release(self) -> "AgentState":
        """The gate is open, regardless of who opened it."""
        return replace(self, rejection=None) if self.rejection and self.rejection.is_of_release else self


class Observation(Struct, frozen=True):
    """The agent's own Node at one point in time."""

    now: datetime
    node: Node
    version: str = ""
    condition: str | None = ""
    """The status of the condition NodeVerified: empty if there is none, None if it cannot be written."""
    size: int = 0
    """The size of the response in bytes."""


class RunChecks(Struct, frozen=True):
    attempt: int = 0
    api_reachable: bool = True
    omit: tuple[str, ...] = ()
    """The checks to leave out; none in an attempt."""


Effect = RunChecks | OpenGate | WriteStatus | CloseGate | EmitEvent | DiscardAttempt


class AgentDecision(Struct, frozen=True):
    phase: Phase
    reason: str
    effects: tuple[Effect, ...]
    recheck: timedelta
    policy: Policy
    """The policy of this decision, for messages such as `attempt 3 of 6`."""
