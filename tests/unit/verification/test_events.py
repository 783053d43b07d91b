"""Events, whole: a field under another name would be dropped by the API server without an error."""

from datetime import UTC, datetime

import pytest

from kube_node_ready.api.contract import EventReason
from kube_node_ready.verification.effects import EmitEvent
from kube_node_ready.verification.events import PATH, event_object
from kube_node_ready.verification.model import Node

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
NODE = Node("worker-1", "uid-1")


def test_an_event_has_every_field_the_api_expects() -> None:
    news = EmitEvent(NODE, EventReason.VERIFICATION_FAILED, "dns: timeout", 3, warning=True)
    assert event_object(news, NOW, "kube-node-ready-controller", "pod-1") == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "node-ready.uid-1.3.verificationfailed", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": "worker-1", "uid": "uid-1"},
        "reason": "VerificationFailed",
        "message": "dns: timeout",
        "type": "Warning",
        "firstTimestamp": "2026-03-04T05:06:07Z",
        "lastTimestamp": "2026-03-04T05:06:07Z",
        "count": 1,
        "source": {"component": "kube-node-ready-controller"},
        "reportingComponent": "kube-node-ready-controller",
        "reportingInstance": "pod-1",
    }


def test_events_are_created_in_the_namespace_of_cluster_scoped_objects() -> None:
    assert PATH == "/api/v1/namespaces/default/events"


def test_an_event_is_normal_unless_it_is_a_warning() -> None:
    assert event_object(EmitEvent(NODE, EventReason.VERIFIED, "it passed", 1), NOW, "c", "i")["type"] == "Normal"


@pytest.mark.parametrize("reason", [EventReason.REMOVAL_BLOCKED, EventReason.RECORD_CHANGED])
def test_lasting_warnings_are_repeated_every_hour(reason: EventReason) -> None:
    name = event_object(EmitEvent(NODE, reason, "budget", 3), NOW, "c", "i")["metadata"]["name"]
    assert name == f"node-ready.uid-1.3.{reason.lower()}.2026030405"


@pytest.mark.parametrize(("length", "kept"), [(1024, 1024), (1025, 1024)])
def test_a_message_is_as_long_as_the_api_allows(length: int, kept: int) -> None:
    assert event_object(EmitEvent(NODE, EventReason.VERIFIED, "x" * length, 1), NOW, "c", "i")["message"] == "x" * kept
