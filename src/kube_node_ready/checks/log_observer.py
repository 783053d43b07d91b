"""The log lines of a run: what begins, and what came of it."""

from collections.abc import Mapping

from kube_node_ready import log
from kube_node_ready.checks.model import NOT_APPLICABLE, PASSED, SKIPPED, Job, Result
from kube_node_ready.checks.run import Observer

_TITLES = {
    "dns": ("DNS check", "domain"),
    "api": ("API check", "address"),
    "network": ("Network check", "address"),
    "services": ("Service check", "service"),
    "payload": ("Payload check", "path"),
    "clock": ("Clock check", "address"),
    "matrix": ("Connectivity check", "peers"),
}


class Teller(Observer):
    """What goes as it should is told at `level`."""

    def __init__(self, level: str = "info") -> None:
        self._level = level

    def begun(self, job: Job) -> None:
        title, kind = _TITLES[job.name]
        log.log(f"Starting {title}", level=self._level, **{kind: job.target})

    def ended(self, result: Result, facts: Mapping[str, object]) -> None:
        title, kind = _TITLES[result.name]
        fields = {kind: result.target, **facts, "duration": f"{result.ms / 1000:.3f}s"}
        if result.verdict == PASSED:
            log.log(f"{title} passed", level=self._level, **fields)
        elif result.verdict in (SKIPPED, NOT_APPLICABLE):
            log.log(f"{title} {result.verdict}", level=self._level, **{kind: result.target, "reason": result.error})
        else:
            log.log(f"{title} failed", level="error", error=result.error, **fields)
