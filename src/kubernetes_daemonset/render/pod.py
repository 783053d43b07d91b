"""Message -> pod template. Pure: the same manifest gives the same bytes.

What belongs to one subject stands in the module of its name; here they come together.
"""

from collections.abc import Sequence

from kubernetes_daemonset import names
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetToleration
from kubernetes_daemonset.objects import Json
from kubernetes_daemonset.pod import containers, security, volumes
from kubernetes_daemonset.pod.fields import given, optional, plain


def pod_spec(manifest: KubernetesDaemonSet, pull_secrets: Sequence[str]) -> Json:
    spec = manifest.spec
    return given(
        {
            "serviceAccountName": names.service_account(manifest) or None,
            **optional(spec, "automount_service_account_token"),
            "priorityClassName": spec.priority_class_name or None,
            "runtimeClassName": spec.runtime_class_name or None,
            **optional(spec, "host_network", "host_pid", "host_ipc", "share_process_namespace"),
            # Without this, a pod on the node's network resolves names as the node does, and Services are unknown to it.
            "dnsPolicy": spec.dns_policy or ("ClusterFirstWithHostNet" if spec.host_network else None),
            "nodeSelector": dict(sorted(spec.node_selector.items())) or None,
            "affinity": plain(spec.affinity) if spec.HasField("affinity") else None,
            "tolerations": _tolerations(manifest) or None,
            "securityContext": security.of_pod(spec),
            **optional(spec, "termination_grace_period_seconds"),
            "imagePullSecrets": [{"name": name} for name in pull_secrets] or None,
            "initContainers": [containers.beside(one) for one in spec.init_containers] or None,
            "containers": [containers.app(manifest), *(containers.beside(one) for one in spec.container.sidecars)],
            "volumes": volumes.of_pod(spec) or None,
        }
    )


def _tolerations(manifest: KubernetesDaemonSet) -> list[Json]:
    """The manifest's own, and for a required agent the gate's: it must run on the very nodes that wait for it."""
    found = list(manifest.spec.tolerations)
    if manifest.spec.require_on_new_nodes and not any(_tolerates_the_gate(one) for one in found):
        found.append(KubernetesDaemonSetToleration(key=names.GATE, operator="Exists", effect="NoSchedule"))
    return [plain(one) for one in found]


def _tolerates_the_gate(one: KubernetesDaemonSetToleration) -> bool:
    return one.operator == "Exists" and one.key in {"", names.GATE} and one.effect in {"", "NoSchedule"}
