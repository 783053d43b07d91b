"""News as Kubernetes Events. Their names are fixed by what they tell, so that telling twice is telling once."""

from datetime import datetime
from typing import Any

from kube_node_ready.api_paths import collection_path
from kube_node_ready.verify.model import Announce

PATH = collection_path("v1", "events", namespace="default")
_LONGEST = 1024


def event(news: Announce, now: datetime, component: str, instance: str) -> dict[str, Any]:
    time = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"node-ready.{news.node.uid}.{news.attempt}.{news.reason.lower()}{_edition(news, now)}",
            "namespace": "default",
        },
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": news.node.name, "uid": news.node.uid},
        "reason": news.reason,
        "message": news.message[:_LONGEST],
        "type": "Warning" if news.warning else "Normal",
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": instance,
    }


def _edition(news: Announce, now: datetime) -> str:
    """What is held up for long is said again every hour, when its last Event may have expired."""
    return f".{now:%Y%m%d%H}" if news.reason in ("RemovalBlocked", "RecordChanged") else ""
