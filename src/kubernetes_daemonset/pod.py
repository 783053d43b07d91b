"""Message -> pod template. Pure: the same manifest gives the same bytes.

Zeros and falses that were written are kept; what was left out is left out, so that Kubernetes' own defaults hold.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from google.protobuf.message import Message

from kubernetes_daemonset import names
from kubernetes_daemonset.api.shared.container_pb2 import (
    Container,
    ContainerEnvVar,
    ContainerImage,
    ContainerResources,
    CpuMemory,
    EnvFrom,
    KubernetesSecretKeyRef,
    Lifecycle,
    LifecycleHandler,
    SecurityContext,
    default_container_resources,
)
from kubernetes_daemonset.api.shared.probe_pb2 import HttpGetAction, Probe, TcpSocketAction
from kubernetes_daemonset.api.shared.volume_pb2 import VolumeMount
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.spec_pb2 import (
    KubernetesDaemonSetContainerApp,
    KubernetesDaemonSetEnvValue,
    KubernetesDaemonSetToleration,
)

Json = dict[str, Any]

# What every agent is told about where it runs. HOSTNAME is left to Kubernetes: programs take it for a name.
_BUILT_IN: Final = {
    "K8S_NODE_NAME": "spec.nodeName",
    "K8S_POD_ID": "metadata.name",
    "K8S_POD_IP": "status.podIP",
}
# $(NAME), but not $$(NAME), which is how to write it without meaning it.
_REFERENCE: Final = re.compile(r"(?<!\$)(?:\$\$)*\$\(([^()]+)\)")


class _Contains(Protocol):
    def HasField(self, field_name: Any, /) -> bool: ...  # noqa: N802, ANN401


def pod_spec(manifest: KubernetesDaemonSet, pull_secrets: Sequence[str]) -> Json:
    spec = manifest.spec
    host_network = spec.host_network
    return _given(
        {
            "serviceAccountName": names.service_account(manifest) or None,
            **_optional(spec, "automount_service_account_token"),
            "priorityClassName": spec.priority_class_name or None,
            "runtimeClassName": spec.runtime_class_name or None,
            **_optional(spec, "host_network", "host_pid", "host_ipc", "share_process_namespace"),
            # Without this, a pod on the node's network resolves names as the node does, and Services are unknown to it.
            "dnsPolicy": spec.dns_policy or ("ClusterFirstWithHostNet" if host_network else None),
            "nodeSelector": dict(sorted(spec.node_selector.items())) or None,
            "affinity": _plain(spec.affinity) if spec.HasField("affinity") else None,
            "tolerations": tolerations(manifest) or None,
            "securityContext": _pod_security(manifest),
            **_optional(spec, "termination_grace_period_seconds"),
            "imagePullSecrets": [{"name": name} for name in pull_secrets] or None,
            "initContainers": [container(one) for one in spec.init_containers] or None,
            "containers": [app(manifest), *(container(one) for one in spec.container.sidecars)],
            "volumes": volumes(manifest) or None,
        }
    )


def tolerations(manifest: KubernetesDaemonSet) -> list[Json]:
    """The manifest's own, and for a required agent the gate's: it must run on the very nodes that wait for it."""
    given = list(manifest.spec.tolerations)
    if manifest.spec.require_on_new_nodes and not any(_tolerates_the_gate(one) for one in given):
        given.append(KubernetesDaemonSetToleration(key=names.GATE, operator="Exists", effect="NoSchedule"))
    return [
        _given(
            {
                "key": one.key or None,
                "operator": one.operator or None,
                "value": one.value or None,
                "effect": one.effect or None,
                **_optional(one, "toleration_seconds"),
            }
        )
        for one in given
    ]


def _tolerates_the_gate(one: KubernetesDaemonSetToleration) -> bool:
    return one.operator == "Exists" and one.key in {"", names.GATE} and one.effect in {"", "NoSchedule"}


def app(manifest: KubernetesDaemonSet) -> Json:
    """The agent's own container, called as the component is."""
    this = manifest.spec.container.app
    ports = [
        _given(
            {
                "name": port.name,
                "containerPort": port.container_port,
                "hostPort": port.host_port or None,
                "protocol": port.network_protocol or "TCP",
            }
        )
        for port in this.ports
    ]
    return _given(
        {
            "name": manifest.metadata.name,
            "image": image(this.image),
            "imagePullPolicy": this.image.pull_policy or None,
            "env": _environment(manifest),
            "envFrom": _env_from(this.env.env_from),
            "resources": _resources(this.resources if this.HasField("resources") else _default_resources()),
            **_common(this, ports),
        }
    )


