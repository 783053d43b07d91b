"""The words of DaemonSet mode, on top of those in `verify.model`."""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from kube_node_ready.objects import Taint
from kube_node_ready.verify.model import Announce, CloseGate, Node, Phase, Policy, Release, WriteRecord
from kube_node_ready.verify.report import CheckResult, Report

_NONE = timedelta()
_FIRST_WAIT = timedelta(seconds=1)
_LONGEST_WAIT = timedelta(minutes=5)
_MOST_DOUBLINGS = 30
_EVENT_LIFETIME = timedelta(hours=1)

NodeWrite = Release | CloseGate | WriteRecord
"""What is written to the Node and its record, and can be refused."""


class OwnPolicy(Policy, frozen=True):
    """The controller leaves alone what never was gated. Whoever put a pod on this node wants this node verified."""

    def guards(self, node: Node) -> bool:
        return not node.labelled or self.gated(node)


class Rules(Struct, frozen=True):
    """What the settings say, as far as decisions go."""

    policy: OwnPolicy
    gate: Taint
    """What closes the gate again, in the continuous pattern."""
    initial_timeout: timedelta = timedelta(seconds=300)
    """How long failures in a row are followed by quick retries."""
    continuous: bool = False
    interval: timedelta = timedelta(seconds=60)
    threshold: int = 3
    look: timedelta = timedelta(seconds=10)
    """How often to look at the Node while there is nothing to do."""


class Round(Struct, frozen=True):
    """All checks, run once."""

    begun: datetime
    ended: datetime
    report: Report
    attempt: int = 0
    """The attempt it decides; 0 if it only watches over a node."""
    sighted: bool = True
    """Whether the Node could be read right before. If not, the API server may be at fault, and not this node."""

    skipped: int = 0
    """How many targets could not be checked from where this process runs."""
    released: bool = False
    """Whether the gate was opened for it. It counts once, even if another client deletes the record."""
    not_applicable: tuple[str, ...] = ()
    """The checks for which there was nothing to check, such as other nodes to reach."""

    @property
    def failed(self) -> bool:
        return not self.report.checks or bool(self.report.failed or self.report.error)

    @property
    def passed(self) -> bool:
        """Whether this is a proof. A skipped check proves nothing, and so it opens no gate."""
        return not self.failed and not self.skipped and bool(self.proved)

    @property
    def reason(self) -> str:
        """Why this does not prove anything."""
        if self.report.reason or not self.skipped:
            return self.report.reason
        return f"{self.skipped} checks could not be tried from here, and a skipped check proves nothing"

    @property
    def proved(self) -> tuple[CheckResult, ...]:
        """The checks that passed, one result each."""
        return tuple(check for check in self.report.by_check if check.ok and check.name not in self.not_applicable)


class Refusal(Struct, frozen=True):
    """A write to the Node that the API server refuses. It is tried again after a wait, longer each time."""

    effect: NodeWrite
    message: str
    """The API server's."""
    at: datetime
    times: int = 1
    """In a row."""
    reported: datetime | None = None
    """When the Event about it was written."""

    @property
    def is_of_release(self) -> bool:
        return isinstance(self.effect, Release)

    def wait(self, now: datetime) -> timedelta:
        """How long until the next try. Not at all, if the clock was set back."""
        spacing: timedelta = min(_FIRST_WAIT * 2 ** min(self.times - 1, _MOST_DOUBLINGS), _LONGEST_WAIT)
        return max(_NONE, spacing - (now - self.at)) if self.at <= now else _NONE

    def is_due_to_report(self, now: datetime) -> bool:
        """Once, and again when the Event might have expired."""
        return self.reported is None or not _NONE <= now - self.reported < _EVENT_LIFETIME


class Memory(Struct, frozen=True):
    """What only this process knows. All of it may be lost: then the node is checked again."""

    last: Round | None = None
    attempt: Round | None = None
    """The last round that decides an attempt, until all that follows from it is written."""
    streak: int = 0
    """Rounds in a row that failed while they watched over a verified node that could be read. Attempts do not count:
    they follow one another within seconds, and what is over by then closes no gate.
    """
    blind: int = 0
    """Rounds in a row before which it could not."""
    refusal: Refusal | None = None

    def after(self, done: Round) -> "Memory":
        attempt = done if done.attempt else self.attempt
        streak = 0 if done.passed else self.streak + (done.sighted and not done.attempt)
        blind = 0 if done.sighted else self.blind + 1
        return replace(self, last=done, attempt=attempt, streak=streak, blind=blind)

    def without_streak(self) -> "Memory":
        return replace(self, streak=0)

    def without_attempt(self) -> "Memory":
        return replace(self, attempt=None)

    def after_write(self, effect: NodeWrite) -> "Memory":
        """The server accepted it. A condition alone does not show that it accepts records."""
        if isinstance(effect, WriteRecord) and not effect.version:
            return self
        attempt = self.attempt
        if attempt and isinstance(effect, Release) and effect.record.attempt == attempt.attempt:
            attempt = replace(attempt, released=True)
        return replace(self, attempt=attempt, refusal=None)

    def after_refusal(self, effect: NodeWrite, message: str, now: datetime) -> "Memory":
        """Reported once, until the server says something else."""
        refusal, before = Refusal(effect, message, now), self.refusal
        if before and before.is_of_release == refusal.is_of_release:
            reported = before.reported if before.message == message else None
            refusal = replace(refusal, times=before.times + 1, reported=reported)
        return replace(self, refusal=refusal)

    def after_report(self, now: datetime) -> "Memory":
        """The Event about the refusal was written."""
        return replace(self, refusal=replace(self.refusal, reported=now)) if self.refusal else self

    def without_refused_release(self) -> "Memory":
        """The gate is open, by whatever means."""
        return replace(self, refusal=None) if self.refusal and self.refusal.is_of_release else self


class Seen(Struct, frozen=True):
    """Our own Node, as the API server shows it at one moment."""

    now: datetime
    node: Node
    version: str = ""
    condition: str | None = ""
    """The status of the condition NodeVerified: empty if there is none, None if we may not write it anyway."""


class RunChecks(Struct, frozen=True):
    attempt: int = 0
    sighted: bool = True


class Forget(Struct, frozen=True):
    """All that follows from the last attempt is written."""


Effect = RunChecks | Release | WriteRecord | CloseGate | Announce | Forget


class Step(Struct, frozen=True):
    phase: Phase
    reason: str
    effects: tuple[Effect, ...]
    recheck: timedelta
    policy: Policy
    """By which this was decided: in words such as `attempt 3 of 6`, it is told by the same."""
