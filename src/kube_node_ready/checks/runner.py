"""All jobs at the same time, a thread each, none hiding another.

A job that is not done at its deadline is given up, not awaited: libc's resolver cannot be interrupted. Its thread is
a daemon and goes with the process. Nothing that happens in a job, not even a bug, lets it pass or stops the others.
"""

import itertools
import queue
import threading
import time
from collections.abc import Iterable, Mapping

from kube_node_ready.checks.model import (
    FAILED,
    GRACE_SECONDS,
    NOT_APPLICABLE,
    NOT_JUDGED,
    PASSED,
    SKIPPED,
    CheckFailedError,
    Deadline,
    Job,
    NotApplicableError,
    NotJudgedError,
    Result,
    SkippedError,
    causes_first,
)
from kube_node_ready.checks.record import Record

_LONGEST_WAIT_SECONDS = 1.0


class Limits(Record):
    check_seconds: float
    all_seconds: float


class Observer:
    """Told of every job; to be overridden. All calls come from the thread that runs `run`."""

    def begun(self, job: Job) -> None: ...

    def ended(self, result: Result, facts: Mapping[str, object]) -> None: ...


class _Outcome(Record):
    number: int
    verdict: str
    error: str = ""
    facts: Mapping[str, object] = {}
    more: tuple[Job, ...] = ()


class _Running(Record):
    job: Job
    begun: float
    deadline: Deadline


class Runner:
    def __init__(self, limits: Limits, observer: Observer) -> None:
        self._limits = limits
        self._observer = observer
        # A SimpleQueue's put may interrupt itself, so a signal handler may use it.
        self._inbox: queue.SimpleQueue[_Outcome | None] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._running: dict[int, _Running] = {}
        self._results: dict[int, Result] = {}
        self.stopped = False
        """Whether checks were given up because of `stop`."""

    def stop(self) -> None:
        """End `run` soon. May be called from a signal handler."""
        self._inbox.put(None)

    def run(self, jobs: Iterable[Job]) -> list[Result]:
        """The result of every job, causes first."""
        overall = Deadline(self._limits.all_seconds)
        for job in jobs:
            self._start(job, overall)
        while self._running:
            try:
                # Not for long: a signal that comes right before we wait is heeded when the wait is over.
                outcome = self._inbox.get(timeout=min(self._patience(), _LONGEST_WAIT_SECONDS))
            except queue.Empty:
                self._give_up_the_late()
                continue
            if outcome is None:
                self.stopped = True
                self._give_up(list(self._running), "stopped before it ended")
            else:
                for job in self._settle(outcome):
                    self._start(job, overall)
        return causes_first([result for _, result in sorted(self._results.items())])

    def _start(self, job: Job, overall: Deadline) -> None:
        self._observer.begun(job)
        number = next(self._numbers)
        begun = time.monotonic()
        try:
            deadline = Deadline(min(self._limits.check_seconds, overall.left()))
            self._running[number] = _Running(job, begun, deadline)
            threading.Thread(target=self._work, args=(number, job, deadline), daemon=True).start()
        except TimeoutError:
            self._conclude(job, begun, _Outcome(number, NOT_JUDGED, "not judged: no time was left to begin"))
        except RuntimeError as why:
            self._running.pop(number)
            self._conclude(job, begun, _Outcome(number, NOT_JUDGED, f"not judged: no thread for it: {why}"))

    def _work(self, number: int, job: Job, deadline: Deadline) -> None:
        try:
            proof = job.prove(deadline)
            outcome = _Outcome(number, PASSED, facts=proof.facts, more=proof.more)
        except SkippedError as why:
            outcome = _Outcome(number, SKIPPED, str(why))
        except NotApplicableError as why:
            outcome = _Outcome(number, NOT_APPLICABLE, str(why))
        except NotJudgedError as why:
            outcome = _Outcome(number, NOT_JUDGED, str(why))
        except CheckFailedError as why:
            outcome = _Outcome(number, FAILED, str(why))
        except TimeoutError:
            outcome = _Outcome(number, FAILED, f"timed out after {deadline}")
        except Exception as why:  # noqa: BLE001  a bug in one check must neither pass nor stop the others
            outcome = _Outcome(number, FAILED, f"the check itself broke: {type(why).__name__}: {why}")
        self._inbox.put(outcome)

    def _patience(self) -> float:
        next_end = min(running.deadline.end for running in self._running.values())
        return max(0.0, next_end + GRACE_SECONDS - time.monotonic())

    def _give_up_the_late(self) -> None:
        now = time.monotonic()
        for number, running in list(self._running.items()):
            if running.deadline.end + GRACE_SECONDS <= now:
                self._give_up([number], f"timed out after {running.deadline}")

    def _give_up(self, numbers: list[int], why: str) -> None:
        for number in numbers:
            running = self._running.pop(number)
            self._conclude(running.job, running.begun, _Outcome(number, FAILED, why))

    def _settle(self, outcome: _Outcome) -> tuple[Job, ...]:
        """What is to be proved next. A job that only found others to do has no result of its own."""
        running = self._running.pop(outcome.number, None)
        if running and not outcome.more:
            self._conclude(running.job, running.begun, outcome)
        return outcome.more if running else ()

    def _conclude(self, job: Job, begun: float, outcome: _Outcome) -> None:
        ms = round((time.monotonic() - begun) * 1000)
        result = Result(job.name, job.target, outcome.verdict, ms, outcome.error)
        self._results[outcome.number] = result
        self._observer.ended(result, outcome.facts)
