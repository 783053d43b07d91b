"""What fields must be in relation to each other, and lists in themselves. Each rule names the fields it compares."""

from collections.abc import Callable, Iterator, Mapping

from kube_node_ready.settings.controller import Config
from kube_node_ready.settings.field_types import LABEL
from kube_node_ready.settings.readers import INVALID
from kube_node_ready.settings.worker_pod import CHECKS, InitContainer, Resources, Toleration
from kubekit import quantities
from kubekit.diagnostics import Diagnostic, invalid, join_path, missing, quoted

_WORKER_CONTAINER = "worker"
_CONFIG_VOLUME = "worker-config"
_SHORTEST_REVERIFY = 10

Violation = tuple[Diagnostic, *tuple[str, ...]]
"""A diagnostic, and the paths of the other fields that were compared: if one of those is invalid, this might not be."""


def violations(config: Config) -> Iterator[Violation]:
    for rule in _RULES:
        yield from rule(config)


def _times(config: Config) -> Iterator[Violation]:
    worker, reconciliation = config.worker, config.reconciliation
    check = worker.checks.get("checkTimeoutSeconds", CHECKS["checkTimeoutSeconds"].default)
    if check > worker.timeout_seconds:
        expected = f"at most worker.timeoutSeconds, which all checks have together: {worker.timeout_seconds}"
        yield invalid("worker.checkTimeoutSeconds", check, expected), "worker.timeoutSeconds", "worker.job"
    first, longest = reconciliation.first_backoff_seconds, reconciliation.max_backoff_seconds
    if longest < first:
        yield (
            _invalid("reconciliation.maxBackoffSeconds", f"{longest:g}", f"at least the first wait, {first:g}"),
            "reconciliation.backoffSeconds",
            "reconciliation.retryBackoff",
        )


def _lease(config: Config) -> Iterator[Violation]:
    lease = config.leader_election
    duration, deadline, period = (
        time.total_seconds() for time in (lease.lease_duration, lease.renew_deadline, lease.retry_period)
    )
    if duration < 1:
        yield (_invalid("leaderElection.leaseDuration", f"{duration:g}s", "at least 1s"),)
    if duration <= deadline:
        expected = f"more than renewDeadline, {deadline:g}s"
        yield _invalid("leaderElection.leaseDuration", f"{duration:g}s", expected), "leaderElection.renewDeadline"
    if deadline <= period:
        expected = f"more than retryPeriod, {period:g}s"
        yield _invalid("leaderElection.renewDeadline", f"{deadline:g}s", expected), "leaderElection.retryPeriod"


def _limits(config: Config) -> Iterator[Violation]:
    if config.kubernetes.qps > 0 and config.kubernetes.burst < 1:
        expected = "at least 1 (with 0, no request can be sent), or qps: 0 for no limit"
        yield invalid("kubernetes.burst", 0, expected), "kubernetes.qps"
    exhausted = config.reconciliation.exhausted_retry_seconds
    if 0 < exhausted < 1:
        yield (_invalid("reconciliation.exhaustedRetrySeconds", f"{exhausted:g}", "at least 1, or 0 for never"),)
    interval = config.reconciliation.reverify_interval_seconds
    if 0 < interval < _SHORTEST_REVERIFY:
        expected = f"at least {_SHORTEST_REVERIFY}, or 0 for never"
        yield (_invalid("reconciliation.reverifyIntervalSeconds", f"{interval:g}", expected),)


def _removal(config: Config) -> Iterator[Violation]:
    management = config.node_management
    if not management.delete_failed_nodes:
        return
    if not management.taints:
        expected = "false (without taints no node is gated, and only gated nodes are removed)"
        yield invalid("nodeManagement.deleteFailedNodes", value=True, expected=expected), "nodeManagement.taints"
    for key, value in (("maxCount", management.removal.max_count), ("maxPercent", management.removal.max_percent)):
        if not value:
            expected = "more than 0 (with 0, no node can be removed), or deleteFailedNodes: false"
            yield invalid(f"nodeManagement.removal.{key}", 0, expected), "nodeManagement.deleteFailedNodes"


