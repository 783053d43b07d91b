"""Rules for containers: names, order, probes, hooks."""

from collections.abc import Iterator
from typing import Final

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.validation.containers_view import APP, container_views
from kubernetes_daemonset.validation.rules.finding import Finding

_DEFAULT_GRACE: Final = 30  # seconds, Kubernetes' own


def containers_have_names_of_their_own(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for container in container_views(manifest):
        if container.name and container.name in seen:
            other = seen[container.name]
            whose = "the name of the app container, which is metadata.name" if other == APP else f"the name of {other}"
            text = f'"{container.name}" is {whose}; every container in a pod needs a unique name'
            yield Finding(f"{container.path}.name", text)
        seen.setdefault(container.name, container.path)


def init_containers_can_start(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        policy = f"{container.path}.restart_policy"
        if container.restarts and not container.runs_before:
            yield Finding(policy, "is valid only for init_containers; sidecars are always restarted")
        if container.ends:
            for path, _ in container.probes:
                text = "an init container exits before it can be probed; set restart_policy: Always or remove the probe"
                yield Finding(path, text, (policy,))
            if container.body.HasField("lifecycle"):
                text = "requires restart_policy: Always in an init container"
                yield Finding(f"{container.path}.lifecycle", text, (policy,))


def probes_fit(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        for path, probe in container.probes:
            readiness = path.endswith("readiness_probe")
            if not readiness and probe.success_threshold > 1:
                text = f"{probe.success_threshold} is valid only for readiness probes; expected 1 or unset"
                yield Finding(f"{path}.success_threshold", text)
            if readiness and probe.HasField("termination_grace_period_seconds"):
                text = "a readiness probe does not stop its container; remove it"
                yield Finding(f"{path}.termination_grace_period_seconds", text)


def hooks_end_in_time(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    spec, field = manifest.spec, "termination_grace_period_seconds"
    grace = spec.termination_grace_period_seconds if spec.HasField(field) else _DEFAULT_GRACE
    for container in container_views(manifest):
        for name in ("post_start", "pre_stop"):
            seconds = getattr(container.body.lifecycle, name).sleep_seconds
            if seconds > max(grace, 0):
                text = f"{seconds} is longer than the {grace} s in which a pod must stop ({field})"
                yield Finding(f"{container.path}.lifecycle.{name}.sleep_seconds", text, (f"spec.{field}",))


def probed_ports_exist(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        known = sorted({port.name for port in container.ports if port.name})
        has = f"it has {', '.join(known)}" if known else "it has none"
        for path, probe in container.probes:
            for kind in ("http_get", "tcp_socket"):
                name = getattr(probe, kind).port_name
                if name and name not in known:
                    text = f'the container has no port "{name}" ({has}): the probe always fails'
                    yield Finding(f"{path}.{kind}.port_name", text, (f"{container.path}.ports",))
