"""Security contexts of containers and pods."""

from kubernetes_daemonset.api.shared.container_pb2 import SecurityContext
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetSpec, PodSecurityContext
from kubernetes_daemonset.render.fields import drop_none, optional, to_kubernetes
from kubernetes_daemonset.types import Json


def of_container(this: SecurityContext) -> Json:
    capabilities = {"add": list(this.capabilities.add) or None, "drop": list(this.capabilities.drop) or None}
    return drop_none(
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
            "capabilities": drop_none(capabilities) or None,
            **_profiles(this),
        }
    )


def of_pod(spec: KubernetesDaemonSetSpec) -> Json | None:
    if not spec.HasField("pod_security_context"):
        return None
    this = spec.pod_security_context
    return drop_none(
        {
            **optional(this, "run_as_user", "run_as_group", "run_as_non_root", "fs_group"),
            "supplementalGroups": list(this.supplemental_groups) or None,
            **_profiles(this),
        }
    )


def _profiles(this: SecurityContext | PodSecurityContext) -> Json:
    return {
        "seccompProfile": to_kubernetes(this.seccomp_profile) if this.HasField("seccomp_profile") else None,
        "seLinuxOptions": to_kubernetes(this.se_linux_options) if this.HasField("se_linux_options") else None,
    }
