"""The connection to the cluster that a kubeconfig or a pod's ServiceAccount names, and the contexts of a kubeconfig."""

from dataclasses import dataclass
from pathlib import Path

import httpx2

from kubekit import connection as connections
from kubekit import kubeconfig as kubeconfigs
from kubekit.kubeconfig import KubeconfigError
from kubernetes_daemonset.deploy.api_client import MAX_URL_LENGTH, TIMEOUT, Cluster, ClusterError
from kubernetes_daemonset.deploy.transport import KubeconfigTransport


def connect(kubeconfig: Path | None, context: str | None) -> Cluster:
    """Return a client for this kubeconfig and context.

    Without a file, use KUBECONFIG, the pod's ServiceAccount or ~/.kube/config, in this order.
    """
    try:
        connection = connections.load(kubeconfig, context)
        transport = KubeconfigTransport(connection)
        http = httpx2.Client(base_url=connection.server, timeout=TIMEOUT, transport=transport, trust_env=False)
    except KubeconfigError as error:
        raise ClusterError(str(error)) from error
    except httpx2.InvalidURL as error:
        server = connection.server[:MAX_URL_LENGTH]
        raise ClusterError(f"{connection.source}: server: {server!a} is invalid: {error}") from error
    warnings = []
    if connection.insecure:
        warnings.append(f"warning: TLS verification disabled for {connection.server}: insecure-skip-tls-verify is true")
    return Cluster(http, warnings)


@dataclass(frozen=True, slots=True)
class Contexts:
    """What a kubeconfig calls its contexts and clusters, and which of them a connection uses by default."""

    current: str | None
    current_cluster: str | None
    names: frozenset[str]
    clusters: frozenset[str]


def contexts(kubeconfig: Path | None) -> Contexts:
    """Return the contexts and clusters that the kubeconfig names."""
    try:
        config = kubeconfigs.read(kubeconfig)
        current = config.current_context or None
        chosen = config.contexts.get(current) if current else None
        cluster = chosen.text("cluster") if chosen else None
    except KubeconfigError as error:
        raise ClusterError(str(error)) from error
    return Contexts(current, cluster, frozenset(config.contexts), frozenset(config.clusters))
