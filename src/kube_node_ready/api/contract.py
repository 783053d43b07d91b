"""The contract: names on Nodes, on worker pods and in their environment, each defined once.

Users, charts and other tools rely on them, so they never change. The worker imports this module at its start: it has
nothing but constants.
"""

from enum import StrEnum

VERIFIED_LABEL = "node-ready/verified"
"""By default, the label that verified nodes get."""
VERIFIED_VALUE = "true"
RECORD_ANNOTATION = "node-ready/verification"
"""On a Node: the verification record."""
PAUSE_ANNOTATION = "node-ready/pause-removal"
"""On a Node: do not remove this node. On the ledger: do not remove any node."""
CONDITION = "NodeVerified"

APP = "kube-node-ready"
WORKER_COMPONENT = "worker"
WORKER_SELECTOR = f"app={APP},component={WORKER_COMPONENT}"
"""Selects worker pods by their labels."""
ATTEMPT_LABEL = "node-ready/attempt"
TARGET_NODE_ANNOTATION = "kube-node-ready/target-node"
WORKER_SETTINGS_VARIABLE = "KUBE_NODE_READY_WORKER_CONFIG"
"""In a worker's environment: its settings, as a JSON object."""
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where Kubernetes mounts the ServiceAccount into a pod."""


class EventReason(StrEnum):
    """Reasons of Events about Nodes. Some are reasons of the condition, too."""

    VERIFYING = "Verifying"
    VERIFIED = "Verified"
    VERIFICATION_FAILED = "VerificationFailed"
    VERIFICATION_EXHAUSTED = "VerificationExhausted"
    GATE_RESTORED = "GateRestored"
    GATE_KEPT_OPEN = "GateKeptOpen"
    REMOVAL_BLOCKED = "RemovalBlocked"
    REMOVING = "Removing"
    CORDONED = "Cordoned"
    GATE_CONTESTED = "GateContested"
    RELEASE_REJECTED = "ReleaseRejected"
    RECORD_REJECTED = "RecordRejected"
    RECORD_CHANGED = "RecordChanged"
