"""Log the start and the result of each check."""

from collections.abc import Mapping

from kube_node_ready import log
from kube_node_ready.api.verdict import Verdict
from kube_node_ready.checks.check import Check, Result
from kube_node_ready.checks.runner import Observer

_TITLES = {
    "dns": ("DNS check", "domain"),
    "api": ("API check", "address"),
    "network": ("Network check", "address"),
    "services": ("Service check", "service"),
    "payload": ("Payload check", "path"),
    "clock": ("Clock check", "address"),
    "matrix": ("Connectivity check", "peers"),
}


class LoggingObserver(Observer):
    """Logs starts and passed checks at `level`."""

    def __init__(self, level: str = "info") -> None:
        self._level = level

    def started(self, check: Check) -> None:
        title, kind = _TITLES[check.name]
        log.log(f"Starting {title}", level=self._level, **{kind: check.target})

    def ended(self, result: Result, details: Mapping[str, object]) -> None:
        title, kind = _TITLES[result.name]
        fields = {kind: result.target, **details, "duration": f"{result.ms / 1000:.3f}s"}
        if result.verdict is Verdict.PASSED:
            log.log(f"{title} passed", level=self._level, **fields)
        elif result.verdict in (Verdict.SKIPPED, Verdict.NOT_APPLICABLE):
            log.log(
                f"{title} {result.verdict.text}", level=self._level, **{kind: result.target, "reason": result.error}
            )
        else:
            log.log(f"{title} failed", level="error", error=result.error, **fields)
