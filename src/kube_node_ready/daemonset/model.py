"""The words of DaemonSet mode, on top of those in `verify.model`."""

from datetime import datetime, timedelta

from msgspec import Struct

from kube_node_ready.objects import Taint
from kube_node_ready.verify.model import Announce, CloseGate, Node, Phase, Policy, Release, WriteRecord
from kube_node_ready.verify.report import Report


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

    @property
    def failed(self) -> bool:
        return not self.report.checks or bool(self.report.failed or self.report.error)

    @property
    def passed(self) -> bool:
        """What was skipped proves nothing, so something must have been tried."""
        return not self.failed and self.skipped < len(self.report.checks)

    @property
    def skipped(self) -> int:
        """How many targets were of no concern here: they did not fail, and have a reason."""
        return sum(check.ok and bool(check.error) for check in self.report.checks)


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

    def after(self, done: Round) -> "Memory":
        attempt = done if done.attempt else self.attempt
        streak = 0 if done.passed else self.streak + (done.sighted and not done.attempt)
        return Memory(done, attempt, streak, 0 if done.sighted else self.blind + 1)

    def without_streak(self) -> "Memory":
        return Memory(self.last, self.attempt, 0, self.blind)

    def without_attempt(self) -> "Memory":
        return Memory(self.last, None, self.streak, self.blind)


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
