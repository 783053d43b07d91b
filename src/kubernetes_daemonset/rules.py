"""What the .proto files cannot say of a manifest: what spans fields, compares amounts, or is allowed and will hurt.

A rule takes the manifest and yields findings; a finding names the field, so that its line can be found. The errors are
those that an API server would answer with, found before it is asked. The lists at the end are the specification.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kubernetes_daemonset import names, pod
from kubernetes_daemonset.api.shared.affinity_pb2 import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
)
from kubernetes_daemonset.api.shared.container_pb2 import (
    Container,
    ContainerResources,
    CpuMemory,
    KubernetesSecretKeyRef,
)
from kubernetes_daemonset.api.shared.probe_pb2 import Probe
from kubernetes_daemonset.api.shared.volume_pb2 import VolumeMount
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetContainerApp
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.manifest import entry
from kubernetes_daemonset.mistakes import Severity
from kubernetes_daemonset.quantities import parsed

_DEFAULT_GRACE: Final = 30  # seconds, Kubernetes' own
_REQUIRED: Final = "required_during_scheduling_ignored_during_execution"
_PREFERRED: Final = "preferred_during_scheduling_ignored_during_execution"
_HUGE_PAGES: Final = "hugepages-"
_USUAL: Final = ("cpu", "memory")

# What an API server takes in one object, in bytes.
_MOST_DATA: Final = 1024 * 1024
_MOST_ANNOTATIONS: Final = 256 * 1024

_LABEL_NAME: Final = re.compile(
    r"((?=[^/]{1,253}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_OBJECT_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_WRITE_A_LABEL: Final = (
    "write letters, digits, hyphens, underscores and dots, at most 63, with a letter or digit at both ends"
)
_WRITE_AN_OBJECT_NAME: Final = "write lowercase letters, digits, hyphens and dots, with a letter or digit at both ends"


@dataclass(frozen=True, slots=True)
class Finding:
    path: str
    text: str
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True)
class Part:
    """One container of the pod, and where it stands in the manifest."""

    path: str
    name: str
    body: KubernetesDaemonSetContainerApp | Container
    runs_before: bool = False

    @property
    def ends(self) -> bool:
        """Whether it is over before the others start."""
        return self.runs_before and isinstance(self.body, Container) and self.body.restart_policy != "Always"

    @property
    def ports(self) -> Iterator[tuple[str, str, int, int, str]]:
        """Path, name, number, number on the node, protocol."""
        if isinstance(self.body, Container):
            found = [(one.name, one.container_port, one.host_port, one.protocol) for one in self.body.ports]
        else:
            found = [(one.name, one.container_port, one.host_port, one.network_protocol) for one in self.body.ports]
        for index, (name, number, host_port, protocol) in enumerate(found):
            yield f"{self.path}.ports[{index}]", name, number, host_port, protocol or "TCP"

    @property
    def mounts(self) -> Iterator[tuple[str, VolumeMount]]:
        for index, mount in enumerate(self.body.volume_mounts):
            yield f"{self.path}.volume_mounts[{index}]", mount

    @property
    def probes(self) -> Iterator[tuple[str, Probe]]:
        for name in ("liveness_probe", "readiness_probe", "startup_probe"):
            if self.body.HasField(name):
                yield f"{self.path}.{name}", getattr(self.body, name)


def findings(given: KubernetesDaemonSetStackInput) -> list[Finding]:
    manifest = given.target
    found = [one for rule in ERRORS for one in rule(manifest)]
    found += _docker_config(given)
    found += [Finding(path, text, Severity.WARNING) for rule in WARNINGS for path, text in rule(manifest)]
    return found


def parts(manifest: KubernetesDaemonSet) -> list[Part]:
    spec = manifest.spec
    sidecars = [Part(f"spec.container.sidecars[{at}]", one.name, one) for at, one in enumerate(spec.container.sidecars)]
    before = [
        Part(f"spec.init_containers[{at}]", one.name, one, runs_before=True)
        for at, one in enumerate(spec.init_containers)
    ]
    return [Part("spec.container.app", manifest.metadata.name, spec.container.app), *sidecars, *before]


# --- errors ---


def _references_are_resolved(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    spec, env = manifest.spec, manifest.spec.container.app.env
    where = "spec.container.app.env"
    found = [("spec.namespace", spec.namespace)] if spec.HasField("namespace") else []
    found += [(entry(f"{where}.variables", name), value) for name, value in sorted(env.variables.items())]  # type: ignore[misc]
    found += [(entry(f"{where}.secrets", name), value) for name, value in sorted(env.secrets.items())]  # type: ignore[misc]
    for path, value in found:
        source = value.value_from
        if source.name:
            what = f"{source.field_path or 'a field'} of {source.name}"
            yield Finding(
                f"{path}.value_from", f"{what} cannot be looked up from here; write value with what it stands for"
            )


def _secrets_are_near(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for path, reference in _secret_references(manifest):
        if reference.namespace not in {"", names.namespace(manifest)}:
            here = names.namespace(manifest)
            text = f'a pod cannot read Secrets of "{reference.namespace}"; copy {reference.name} to "{here}"'
            yield Finding(f"{path}.secret_ref.namespace", text)


def _secret_references(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, KubernetesSecretKeyRef]]:
    env = manifest.spec.container.app.env
    for name, value in sorted(env.secrets.items()):
        if value.HasField("secret_ref"):
            yield entry("spec.container.app.env.secrets", name), value.secret_ref
    for name, variable in sorted(env.variables.items()):
        if variable.HasField("secret_ref"):
            yield entry("spec.container.app.env.variables", name), variable.secret_ref
    for part in parts(manifest)[1:]:
        assert isinstance(part.body, Container)
        for index, one in enumerate(part.body.env):
            if one.HasField("secret_ref"):
                yield f"{part.path}.env[{index}]", one.secret_ref


def _variables_are_given_once(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    env = manifest.spec.container.app.env
    for name in sorted(set(env.variables) & set(env.secrets)):
        yield Finding(entry("spec.container.app.env.secrets", name), "is a variable as well; leave one of them out")
    for part in parts(manifest)[1:]:
        assert isinstance(part.body, Container)
        seen: set[str] = set()
        for index, one in enumerate(part.body.env):
            if one.name in seen:
                yield Finding(f"{part.path}.env[{index}].name", f'"{one.name}" is given twice; leave one out')
            seen.add(one.name)


def _containers_have_names_of_their_own(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for part in parts(manifest):
        if part.name and part.name in seen:
            whose = (
                "the app's, which is the component's"
                if seen[part.name] == "spec.container.app"
                else f"that of {seen[part.name]}"
            )
            yield Finding(
                f"{part.path}.name", f'"{part.name}" is {whose}; every container of a pod needs a name of its own'
            )
        seen.setdefault(part.name, part.path)


def _init_containers_can_start(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest)[1:]:
        assert isinstance(part.body, Container)
        if part.body.restart_policy == "Always" and not part.runs_before:
            yield Finding(
                f"{part.path}.restart_policy", "goes with init_containers only; sidecars are always restarted"
            )
        if part.ends:
            for path, _ in part.probes:
                yield Finding(
                    path,
                    "an init container ends before it could be probed; add restart_policy: Always or leave it out",
                )
            if part.body.HasField("lifecycle"):
                yield Finding(f"{part.path}.lifecycle", "goes with init containers of restart_policy: Always only")


def _ports_do_not_collide(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    host_network = manifest.spec.host_network
    of_all: dict[tuple[int, str], str] = {}
    for part in parts(manifest):
        seen: set[str | tuple[int, str]] = set()
        on_node = {} if part.ends else of_all
        for path, name, number, host_port, protocol in part.ports:
            if name and name in seen:
                yield Finding(f"{path}.name", f'"{name}" names another port of this container already')
            if (number, protocol) in seen:
                yield Finding(
                    f"{path}.container_port", f"{protocol} {number} is another port of this container already"
                )
                continue
            seen |= {name, (number, protocol)}
            if host_network and host_port not in {0, number}:
                yield Finding(
                    f"{path}.host_port", f"with host_network the two are one: write {number}, or leave host_port out"
                )
            taken = host_port or (number if host_network else 0)
            if taken and (other := on_node.setdefault((taken, protocol), path)) != path:
                yield Finding(
                    f"{path}.{'host_port' if host_port else 'container_port'}",
                    f"{protocol} {taken} of the node is {other}'s already",
                )


def _volumes_fit(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    sources: dict[str, tuple[str, pod.Json]] = {}
    for part in parts(manifest):
        for path, mount in part.mounts:
            source = pod.volume_source(mount)
            if source and (known := sources.setdefault(mount.name, (path, source)))[1] != source:
                yield Finding(
                    f"{path}.name", f'"{mount.name}" is another volume at {known[0]}; give one of them another name'
                )
    for part in parts(manifest):
        for path, mount in part.mounts:
            if mount.name and mount.name not in sources:
                yield Finding(
                    path,
                    f'no mount says what volume "{mount.name}" is; add host_path, config_map, secret, empty_dir or pvc',
                )


def _mounts_fit(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        seen: dict[str, str] = {}
        for path, mount in part.mounts:
            if mount.mount_path and (other := seen.setdefault(mount.mount_path, path)) != path:
                yield Finding(f"{path}.mount_path", f'"{mount.mount_path}" is taken by {other}; write another path')
            if mount.sub_path and mount.sub_path_expr:
                yield Finding(f"{path}.sub_path_expr", "cannot stand beside sub_path; leave one of them out")
            if mount.mount_propagation == "Bidirectional" and not part.body.security_context.privileged:
                yield Finding(
                    f"{path}.mount_propagation",
                    "Bidirectional needs security_context.privileged: true; write HostToContainer without",
                )


def _probes_fit(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        for path, probe in part.probes:
            readiness = path.endswith("readiness_probe")
            if not readiness and probe.success_threshold > 1:
                text = f"{probe.success_threshold} is for readiness probes; write 1 or leave it out"
                yield Finding(f"{path}.success_threshold", text)
            if readiness and probe.HasField("termination_grace_period_seconds"):
                text = "a readiness probe ends no container; leave it out"
                yield Finding(f"{path}.termination_grace_period_seconds", text)


def _hooks_end_in_time(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    spec = manifest.spec
    grace = (
        spec.termination_grace_period_seconds if spec.HasField("termination_grace_period_seconds") else _DEFAULT_GRACE
    )
    for part in parts(manifest):
        for name in ("post_start", "pre_stop"):
            hook = getattr(part.body.lifecycle, name)
            if (seconds := hook.sleep_seconds) > max(grace, 0):
                text = (
                    f"{seconds} is longer than the {grace} s that a pod has to end (termination_grace_period_seconds)"
                )
                yield Finding(f"{part.path}.lifecycle.{name}.sleep_seconds", text)


def _amounts_are_amounts(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        resources: ContainerResources = part.body.resources
        for kind in ("limits", "requests"):
            for path, text in _amounts(getattr(resources, kind), f"{part.path}.resources.{kind}"):
                amount = parsed(text)
                if amount is None:
                    yield Finding(path, f'"{text}" is no amount; write a number with a unit, such as 250m, 64Mi or 2')
                elif amount < 0:
                    yield Finding(path, f'"{text}" is less than nothing')
        for path, mount in part.mounts:
            if (limit := mount.empty_dir.size_limit) and ((amount := parsed(limit)) is None or amount < 0):
                yield Finding(
                    f"{path}.empty_dir.size_limit", f'"{limit}" is no amount; write a number with a unit, such as 64Mi'
                )


def _requests_stay_below_limits(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        limits = dict(_amounts(part.body.resources.limits, ""))
        for path, text in _amounts(part.body.resources.requests, ""):
            request, limit = parsed(text), parsed(limits.get(path, ""))
            if request is not None and limit is not None and request > limit:
                where = f"{part.path}.resources.requests{path}"
                yield Finding(where, f'"{text}" is more than the limit "{limits[path]}"; lower it or raise the limit')


def _other_resources_fit(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        limits, requests = part.body.resources.limits.other, part.body.resources.requests.other
        for name in sorted(set(limits) | set(requests)):
            kind = "limits" if name in limits else "requests"
            path = entry(f"{part.path}.resources.{kind}.other", name)
            if not _is_resource(name):
                yield Finding(path, f'"{name}" is no resource; write its full name, such as nvidia.com/gpu')
            elif name not in limits:
                yield Finding(path, "such a resource is requested by its limit; write it under limits")
            elif (amount := parsed(limits[name])) is None:
                continue  # said already
            elif amount != amount.to_integral_value():
                yield Finding(path, f'"{limits[name]}" is no whole number, and such a resource cannot be divided')
            elif (request := parsed(requests.get(name, ""))) is not None and request < amount:
                yield Finding(
                    path,
                    f'is "{limits[name]}", and the request "{requests[name]}"; such a resource takes the same for both',
                )


def _is_resource(name: str) -> bool:
    return _is_huge(name) or ("/" in name and bool(_LABEL_NAME.fullmatch(name)))


def _is_huge(name: str) -> bool:
    return name.startswith(_HUGE_PAGES)


def _huge_pages_fit(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        resources: ContainerResources = part.body.resources
        usual = [getattr(amounts, name) for amounts in (resources.limits, resources.requests) for name in _USUAL]
        for name, text in sorted(resources.limits.other.items()):
            path = entry(f"{part.path}.resources.limits.other", name)
            size, amount = parsed(name.removeprefix(_HUGE_PAGES)), parsed(text)
            if not _is_huge(name) or amount is None:
                continue
            if not size or size < 0 or (pages := amount / size) != pages.to_integral_value():
                yield Finding(path, f'"{text}" is not a whole number of such pages')
            elif not any(usual):
                yield Finding(path, "huge pages go with cpu or memory; write how much of one of them")


def _labels_are_labels(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for path, labels in _label_maps(manifest):
        for key, value in sorted(labels.items()):
            yield from _label_name(entry(path, key), key)
            yield from _label_value(entry(path, key), value)
    for path, annotations in _annotation_maps(manifest):
        for key in sorted(annotations):
            if not _LABEL_NAME.fullmatch(key.lower()):  # as an API server does, which lets capitals be in a domain here
                yield Finding(
                    entry(path, key),
                    f'"{key}" cannot name an annotation; {_WRITE_A_LABEL}, after a domain and a slash if you like',
                )


def _affinity_is_about_labels(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for path, one in _label_expressions(manifest):
        if one.key:
            yield from _label_name(f"{path}.key", one.key)
        for index, value in enumerate(one.values if one.operator in {"In", "NotIn"} else ()):
            yield from _label_value(f"{path}.values[{index}]", value)
    for path, term in _pod_terms(manifest):
        if term.topology_key:
            yield from _label_name(f"{path}.topology_key", term.topology_key)


def _label_name(path: str, key: str) -> Iterator[Finding]:
    if not _LABEL_NAME.fullmatch(key):
        yield Finding(path, f'"{key}" cannot name a label; {_WRITE_A_LABEL}, after a domain and a slash if you like')


def _label_value(path: str, value: str) -> Iterator[Finding]:
    if not _LABEL_VALUE.fullmatch(value):
        yield Finding(path, f'"{value}" cannot be a label\'s value; {_WRITE_A_LABEL}')


def _objects_are_not_too_large(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for name, text in sorted(manifest.spec.config_maps.items()):
        if (size := len(text.encode())) > _MOST_DATA:
            where = entry("spec.config_maps", name)
            yield Finding(where, f"{size:,} bytes are too much for a ConfigMap, which takes {_MOST_DATA:,}")
    secrets = manifest.spec.container.app.env.secrets
    if (size := sum(len(secrets[name].value.encode()) for name in secrets)) > _MOST_DATA:
        where = "spec.container.app.env.secrets"
        yield Finding(where, f"{size:,} bytes are too much for a Secret, which takes {_MOST_DATA:,}")
    for path, annotations in _annotation_maps(manifest):
        if (size := sum(len(text.encode()) for item in annotations.items() for text in item)) > _MOST_ANNOTATIONS:
            yield Finding(
                path, f"{size:,} bytes are too much; all of an object's annotations take {_MOST_ANNOTATIONS:,}"
            )


def _own_labels_stay_ours(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    ours = names.owned(manifest)
    for path, labels in (("metadata.labels", manifest.metadata.labels), ("spec.pod_labels", manifest.spec.pod_labels)):
        for key in sorted(set(labels) & set(ours)):
            if labels[key] != ours[key]:
                yield Finding(
                    entry(path, key),
                    f'is how the component finds its own pods and objects, and is "{ours[key]}"; leave it out',
                )


def _tolerations_name_taints(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for index, one in enumerate(manifest.spec.tolerations):
        where = f"spec.tolerations[{index}]"
        if one.key and not _LABEL_NAME.fullmatch(one.key):
            yield Finding(
                f"{where}.key",
                f'"{one.key}" cannot be a taint\'s key; {_WRITE_A_LABEL}, after a domain and a slash if you like',
            )
        if not _LABEL_VALUE.fullmatch(one.value):
            yield Finding(f"{where}.value", f'"{one.value}" cannot be a taint\'s value; {_WRITE_A_LABEL}')


def _objects_have_names(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    spec = manifest.spec
    given = [
        *((f"spec.image_pull_secrets[{at}]", name) for at, name in enumerate(spec.image_pull_secrets)),
        *((entry("spec.config_maps", name), name) for name in sorted(spec.config_maps)),
    ]
    optional = [
        ("spec.priority_class_name", spec.priority_class_name),
        ("spec.runtime_class_name", spec.runtime_class_name),
        ("spec.container.app.image.pull_secret_name", spec.container.app.image.pull_secret_name),
        *((f"{path}.{kind}", name) for path, kind, name in _mounted_names(manifest)),
        *((f"{path}.name", name) for path, name in _referred_names(manifest)),
    ]
    for path, name in [*given, *((path, name) for path, name in optional if name)]:
        if not _OBJECT_NAME.fullmatch(name):
            yield Finding(path, f'"{name}" cannot name an object; {_WRITE_AN_OBJECT_NAME}')


def _mounted_names(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str, str]]:
    for part in parts(manifest):
        for path, mount in part.mounts:
            yield path, "config_map.name", mount.config_map.name
            yield path, "secret.name", mount.secret.name
            yield path, "pvc.claim_name", mount.pvc.claim_name


def _referred_names(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    """ConfigMaps and Secrets that variables are taken from."""
    env = manifest.spec.container.app.env
    where = "spec.container.app.env"
    for name, variable in sorted(env.variables.items()):
        yield f"{entry(f'{where}.variables', name)}.config_map_key_ref", variable.config_map_key_ref.name
    sources = [(where, env.env_from)]
    for part in parts(manifest)[1:]:
        assert isinstance(part.body, Container)
        sources.append((part.path, part.body.env_from))
        for index, one in enumerate(part.body.env):
            yield f"{part.path}.env[{index}].config_map_key_ref", one.config_map_key_ref.name
    for path, found in sources:
        for index, source in enumerate(found):
            yield f"{path}.env_from[{index}].config_map_ref", source.config_map_ref.name
            yield f"{path}.env_from[{index}].secret_ref", source.secret_ref.name
    for path, reference in _secret_references(manifest):
        yield f"{path}.secret_ref", reference.name


def _processes_are_shared_once(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    if manifest.spec.host_pid and manifest.spec.share_process_namespace:
        yield Finding(
            "spec.share_process_namespace", "with host_pid the containers see each other anyway; leave it out"
        )


def _docker_config(given: KubernetesDaemonSetStackInput) -> Iterator[Finding]:
    if not given.docker_config_json:
        return
    try:
        content = json.loads(given.docker_config_json)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("auths"), dict):
        yield Finding("docker_config_json", 'is no Docker config.json; write {"auths": {"<registry>": {"auth": "…"}}}')


# --- warnings ---


def _ports_outlive_a_surge(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    surge = manifest.spec.update_strategy.rolling_update.max_surge
    if not re.search("[1-9]", surge):
        return
    for part in parts(manifest):
        for path, _, number, host_port, _ in part.ports:
            if host_port or manifest.spec.host_network:
                port = f"port {host_port or number} of the node"
                yield path, f"{port} is the old pod's until it ends, so with max_surge no new pod can start beside it"


def _root_is_refused(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    shared = manifest.spec.pod_security_context
    for part in parts(manifest):
        own = part.body.security_context
        refused = own.run_as_non_root if own.HasField("run_as_non_root") else shared.run_as_non_root
        user = own if own.HasField("run_as_user") else shared
        if refused and user.HasField("run_as_user") and user.run_as_user == 0:
            path = f"{part.path}.security_context" if own.HasField("run_as_user") else "spec.pod_security_context"
            yield f"{path}.run_as_user", "is root, and run_as_non_root refuses root: the container will never start"


def _limits_are_missing(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    for part in parts(manifest):
        is_app = not isinstance(part.body, Container)
        if is_app and not part.body.HasField("resources"):
            continue  # it gets the default
        if not part.body.resources.limits.memory:
            yield f"{part.path}.resources", "no memory limit: one leak can take down every pod of a node"


def _privilege_without_need(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    spec = manifest.spec
    touches_node = spec.host_network or spec.host_pid or spec.host_ipc
    for part in parts(manifest):
        context = part.body.security_context
        if not context.privileged:
            continue
        path = f"{part.path}.security_context"
        if context.capabilities.add:
            yield f"{path}.capabilities.add", "privileged includes every capability; leave one of the two out"
        elif not touches_node and not any(mount.HasField("host_path") for _, mount in part.mounts):
            yield (
                f"{path}.privileged",
                "nothing here touches the node; leave it out, or name the capabilities that are needed",
            )


def _image_may_change(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    for part in parts(manifest):
        image = part.body.image if isinstance(part.body, Container) else pod.image(part.body.image)
        tag = image.rpartition("/")[2].partition(":")[2]
        unsaid = tag == "" and isinstance(part.body, Container)  # of the app it is an error
        if "@" not in image and (tag == "latest" or unsaid):
            yield (
                f"{part.path}.image",
                f'"{image}" is another image tomorrow, and nodes will differ; name a version or a digest',
            )


def _probed_ports_exist(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    for part in parts(manifest):
        known = {name for _, name, *_ in part.ports if name}
        for path, probe in part.probes:
            for kind in ("http_get", "tcp_socket"):
                name = getattr(probe, kind).port_name
                if name and name not in known:
                    has = f"it has {', '.join(sorted(known))}" if known else "it has none"
                    yield (
                        f"{path}.{kind}.port_name",
                        f'the container has no port "{name}" ({has}): the probe will always fail',
                    )


def _names_resolve(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    if manifest.spec.host_network and manifest.spec.dns_policy == "ClusterFirst":
        yield (
            "spec.dns_policy",
            "with host_network ClusterFirst means Default: Services will not resolve; write ClusterFirstWithHostNet",
        )


def _amounts(amounts: CpuMemory, path: str) -> Iterator[tuple[str, str]]:
    for name in ("cpu", "memory", "ephemeral_storage"):
        if text := getattr(amounts, name):
            yield f"{path}.{name}", text
    for name, text in sorted(amounts.other.items()):
        yield entry(f"{path}.other", name), text


def _label_maps(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, Mapping[str, str]]]:
    spec = manifest.spec
    yield "metadata.labels", names.given_labels(manifest)
    yield "spec.pod_labels", spec.pod_labels
    yield "spec.node_selector", spec.node_selector
    for path, selector in _label_selectors(manifest):
        yield f"{path}.match_labels", selector.match_labels


def _label_selectors(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, LabelSelector]]:
    for path, term in _pod_terms(manifest):
        yield f"{path}.label_selector", term.label_selector
        yield f"{path}.namespace_selector", term.namespace_selector


def _pod_terms(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, PodAffinityTerm]]:
    for kind in ("pod_affinity", "pod_anti_affinity"):
        affinity: PodAffinity = getattr(manifest.spec.affinity, kind)
        for at, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
            yield f"spec.affinity.{kind}.{_REQUIRED}[{at}]", term
        for at, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
            yield f"spec.affinity.{kind}.{_PREFERRED}[{at}].pod_affinity_term", weighted.pod_affinity_term


def _node_terms(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, NodeSelectorTerm]]:
    affinity, path = manifest.spec.affinity.node_affinity, "spec.affinity.node_affinity"
    needed = affinity.required_during_scheduling_ignored_during_execution
    for at, term in enumerate(needed.node_selector_terms):
        yield f"{path}.{_REQUIRED}.node_selector_terms[{at}]", term
    for at, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        yield f"{path}.{_PREFERRED}[{at}].preference", weighted.preference


def _label_expressions(
    manifest: KubernetesDaemonSet,
) -> Iterator[tuple[str, NodeSelectorRequirement | LabelSelectorRequirement]]:
    for path, term in _node_terms(manifest):
        for at, of_nodes in enumerate(term.match_expressions):
            yield f"{path}.match_expressions[{at}]", of_nodes
    for path, selector in _label_selectors(manifest):
        for at, of_labels in enumerate(selector.match_expressions):
            yield f"{path}.match_expressions[{at}]", of_labels


def _annotation_maps(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield "metadata.annotations", manifest.metadata.annotations
    yield "spec.pod_annotations", manifest.spec.pod_annotations
    yield "spec.service_account_annotations", manifest.spec.service_account_annotations


ERRORS: Final = (
    _references_are_resolved,
    _secrets_are_near,
    _variables_are_given_once,
    _containers_have_names_of_their_own,
    _init_containers_can_start,
    _ports_do_not_collide,
    _volumes_fit,
    _mounts_fit,
    _probes_fit,
    _hooks_end_in_time,
    _amounts_are_amounts,
    _requests_stay_below_limits,
    _other_resources_fit,
    _huge_pages_fit,
    _labels_are_labels,
    _affinity_is_about_labels,
    _objects_are_not_too_large,
    _own_labels_stay_ours,
    _tolerations_name_taints,
    _objects_have_names,
    _processes_are_shared_once,
)
WARNINGS: Final = (
    _ports_outlive_a_surge,
    _root_is_refused,
    _limits_are_missing,
    _privilege_without_need,
    _image_may_change,
    _probed_ports_exist,
    _names_resolve,
)
