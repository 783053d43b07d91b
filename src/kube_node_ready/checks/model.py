"""What the checks speak in: a job is to be proved before a deadline, and comes to a result."""

import time
from collections.abc import Callable, Mapping

from kube_node_ready.checks.record import Record

CHECKS = ("dns", "api", "network", "services", "payload", "clock", "matrix")

# Checks know better than their runner what they waited for, so it gives them this long to say it.
GRACE_SECONDS = 0.5

PASSED = "passed"
FAILED = "failed"
NOT_JUDGED = "not judged"
SKIPPED = "skipped"
"""It could not be tried from here, as outside a pod. Nothing is known, so this never opens a gate."""
NOT_APPLICABLE = "not applicable"
"""It was looked into, and there is nothing to check: no other node runs a pod that could be reached."""
# In this order results are told: what is broken, what is unknown because of it, and then the rest.
_VERDICTS = (FAILED, NOT_JUDGED, SKIPPED, NOT_APPLICABLE, PASSED)


class CheckFailedError(Exception):
    """A fact that does not hold: one sentence of what was tried, what came of it, and what that means."""


class NotJudgedError(CheckFailedError):
    """A fact that nobody could look at, because what that needs does not work."""

    def __str__(self) -> str:
        return f"not judged: {super().__str__()}"


class SkippedError(Exception):
    """A fact that cannot be checked from where this process runs, and why."""


class NotApplicableError(Exception):
    """A fact that holds for lack of anything it could be about, and why."""


class Deadline:
    """A moment that several waits share: each may take what the ones before it left."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.monotonic() + seconds

    def left(self) -> float:
        """In seconds. When nothing is left, this is a timeout like any socket's."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def part(self, share: float) -> "Deadline":
        """The nearer deadline of one of several tries."""
        return Deadline(self.left() * share)

    def __str__(self) -> str:
        return f"{self.seconds:.3g} s"


class Here(Record):
    """Which pod of ours asks: others are judged by not being on its node."""

    node: str
    namespace: str


class Job(Record):
    """`prove` returns when the fact holds, and raises otherwise; time and reporting are the runner's."""

    name: str
    target: str
    prove: "Callable[[Deadline], Proof]"


class Proof(Record):
    """What was seen, for the log; and, when that was only a list of things to prove, a job for each of them."""

    facts: Mapping[str, object] = {}
    more: tuple[Job, ...] = ()


class Result(Record):
    name: str
    target: str
    verdict: str
    ms: int
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against the node. Whether that is a proof depends on what was skipped."""
        return self.verdict in (PASSED, SKIPPED, NOT_APPLICABLE)


def causes_first(results: list[Result]) -> list[Result]:
    return sorted(results, key=lambda result: (_VERDICTS.index(result.verdict), CHECKS.index(result.name)))
