"""The configuration, as decisions, worker pods and metrics need it."""

from datetime import timedelta
from typing import Any

from kube_node_ready.api.objects import Taint
from kube_node_ready.settings.config import Config, manifest
from kube_node_ready.verification.model import Gate, Policy, RemovalPolicy, Reverification, WithoutClaim
from kube_node_ready.verification.worker_pod import WorkerPodTemplate

_TO_START_SECONDS = 5
"""A worker that used all its time must still be able to report the reason, so its pod has more."""
_KUBELETS_MARGIN_SECONDS = 60
"""The controller ends a late worker before its kubelet does, because then the pod still shows what it waited for."""


def policy(config: Config) -> Policy:
    reconciliation, management = config.reconciliation, config.node_management
    return Policy(
        gates=gates(config),
        label=management.verified_label.key,
        label_value=management.verified_label.value,
        max_failures=reconciliation.max_retries,
        exponential=reconciliation.retry_backoff == "exponential",
        first_backoff=timedelta(seconds=reconciliation.first_backoff_seconds),
        max_backoff=timedelta(seconds=reconciliation.max_backoff_seconds),
        slow_retry=timedelta(seconds=reconciliation.exhausted_retry_seconds) or None,
        deadline=timedelta(seconds=config.worker.timeout_seconds + _TO_START_SECONDS),
        resync=timedelta(seconds=reconciliation.interval_seconds),
        removal=_removal(config),
        reverification=_reverification(config),
    )


def gates(config: Config) -> tuple[Gate, ...]:
    return tuple(Gate(taint.key, taint.effect) for taint in config.node_management.taints)


def template(config: Config) -> WorkerPodTemplate:
    worker = config.worker
    return WorkerPodTemplate(
        namespace=worker.namespace,
        image=worker.image.reference,
        gates=gates(config),
        command=tuple(worker.command),
        pull_policy=worker.image.pull_policy,
        service_account=worker.service_account_name,
        priority_class=worker.priority_class_name,
        pull_secrets=tuple(worker.image_pull_secrets),
        resources=manifest(worker.resources),
        config_map=worker.config_map_name,
        tolerations=tuple(manifest(toleration) for toleration in worker.tolerations),
        init_containers=tuple(manifest(container) for container in worker.init_containers),
        volumes=tuple(worker.volumes),
        labels=worker.pod_labels,
        annotations=worker.pod_annotations,
        deadline_seconds=worker.timeout_seconds + _TO_START_SECONDS + _KUBELETS_MARGIN_SECONDS,
        settings=_for_the_worker(config),
    )


def known_targets(config: Config) -> frozenset[str]:
    """What the configuration itself names as targets: these can become label values of metrics."""
    listed = [config.worker.checks.get(name, []) for name in ("dnsTestDomains", "networkTargets", "services")]
    return frozenset(target for targets in listed if isinstance(targets, list) for target in targets)


def _for_the_worker(config: Config) -> dict[str, Any]:
    worker = config.worker
    logging = {"level": config.logging.level, "format": config.logging.format}
    content = {**worker.checks, "timeoutSeconds": worker.timeout_seconds, "logging": logging}
    if worker.checks.get("connectivityMatrix") and config.health.port:
        content.setdefault("connectivityPort", config.health.port)
    return content


def _removal(config: Config) -> RemovalPolicy | None:
    management = config.node_management
    if not management.delete_failed_nodes:
        return None
    removal = management.removal
    return RemovalPolicy(
        max_count=removal.max_count,
        max_percent=removal.max_percent,
        window=timedelta(seconds=removal.window_seconds),
        max_failing_count=removal.max_failing_count,
        max_failing_percent=removal.max_failing_percent,
        without_claim=WithoutClaim(removal.without_claim),
    )


def _reverification(config: Config) -> Reverification | None:
    reconciliation, management = config.reconciliation, config.node_management
    if not reconciliation.reverify_interval_seconds:
        return None
    gate = management.taints[0] if management.taints else None
    return Reverification(
        interval=timedelta(seconds=reconciliation.reverify_interval_seconds),
        threshold=reconciliation.reverify_failure_threshold,
        gate=Taint(gate.key, gate.effect, gate.value or "") if gate else None,
        max_failing_count=management.removal.max_failing_count,
        max_failing_percent=management.removal.max_failing_percent,
    )
