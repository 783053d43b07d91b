"""Run all checks once, and log the result."""

import time
from collections.abc import Callable
from datetime import datetime

from kube_node_ready.agent.cluster_access import ClusterAccess, InCluster
from kube_node_ready.agent.model import CheckRun, RunChecks
from kube_node_ready.api import report as reading
from kube_node_ready.api.report import Report
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks import report
from kube_node_ready.checks.access import NoAccessError
from kube_node_ready.checks.check import PodIdentity, Result
from kube_node_ready.checks.log_observer import LoggingObserver
from kube_node_ready.checks.plan import Found, Known
from kube_node_ready.checks.runner import Limits, Runner
from kube_node_ready.checks.settings import Settings as CheckSettings
from kube_node_ready.checks.transport import Response
from kube_node_ready.log import log


class CheckRunner:
    def __init__(
        self, settings: CheckSettings, identity: PodIdentity, cluster_access: ClusterAccess, now: Callable[[], datetime]
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._cluster_access = cluster_access
        self._now = now
        self._runner: Runner | None = None
        self._failed = False
        self._stopped = False
        self._found: Found = {}
        """Endpoints that the last run of all checks looked up."""

    def stop(self) -> None:
        """End a run soon, and start none. Any thread can call this."""
        self._stopped = True
        if self._runner:
            self._runner.stop()

    def run(self, wanted: RunChecks, response: Response | None = None) -> CheckRun | None:
        """Run the checks. Return None if the run was stopped: interrupted checks prove nothing about the node.

        `response` is the API server's response to the last read of the Node. Without it, no check is left out.
        """
        known = self._known(wanted, response)
        started, counter = self._now(), time.monotonic()
        level = "info" if wanted.attempt else "debug"
        log("Verification started", level=level, node=self._identity.node, attempt=wanted.attempt)
        run_report, results = self._checked(
            LoggingObserver(level), known, after_failure=self._failed or wanted.attempt > 1
        )
        if self._stopped:
            return None
        run = CheckRun(
            started,
            self._now(),
            run_report,
            wanted.attempt,
            wanted.api_reachable,
            skipped=sum(result.verdict is Verdict.SKIPPED for result in results),
            omitted=known.omit if known else (),
            verdicts=tuple(result.verdict for result in results),
        )
        self._failed = not run.clean
        fields: dict[str, object] = {
            "node": self._identity.node,
            "total_duration": f"{time.monotonic() - counter:.3f}s",
        }
        if run.skipped:
            fields["skipped"] = run.skipped
        if run.not_applicable:
            fields["not_applicable"] = list(run.not_applicable)
        if run.omitted:
            fields["omitted"] = list(run.omitted)
        if run.passed:
            log("All checks passed", level=level, **fields)
        elif run.clean:
            log("Checks passed, some omitted", level=level, **fields)
        elif not run.failed and run.skipped < len(results):
            log("Checks passed, some skipped", level="warn", **fields)
        elif not run.failed:
            log("All checks skipped", level="warn", **fields)
        else:
            failed = [check.name for check in run_report.by_check if not check.ok]
            log("Checks failed", level="error", failed=failed, **fields)
        return run

    def _known(self, wanted: RunChecks, response: Response | None) -> Known | None:
        """Return what a partial run can use instead of requests. None for a run of all checks."""
        if not wanted.omit or wanted.attempt or not wanted.api_reachable or response is None:
            return None
        services = {*self._settings.services, self._settings.dns_service} - {""}
        if not isinstance(self._cluster_access, InCluster) or not services <= self._found.keys():
            return None
        return Known(response, self._found, wanted.omit)

    def _checked(
        self, observer: LoggingObserver, known: Known | None, *, after_failure: bool
    ) -> tuple[Report, list[Result]]:
        settings = self._settings.after_failure() if after_failure else self._settings
        limits = Limits(self._settings.check_timeout_seconds, self._settings.timeout_seconds)
        runner = self._runner = Runner(limits, observer)
        looked_up: Found = {}
        try:
            if known and isinstance(self._cluster_access, InCluster):
                checks = self._cluster_access.later_checks(settings, self._identity, known)
            else:
                checks = self._cluster_access.checks(settings, self._identity, looked_up)
        except NoAccessError as error:
            return Report(error=str(error)), []
        results = [] if self._stopped else runner.run(checks)
        if known:
            results = [_timed(result, known.response) for result in results]
        else:
            self._found = looked_up
        return _as_reported(self._identity.node, results), results


def _timed(result: Result, response: Response) -> Result:
    """The API check of a partial run took as long as the request whose response it uses."""
    return (
        result._replace(ms=round((response.received_at - response.sent_at) * 1000)) if result.name == "api" else result
    )


def _as_reported(node: str, results: list[Result]) -> Report:
    """Return the report as if a worker had sent it: short, and safe to print."""
    found = reading.read(report.encode(node, results).decode(errors="replace"))
    assert found, "what we encode can be read"
    return found