def container(this: Container) -> Json:
    """A sidecar or an init container."""
    ports = [
        _given(
            {
                "name": port.name or None,
                "containerPort": port.container_port,
                "hostPort": port.host_port or None,
                "protocol": port.protocol or "TCP",
            }
        )
        for port in this.ports
    ]
    return _given(
        {
            "name": this.name,
            "image": this.image,
            "imagePullPolicy": this.pull_policy or None,
            "restartPolicy": this.restart_policy or None,
            "env": [_variable(one) for one in this.env] or None,
            "envFrom": _env_from(this.env_from),
            "resources": _resources(this.resources),
            **_common(this, ports),
        }
    )


def image(this: ContainerImage) -> str:
    return f"{this.repo}{f':{this.tag}' if this.tag else ''}{f'@{this.digest}' if this.digest else ''}"


def volumes(manifest: KubernetesDaemonSet) -> list[Json]:
    """One volume for each name, whoever mounts it and however often; the first mount that says what it is decides."""
    found: dict[str, Json] = {}
    for mount in all_mounts(manifest):
        if (source := volume_source(mount)) and mount.name not in found:
            found[mount.name] = {"name": mount.name} | source
    return list(found.values())


def all_mounts(manifest: KubernetesDaemonSet) -> Iterable[VolumeMount]:
    spec = manifest.spec
    yield from spec.container.app.volume_mounts
    for this in (*spec.container.sidecars, *spec.init_containers):
        yield from this.volume_mounts


def volume_source(mount: VolumeMount) -> Json | None:
    """What a mount says its volume is; None if it leaves that to another mount of the same name."""
    if mount.HasField("host_path"):
        return {"hostPath": _given({"path": mount.host_path.path, "type": mount.host_path.type or None})}
    if mount.HasField("config_map"):
        return {"configMap": {"name": mount.config_map.name} | _files(mount.config_map)}
    if mount.HasField("secret"):
        return {"secret": {"secretName": mount.secret.name} | _files(mount.secret)}
    if mount.HasField("empty_dir"):
        return {
            "emptyDir": _given(
                {"medium": mount.empty_dir.medium or None, "sizeLimit": mount.empty_dir.size_limit or None}
            )
        }
    if mount.HasField("pvc"):
        return {
            "persistentVolumeClaim": _given(
                {"claimName": mount.pvc.claim_name, "readOnly": mount.pvc.read_only or None}
            )
        }
    return None


def _files(source: Any) -> Json:  # noqa: ANN401 - ConfigMapSource and SecretSource, which have the same fields
    items = [{"key": source.key, "path": source.path or source.key}] if source.key else None
    return _given({"items": items, **_optional(source, "default_mode", "optional")})


def _common(this: KubernetesDaemonSetContainerApp | Container, ports: list[Json]) -> Json:
    return {
        "command": list(this.command) or None,
        "args": list(this.args) or None,
        "workingDir": this.working_dir or None,
        "ports": ports or None,
        "volumeMounts": [_mount(one) for one in this.volume_mounts] or None,
        "startupProbe": _probe(this.startup_probe) if this.HasField("startup_probe") else None,
        "livenessProbe": _probe(this.liveness_probe) if this.HasField("liveness_probe") else None,
        "readinessProbe": _probe(this.readiness_probe) if this.HasField("readiness_probe") else None,
        "lifecycle": _lifecycle(this.lifecycle) if this.HasField("lifecycle") else None,
        "securityContext": _security(this.security_context) if this.HasField("security_context") else None,
    }


def _mount(one: VolumeMount) -> Json:
    return _given(
        {
            "name": one.name,
            "mountPath": one.mount_path,
            "readOnly": one.read_only or None,
            "subPath": one.sub_path or None,
            "subPathExpr": one.sub_path_expr or None,
            "mountPropagation": one.mount_propagation or None,
        }
    )


