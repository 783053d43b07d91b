"""Add-ons in the cluster: cluster DNS, and YAML that a test applies."""

from pathlib import Path

from lightkube import Client, codecs
from lightkube.core.exceptions import ApiError
from lightkube.resources.apps_v1 import Deployment

MANIFESTS = Path(__file__).with_name("manifests")
FIELD_MANAGER = "lab"


def apply(client: Client, manifest: str) -> None:
    """Apply the objects of a YAML text, replacing existing ones."""
    for item in codecs.load_all_yaml(manifest):
        client.apply(item, field_manager=FIELD_MANAGER, force=True)


def apply_dns(client: Client) -> None:
    apply(client, (MANIFESTS / "coredns.yaml").read_text())


def dns_is_ready(client: Client) -> bool:
    try:
        status = client.get(Deployment, "coredns", namespace="kube-system").status
    except ApiError:
        return False
    return bool(status and status.readyReplicas and status.readyReplicas == status.replicas)
