"""Running all checks once."""

import time
from collections.abc import Callable
from datetime import datetime

from kube_node_ready.checks import report
from kube_node_ready.checks.access import NoAccessError
from kube_node_ready.checks.model import NOT_APPLICABLE, SKIPPED, Here, Result
from kube_node_ready.checks.run import Limits, Runner
from kube_node_ready.checks.settings import Settings as CheckSettings
from kube_node_ready.checks.telling import Teller
from kube_node_ready.daemonset.model import Round, RunChecks
from kube_node_ready.daemonset.reach import Reach
from kube_node_ready.log import log
from kube_node_ready.verify import report as reading
from kube_node_ready.verify.report import Report


class Rounds:
    def __init__(self, settings: CheckSettings, here: Here, reach: Reach, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._here = here
        self._reach = reach
        self._now = now
        self._runner: Runner | None = None
        self._failed = False
        self._stopped = False

    def stop(self) -> None:
        """End a round soon, and begin none. May be called from any thread."""
        self._stopped = True
        if self._runner:
            self._runner.stop()

    def run(self, wanted: RunChecks) -> Round | None:
        """None if it was stopped: what was given up then says nothing about the node."""
        begun, counter = self._now(), time.monotonic()
        level = "info" if wanted.attempt else "debug"
        log("Verification started", level=level, node=self._here.node, attempt=wanted.attempt)
        found, results = self._checked(Teller(level), after_failure=self._failed or wanted.attempt > 1)
        if self._stopped:
            return None
        done = Round(
            begun,
            self._now(),
            found,
            wanted.attempt,
            wanted.sighted,
            skipped=sum(result.verdict == SKIPPED for result in results),
            not_applicable=tuple(dict.fromkeys(result.name for result in results if result.verdict == NOT_APPLICABLE)),
        )
        self._failed = not done.passed
        facts: dict[str, object] = {"node": self._here.node, "total_duration": f"{time.monotonic() - counter:.3f}s"}
        if done.skipped:
            facts["skipped"] = done.skipped
        if done.not_applicable:
            facts["not_applicable"] = list(done.not_applicable)
        if done.passed:
            log("All checks passed", level=level, **facts)
        elif not done.failed and done.skipped < len(results):
            log("Checks passed, some skipped", level="warn", **facts)
        elif not done.failed:
            log("Nothing was checked", level="warn", **facts)
        else:
            failed = [check.name for check in found.by_check if not check.ok]
            log("Checks failed", level="error", failed=failed, **facts)
        return done

    def _checked(self, teller: Teller, *, after_failure: bool) -> tuple[Report, list[Result]]:
        settings = self._settings.after_failure() if after_failure else self._settings
        limits = Limits(self._settings.check_timeout_seconds, self._settings.timeout_seconds)
        runner = self._runner = Runner(limits, teller)
        try:
            jobs = self._reach.jobs(settings, self._here)
        except NoAccessError as why:
            return Report(error=str(why)), []
        results = [] if self._stopped else runner.run(jobs)
        return _as_reported(self._here.node, results), results


def _as_reported(node: str, results: list[Result]) -> Report:
    """As if a worker had sent it: just as short, and just as harmless to show."""
    found = reading.read(report.encode(node, results).decode(errors="replace"))
    assert found, "what we encode can be read"
    return found
