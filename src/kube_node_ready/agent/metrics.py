"""Define the metrics of DaemonSet mode. Every series exists from the start."""

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics

from kube_node_ready import __built__, __commit__, __version__
from kube_node_ready.agent.model import CheckRun
from kube_node_ready.checks.check import CHECKS

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for every counter, which is not needed


class Metrics:
    def __init__(self, node: str) -> None:
        self.registry = CollectorRegistry()
        self._node = node
        self.status = self._gauge("status", "1 while this node is verified")
        self.dns_seconds = self._gauge("dns_duration_seconds", "Duration of the slowest DNS check of the last round")
        self.api_seconds = self._gauge("api_duration_seconds", "Duration of the API check of the last round")
        self.completed = self._gauge("completion_timestamp", "End time of the last round of checks")
        self.in_a_row = self._gauge("consecutive_failures", "Consecutive failed rounds of checks, including attempts")
        self.failures = self._counter("failures", "Rounds in which this check failed", "check")
        for check in CHECKS:
            self.failures.labels(node, check)
        self.gates_closed = self._counter("gate_restored", "Times the gate was restored").labels(node)
        self.contested = self._counter("gate_contested", "Releases that another client undid repeatedly").labels(node)
        self.rejected = self._counter("release_rejected", "Times the API server rejected the release").labels(node)
        build = Gauge(
            "kube_node_ready_build_info", "Always 1", ["version", "commit_hash", "build_date"], registry=self.registry
        )
        build.labels(__version__, __commit__ or "from source", __built__).set(1)

    def checked(self, run: CheckRun) -> None:
        self.completed.set(run.ended.timestamp())
        if run.failed:
            self.in_a_row.inc()
        else:
            self.in_a_row.set(0)
        for check in run.report.by_check:
            if not check.ok:
                self.failures.labels(self._node, check.name).inc()
            if check.name == "dns":
                self.dns_seconds.set(check.ms / 1000)
            elif check.name == "api":
                self.api_seconds.set(check.ms / 1000)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"node_check_{name}", text, ["node"], registry=self.registry).labels(self._node)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"node_check_{name}", text, ["node", *labels], registry=self.registry)