def _environment(manifest: KubernetesDaemonSet) -> list[Json]:
    """Built-in variables, then the manifest's by name, secret ones last; one that uses $(ANOTHER) comes after that one,
    since Kubernetes fills in only what stands before.
    """
    env = manifest.spec.container.app.env
    found = {name: {"name": name, "valueFrom": _field(path)} for name, path in _BUILT_IN.items()}
    found |= {name: _value(name, env.variables[name]) for name in sorted(env.variables)}
    for name in sorted(env.secrets):
        value = env.secrets[name]
        key = {"name": names.env_secret(manifest), "key": name}
        if value.HasField("secret_ref"):
            key = _secret_key(value.secret_ref)
        found[name] = {"name": name, "valueFrom": {"secretKeyRef": key}}
    return in_order_of_use(found)


def in_order_of_use(variables: Mapping[str, Json]) -> list[Json]:
    """The same, each after those that it uses. A circle is left as it is: Kubernetes leaves such a text alone."""
    placed: dict[str, None] = {}
    for name in variables:
        stack = [name]
        while stack:
            here = stack[-1]
            used = [one for one in _REFERENCE.findall(variables[here].get("value", "")) if one in variables]
            waiting = [one for one in used if one not in placed and one not in stack]
            if waiting and here not in placed:
                stack.append(waiting[0])
            else:
                placed[stack.pop()] = None
    return [variables[name] for name in placed]


def _value(name: str, value: KubernetesDaemonSetEnvValue) -> Json:
    if value.HasField("config_map_key_ref"):
        return {"name": name, "valueFrom": {"configMapKeyRef": _plain(value.config_map_key_ref)}}
    if value.HasField("field_ref"):
        return {"name": name, "valueFrom": _field(value.field_ref.field_path, value.field_ref.api_version)}
    if value.HasField("resource_field_ref"):
        return {"name": name, "valueFrom": {"resourceFieldRef": _plain(value.resource_field_ref)}}
    if value.HasField("secret_ref"):
        return {"name": name, "valueFrom": {"secretKeyRef": _secret_key(value.secret_ref)}}
    return {"name": name, "value": value.value}


def _variable(one: ContainerEnvVar) -> Json:
    if one.HasField("secret_ref"):
        return {"name": one.name, "valueFrom": {"secretKeyRef": _secret_key(one.secret_ref)}}
    if one.HasField("field_ref"):
        return {"name": one.name, "valueFrom": _field(one.field_ref.field_path, one.field_ref.api_version)}
    for field, key in (("config_map_key_ref", "configMapKeyRef"), ("resource_field_ref", "resourceFieldRef")):
        if one.HasField(field):
            return {"name": one.name, "valueFrom": {key: _plain(getattr(one, field))}}
    return {"name": one.name, "value": one.value}


def _secret_key(this: KubernetesSecretKeyRef) -> Json:
    """Without the namespace: it is always the pod's own."""
    return {"name": this.name, "key": this.key, **_optional(this, "optional")}


def _field(path: str, version: str = "") -> Json:
    """With the version that the server would add: what it adds looks to another manager like someone's change."""
    return {"fieldRef": {"apiVersion": version or "v1", "fieldPath": path}}


def _env_from(sources: Iterable[EnvFrom]) -> list[Json] | None:
    return [
        _given(
            {
                "prefix": one.prefix or None,
                "configMapRef": _plain(one.config_map_ref) if one.HasField("config_map_ref") else None,
                "secretRef": _plain(one.secret_ref) if one.HasField("secret_ref") else None,
            }
        )
        for one in sources
    ] or None


def _default_resources() -> ContainerResources:
    """Stands in the .proto file, beside the field."""
    field = KubernetesDaemonSetContainerApp.DESCRIPTOR.fields_by_name["resources"]
    default: ContainerResources = field.GetOptions().Extensions[default_container_resources]
    return default


def _resources(this: ContainerResources) -> Json | None:
    return _given({"limits": _amounts(this.limits), "requests": _amounts(this.requests)}) or None


