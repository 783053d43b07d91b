"""What a deployment made, and how far its pods have come: as the manifest says it, and as the cluster shows it."""

from typing import Any, Final

from kubernetes_daemonset import names
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.stack_outputs_pb2 import KubernetesDaemonSetStackOutputs

_NUMBERS: Final = {
    "desired_number_scheduled": "desiredNumberScheduled",
    "current_number_scheduled": "currentNumberScheduled",
    "number_ready": "numberReady",
}


def outputs(manifest: KubernetesDaemonSet, live: dict[str, Any] | None) -> KubernetesDaemonSetStackOutputs:
    """The names from the manifest, the numbers from the DaemonSet as it is in the cluster, if it is there."""
    found = KubernetesDaemonSetStackOutputs(namespace=names.namespace(manifest), daemonset_name=manifest.metadata.name)
    status = (live or {}).get("status", {})
    for field, key in _NUMBERS.items():
        if live is not None:
            setattr(found, field, str(status.get(key, 0)))
    return found
