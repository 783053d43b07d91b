"""Rights on the node: of one container, and of all of a pod."""

from kubernetes_daemonset.api.shared.container_pb2 import SecurityContext
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetSpec, PodSecurityContext
from kubernetes_daemonset.objects import Json
from kubernetes_daemonset.pod.fields import given, optional, plain


def of_container(this: SecurityContext) -> Json:
    capabilities = {"add": list(this.capabilities.add) or None, "drop": list(this.capabilities.drop) or None}
    return given(
        {
            **optional(
                this,
                "privileged",
                "allow_privilege_escalation",
                "run_as_user",
                "run_as_group",
                "run_as_non_root",
                "read_only_root_filesystem",
            ),
            "capabilities": given(capabilities) or None,
            **_profiles(this),
        }
    )


def of_pod(spec: KubernetesDaemonSetSpec) -> Json | None:
    if not spec.HasField("pod_security_context"):
        return None
    this = spec.pod_security_context
    return given(
        {
            **optional(this, "run_as_user", "run_as_group", "run_as_non_root", "fs_group"),
            "supplementalGroups": list(this.supplemental_groups) or None,
            **_profiles(this),
        }
    )


def _profiles(this: SecurityContext | PodSecurityContext) -> Json:
    return {
        "seccompProfile": plain(this.seccomp_profile) if this.HasField("seccomp_profile") else None,
        "seLinuxOptions": plain(this.se_linux_options) if this.HasField("se_linux_options") else None,
    }
