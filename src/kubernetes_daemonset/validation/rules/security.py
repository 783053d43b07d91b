"""Rights on the node and in the cluster, and processes that see each other."""

import difflib
from collections.abc import Iterator
from typing import Final

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.rules.finding import Finding
from kubernetes_daemonset.rules.parts import parts

_PREFIX: Final = "CAP_"
# Those of capabilities(7), up to Linux 5.9; there has been none since.
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
# Without namespaces: in its own namespace a Role does grant rights to that Namespace.
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
        text = "with host_pid the containers see each other anyway; leave it out"
        yield Finding("spec.share_process_namespace", text)


def root_is_refused(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    shared = manifest.spec.pod_security_context
    for part in parts(manifest):
        own, path = part.body.security_context, f"{part.path}.security_context"
        refused = own.run_as_non_root if own.HasField("run_as_non_root") else shared.run_as_non_root
        user = own if own.HasField("run_as_user") else shared
        if refused and user.HasField("run_as_user") and user.run_as_user == 0:
            where = path if user is own else "spec.pod_security_context"
            text = "is root, and run_as_non_root refuses root: the container will never start"
            yield Finding(f"{where}.run_as_user", text, (path,))


def privileges_are_not_needed(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    spec = manifest.spec
    shares_the_nodes = spec.host_network or spec.host_pid or spec.host_ipc
    for part in parts(manifest):
        context, path = part.body.security_context, f"{part.path}.security_context"
        if not context.privileged:
            continue
        if context.capabilities.add:
            text = "privileged includes every capability; leave one of the two out"
            yield Finding(f"{path}.capabilities.add", text)
        elif not shares_the_nodes and not any(mount.HasField("host_path") for _, mount in part.mounts):
            text = "nothing here touches the node; leave it out, or name the capabilities that are needed"
            because = ("spec.host_network", "spec.host_pid", "spec.host_ipc", f"{part.path}.volume_mounts")
            yield Finding(f"{path}.privileged", text, because)


def capabilities_are_known(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    """A warning: kernels may know more of them than this list."""
    for part in parts(manifest):
        given = part.body.security_context.capabilities
        for kind, names in (("add", given.add), ("drop", given.drop)):
            for at, name in enumerate(names):
                if name.upper() not in _CAPABILITIES:  # runtimes write them in capitals themselves
                    yield Finding(f"{part.path}.security_context.capabilities.{kind}[{at}]", _unknown_capability(name))


def rights_in_a_namespace_are_about_it(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for index, rule in enumerate(manifest.spec.rbac.namespace_rules):
        groups = _OF_NO_NAMESPACE if _EVERY_GROUP in rule.api_groups else rule.api_groups
        elsewhere = {kind for group in groups for kind in _OF_NO_NAMESPACE.get(group, ())}
        for at, resource in enumerate(rule.resources):
            if (kind := resource.partition("/")[0]) in elsewhere:
                text = f"{kind} belong to no namespace, so this grants nothing; move it to cluster_rules"
                where = f"spec.rbac.namespace_rules[{index}]"
                yield Finding(f"{where}.resources[{at}]", text, (f"{where}.api_groups",))


def _unknown_capability(name: str) -> str:
    bare = name.upper().removeprefix(_PREFIX)
    near = next(iter(difflib.get_close_matches(bare, sorted(_CAPABILITIES), n=1)), "")
    if near and name.upper().startswith(_PREFIX):
        return f'"{name}" is a name that nodes may not know: Kubernetes wants it without {_PREFIX}; write {near}'
    unknown = f'"{name}" is no capability that is known here'
    return f"{unknown}; did you mean {near}?" if near else f"{unknown}: where nodes do not know it, no pod will start"
