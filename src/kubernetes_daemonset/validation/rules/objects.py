"""Rules for objects that are created or referenced: their names and sizes."""

from collections.abc import Iterator
from typing import Final

from kubekit.names import SUBDOMAIN
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.manifest import registry_logins
from kubernetes_daemonset.manifest.reader import map_entry
from kubernetes_daemonset.render import annotations, naming
from kubernetes_daemonset.validation.containers_view import container_views
from kubernetes_daemonset.validation.rules.environment import secret_references
from kubernetes_daemonset.validation.rules.finding import Finding

# Limits of the API server for one object, in bytes.
_MOST_DATA: Final = 1024 * 1024
_MOST_ANNOTATIONS: Final = 256 * 1024

_EXPECTED_NAME: Final = (
    "expected an object name of lowercase letters, digits, hyphens and dots, with a letter or digit at both ends"
)


def objects_have_names(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for path, name in [*_needed_names(manifest), *((path, name) for path, name in _other_names(manifest) if name)]:
        if not SUBDOMAIN.matches(name):
            yield Finding(path, f'"{name}" is invalid; {_EXPECTED_NAME}')


def data_is_not_too_large(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for name, text in sorted(manifest.spec.config_maps.items()):
        if (size := len(text.encode())) > _MOST_DATA:
            where = map_entry("spec.config_maps", name)
            yield Finding(where, f"{size:,} bytes are too large for a ConfigMap; expected at most {_MOST_DATA:,}")
    if (size := sum(len(text.encode()) for text in naming.secret_texts(manifest).values())) > _MOST_DATA:
        where = "spec.container.app.env.secrets"
        yield Finding(where, f"{size:,} bytes are too large for a Secret; expected at most {_MOST_DATA:,}")


def annotations_are_not_too_large(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    """Check the total size of the annotations of each object."""
    most = f"bytes are too large; expected at most {_MOST_ANNOTATIONS:,} for all annotations of an object"
    if (size := annotations.size(annotations.of_daemon_set(manifest))) > _MOST_ANNOTATIONS:
        yield Finding("metadata.annotations", f"{size:,} {most}")
    elif (size := annotations.size(annotations.of_account(manifest))) > _MOST_ANNOTATIONS:
        yield Finding("spec.service_account_annotations", f"together with metadata.annotations {size:,} {most}")
    if (size := annotations.size_of_pods(manifest)) > _MOST_ANNOTATIONS:
        yield Finding("spec.pod_annotations", f"{size:,} {most}")


def annotated_accounts_are_made(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    if manifest.spec.service_account_annotations and not manifest.spec.create_service_account:
        text = "there is no service account to annotate; set create_service_account: true or remove them"
        yield Finding("spec.service_account_annotations", text, ("spec.create_service_account",))


def targets_choose_nothing(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    if not manifest.spec.HasField("target_cluster"):
        return
    name = manifest.spec.target_cluster.cluster_name
    path, named = ("spec.target_cluster.cluster_name", f'"{name}" ') if name else ("spec.target_cluster", "")
    text = "does not choose the cluster: this tool deploys to the kubeconfig's current context"
    yield Finding(path, f"{named}{text}; use --kube-context to choose the cluster")


def required_agents_are_not_awaited(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    if manifest.spec.require_on_new_nodes:
        text = "kube-node-ready does not wait for required agents yet, so new nodes are verified without this one"
        yield Finding(
            "spec.require_on_new_nodes",
            f"{text}; expected false unless another tool reads the annotation node-ready/required",
        )


def valid_docker_config(stack_input: KubernetesDaemonSetStackInput) -> Iterator[Finding]:
    if stack_input.docker_config_json and registry_logins.read(stack_input.docker_config_json) is None:
        yield Finding(
            "docker_config_json", 'is not a Docker config.json; expected {"auths": {"<registry>": {"auth": "…"}}}'
        )


def _needed_names(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    """Yield names that must not be empty."""
    for at, name in enumerate(manifest.spec.image_pull_secrets):
        yield f"spec.image_pull_secrets[{at}]", name
    for name in sorted(manifest.spec.config_maps):
        yield map_entry("spec.config_maps", name), name


def _other_names(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    """Yield names that are optional, or that the .proto files require."""
    spec = manifest.spec
    yield "spec.priority_class_name", spec.priority_class_name
    yield "spec.runtime_class_name", spec.runtime_class_name
    yield "spec.container.app.image.pull_secret_name", spec.container.app.image.pull_secret_name
    yield from _mounted_names(manifest)
    for path, reference in secret_references(manifest):
        yield f"{path}.name", reference.name
    for container in container_views(manifest):
        for variable in container.variables:
            yield f"{variable.path}.config_map_key_ref.name", variable.source.config_map_key_ref.name
        for path, source in container.env_from:
            yield f"{path}.config_map_ref.name", source.config_map_ref.name
            yield f"{path}.secret_ref.name", source.secret_ref.name


def _mounted_names(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    for container in container_views(manifest):
        for path, mount in container.mounts:
            yield f"{path}.config_map.name", mount.config_map.name
            yield f"{path}.secret.name", mount.secret.name
            yield f"{path}.pvc.claim_name", mount.pvc.claim_name
