"""The words of DaemonSet mode, on top of those in `verify.model`."""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from kube_node_ready.objects import Taint
from kube_node_ready.verify.model import Announce, CloseGate, Node, Phase, Policy, Release, WriteRecord
from kube_node_ready.verify.report import CheckResult, Report

_NONE = timedelta()
_FIRST_WAIT = timedelta(seconds=1)
LONGEST_WAIT = timedelta(minutes=5)
_MOST_DOUBLINGS = 30
_CALM = timedelta(minutes=10)
"""A gate that stayed open for so long is not contested any more. Longer than the longest wait between two releases."""
_CONTESTED = 2
_EVENT_LIFETIME = timedelta(hours=1)


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
        """Why this is no proof."""
        if self.report.reason or not self.skipped:
            return self.report.reason
        return f"{self.skipped} checks could not be tried from here, and a skipped check proves nothing"

    @property
    def proved(self) -> tuple[CheckResult, ...]:
        """The checks that passed, one result each."""
        return tuple(check for check in self.report.by_check if check.ok and check.name not in self.not_applicable)


class Releases(Struct, frozen=True):
    """What became of our releases since the gate last stayed open: some were undone, and some refused.

    Another client can put the gate back as soon as it is open, and an API server can refuse to open it for good. So the
    next release waits, for longer each time.
    """

    last: datetime | None = None
    """When the gate was last opened, or was to be."""
    stands: bool = False
    """Whether the last release was not seen undone yet."""
    undone: int = 0
    put_back: int = 0
    """How many of those by a gate that came back. The others lost their label, which asks for a new proof."""
    refused: int = 0
    refusal: str = ""
    """The API server's message."""
    told: datetime | None = None
    """When the Event about it was written."""

    @property
    def contested(self) -> bool:
        """Once can be a person who wants the node closed for a moment."""
        return self.put_back >= _CONTESTED

    @property
    def in_trouble(self) -> bool:
        return self.contested or bool(self.refused)

    def wait(self, now: datetime) -> timedelta:
        """How long until the next release."""
        times = self.undone + self.refused
        if not times or self.last is None or self.last > now:
            return _NONE
        spacing: timedelta = min(_FIRST_WAIT * 2 ** min(times - 1, _MOST_DOUBLINGS), LONGEST_WAIT)
        return max(_NONE, spacing - (now - self.last))

    def is_due_to_tell(self, now: datetime) -> bool:
        """Once, and again when the Event may have expired."""
        return self.in_trouble and (self.told is None or not _NONE <= now - self.told < _EVENT_LIFETIME)

    def after_look(self, now: datetime, *, is_open: bool, is_gated: bool) -> "Releases":
        if is_open and self.last and now - self.last >= _CALM:
            return Releases()
        if is_open or not self.stands:
            return self
        return replace(self, stands=False, undone=self.undone + 1, put_back=self.put_back + is_gated)

    def after_release(self, now: datetime) -> "Releases":
        told = self.told if self.contested else None
        return replace(self, last=now, stands=True, refused=0, refusal="", told=told)

    def after_refusal(self, now: datetime, message: str) -> "Releases":
        told = self.told if self.refused else None
        return replace(self, last=now, stands=False, refused=self.refused + 1, refusal=message, told=told)


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
    releases: Releases = Releases()

    def after(self, done: Round) -> "Memory":
        attempt = done if done.attempt else self.attempt
        streak = 0 if done.passed else self.streak + (done.sighted and not done.attempt)
        blind = 0 if done.sighted else self.blind + 1
        return replace(self, last=done, attempt=attempt, streak=streak, blind=blind)

    def without_streak(self) -> "Memory":
        return replace(self, streak=0)

    def without_attempt(self) -> "Memory":
        return replace(self, attempt=None)


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


class ShowTrouble(Struct, frozen=True):
    """Let the condition show why the gate is closed though the checks passed. No record follows: nothing new is known
    about the node.
    """

    node: Node
    reason: str
    message: str
    at: datetime


Effect = RunChecks | Release | WriteRecord | CloseGate | Announce | Forget | ShowTrouble


class Step(Struct, frozen=True):
    phase: Phase
    reason: str
    effects: tuple[Effect, ...]
    recheck: timedelta
    policy: Policy
    """By which this was decided: in words such as `attempt 3 of 6`, it is told by the same."""
