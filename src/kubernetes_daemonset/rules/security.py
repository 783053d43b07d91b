"""Rights on the node, and processes that see each other."""

from collections.abc import Iterator

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.rules.finding import Finding
from kubernetes_daemonset.rules.parts import parts


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
