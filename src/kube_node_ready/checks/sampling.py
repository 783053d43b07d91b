"""Send the same query many times, to find faults that affect only some packets.

One answer proves little. With 30 % of all packets lost, a single query passes 70 % of the time, and a resolver that
repeats its queries passes nearly always. So every sample is one query that is never repeated.

A healthy node answers all of the first samples, and that is all. If some are lost, more are taken, and their share
decides: networks lose a packet now and then, and that alone does not hold a node.

Samples that are sent together see one moment. A server that answers for one second out of five passes all of them if
the first query was repeated until it was answered. So if the first answer took long, or an attempt failed before, the
samples are sent in several series.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence

from kube_node_ready.checks.check import CheckFailedError, Deadline
from kube_node_ready.checks.fast_tuple import FastTuple

LOST = "lost"
_MORE_AFTER_A_LOSS = 3
_FEWEST_TO_JUDGE = 60  # of fewer samples, the default limit of 5 % is less than three
_PATIENCE_SECONDS = 2.0
_PATIENCE_FACTOR = 3
_SHARE_OF_TIME_LEFT = 0.45  # so that there is time for a second series
_LATE_SECONDS = 0.9  # a query that was not answered for a second is repeated
_SERIES_OVER_TIME = 5
_SECONDS_BETWEEN_SERIES = 0.5

Ask = Callable[[int, float], Sequence[str]]
"""Takes this many samples, waits this many seconds for the last one, and returns the fault of each, or ""."""


class Sampling(FastTuple):
    """How many samples are taken, and what percentage of them can fail."""

    samples: int
    max_loss_percent: float
    first: int | None = None
    """The number of first samples, if the target shares them with others."""
    over_time: bool = False
    """Whether the samples are spread over seconds, because a previous attempt failed."""

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
    """Take samples. Return details for the log, or raise a CheckFailedError that counts the faults.

    `first_answer` is how long a first query took, in seconds: a slow server is slow, and loses nothing.
    """
    patience = max(_PATIENCE_SECONDS, _PATIENCE_FACTOR * first_answer)
    is_doubtful = sampling.over_time or first_answer >= _LATE_SECONDS
    outcomes = _first(ask, sampling, deadline, patience, _SERIES_OVER_TIME if is_doubtful else 1)
    if 0 < _failed(outcomes) <= sampling.allowed:
        outcomes += ask(sampling.most - len(outcomes), _within(deadline, patience))
    if _failed(outcomes) > sampling.allowed:
        raise CheckFailedError(described(outcomes))
    return {"queries": len(outcomes), **({"loss": described(outcomes)} if _failed(outcomes) else {})}


def _first(ask: Ask, sampling: Sampling, deadline: Deadline, patience: float, series: int) -> list[str]:
    """Take the first samples in several series, until too many have failed."""
    wanted = sampling.first or sampling.samples
    outcomes: list[str] = []
    for left in range(series, 0, -1):
        if len(outcomes) >= wanted or _failed(outcomes) > sampling.allowed:
            break
        if outcomes:
            time.sleep(min(_SECONDS_BETWEEN_SERIES, deadline.left() / 10))
        outcomes += ask(-(-(wanted - len(outcomes)) // left), _within(deadline, patience))
    return outcomes


def described(outcomes: Sequence[str]) -> str:
    """Return a text such as "4 of 12 queries lost", the most frequent fault first."""
    faults = Counter(fault for fault in outcomes if fault)
    return ", ".join(f"{count} of {len(outcomes)} queries {fault}" for fault, count in faults.most_common())


def _failed(outcomes: Sequence[str]) -> int:
    return sum(bool(fault) for fault in outcomes)


def _within(deadline: Deadline, patience: float) -> float:
    return min(patience, deadline.left() * _SHARE_OF_TIME_LEFT)
