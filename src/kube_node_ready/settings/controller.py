"""The controller's configuration: the one table of its fields. `settings.config` loads it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from kube_node_ready import log
from kube_node_ready.api.contract import VERIFIED_LABEL, VERIFIED_VALUE
from kube_node_ready.settings.engine import Items
from kube_node_ready.settings.field_types import (
    ATTEMPTS,
    BOOLEAN,
    COUNT,
    DURATION,
    EFFECT,
    LABEL,
    LABEL_VALUE,
    LABELS,
    PATH,
    PERCENT,
    PORT,
    POSITIVE_COUNT,
    POSITIVE_SECONDS,
    QUALIFIED_NAME,
    RATE,
    SECONDS,
    SECONDS_FROM_ONE,
    SUBDOMAIN,
)
from kube_node_ready.settings.readers import Choice
from kube_node_ready.settings.structs import Section, setting, table
from kube_node_ready.settings.worker_pod import WORKER, WorkerConfig

_EXPONENTIAL_FIRST = 1.0
_LINEAR_FIRST = 5.0


class Reconciliation(Section, frozen=True):
    interval_seconds: Annotated[
        float, setting(SECONDS_FROM_ONE, "How often every unverified node is reconciled, even without a change.")
    ] = 30
    max_retries: Annotated[int, setting(ATTEMPTS, "How many failures in a row make a node exhausted.")] = 5
    retry_backoff: Annotated[
        str,
        setting(
            Choice("exponential", "linear"),
            "How the backoff between attempts grows: `exponential` doubles it, `linear` does not.",
        ),
    ] = "exponential"
    backoff_seconds: Annotated[
        float | None, setting(POSITIVE_SECONDS, "The backoff after the first failure: 1 if exponential, 5 if linear.")
    ] = None
    max_backoff_seconds: Annotated[float, setting(POSITIVE_SECONDS, "The longest backoff between attempts.")] = 30
    exhausted_retry_seconds: Annotated[
        float,
        setting(SECONDS, "How often an exhausted node is retried, so that it is released after an outage; 0 is never."),
    ] = 300
    reverify_interval_seconds: Annotated[
        float, setting(SECONDS, "How often a verified node is verified again, spread over the interval; 0 is never.")
    ] = 0
    reverify_failure_threshold: Annotated[
        int, setting(ATTEMPTS, "How many such failures in a row restore the gate of a verified node.")
    ] = 3
    max_concurrent_verifications: Annotated[
        int, setting(POSITIVE_COUNT, "How many worker pods can run simultaneously.")
    ] = 1000
    workers: Annotated[int, setting(POSITIVE_COUNT, "How many nodes the controller reconciles simultaneously.")] = 64

    @property
    def first_backoff_seconds(self) -> float:
        if self.backoff_seconds is not None:
            return self.backoff_seconds
        return _EXPONENTIAL_FIRST if self.retry_backoff == "exponential" else _LINEAR_FIRST


class Taint(Section, frozen=True):
    key: Annotated[str, setting(QUALIFIED_NAME, "The taint's key.")]
    effect: Annotated[str, setting(EFFECT, "The taint's effect.")]
    value: Annotated[str | None, setting(LABEL_VALUE, "The taint's value; any if absent.")] = None


class VerifiedLabel(Section, frozen=True):
    key: Annotated[str, setting(QUALIFIED_NAME, "The key of the label.")] = VERIFIED_LABEL
    value: Annotated[str, setting(LABEL_VALUE, "Its value.")] = VERIFIED_VALUE


class RemovalConfig(Section, frozen=True):
    max_count: Annotated[int, setting(COUNT, "How many nodes of a pool can be removed in one window.")] = 1
    max_percent: Annotated[float, setting(PERCENT, "What percentage of a pool can be removed in one window.")] = 10
    window_seconds: Annotated[float, setting(POSITIVE_SECONDS, "The length of a window.")] = 3600
    max_failing_count: Annotated[
        int,
        setting(
            COUNT,
            "If more nodes fail simultaneously, the problem is cluster-wide: no node is removed, no gate restored.",
        ),
    ] = 2
    max_failing_percent: Annotated[float, setting(PERCENT, "The same, as a percentage of the nodes.")] = 20
    dry_run: Annotated[bool, setting(BOOLEAN, "Log which nodes would be removed, and remove none.")] = False
    without_claim: Annotated[
        str,
        setting(
            Choice("delete", "cordon"),
            "A failed node without NodeClaim: `delete` its Node, or `cordon` it. A node with taints that a new "
            "registration would lose, or with a cordon, is always cordoned.",
        ),
    ] = "delete"


class NodeManagement(Section, frozen=True):
    taints: Annotated[
        tuple[Taint, ...],
        setting(
            Items(table(Taint)),
            "The gate: taints to remove from a verified node; with [], every node without the label is verified.",
            not_null="a list; `[]` means every node without the label; leave the key out for the default gate",
        ),
    ] = (Taint(key="node-ready/unverified", value="true", effect="NoSchedule"),)
    node_selector: Annotated[
        Mapping[str, str], setting(LABELS, "Only nodes with these labels are verified; if empty, all nodes.")
    ] = {}
    verified_label: Annotated[VerifiedLabel, setting(table(VerifiedLabel), "The label of verified nodes.")] = (
        VerifiedLabel()
    )
    delete_failed_nodes: Annotated[
        bool,
        setting(BOOLEAN, "Remove exhausted nodes (with Karpenter, their NodeClaims), within the limits of `removal`."),
    ] = False
    removal: Annotated[RemovalConfig, setting(table(RemovalConfig), "The limits of removing nodes.")] = RemovalConfig()


class LeaderElection(Section, frozen=True):
    enabled: Annotated[bool, setting(BOOLEAN, "Elect a leader among replicas.", flag="leader-elect")] = True
    id: Annotated[str, setting(SUBDOMAIN, "The name of their Lease.", flag="leader-election-id")] = (
        "kube-node-ready-controller"
    )
    namespace: Annotated[
        str,
        setting(
            LABEL.or_empty(), "Where the Lease is; if empty, the worker's namespace.", flag="leader-election-namespace"
        ),
    ] = ""
    lease_duration: Annotated[
        timedelta, setting(DURATION, "How long other replicas wait for a leader that does not renew its Lease.")
    ] = timedelta(seconds=15)
    renew_deadline: Annotated[
        timedelta,
        setting(DURATION, "How long a leader that cannot renew its Lease continues; shorter than leaseDuration."),
    ] = timedelta(seconds=10)
    retry_period: Annotated[
        timedelta, setting(DURATION, "How often the Lease is renewed or checked; shorter than renewDeadline.")
    ] = timedelta(seconds=2)


class Metrics(Section, frozen=True):
    enabled: Annotated[bool, setting(BOOLEAN, "Serve /metrics.")] = True
    port: Annotated[int, setting(PORT, "Its port; 0 is any free one. It can be the port of health.")] = 8080
    per_node: Annotated[bool, setting(BOOLEAN, "Export series per node, which can be too many in a large cluster.")] = (
        True
    )


class Health(Section, frozen=True):
    port: Annotated[int, setting(PORT, "The port of /healthz and /readyz; 0 is any free one.")] = 8081


class Logging(Section, frozen=True):
    level: Annotated[
        str,
        setting(
            Choice(*log.LEVELS),
            "The minimum level: debug, info, warn or error.",
            variable="LOG_LEVEL",
            flag="log-level",
        ),
    ] = "info"
    format: Annotated[
        str,
        setting(
            Choice(*log.FORMATS), "json for machines, console for people.", variable="LOG_FORMAT", flag="log-format"
        ),
    ] = "json"


class Kubernetes(Section, frozen=True):
    kubeconfig_path: Annotated[
        str,
        setting(
            PATH.or_empty(),
            "A kubeconfig file, or several: a:b; if empty: the pod's own ServiceAccount, else ~/.kube/config.",
            variable="KUBECONFIG",
            flag="kubeconfig",
        ),
    ] = ""
    qps: Annotated[float, setting(RATE, "How many requests per second the controller sends; 0 means unlimited.")] = 500
    burst: Annotated[int, setting(COUNT, "How many of them can be sent in a burst.")] = 1000


class Config(Section, frozen=True):
    worker: Annotated[WorkerConfig, setting(WORKER, "The worker pods, and what they check.")] = WorkerConfig()
    reconciliation: Annotated[
        Reconciliation, setting(table(Reconciliation), "When nodes are reconciled and retried.")
    ] = Reconciliation()
    node_management: Annotated[
        NodeManagement, setting(table(NodeManagement), "The gate of nodes, and what happens to failed ones.")
    ] = NodeManagement()
    leader_election: Annotated[LeaderElection, setting(table(LeaderElection), "Leader election among replicas.")] = (
        LeaderElection()
    )
    metrics: Annotated[Metrics, setting(table(Metrics), "Prometheus metrics.")] = Metrics()
    health: Annotated[Health, setting(table(Health), "Liveness and readiness.")] = Health()
    logging: Annotated[Logging, setting(table(Logging), "The controller's log.")] = Logging()
    kubernetes: Annotated[Kubernetes, setting(table(Kubernetes), "Connection to the API server.")] = Kubernetes()
    dry_run: Annotated[
        bool, setting(BOOLEAN, "Log decisions, and write nothing to the cluster.", variable="DRY_RUN", flag="dry-run")
    ] = False
    warnings: tuple[str, ...] = ()
    """What was accepted without having an effect, for the log."""


CONFIG = table(Config)
