"""Every setting of DaemonSet mode: its flag, its environment variable, and what is right."""

import re
from collections.abc import Callable
from typing import get_args

from msgspec import Struct

from kube_node_ready import log
from kube_node_ready.checks import settings as reading
from kube_node_ready.configuration import kinds


class Setting(Struct, frozen=True):
    """`read` turns what was written into what `field` holds, or raises a ValueError that says what would be right."""

    flag: str
    variable: str
    field: str
    read: Callable[[str], object]
    about: str
    is_switch: bool = False


def _of_kind(kind: object) -> Callable[[str], str]:
    _, meta = get_args(kind)

    def read(text: str) -> str:
        if re.search(meta.pattern, text):
            return text
        raise ValueError(meta.extra["must"])

    return read


def _effect(text: str) -> str:
    effects = get_args(kinds.Effect)
    if text in effects:
        return text
    raise ValueError(f"{', '.join(effects[:-1])} or {effects[-1]}")


def _host(text: str) -> str:
    return reading.host(text.strip("[]"))


def _path(text: str) -> str:
    if text.strip(":"):
        return text
    raise ValueError("a path")


def _refused_deletion(text: str) -> bool:
    if not reading.truth(text):
        return False
    raise ValueError(
        "false: a pod sees its own node only, and to remove nodes is the controller's job, which sees how many fail "
        "and keeps to a budget (nodeManagement.deleteFailedNodes)"
    )


SETTINGS = (
    Setting("node-name", "NODE_NAME", "node_name", _of_kind(kinds.Subdomain), "this pod's node, from spec.nodeName"),
    Setting("namespace", "POD_NAMESPACE", "namespace", _of_kind(kinds.Label), "this pod's namespace"),
    Setting("mode", "MODE", "mode", reading.one_of("once", "continuous"), "the pattern: once or continuous"),
    Setting(
        "initial-timeout",
        "INITIAL_TIMEOUT",
        "timeout_seconds",
        reading.seconds,
        "how long failures are followed by quick retries, and a round may take",
    ),
    Setting("check-timeout", "CHECK_TIMEOUT", "check_timeout_seconds", reading.seconds, "how long each check may take"),
    Setting(
        "max-retries",
        "MAX_RETRIES",
        "max_retries",
        reading.whole(0, reading.MOST_RETRIES),
        "quick retries after the first failure",
    ),
    Setting(
        "retry-backoff",
        "RETRY_BACKOFF",
        "retry_backoff",
        reading.one_of("exponential", "linear"),
        "exponential: 1, 2, 4, … s up to 30; linear: always 1 s",
    ),
    Setting(
        "check-interval", "CHECK_INTERVAL", "check_interval", reading.seconds, "continuous: how often to check a node"
    ),
    Setting(
        "failure-threshold",
        "FAILURE_THRESHOLD",
        "failure_threshold",
        reading.whole(1, 100),
        "continuous: so many failures in a row close the gate again",
    ),
    Setting(
        "dns-test-domains",
        "DNS_TEST_DOMAINS",
        "dns_test_domains",
        reading.domains,
        "names that must resolve, with commas; an IP address is a DNS server that must answer",
    ),
    Setting(
        "cluster-dns-ip",
        "CLUSTER_DNS_IP",
        "cluster_dns_ip",
        reading.address,
        "the cluster's DNS server, asked directly",
    ),
    Setting(
        "network-targets",
        "NETWORK_TARGETS",
        "network_targets",
        reading.targets,
        "what must be reached, with commas: host:port, or an http or https URL",
    ),
    Setting(
        "enable-connectivity-matrix",
        "ENABLE_CONNECTIVITY_MATRIX",
        "connectivity_matrix",
        reading.truth,
        "whether most of a sample of our pods on other nodes must be reached",
        is_switch=True,
    ),
    Setting(
        "connectivity-sample",
        "CONNECTIVITY_SAMPLE",
        "connectivity_sample",
        reading.whole(1, reading.MOST_TARGETS),
        "how many of them to try",
    ),
    Setting("taint-key", "TAINT_KEY", "taint_key", _of_kind(kinds.QualifiedName), "the gate: a taint's key"),
    Setting(
        "taint-value",
        "TAINT_VALUE",
        "taint_value",
        _of_kind(kinds.LabelValue),
        "its value, when it is put on; any value is taken off",
    ),
    Setting(
        "taint-effect", "TAINT_EFFECT", "taint_effect", _effect, "its effect: NoSchedule, PreferNoSchedule or NoExecute"
    ),
    Setting(
        "verified-label",
        "VERIFIED_LABEL",
        "verified_label",
        _of_kind(kinds.QualifiedName),
        "the label of verified nodes",
    ),
    Setting(
        "verified-label-value",
        "VERIFIED_LABEL_VALUE",
        "verified_label_value",
        _of_kind(kinds.LabelValue),
        "its value",
    ),
    Setting(
        "enable-metrics",
        "ENABLE_METRICS",
        "enable_metrics",
        reading.truth,
        "whether /metrics is served",
        is_switch=True,
    ),
    Setting(
        "metrics-port",
        "METRICS_PORT",
        "metrics_port",
        reading.whole(0, 65_535),
        "where /healthz, /readyz and /metrics are served",
    ),
    Setting("log-level", "LOG_LEVEL", "log_level", reading.one_of(*log.LEVELS), "debug, info, warn or error"),
    Setting(
        "log-format", "LOG_FORMAT", "log_format", reading.one_of(*log.FORMATS), "json for machines, console for people"
    ),
    Setting("klog-verbosity", "KLOG_VERBOSITY", "", reading.whole(0, 100), "accepted, without effect"),
    Setting(
        "dry-run",
        "DRY_RUN",
        "dry_run",
        reading.truth,
        "check once, change nothing, and end (in a pod: when stopped): 0 if nothing failed, else 1",
        is_switch=True,
    ),
    Setting(
        "kubeconfig",
        "KUBECONFIG",
        "kubeconfig",
        _path,
        "how to reach the cluster from outside a pod, which is always a dry run",
    ),
    Setting("k8s-service-host", "KUBERNETES_SERVICE_HOST", "service_host", _host, "the API server, as in every pod"),
    Setting("k8s-service-port", "KUBERNETES_SERVICE_PORT", "service_port", reading.whole(1, 65_535), "its port"),
    Setting(
        "delete-failed-node",
        "DELETE_FAILED_NODE",
        "",
        _refused_deletion,
        "accepted if false: to remove nodes is the controller's job",
        is_switch=True,
    ),
)
