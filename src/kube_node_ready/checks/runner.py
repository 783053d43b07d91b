"""Run all checks simultaneously, each in its own thread.

A check that is not done at its deadline is abandoned: libc's resolver cannot be interrupted. Its thread is a daemon and
ends with the process. An error in a check, even a bug, never lets it pass or stops the others.
"""

import itertools
import queue
import threading
import time
from collections.abc import Iterable, Mapping

from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks.check import (
    GRACE_SECONDS,
    Check,
    CheckFailedError,
    Deadline,
    InconclusiveError,
    NotApplicableError,
    Result,
    SkippedError,
    causes_first,
    not_judged,
    without_fault_of_one_peer,
)
from kube_node_ready.checks.fast_tuple import FastTuple

_LONGEST_WAIT_SECONDS = 1.0


class Limits(FastTuple):
    check_seconds: float
    all_seconds: float


class Observer:
    """Called for every check; to be overridden. All calls come from the thread that runs `run`."""

    def started(self, check: Check) -> None: ...

    def ended(self, result: Result, details: Mapping[str, object]) -> None: ...


class _Outcome(FastTuple):
    number: int
    verdict: Verdict
    error: str = ""
    details: Mapping[str, object] = {}
    follow_ups: tuple[Check, ...] = ()


class _Running(FastTuple):
    check: Check
    started: float
    deadline: Deadline


class Runner:
    def __init__(self, limits: Limits, observer: Observer) -> None:
        self._limits = limits
        self._observer = observer
        # The put of a SimpleQueue is reentrant, so a signal handler can use it.
        self._inbox: queue.SimpleQueue[_Outcome | None] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._running: dict[int, _Running] = {}
        self._results: dict[int, Result] = {}
        self.stopped = False
        """Whether checks were abandoned because of `stop`."""

    def stop(self) -> None:
        """End `run` soon. A signal handler can call this."""
        self._inbox.put(None)

    def run(self, checks: Iterable[Check]) -> list[Result]:
        """Run the checks, and return their results, causes first."""
        overall = Deadline(self._limits.all_seconds)
        for check in checks:
            self._start(check, overall)
        while self._running:
            try:
                # Not for long: a signal right before the wait is handled after it.
                outcome = self._inbox.get(timeout=min(self._patience(), _LONGEST_WAIT_SECONDS))
            except queue.Empty:
                self._give_up_the_late()
                continue
            if outcome is None:
                self.stopped = True
                self._give_up(list(self._running), "stopped before it completed")
            else:
                for check in self._settle(outcome):
                    self._start(check, overall)
        return causes_first(without_fault_of_one_peer([result for _, result in sorted(self._results.items())]))

    def _start(self, check: Check, overall: Deadline) -> None:
        self._observer.started(check)
        number = next(self._numbers)
        started = time.monotonic()
        try:
            deadline = Deadline(min(self._limits.check_seconds, overall.left()))
            self._running[number] = _Running(check, started, deadline)
            threading.Thread(target=self._work, args=(number, check, deadline), daemon=True).start()
        except TimeoutError:
            self._conclude(check, started, _inconclusive(number, "no time was left to begin"))
        except RuntimeError as error:
            self._running.pop(number)
            self._conclude(check, started, _inconclusive(number, f"cannot start a thread: {error}"))

    def _work(self, number: int, check: Check, deadline: Deadline) -> None:
        try:
            proof = check.run(deadline)
            outcome = _Outcome(number, Verdict.PASSED, details=proof.details, follow_ups=proof.follow_ups)
        except SkippedError as error:
            outcome = _Outcome(number, Verdict.SKIPPED, str(error))
        except NotApplicableError as error:
            outcome = _Outcome(number, Verdict.NOT_APPLICABLE, str(error))
        except InconclusiveError as error:
            outcome = _Outcome(number, Verdict.INCONCLUSIVE, error.error)
        except CheckFailedError as error:
            outcome = _Outcome(number, Verdict.FAILED, str(error))
        except TimeoutError:
            outcome = _Outcome(number, Verdict.FAILED, f"timed out after {deadline}")
        except Exception as error:  # noqa: BLE001  a bug in one check must neither pass nor stop the others
            outcome = _Outcome(number, Verdict.FAILED, f"check failed unexpectedly: {type(error).__name__}: {error}")
        self._inbox.put(outcome)

    def _patience(self) -> float:
        next_end = min(running.deadline.end for running in self._running.values())
        return max(0.0, next_end + GRACE_SECONDS - time.monotonic())

    def _give_up_the_late(self) -> None:
        now = time.monotonic()
        for number, running in list(self._running.items()):
            if running.deadline.end + GRACE_SECONDS <= now:
                self._give_up([number], f"timed out after {running.deadline}")

    def _give_up(self, numbers: list[int], reason: str) -> None:
        for number in numbers:
            running = self._running.pop(number)
            is_judged = not running.check.is_lookup
            outcome = _Outcome(number, Verdict.FAILED, reason) if is_judged else _inconclusive(number, reason)
            self._conclude(running.check, running.started, outcome)

    def _settle(self, outcome: _Outcome) -> tuple[Check, ...]:
        """Return the follow-up checks. A check that has some has no result of its own."""
        running = self._running.pop(outcome.number, None)
        if running and not outcome.follow_ups:
            self._conclude(running.check, running.started, outcome)
        return outcome.follow_ups if running else ()

    def _conclude(self, check: Check, started: float, outcome: _Outcome) -> None:
        ms = round((time.monotonic() - started) * 1000)
        result = Result(check.name, check.target, outcome.verdict, ms, outcome.error, check.peer)
        self._results[outcome.number] = result
        self._observer.ended(result, outcome.details)


def _inconclusive(number: int, reason: str) -> _Outcome:
    return _Outcome(number, Verdict.INCONCLUSIVE, not_judged(reason))
