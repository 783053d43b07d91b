"""Containers beside each other: names, order, probes, hooks."""

from collections.abc import Iterator
from typing import Final

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.rules.finding import Finding
from kubernetes_daemonset.rules.parts import APP, parts

_DEFAULT_GRACE: Final = 30  # seconds, Kubernetes' own


def containers_have_names_of_their_own(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for part in parts(manifest):
        if part.name and part.name in seen:
            other = seen[part.name]
            whose = "the app's, which is the component's" if other == APP else f"that of {other}"
            text = f'"{part.name}" is {whose}; every container of a pod needs a name of its own'
            yield Finding(f"{part.path}.name", text)
        seen.setdefault(part.name, part.path)


def init_containers_can_start(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        policy = f"{part.path}.restart_policy"
        if part.restarts and not part.runs_before:
            yield Finding(policy, "goes with init_containers only; sidecars are always restarted")
        if part.ends:
            for path, _ in part.probes:
                text = "an init container ends before it could be probed; add restart_policy: Always or leave it out"
                yield Finding(path, text, (policy,))
            if part.body.HasField("lifecycle"):
                text = "goes with init containers of restart_policy: Always only"
                yield Finding(f"{part.path}.lifecycle", text, (policy,))


def probes_fit(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        for path, probe in part.probes:
            readiness = path.endswith("readiness_probe")
            if not readiness and probe.success_threshold > 1:
                text = f"{probe.success_threshold} is for readiness probes; write 1 or leave it out"
                yield Finding(f"{path}.success_threshold", text)
            if readiness and probe.HasField("termination_grace_period_seconds"):
                text = "a readiness probe ends no container; leave it out"
                yield Finding(f"{path}.termination_grace_period_seconds", text)


def hooks_end_in_time(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    spec, field = manifest.spec, "termination_grace_period_seconds"
    grace = spec.termination_grace_period_seconds if spec.HasField(field) else _DEFAULT_GRACE
    for part in parts(manifest):
        for name in ("post_start", "pre_stop"):
            seconds = getattr(part.body.lifecycle, name).sleep_seconds
            if seconds > max(grace, 0):
                text = f"{seconds} is longer than the {grace} s that a pod has to end ({field})"
                yield Finding(f"{part.path}.lifecycle.{name}.sleep_seconds", text, (f"spec.{field}",))


def probed_ports_exist(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        known = sorted({port.name for port in part.ports if port.name})
        has = f"it has {', '.join(known)}" if known else "it has none"
        for path, probe in part.probes:
            for kind in ("http_get", "tcp_socket"):
                name = getattr(probe, kind).port_name
                if name and name not in known:
                    text = f'the container has no port "{name}" ({has}): the probe will always fail'
                    yield Finding(f"{path}.{kind}.port_name", text, (f"{part.path}.ports",))
