"""A Node object as registered by a cloud's kubelet: about 14 KB, most of it the list of images."""

import hashlib
import uuid
from collections.abc import Mapping, Sequence

from lightkube.models.core_v1 import (
    ContainerImage,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeSpec,
    NodeStatus,
    NodeSystemInfo,
)
from lightkube.models.core_v1 import Taint as TaintModel
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Node

from lab import simulated_stages
from lab.taints import Taint

_IMAGES = 50
_CAPACITY = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
_LABELS = {
    "beta.kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/instance-type": "m6i.4xlarge",
    "beta.kubernetes.io/os": "linux",
    "failure-domain.beta.kubernetes.io/region": "eu-central-1",
    "failure-domain.beta.kubernetes.io/zone": "eu-central-1a",
    "k8s.io/cloud-provider-aws": "6b9f1ad1b5d9b0b3cbd6bd2a8b8f5a52",
    "karpenter.k8s.aws/instance-category": "m",
    "karpenter.k8s.aws/instance-cpu": "16",
    "karpenter.k8s.aws/instance-ebs-bandwidth": "10000",
    "karpenter.k8s.aws/instance-encryption-in-transit-supported": "true",
    "karpenter.k8s.aws/instance-family": "m6i",
    "karpenter.k8s.aws/instance-generation": "6",
    "karpenter.k8s.aws/instance-hypervisor": "nitro",
    "karpenter.k8s.aws/instance-memory": "65536",
    "karpenter.k8s.aws/instance-network-bandwidth": "12500",
    "karpenter.k8s.aws/instance-size": "4xlarge",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/os": "linux",
    "node.kubernetes.io/instance-type": "m6i.4xlarge",
    "topology.ebs.csi.aws.com/zone": "eu-central-1a",
    "topology.k8s.aws/zone-id": "euc1-az2",
    "topology.kubernetes.io/region": "eu-central-1",
    "topology.kubernetes.io/zone": "eu-central-1a",
}
_ANNOTATIONS = {
    simulated_stages.ANNOTATION: simulated_stages.ANNOTATED,
    "alpha.kubernetes.io/provided-node-ip": "192.0.2.3",
    "csi.volume.kubernetes.io/nodeid": '{"ebs.csi.aws.com":"i-0123456789abcdef0"}',
    "node.alpha.kubernetes.io/ttl": "0",
    "volumes.kubernetes.io/controller-managed-attach-detach": "true",
}


def node_object(name: str, version: str, taints: Sequence[Taint], labels: Mapping[str, str]) -> Node:
    """Return a Node that is not Ready, like every node when it registers."""
    return Node(
        metadata=ObjectMeta(
            name=name,
            labels={**_LABELS, "kubernetes.io/hostname": _host(name), **labels},
            annotations=dict(_ANNOTATIONS),
        ),
        spec=NodeSpec(
            providerID=f"aws:///eu-central-1a/i-{_hex(name, 17)}",
            taints=[TaintModel(key=taint.key, effect=taint.effect, value=taint.value) for taint in taints],
        ),
        status=NodeStatus(
            addresses=[NodeAddress(address="192.0.2.3", type="InternalIP"), NodeAddress(address=name, type="Hostname")],
            allocatable=_CAPACITY,
            capacity=_CAPACITY,
            conditions=[
                NodeCondition(
                    status="False", type="Ready", reason="KubeletNotReady", message="container runtime is starting"
                )
            ],
            daemonEndpoints=NodeDaemonEndpoints(),
            images=[_image(number) for number in range(_IMAGES)],
            nodeInfo=_info(name, version),
        ),
    )


def _image(number: int) -> ContainerImage:
    repository = f"123456789012.ecr.example/service-{number:02d}"
    digest = hashlib.sha256(repository.encode()).hexdigest()
    return ContainerImage(
        names=[f"{repository}@sha256:{digest}", f"{repository}:v1.{number}.0"], sizeBytes=50_000_000 + number
    )


def _info(name: str, version: str) -> NodeSystemInfo:
    identity = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
    return NodeSystemInfo(
        architecture="amd64",
        bootID=identity,
        containerRuntimeVersion="containerd://2.1.4",
        kernelVersion="6.12.40-63.114.amzn2023.x86_64",
        kubeProxyVersion="",
        kubeletVersion=f"v{version}",
        machineID=identity.replace("-", ""),
        operatingSystem="linux",
        osImage="Amazon Linux 2023",
        systemUUID=identity,
    )


def _host(name: str) -> str:
    """Return a host name, which has a lower length limit than a node's name."""
    return name[:63].rstrip(".-")


def _hex(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
