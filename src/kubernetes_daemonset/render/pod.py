"""Render the pod template. Pure: the same manifest produces the same bytes.

The parts are in the modules of their subjects; this module combines them.
"""

from collections.abc import Sequence

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetToleration
from kubernetes_daemonset.render import containers, naming, security, volumes
from kubernetes_daemonset.render.fields import drop_none, optional, to_kubernetes
from kubernetes_daemonset.types import Json


def pod_spec(manifest: KubernetesDaemonSet, pull_secrets: Sequence[str]) -> Json:
    spec = manifest.spec
    return drop_none(
        {
            "serviceAccountName": naming.service_account(manifest) or None,
            **optional(spec, "automount_service_account_token"),
            "priorityClassName": spec.priority_class_name or None,
            "runtimeClassName": spec.runtime_class_name or None,
            **optional(spec, "host_network", "host_pid", "host_ipc", "share_process_namespace"),
            # Otherwise a pod on the node's network resolves names like the node, and cannot resolve Services.
            "dnsPolicy": spec.dns_policy or ("ClusterFirstWithHostNet" if spec.host_network else None),
            "nodeSelector": dict(sorted(spec.node_selector.items())) or None,
            "affinity": to_kubernetes(spec.affinity) if spec.HasField("affinity") else None,
            "tolerations": _tolerations(manifest) or None,
            "securityContext": security.of_pod(spec),
            **optional(spec, "termination_grace_period_seconds"),
            "imagePullSecrets": [{"name": name} for name in pull_secrets] or None,
            "initContainers": [containers.sidecar(container) for container in spec.init_containers] or None,
            "containers": [
                containers.app(manifest),
                *(containers.sidecar(container) for container in spec.container.sidecars),
            ],
            "volumes": volumes.of_pod(spec) or None,
        }
    )


def _tolerations(manifest: KubernetesDaemonSet) -> list[Json]:
    """Return the tolerations of the manifest, and that of the gate for a required agent: gated nodes wait for it."""
    tolerations = list(manifest.spec.tolerations)
    if manifest.spec.require_on_new_nodes and not any(_tolerates_the_gate(toleration) for toleration in tolerations):
        tolerations.append(KubernetesDaemonSetToleration(key=naming.GATE, operator="Exists", effect="NoSchedule"))
    return [to_kubernetes(toleration) for toleration in tolerations]


def _tolerates_the_gate(toleration: KubernetesDaemonSetToleration) -> bool:
    return (
        toleration.operator == "Exists"
        and toleration.key in {"", naming.GATE}
        and toleration.effect in {"", "NoSchedule"}
    )
