"""What fields must be to one another, and lists in themselves. Each rule names the fields it looks at."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

from msgspec import Struct, inspect

from kube_node_ready.checks.settings import Settings
from kube_node_ready.configuration.kinds import Label
from kube_node_ready.configuration.mistakes import shown, within
from kube_node_ready.configuration.model import Config
from kube_node_ready.configuration.pods import InitContainer, Resources, Toleration
from kube_node_ready.configuration.scalars import UNUSABLE, meaning
from kube_node_ready.configuration.schema import kind_of

_WORKER_CONTAINER = "worker"
_CONFIG_VOLUME = "worker-config"
_SHORTEST_REVERIFY = 10
_VOLUME_NAME = kind_of(inspect.type_info(Label))
_SUFFIXES = {
    "m": Decimal("0.001"),
    "k": Decimal(1000),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("MGTPE", start=2)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}


class Broken(Struct, frozen=True):
    path: str
    reason: str
    others: tuple[str, ...] = ()
    """The other fields that were looked at: if one of them is a mistake already, this may not be one."""


def broken(config: Config) -> Iterator[Broken]:
    for rule in _RULES:
        yield from rule(config)


def _times(config: Config) -> Iterator[Broken]:
    worker, again = config.worker, config.reconciliation
    check = worker.checks.get("checkTimeoutSeconds", Settings().check_timeout_seconds)
    if check > worker.timeout_seconds:
        yield Broken(
            "worker.checkTimeoutSeconds",
            f"is {check:g}, and must not be more than the {worker.timeout_seconds} s that all checks have together",
            ("worker.timeoutSeconds", "worker.job"),
        )
    first, longest = again.first_backoff_seconds, again.max_backoff_seconds
    if longest < first:
        yield Broken(
            "reconciliation.maxBackoffSeconds",
            f"is {longest:g}, and must not be less than the first wait, {first:g}",
            ("reconciliation.backoffSeconds", "reconciliation.retryBackoff"),
        )


def _lease(config: Config) -> Iterator[Broken]:
    lease = config.leader_election
    duration, deadline, period = (
        time.total_seconds() for time in (lease.lease_duration, lease.renew_deadline, lease.retry_period)
    )
    if duration < 1:
        yield Broken("leaderElection.leaseDuration", f"is {duration:g}s, and must be at least 1s")
    if duration <= deadline:
        reason = f"is {duration:g}s, and must be longer than renewDeadline, {deadline:g}s"
        yield Broken("leaderElection.leaseDuration", reason, ("leaderElection.renewDeadline",))
    if deadline <= period:
        reason = f"is {deadline:g}s, and must be longer than retryPeriod, {period:g}s"
        yield Broken("leaderElection.renewDeadline", reason, ("leaderElection.retryPeriod",))


def _limits(config: Config) -> Iterator[Broken]:
    if config.kubernetes.qps > 0 and config.kubernetes.burst < 1:
        reason = "is 0, so that no request could ever be sent; it must be at least 1, or qps 0 for no limit"
        yield Broken("kubernetes.burst", reason, ("kubernetes.qps",))
    if 0 < config.reconciliation.exhausted_retry_seconds < 1:
        reason = f"is {config.reconciliation.exhausted_retry_seconds:g}, and must be at least 1, or 0 for never"
        yield Broken("reconciliation.exhaustedRetrySeconds", reason)
    if 0 < config.reconciliation.reverify_interval_seconds < _SHORTEST_REVERIFY:
        interval = config.reconciliation.reverify_interval_seconds
        reason = f"is {interval:g}, and must be at least {_SHORTEST_REVERIFY}, or 0 for never"
        yield Broken("reconciliation.reverifyIntervalSeconds", reason)
    removal = config.node_management.removal
    if config.node_management.delete_failed_nodes and not config.node_management.taints:
        reason = "is true, but with an empty list of taints no node is held back, and only held nodes are removed"
        yield Broken("nodeManagement.deleteFailedNodes", reason, ("nodeManagement.taints",))
    if config.node_management.delete_failed_nodes:
        for key, value in (("maxCount", removal.max_count), ("maxPercent", removal.max_percent)):
            if not value:
                reason = "is 0, so that deleteFailedNodes could never remove anything; raise it, or switch that off"
                yield Broken(f"nodeManagement.removal.{key}", reason, ("nodeManagement.deleteFailedNodes",))


def _taints(config: Config) -> Iterator[Broken]:
    seen: dict[tuple[str, str], list[str | None]] = {}
    for index, taint in enumerate(config.node_management.taints):
        values = seen.setdefault((taint.key, taint.effect), [])
        if values and (taint.value is None or taint.value in values or None in values):
            reason = f"{taint.key}:{taint.effect} is in the list already; each taint stands there once"
            yield Broken(f"nodeManagement.taints[{index}]", reason)
        values.append(taint.value)


def _tolerations(config: Config) -> Iterator[Broken]:
    for index, toleration in enumerate(config.worker.tolerations):
        path = f"worker.tolerations[{index}]"
        if reason := _odd(toleration):
            yield Broken(path, reason)


def _odd(toleration: Toleration) -> str:
    if toleration.operator == "Exists" and toleration.value:
        return f"has the value {shown(toleration.value)}, which needs `operator: Equal`"
    if toleration.operator == "Equal" and not toleration.key:
        return "has `operator: Equal`, which needs a key"
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        return "has tolerationSeconds, which needs `effect: NoExecute`"
    return ""


def _volumes(config: Config) -> Iterator[Broken]:
    seen = {_CONFIG_VOLUME}
    for index, volume in enumerate(config.worker.volumes):
        path = f"worker.volumes[{index}]"
        name = volume.get("name")
        if not isinstance(name, str) or meaning(name, _VOLUME_NAME) is UNUSABLE:
            said = "is missing" if name is None else f"is {shown(str(name))}"
            yield Broken(within(path, "name"), f"{said}, and must be {_VOLUME_NAME.must}")
        elif name in seen:
            yield Broken(within(path, "name"), f"is {shown(name)}, which another volume is called")
        else:
            seen.add(name)
        sources = volume.keys() - {"name"}
        if len(sources) != 1 or not isinstance(volume[next(iter(sources))], Mapping):
            reason = "must have a name and one kind of volume with its settings, such as `emptyDir: {}`"
            yield Broken(path, reason)


def _init_containers(config: Config) -> Iterator[Broken]:
    seen = {_WORKER_CONTAINER}
    volumes = {volume.get("name") for volume in config.worker.volumes}
    if config.worker.config_map_name:
        volumes.add(_CONFIG_VOLUME)
    for index, container in enumerate(config.worker.init_containers):
        path = f"worker.initContainers[{index}]"
        if container.name in seen:
            yield Broken(within(path, "name"), f"is {container.name}, which another container of the pod is called")
        seen.add(container.name)
        yield from _mounts(container, path, volumes)
        yield from _resources(container.resources, within(path, "resources"))


def _mounts(container: InitContainer, path: str, volumes: set[object]) -> Iterator[Broken]:
    for number, mount in enumerate(container.volume_mounts):
        if mount.name not in volumes:
            reason = f"is {mount.name}, and must be the name of a volume in worker.volumes"
            yield Broken(f"{path}.volumeMounts[{number}].name", reason, ("worker.volumes", "worker.configMapName"))


def _worker_resources(config: Config) -> Iterator[Broken]:
    yield from _resources(config.worker.resources, "worker.resources")


def _resources(resources: Resources, path: str) -> Iterator[Broken]:
    for name in resources.requests.keys() & resources.limits.keys():
        request, limit = resources.requests[name], resources.limits[name]
        if amount(request) > amount(limit):
            reason = f"is {request}, and must not be more than the limit, {limit}"
            yield Broken(f"{path}.requests.{name}", reason, (f"{path}.limits",))


def amount(quantity: str) -> Decimal:
    """A Kubernetes quantity as a number."""
    digits = quantity.rstrip("".join(set("".join(_SUFFIXES))))
    suffix = quantity[len(digits) :]
    return Decimal(digits) * _SUFFIXES[suffix] if suffix else Decimal(quantity)


_RULES: tuple[Callable[[Config], Iterator[Broken]], ...] = (
    _times,
    _lease,
    _limits,
    _taints,
    _tolerations,
    _volumes,
    _init_containers,
    _worker_resources,
)
