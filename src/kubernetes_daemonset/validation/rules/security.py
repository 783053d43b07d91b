"""Rules for privileges on the node, RBAC and shared process namespaces."""

from collections.abc import Iterator
from typing import Final

from kubekit.suggestions import did_you_mean
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.validation.containers_view import container_views
from kubernetes_daemonset.validation.rules.finding import Finding

_PREFIX: Final = "CAP_"
# The list of capabilities(7); Linux 5.9 added the latest.
# fmt: off
_CAPABILITIES: Final = frozenset({
    "AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "BPF", "CHECKPOINT_RESTORE", "CHOWN",
    "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "IPC_LOCK", "IPC_OWNER", "KILL", "LEASE",
    "LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "NET_BIND_SERVICE", "NET_BROADCAST",
    "NET_RAW", "PERFMON", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYSLOG", "SYS_ADMIN", "SYS_BOOT", "SYS_CHROOT",
    "SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG",
    "WAKE_ALARM", "ALL",
})
# fmt: on

_EVERY_GROUP: Final = "*"
# Without namespaces: a Role grants permissions on its own Namespace.
_OF_NO_NAMESPACE: Final = {
    "": {"componentstatuses", "nodes", "persistentvolumes"},
    "apiextensions.k8s.io": {"customresourcedefinitions"},
    "certificates.k8s.io": {"certificatesigningrequests"},
    "node.k8s.io": {"runtimeclasses"},
    "rbac.authorization.k8s.io": {"clusterrolebindings", "clusterroles"},
    "scheduling.k8s.io": {"priorityclasses"},
    "storage.k8s.io": {"csidrivers", "csinodes", "storageclasses", "volumeattachments"},
}


def processes_are_shared_once(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    if manifest.spec.host_pid and manifest.spec.share_process_namespace:
        text = "cannot be combined with host_pid, which already shares all processes; remove it"
        yield Finding("spec.share_process_namespace", text)


def root_is_refused(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    shared = manifest.spec.pod_security_context
    for container in container_views(manifest):
        own, path = container.body.security_context, f"{container.path}.security_context"
        refused = own.run_as_non_root if own.HasField("run_as_non_root") else shared.run_as_non_root
        user = own if own.HasField("run_as_user") else shared
        if refused and user.HasField("run_as_user") and user.run_as_user == 0:
            where = path if user is own else "spec.pod_security_context"
            text = "is root, but run_as_non_root rejects root, so the container cannot start"
            yield Finding(f"{where}.run_as_user", text, (path,))


def privileges_are_not_needed(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    spec = manifest.spec
    shares_the_nodes = spec.host_network or spec.host_pid or spec.host_ipc
    for container in container_views(manifest):
        context, path = container.body.security_context, f"{container.path}.security_context"
        if not context.privileged:
            continue
        if context.capabilities.add:
            text = "privileged includes every capability; remove one of the two"
            yield Finding(f"{path}.capabilities.add", text)
        elif not shares_the_nodes and not any(mount.HasField("host_path") for _, mount in container.mounts):
            text = "the container uses nothing of the node; remove it or add only the capabilities it needs"
            because = ("spec.host_network", "spec.host_pid", "spec.host_ipc", f"{container.path}.volume_mounts")
            yield Finding(f"{path}.privileged", text, because)


def capabilities_are_known(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    """Warn about unknown capabilities: newer kernels can support more than this list."""
    for container in container_views(manifest):
        capabilities = container.body.security_context.capabilities
        for kind, names in (("add", capabilities.add), ("drop", capabilities.drop)):
            for at, name in enumerate(names):
                if name.upper() not in _CAPABILITIES:  # runtimes convert them to uppercase
                    yield Finding(
                        f"{container.path}.security_context.capabilities.{kind}[{at}]", _unknown_capability(name)
                    )


def rights_in_a_namespace_are_about_it(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for index, rule in enumerate(manifest.spec.rbac.namespace_rules):
        groups = _OF_NO_NAMESPACE if _EVERY_GROUP in rule.api_groups else rule.api_groups
        elsewhere = {kind for group in groups for kind in _OF_NO_NAMESPACE.get(group, ())}
        for at, resource in enumerate(rule.resources):
            if (kind := resource.partition("/")[0]) in elsewhere:
                text = f"{kind} are not namespaced, so this grants nothing; move it to cluster_rules"
                where = f"spec.rbac.namespace_rules[{index}]"
                yield Finding(f"{where}.resources[{at}]", text, (f"{where}.api_groups",))


def _unknown_capability(name: str) -> str:
    bare = name.upper().removeprefix(_PREFIX)
    near = did_you_mean(bare, _CAPABILITIES)
    if near and name.upper().startswith(_PREFIX):
        return f'"{name}" might not be recognized by nodes: Kubernetes expects it without {_PREFIX}; use {near}'
    unknown = f'"{name}" is not a known capability'
    return (
        f"{unknown}; did you mean {near}?" if near else f"{unknown}: pods do not start on nodes that do not support it"
    )
