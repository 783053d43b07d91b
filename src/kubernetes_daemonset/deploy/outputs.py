"""Outputs of a deployment: names from the manifest, and the state of the pods from the cluster."""

from typing import Any, Final

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.stack_outputs_pb2 import KubernetesDaemonSetStackOutputs
from kubernetes_daemonset.render import naming

_NUMBERS: Final = {
    "desired_number_scheduled": "desiredNumberScheduled",
    "current_number_scheduled": "currentNumberScheduled",
    "number_ready": "numberReady",
}


def outputs(manifest: KubernetesDaemonSet, live: dict[str, Any] | None) -> KubernetesDaemonSetStackOutputs:
    """Return the names from the manifest, and the numbers from the DaemonSet in the cluster if it exists."""
    result = KubernetesDaemonSetStackOutputs(
        namespace=naming.namespace(manifest), daemonset_name=manifest.metadata.name
    )
    status = (live or {}).get("status", {})
    for field, key in _NUMBERS.items():
        if live is not None:
            setattr(result, field, str(status.get(key, 0)))
    return result


def with_outputs(manifest: KubernetesDaemonSet, live: dict[str, Any]) -> KubernetesDaemonSet:
    """Return the manifest with its status replaced by that of the DaemonSet in the cluster."""
    updated = KubernetesDaemonSet()
    updated.CopyFrom(manifest)
    updated.status.Clear()
    updated.status.outputs.CopyFrom(outputs(manifest, live))
    return updated
