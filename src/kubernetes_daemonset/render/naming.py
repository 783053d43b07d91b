"""Names of the objects of a component, and the labels that identify them."""

import re
from typing import Final

from kubekit.names import LABEL_VALUE
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet

MANAGED_BY: Final = "kubernetes-daemonset"  # also the field manager of every write

NAME: Final = "app.kubernetes.io/name"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
# Distinguishes cluster-scoped objects of components with the same name.
_NAMESPACE: Final = "kubernetes-daemonset/namespace"

# On the pods of every component, as in the original: `kubectl logs -l app=daemonset` finds them all.
_SHARED: Final = {"app": "daemonset"}

# The contract with kube-node-ready: docs/daemonset/required-agents.md.
REQUIRED: Final = "node-ready/required"
GATE: Final = "node-ready/unverified"

# Labels that configure the original's tools: stack, backend or context.
_FOR_TOOLS: Final = re.compile(r"([a-z0-9-]+\.)*project-planton\.org/")


def namespace(manifest: KubernetesDaemonSet) -> str:
    return manifest.spec.namespace.value


def service_account(manifest: KubernetesDaemonSet) -> str:
    """Return the service account of the pods; empty for the default of the namespace."""
    spec = manifest.spec
    if spec.create_service_account:
        return spec.service_account_name or manifest.metadata.name
    return spec.service_account_name


def env_secret(manifest: KubernetesDaemonSet) -> str:
    return f"{manifest.metadata.name}-env-secrets"


def secret_texts(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """Return the secret variables that have a value and are therefore stored in that Secret."""
    secrets = manifest.spec.container.app.env.secrets
    return {name: secrets[name].value for name in sorted(secrets) if not secrets[name].HasField("secret_ref")}


def pull_secret(manifest: KubernetesDaemonSet) -> str:
    return f"{manifest.metadata.name}-image-pull-secret"


def cluster_role(manifest: KubernetesDaemonSet) -> str:
    """Return the name of the ClusterRole. It includes the namespace, to be unique across the cluster."""
    return f"{MANAGED_BY}:{namespace(manifest)}:{manifest.metadata.name}"


def selector(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """Return the selector of the component's pods. It is immutable, so it contains only names."""
    return {MANAGED_BY_LABEL: MANAGED_BY, NAME: manifest.metadata.name}


def owned(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """Return the labels of all objects of this component, including cluster-scoped ones."""
    return selector(manifest) | {_NAMESPACE: namespace(manifest)}


def labels(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """Return the labels of every object: those of the user, of the original, recommended ones, and ownership labels."""
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
    fitting = {key: value for key, value in (originals | recommended).items() if value and LABEL_VALUE.matches(value)}
    return dict(sorted((fitting | given_labels(manifest) | owned(manifest)).items()))


def pod_labels(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """Return the labels of the pods. Those of the manifest take precedence: its author might select pods by them."""
    return dict(sorted((_SHARED | labels(manifest) | dict(manifest.spec.pod_labels)).items()))


def given_labels(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """Return the labels of the manifest, without those that configure the original's tools."""
    return {key: value for key, value in manifest.metadata.labels.items() if not _FOR_TOOLS.match(key)}
