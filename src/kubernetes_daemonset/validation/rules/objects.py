"""Objects that are made or used: their names, and what a server takes in one of them."""

from collections.abc import Iterator
from typing import Final

from kubernetes_daemonset import annotations, names, registry_logins
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.manifest import entry
from kubernetes_daemonset.rules.environment import secret_references
from kubernetes_daemonset.rules.finding import Finding
from kubernetes_daemonset.rules.parts import parts
from kubernetes_daemonset.syntax import OBJECT_NAME

# What an API server takes in one object, in bytes.
_MOST_DATA: Final = 1024 * 1024
_MOST_ANNOTATIONS: Final = 256 * 1024

_WRITE_A_NAME: Final = "write lowercase letters, digits, hyphens and dots, with a letter or digit at both ends"


def objects_have_names(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for path, name in [*_needed_names(manifest), *((path, name) for path, name in _other_names(manifest) if name)]:
        if not OBJECT_NAME.fullmatch(name):
            yield Finding(path, f'"{name}" cannot name an object; {_WRITE_A_NAME}')


def data_is_not_too_large(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for name, text in sorted(manifest.spec.config_maps.items()):
        if (size := len(text.encode())) > _MOST_DATA:
            where = entry("spec.config_maps", name)
            yield Finding(where, f"{size:,} bytes are too much for a ConfigMap, which takes {_MOST_DATA:,}")
    if (size := sum(len(text.encode()) for text in names.secret_texts(manifest).values())) > _MOST_DATA:
        where = "spec.container.app.env.secrets"
        yield Finding(where, f"{size:,} bytes are too much for a Secret, which takes {_MOST_DATA:,}")


def annotations_are_not_too_large(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    """All of one object's together."""
    most = f"bytes are too much; all of an object's annotations take {_MOST_ANNOTATIONS:,}"
    if (size := annotations.size(annotations.of_daemon_set(manifest))) > _MOST_ANNOTATIONS:
        yield Finding("metadata.annotations", f"{size:,} {most}")
    elif (size := annotations.size(annotations.of_account(manifest))) > _MOST_ANNOTATIONS:
        yield Finding("spec.service_account_annotations", f"with metadata.annotations {size:,} {most}")
    if (size := annotations.size_of_pods(manifest)) > _MOST_ANNOTATIONS:
        yield Finding("spec.pod_annotations", f"{size:,} {most}")


def annotated_accounts_are_made(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    if manifest.spec.service_account_annotations and not manifest.spec.create_service_account:
        text = "no service account is made that could carry them; add create_service_account: true, or leave them out"
        yield Finding("spec.service_account_annotations", text, ("spec.create_service_account",))


def logins_are_logins(given: KubernetesDaemonSetStackInput) -> Iterator[Finding]:
    if given.docker_config_json and registry_logins.read(given.docker_config_json) is None:
        yield Finding("docker_config_json", 'is no Docker config.json; write {"auths": {"<registry>": {"auth": "…"}}}')


def _needed_names(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    """Names that are wrong if they are empty."""
    for at, name in enumerate(manifest.spec.image_pull_secrets):
        yield f"spec.image_pull_secrets[{at}]", name
    for name in sorted(manifest.spec.config_maps):
        yield entry("spec.config_maps", name), name


def _other_names(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    """Names that may be left out, or that the .proto files ask for."""
    spec = manifest.spec
    yield "spec.priority_class_name", spec.priority_class_name
    yield "spec.runtime_class_name", spec.runtime_class_name
    yield "spec.container.app.image.pull_secret_name", spec.container.app.image.pull_secret_name
    yield from _mounted_names(manifest)
    for path, reference in secret_references(manifest):
        yield f"{path}.name", reference.name
    for part in parts(manifest):
        for one in part.variables:
            yield f"{one.path}.config_map_key_ref.name", one.source.config_map_key_ref.name
        for path, source in part.whole_sources:
            yield f"{path}.config_map_ref.name", source.config_map_ref.name
            yield f"{path}.secret_ref.name", source.secret_ref.name


def _mounted_names(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str]]:
    for part in parts(manifest):
        for path, mount in part.mounts:
            yield f"{path}.config_map.name", mount.config_map.name
            yield f"{path}.secret.name", mount.secret.name
            yield f"{path}.pvc.claim_name", mount.pvc.claim_name
