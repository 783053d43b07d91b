"""The controller's configuration: every field with its default and what it is for."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal

from msgspec import Meta

from kube_node_ready.configuration.kinds import (
    DERIVED,
    Attempts,
    Count,
    Effect,
    Label,
    LabelValue,
    LongSeconds,
    Path,
    Percent,
    Port,
    QualifiedName,
    Quantum,
    Rate,
    Seconds,
    SomeSeconds,
    Subdomain,
    WithoutClaim,
    about,
)
from kube_node_ready.configuration.pods import Part, Worker

_EXPONENTIAL_FIRST = 1.0
_LINEAR_FIRST = 5.0


class Reconciliation(Part, frozen=True):
    interval_seconds: Annotated[
        LongSeconds, about("How often every unverified node is looked at, even if nothing happened.")
    ] = 30
    max_retries: Annotated[Attempts, about("How many failures in a row make a node exhausted.")] = 5
    retry_backoff: Annotated[
        Literal["exponential", "linear"], about("How the wait between attempts grows: doubling, or not at all.")
    ] = "exponential"
    backoff_seconds: Annotated[
        SomeSeconds | None, about("The wait after the first failure: 1 if exponential, 5 if linear.")
    ] = None
    max_backoff_seconds: Annotated[SomeSeconds, about("The longest wait between attempts.")] = 30
    exhausted_retry_seconds: Annotated[
        Seconds, about("How often an exhausted node is tried again, so that an outage that ends frees it; 0 is never.")
    ] = 300
    reverify_interval_seconds: Annotated[
        Seconds, about("How often a verified node must prove itself again, each at its own time; 0 is never.")
    ] = 0
    reverify_failure_threshold: Annotated[
        Attempts, about("How many such failures in a row close a verified node's gate again.")
    ] = 3
    max_concurrent_verifications: Annotated[Quantum, about("How many worker pods may run at a time.")] = 1000
    workers: Annotated[Quantum, about("How many nodes the controller works on at a time.")] = 64

    @property
    def first_backoff_seconds(self) -> float:
        if self.backoff_seconds is not None:
            return self.backoff_seconds
        return _EXPONENTIAL_FIRST if self.retry_backoff == "exponential" else _LINEAR_FIRST


class Taint(Part, frozen=True):
    key: Annotated[QualifiedName, about("The taint's key.")]
    effect: Annotated[Effect, about("The taint's effect.")]
    value: Annotated[LabelValue | None, about("The taint's value; any if absent.")] = None


class VerifiedLabel(Part, frozen=True):
    key: Annotated[QualifiedName, about("The label that verified nodes get.")] = "node-ready/verified"
    value: Annotated[LabelValue, about("Its value.")] = "true"


class Removal(Part, frozen=True):
    max_count: Annotated[Count, about("How many nodes of a pool may be removed in one window.")] = 1
    max_percent: Annotated[Percent, about("How much of a pool may be removed in one window.")] = 10
    window_seconds: Annotated[SomeSeconds, about("How long a window is.")] = 3600
    max_failing_count: Annotated[
        Count,
        about("With more nodes failing at once, the cluster is at fault: none is removed, and no gate closed."),
    ] = 2
    max_failing_percent: Annotated[Percent, about("The same, as a share of the nodes.")] = 20
    dry_run: Annotated[bool, about("Say which nodes would be removed, and remove none.")] = False
    without_claim: Annotated[
        WithoutClaim,
        about(
            "A failed node without NodeClaim: `delete` its Node, or `cordon` it. A node with taints that a new "
            "registration would lose is always cordoned."
        ),
    ] = "delete"


class NodeManagement(Part, frozen=True):
    taints: Annotated[
        tuple[Taint, ...],
        Meta(
            description="The gate: taints that a verified node loses; with [], every unlabelled node is verified.",
            extra={"null": "`[]` means every unlabelled node; leave the key out for the default gate"},
        ),
    ] = (Taint(key="node-ready/unverified", value="true", effect="NoSchedule"),)
    node_selector: Annotated[
        Mapping[QualifiedName, LabelValue], about("Only nodes with these labels are looked at; if empty, all nodes.")
    ] = {}
    verified_label: Annotated[VerifiedLabel, about("The label that says a node is verified.")] = VerifiedLabel()
    delete_failed_nodes: Annotated[
        bool, about("Whether exhausted nodes are removed (their NodeClaim, with Karpenter), within `removal`.")
    ] = False
    removal: Annotated[Removal, about("The limits of removing nodes.")] = Removal()


class LeaderElection(Part, frozen=True):
    enabled: Annotated[bool, about("Whether replicas agree on which one works.")] = True
    id: Annotated[Subdomain, about("The name of their Lease.")] = "kube-node-ready-controller"
    namespace: Annotated[Label, about("Where the Lease is; if empty, the worker's namespace.")] = ""
    lease_duration: Annotated[timedelta, about("How long the others wait for a leader that has gone silent.")] = (
        timedelta(seconds=15)
    )
    renew_deadline: Annotated[
        timedelta, about("How long a leader that cannot renew goes on; shorter than leaseDuration.")
    ] = timedelta(seconds=10)
    retry_period: Annotated[timedelta, about("How often the Lease is looked at; shorter than renewDeadline.")] = (
        timedelta(seconds=2)
    )


class Metrics(Part, frozen=True):
    enabled: Annotated[bool, about("Whether /metrics is served.")] = True
    port: Annotated[Port, about("Its port; 0 is any free one. It may be health's port.")] = 8080
    per_node: Annotated[bool, about("Whether there are series for single nodes, which a big cluster may not want.")] = (
        True
    )


class Health(Part, frozen=True):
    port: Annotated[Port, about("The port of /healthz and /readyz; 0 is any free one.")] = 8081


class Logging(Part, frozen=True):
    level: Annotated[Literal["debug", "info", "warn", "error"], about("The least important lines to write.")] = "info"
    format: Annotated[Literal["json", "console"], about("For machines, or for people.")] = "json"


class Kubernetes(Part, frozen=True):
    kubeconfig_path: Annotated[
        Path, about("A kubeconfig file, or several: a:b; if empty: the pod's own ServiceAccount, else ~/.kube/config.")
    ] = ""
    qps: Annotated[Rate, about("How many requests a second the controller sends; 0 is without limit.")] = 500
    burst: Annotated[Count, about("How many of them may go out at once.")] = 1000


class Config(Part, frozen=True):
    worker: Annotated[Worker, about("The worker pods, and what they check.")] = Worker()
    reconciliation: Annotated[Reconciliation, about("When nodes are looked at, and tried again.")] = Reconciliation()
    node_management: Annotated[NodeManagement, about("What gates a node, and what becomes of it.")] = NodeManagement()
    leader_election: Annotated[LeaderElection, about("Which of several replicas works.")] = LeaderElection()
    metrics: Annotated[Metrics, about("Prometheus metrics.")] = Metrics()
    health: Annotated[Health, about("Liveness and readiness.")] = Health()
    logging: Annotated[Logging, about("The controller's log.")] = Logging()
    kubernetes: Annotated[Kubernetes, about("How the API server is reached.")] = Kubernetes()
    dry_run: Annotated[bool, about("Decide and log, and write nothing to the cluster.")] = False
    notes: Annotated[tuple[str, ...], DERIVED] = ()
    """What was accepted without having an effect, for the log."""
