"""The command lines of the control plane components."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import network
from lab.network import Network
from lab.pki import Pair


@dataclass(frozen=True)
class Ports:
    """Free ports, one for each endpoint of the plane."""

    etcd: int
    etcd_peers: int
    api: int
    controller_manager: int
    scheduler: int


@dataclass(frozen=True)
class Credentials:
    """The certificate authority, and the credentials of each component."""

    authority: Pair
    api: Pair
    kubelet_client: Pair
    service_accounts: Path


def etcd(folder: Path, ports: Ports) -> list[str]:
    clients, peers = f"http://127.0.0.1:{ports.etcd}", f"http://127.0.0.1:{ports.etcd_peers}"
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        # The data is not needed after the test, so it need not be synced to disk.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(folder: Path, net: Network, ports: Ports, has: Credentials, extra: Sequence[str]) -> list[str]:
    flags = [
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        f"--bind-address={net.api_address}",
        f"--secure-port={ports.api}",
        f"--tls-cert-file={has.api.certificate}",
        f"--tls-private-key-file={has.api.key}",
        f"--client-ca-file={has.authority.certificate}",
        f"--kubelet-certificate-authority={has.authority.certificate}",
        f"--kubelet-client-certificate={has.kubelet_client.certificate}",
        f"--kubelet-client-key={has.kubelet_client.key}",
        # Node names are not in any DNS.
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-key-file={has.service_accounts}",
        f"--service-account-signing-key-file={has.service_accounts}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-cluster-ip-range={network.SERVICES}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        # Webhooks and aggregated APIs are called at their pods: this machine has routes to pods, but not to Services.
        "--enable-aggregator-routing=true",
        f"--audit-policy-file={folder / 'audit-policy.json'}",
        f"--audit-log-path={folder / 'audit.log'}",
        # In megabytes. If the log were rotated while it is read, counts would be wrong without notice.
        "--audit-log-maxsize=100000",
        # Bursts of simulated nodes are a common test.
        "--max-requests-inflight=800",
        "--max-mutating-requests-inflight=400",
        "--profiling=false",
    ]
    if not network.is_root():
        # Endpoints of the kubernetes Service must not be loopback addresses, and simulated pods do not need them.
        flags += ["--endpoint-reconciler-type=none", "--advertise-address=192.0.2.1"]
    return [*flags, *extra]


def controller_manager(kubeconfig: Path, net: Network, ports: Ports, has: Credentials) -> list[str]:
    return [
        *_controller(kubeconfig, ports.controller_manager),
        "--use-service-account-credentials",
        f"--service-account-private-key-file={has.service_accounts}",
        f"--root-ca-file={has.authority.certificate}",
        f"--cluster-signing-cert-file={has.authority.certificate}",
        f"--cluster-signing-key-file={has.authority.key}",
        "--allocate-node-cidrs",
        f"--cluster-cidr={net.pods}",
        f"--node-cidr-mask-size={network.NODE_POD_BITS}",
        f"--service-cluster-ip-range={network.SERVICES}",
    ]


def scheduler(kubeconfig: Path, ports: Ports) -> list[str]:
    return _controller(kubeconfig, ports.scheduler)


def _controller(kubeconfig: Path, port: int) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        # There is one of each, and it should start working immediately.
        "--leader-elect=false",
        "--kube-api-qps=300",
        "--kube-api-burst=600",
    ]
