"""Values that between them switch everything of the chart on and off."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.chart import EXAMPLES, POLICIES, Object, Rendered, render

NAMESPACE = "release"
NAMESPACES = (NAMESPACE, "workers", "locks", "monitoring")
Values = Mapping[str, Any]

_EVERYWHERE: Values = {
    "commonLabels": {"team": "a"},
    "commonAnnotations": {"owner": "b"},
    "imagePullSecrets": ["a", {"name": "b"}],
    "image": {"repository": "registry.example/a", "digest": f"sha256:{'0' * 64}"},
    "priorityClassName": "system-cluster-critical",
    "networkPolicy": {
        "enabled": True,
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
        "healthFrom": [{"ipBlock": {"cidr": "192.168.0.0/16"}}],
        "apiServer": {"cidrs": ["10.0.0.1/32"]},
        "extraEgress": [{"ports": [{"port": 53, "protocol": "UDP"}]}],
    },
    "worker": {"config": {"services": ["default/kubernetes", "workers/a"], "networkTargets": ["example.com:443"]}},
}
_PODS: Values = {
    "extraEnv": [{"name": "A", "value": "b"}],
    "extraVolumes": [{"name": "tmp", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    "extraArgs": ["--log-level=debug"],
    "podLabels": {"c": "d"},
    "podAnnotations": {"e": "f"},
    "nodeSelector": {"g": "h"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "serviceAccount": {"annotations": {"i": "j"}},
}
_MONITOR: Values = {
    "enabled": True,
    "namespace": "monitoring",
    "interval": "30s",
    "scrapeTimeout": "10s",
    "relabelings": [{"action": "labeldrop", "regex": "a"}],
    "metricRelabelings": [{"action": "labeldrop", "regex": "b"}],
}
_RULE: Values = {"enabled": True, "additionalRules": [{"alert": "Mine", "expr": "vector(1)"}]}
_DASHBOARD: Values = {"enabled": True, "namespace": "monitoring"}
_LINUX: Values = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]},
        ]
    }
}
POWERFUL = "powerful checks of one's own"
"""Its workers are not `restricted`."""

_ODD = "quotes ' \" and \\, <é>"
_CHECKS = [
    {"name": "first", "image": "a:1", "command": ["/a", _ODD], "args": [_ODD], "env": [{"name": "A", "value": _ODD}]},
    {"name": "second", "image": "b:1", "securityContext": {"privileged": True, "runAsUser": 0}},
]
_VOLUMES = [
    {"name": "host", "hostPath": {"path": f"/{_ODD}"}},
    {"name": "several", "projected": {"defaultMode": 256, "sources": [{"secret": {"name": "a", "optional": True}}]}},
    {"name": "claim", "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}}},
    {"name": "csi", "csi": {"driver": "a.example", "volumeAttributes": {"a.example/b": "c"}, "readOnly": True}},
]
SETS: Mapping[str, Values] = {
    "defaults": {},
    "all of the controller": {
        **_EVERYWHERE,
        "admissionPolicy": {
            "enabled": True,
            "additionalWorkerCreators": [_ODD],
            "additionalWorkerImages": ["mirror.example:5000/a:*", f"b.example/c@sha256:{'0' * 64}"],
        },
        "controller": {
            **_PODS,
            "replicas": 3,
            "service": {"type": "NodePort", "annotations": {"k": "l"}},
            "podDisruptionBudget": {"maxUnavailable": "50%"},
            "metrics": {
                "serviceMonitor": {**_MONITOR, "targetLabels": ["team"]},
                "prometheusRule": _RULE,
                "grafanaDashboard": _DASHBOARD,
            },
            "config": {
                "worker": {
                    "namespace": "workers",
                    "configMapName": "mine",
                    "podLabels": {"m": "n"},
                },
                "leaderElection": {"id": "mine", "namespace": "locks"},
                "nodeManagement": {"deleteFailedNodes": True, "nodeSelector": {"example.com/pool": "a"}},
                "reconciliation": {"reverifyIntervalSeconds": 60},
            },
        },
    },
    POWERFUL: {"controller": {"config": {"worker": {"initContainers": _CHECKS, "volumes": _VOLUMES}}}},
    "little of the controller": {
        "controller": {
            "leaderElection": {"enabled": False},
            "metrics": {"enabled": False},
            "config": {"dryRun": True, "nodeManagement": {"taints": []}},
            "resources": {},
        },
        "worker": {"config": {"services": [], "dnsService": ""}},
        "rbac": {"create": False},
    },
    "the controller's pods scraped": {"controller": {"metrics": {"podMonitor": _MONITOR}}},
    "all of the daemonset": {
        **_EVERYWHERE,
        "deploymentMode": "daemonset",
        "config": {"enableConnectivityMatrix": True, "taintEffect": "NoExecute"},
        "daemonset": {
            **_PODS,
            "mode": "continuous",
            "nodeAffinity": _LINUX,
            "metrics": {"podMonitor": _MONITOR, "prometheusRule": _RULE, "grafanaDashboard": _DASHBOARD},
        },
    },
    "the daemonset that leaves, with alerts": {
        "deploymentMode": "daemonset",
        "worker": {"config": {"connectivityMatrix": True}},
        "daemonset": {"nodeAffinity": _LINUX, "metrics": {"prometheusRule": _RULE}},
    },
    "little of the daemonset": {
        "deploymentMode": "daemonset",
        "config": {"dryRun": True, "enableMetrics": False},
        "admissionPolicy": {"enabled": False},
        "daemonset": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}, "resources": {}},
    },
}


def all_sets() -> Mapping[str, tuple[Values, tuple[Path, ...]]]:
    """These and the examples, by name: values, and files of values."""
    return {name: (values, ()) for name, values in SETS.items()} | {file.stem: ({}, (file,)) for file in EXAMPLES}


def rendered(name: str) -> Rendered:
    values, files = all_sets()[name]
    return render(values, files=files, namespace=NAMESPACE, apis=[POLICIES])


def definition(kind: str) -> Object:
    """A kind of the Prometheus Operator's, as far as that it can be stored: what is in it is not ours to check."""
    plural, anything = f"{kind.lower()}s", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