def _taints(config: Config) -> Iterator[Violation]:
    seen: dict[tuple[str, str], list[str | None]] = {}
    for index, taint in enumerate(config.node_management.taints):
        values = seen.setdefault((taint.key, taint.effect), [])
        if values and (taint.value is None or taint.value in values or None in values):
            path = f"nodeManagement.taints[{index}]"
            yield (_invalid(path, f"{taint.key}:{taint.effect}", "each taint once; it is in the list already"),)
        values.append(taint.value)


def _image(config: Config) -> Iterator[Violation]:
    if not config.worker.image.repository:
        expected = "the image that the controller runs, such as registry.example/team/kube-node-ready"
        yield (missing("worker.image.repository", expected),)


def _tolerations(config: Config) -> Iterator[Violation]:
    for index, toleration in enumerate(config.worker.tolerations):
        if message := _odd(toleration):
            yield (Diagnostic(f"worker.tolerations[{index}]", message),)


def _odd(toleration: Toleration) -> str:
    if toleration.operator == "Exists" and toleration.value:
        return f"value {quoted(toleration.value)} is invalid with `operator: Exists`; expected `operator: Equal`"
    if toleration.operator == "Equal" and not toleration.key:
        return "`operator: Equal` is invalid without a key; expected a key"
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        return "tolerationSeconds is invalid without `effect: NoExecute`"
    return ""


def _volumes(config: Config) -> Iterator[Violation]:
    seen = {_CONFIG_VOLUME}
    for index, volume in enumerate(config.worker.volumes):
        path = f"worker.volumes[{index}]"
        name = volume.get("name")
        if name is None:
            yield (missing(join_path(path, "name"), LABEL.expected),)
        elif not isinstance(name, str) or LABEL.parse(name) is INVALID:
            yield (invalid(join_path(path, "name"), name, LABEL.expected),)
        elif name in seen:
            yield (invalid(join_path(path, "name"), name, "a name that no other volume has"),)
        else:
            seen.add(name)
        sources = volume.keys() - {"name"}
        if len(sources) != 1 or not isinstance(volume[next(iter(sources))], Mapping):
            expected = "a name and one type of volume with its settings, such as `emptyDir: {}`"
            yield (invalid(path, volume, expected),)


def _init_containers(config: Config) -> Iterator[Violation]:
    seen = {_WORKER_CONTAINER}
    volumes = {volume.get("name") for volume in config.worker.volumes}
    if config.worker.config_map_name:
        volumes.add(_CONFIG_VOLUME)
    for index, container in enumerate(config.worker.init_containers):
        path = f"worker.initContainers[{index}]"
        if container.name in seen:
            expected = "a name that no other container of the pod has"
            yield (invalid(join_path(path, "name"), container.name, expected),)
        seen.add(container.name)
        yield from _mounts(container, path, volumes)
        yield from _resources(container.resources, join_path(path, "resources"))


def _mounts(container: InitContainer, path: str, volumes: set[object]) -> Iterator[Violation]:
    for number, mount in enumerate(container.volume_mounts):
        if mount.name not in volumes:
            diagnostic = invalid(
                f"{path}.volumeMounts[{number}].name", mount.name, "the name of a volume in worker.volumes"
            )
            yield diagnostic, "worker.volumes", "worker.configMapName"


def _worker_resources(config: Config) -> Iterator[Violation]:
    yield from _resources(config.worker.resources, "worker.resources")


def _resources(resources: Resources, path: str) -> Iterator[Violation]:
    for name in resources.requests.keys() & resources.limits.keys():
        request, limit = resources.requests[name], resources.limits[name]
        if quantities.exceeds(request, limit):
            yield _invalid(f"{path}.requests.{name}", request, f"at most the limit, {limit}"), f"{path}.limits"


def _invalid(path: str, value: str, expected: str) -> Diagnostic:
    """As `invalid`, for a value that is shown in its unit and without quotes."""
    return Diagnostic(path, f"{value} is invalid; expected {expected}")


_RULES: tuple[Callable[[Config], Iterator[Violation]], ...] = (
    _times,
    _lease,
    _limits,
    _removal,
    _taints,
    _image,
    _tolerations,
    _volumes,
    _init_containers,
    _worker_resources,
)
