"""Asking the same question many times, to find faults that only some packets meet.

One answer proves little. With 30 % of all packets lost, a single query passes 70 % of the time, and a resolver that
repeats its queries passes nearly always. So every sample is one query that is never repeated.

A healthy node answers all of the first samples, and that is all. If some are lost, more are taken, and their share
decides: networks lose a packet now and then, and that alone does not hold a node.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from kube_node_ready.checks.model import CheckFailedError, Deadline
from kube_node_ready.checks.record import Record

LOST = "lost"
_MORE_AFTER_A_LOSS = 3
_FEWEST_TO_JUDGE = 60  # of fewer samples, the default limit of 5 % is less than three
_PATIENCE_SECONDS = 2.0
_PATIENCE_FACTOR = 3
_SHARE_OF_TIME_LEFT = 0.45  # so that there is time for a second series

Ask = Callable[[int, float], Sequence[str]]
"""Takes so many samples, waits so many seconds for the last one, and returns what is wrong with each: "" if nothing."""


class Sampling(Record):
    """How many samples are taken, and what percentage of them can fail."""

    samples: int
    max_loss_percent: float
    first: int | None = None
    """Fewer for a target that is one of many: together they get as many."""

    @property
    def most(self) -> int:
        """How many samples are taken in total after a loss."""
        return max(_MORE_AFTER_A_LOSS * self.samples, _FEWEST_TO_JUDGE)

    @property
    def allowed(self) -> int:
        """How many of them can fail."""
        return int(self.most * self.max_loss_percent / 100)

    def spread_over(self, targets: int, fewest: int = 3) -> "Sampling":
        """The same number of first samples in total, but at least `fewest` for each target."""
        return self._replace(first=min(self.samples, max(fewest, -(-self.samples // targets))))


def take(ask: Ask, sampling: Sampling, deadline: Deadline, *, first_answer: float = 0.0) -> dict[str, object]:
    """Facts for the log, or a CheckFailedError that counts what went wrong.

    `first_answer` is how long a first query took, in seconds: a slow server is slow, and loses nothing.
    """
    patience = max(_PATIENCE_SECONDS, _PATIENCE_FACTOR * first_answer)
    found = [*ask(sampling.first or sampling.samples, _within(deadline, patience))]
    if 0 < _failed(found) <= sampling.allowed:
        found += ask(sampling.most - len(found), _within(deadline, patience))
    if _failed(found) > sampling.allowed:
        raise CheckFailedError(described(found))
    return {"queries": len(found), **({"loss": described(found)} if _failed(found) else {})}


def described(found: Sequence[str]) -> str:
    """Such as "4 of 12 queries lost", the most frequent fault first."""
    faults = Counter(fault for fault in found if fault)
    return ", ".join(f"{count} of {len(found)} queries {fault}" for fault, count in faults.most_common())


def _failed(found: Sequence[str]) -> int:
    return sum(bool(fault) for fault in found)


def _within(deadline: Deadline, patience: float) -> float:
    return min(patience, deadline.left() * _SHARE_OF_TIME_LEFT)
