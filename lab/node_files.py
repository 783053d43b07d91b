"""Configuration files of a node's programs. Pure functions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lab import images, network

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
_LARGEST_POD_COUNT = 25  # a /27 holds 30 addresses, one of them the gateway


def containerd(cni_programs: str) -> str:
    """Return containerd's configuration. Version 2 is supported by containerd 1.6 (Debian 12) and later."""
    return f"""\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{images.TOOLBOX}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni_programs}"
    conf_dir = "/mnt/node/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def cni(pods: str) -> str:
    """Return the CNI configuration: a routed veth pair per pod, so that every packet passes the node's filter."""
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/var/lib/cni",
    }
    plugins = [
        {"type": "ptp", "mtu": 1500, "ipam": addresses},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    return json.dumps({"cniVersion": "0.4.0", "name": "lab", "plugins": plugins})


def kubelet(cgroup: str, taints: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": "/mnt/node/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": "/mnt/node/kubelet.crt",
        "tlsPrivateKeyFile": "/mnt/node/kubelet.key",
        "clusterDomain": "cluster.local",
        "clusterDNS": [network.DNS_SERVICE],
        "resolvConf": "/mnt/node/resolv.conf",
        "registerWithTaints": list(taints),
        "cgroupRoot": cgroup,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        # A busy test machine must not evict pods or remove imported images.
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "maxPods": _LARGEST_POD_COUNT,
    }


def kube_proxy(name: str, pods: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": "/mnt/node/kube-proxy.kubeconfig"},
        "hostnameOverride": name,
        "mode": "iptables",
        "clusterCIDR": pods,
        "conntrack": {"maxPerCore": 0},
        # A node's first checks must not wait for the default second between updates.
        "iptables": {"minSyncPeriod": "0.1s"},
    }
