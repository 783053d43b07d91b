"""Build Kubernetes Events. The name depends on the content, so that writing an Event twice creates one."""

from datetime import datetime
from typing import Any

from kube_node_ready.api.contract import EventReason
from kube_node_ready.api.paths import collection_path
from kube_node_ready.verification.effects import EmitEvent

PATH = collection_path("v1", "events", namespace="default")
_MAX_MESSAGE_LENGTH = 1024
_HOURLY = (EventReason.REMOVAL_BLOCKED, EventReason.RECORD_CHANGED)


def event_object(effect: EmitEvent, now: datetime, component: str, instance: str) -> dict[str, Any]:
    time = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"node-ready.{effect.node.uid}.{effect.attempt}.{effect.reason.lower()}{_edition(effect, now)}",
            "namespace": "default",
        },
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": effect.node.name, "uid": effect.node.uid},
        "reason": effect.reason,
        "message": effect.message[:_MAX_MESSAGE_LENGTH],
        "type": "Warning" if effect.warning else "Normal",
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": instance,
    }


def _edition(effect: EmitEvent, now: datetime) -> str:
    """Return a suffix that changes every hour, for Events that are repeated because the last might have expired."""
    return f".{now:%Y%m%d%H}" if effect.reason in _HOURLY else ""
