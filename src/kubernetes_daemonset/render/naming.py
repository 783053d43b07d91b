"""What the objects of a component are called, and the labels by which they are found again."""

import re
from typing import Final

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.syntax import LABEL_VALUE

MANAGED_BY: Final = "kubernetes-daemonset"  # also the field manager of every write

NAME: Final = "app.kubernetes.io/name"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
# Cluster-wide objects of two components of one name differ by this.
_NAMESPACE: Final = "kubernetes-daemonset/namespace"

# The contract with kube-node-ready: docs/daemonset/required-agents.md.
REQUIRED: Final = "node-ready/required"
GATE: Final = "node-ready/unverified"

# Labels by which a manifest tells the original's tools which stack, backend or context it is for.
_FOR_TOOLS: Final = re.compile(r"([a-z0-9-]+\.)*project-planton\.org/")


def namespace(manifest: KubernetesDaemonSet) -> str:
    return manifest.spec.namespace.value


def service_account(manifest: KubernetesDaemonSet) -> str:
    """The account of the pods; empty for the namespace's own default."""
    spec = manifest.spec
    if spec.create_service_account:
        return spec.service_account_name or manifest.metadata.name
    return spec.service_account_name


def env_secret(manifest: KubernetesDaemonSet) -> str:
    return f"{manifest.metadata.name}-env-secrets"


def secret_texts(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """The secret variables that are given as texts, and so are in that Secret."""
    secrets = manifest.spec.container.app.env.secrets
    return {name: secrets[name].value for name in sorted(secrets) if not secrets[name].HasField("secret_ref")}


def pull_secret(manifest: KubernetesDaemonSet) -> str:
    return f"{manifest.metadata.name}-image-pull-secret"


def cluster_role(manifest: KubernetesDaemonSet) -> str:
    """Cluster-wide, so the namespace belongs into it: two components of one name in two namespaces must not meet."""
    return f"{MANAGED_BY}:{namespace(manifest)}:{manifest.metadata.name}"


def selector(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """Chooses the component's pods and no others. It can never change, so it holds names alone."""
    return {MANAGED_BY_LABEL: MANAGED_BY, NAME: manifest.metadata.name}


def owned(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """The labels of everything that was made for this component, cluster-wide objects included."""
    return selector(manifest) | {_NAMESPACE: namespace(manifest)}


def labels(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """The labels of every object: the user's, the original's, the recommended ones, and those that mark it as ours."""
    metadata = manifest.metadata
    originals = {
        "planton.ai/resource": "true",
        "planton.ai/kind": "KubernetesDaemonSet",
        "planton.ai/name": metadata.name,
        "planton.ai/id": metadata.id,
        "planton.ai/organization": metadata.org,
        "planton.ai/environment": metadata.env,
    }
    version = manifest.spec.container.app.image.tag
    recommended = {"app.kubernetes.io/component": "node-agent", "app.kubernetes.io/version": version}
    fitting = {key: value for key, value in (originals | recommended).items() if value and LABEL_VALUE.fullmatch(value)}
    return dict(sorted((fitting | given_labels(manifest) | owned(manifest)).items()))


def given_labels(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """The manifest's own labels, without those by which it tells the original's tools what to do with it."""
    return {key: value for key, value in manifest.metadata.labels.items() if not _FOR_TOOLS.match(key)}