def _amounts(this: CpuMemory) -> Json | None:
    named = {"cpu": this.cpu, "memory": this.memory, "ephemeral-storage": this.ephemeral_storage}
    return {key: value for key, value in (named | dict(sorted(this.other.items()))).items() if value} or None


def _probe(this: Probe) -> Json:
    handler: Json
    match this.WhichOneof("handler"):
        case "http_get":
            handler = {"httpGet": _http_get(this.http_get)}
        case "grpc":
            handler = {"grpc": _given({"port": this.grpc.port, "service": this.grpc.service or None})}
        case "tcp_socket":
            handler = {"tcpSocket": _given({"port": _port(this.tcp_socket), "host": this.tcp_socket.host or None})}
        case _:
            handler = {"exec": {"command": list(this.exec.command)}}
    times = _optional(
        this,
        "initial_delay_seconds",
        "period_seconds",
        "timeout_seconds",
        "success_threshold",
        "failure_threshold",
        "termination_grace_period_seconds",
    )
    return handler | times


def _http_get(this: HttpGetAction) -> Json:
    return _given(
        {
            "path": this.path or None,
            "port": _port(this),
            "host": this.host or None,
            "scheme": this.scheme or None,
            "httpHeaders": [{"name": one.name, "value": one.value} for one in this.http_headers] or None,
        }
    )


def _port(this: HttpGetAction | TcpSocketAction) -> int | str:
    return this.port_name or this.port_number


def _lifecycle(this: Lifecycle) -> Json:
    return _given(
        {
            "postStart": _hook(this.post_start) if this.HasField("post_start") else None,
            "preStop": _hook(this.pre_stop) if this.HasField("pre_stop") else None,
        }
    )


def _hook(this: LifecycleHandler) -> Json:
    match this.WhichOneof("handler"):
        case "http_get":
            return {"httpGet": _http_get(this.http_get)}
        case "sleep_seconds":
            return {"sleep": {"seconds": this.sleep_seconds}}
        case _:
            return {"exec": {"command": list(this.exec.command)}}


def _security(this: SecurityContext) -> Json:
    capabilities = {"add": list(this.capabilities.add) or None, "drop": list(this.capabilities.drop) or None}
    return _given(
        {
            **_optional(
                this,
                "privileged",
                "allow_privilege_escalation",
                "run_as_user",
                "run_as_group",
                "run_as_non_root",
                "read_only_root_filesystem",
            ),
            "capabilities": _given(capabilities) or None,
            "seccompProfile": _plain(this.seccomp_profile) if this.HasField("seccomp_profile") else None,
            "seLinuxOptions": _plain(this.se_linux_options) if this.HasField("se_linux_options") else None,
        }
    )


def _pod_security(manifest: KubernetesDaemonSet) -> Json | None:
    if not manifest.spec.HasField("pod_security_context"):
        return None
    this = manifest.spec.pod_security_context
    return _given(
        {
            **_optional(this, "run_as_user", "run_as_group", "run_as_non_root", "fs_group"),
            "supplementalGroups": list(this.supplemental_groups) or None,
            "seccompProfile": _plain(this.seccomp_profile) if this.HasField("seccomp_profile") else None,
            "seLinuxOptions": _plain(this.se_linux_options) if this.HasField("se_linux_options") else None,
        }
    )


def _plain(message: Message) -> Json:
    """A message whose fields are Kubernetes' own, name for name."""
    found: Json = {}
    for field, value in message.ListFields():
        if field.message_type and field.message_type.GetOptions().map_entry:
            found[_camel(field.name)] = dict(sorted(value.items()))
        elif field.is_repeated:
            found[_camel(field.name)] = [_plain(one) if isinstance(one, Message) else one for one in value]
        else:
            found[_camel(field.name)] = _plain(value) if isinstance(value, Message) else value
    return found


def _optional(message: _Contains, *fields: str) -> Json:
    """Fields for which zero and false mean something: there if they were written."""
    return {_camel(field): getattr(message, field) for field in fields if message.HasField(field)}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join({"pid": "PID", "ipc": "IPC"}.get(word, word.capitalize()) for word in rest)


def _given(values: Json) -> Json:
    return {key: value for key, value in values.items() if value is not None}
