"""Rules for volumes and their mounts."""

from collections.abc import Iterator

from kubekit import quantities
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.render import volumes
from kubernetes_daemonset.types import Json
from kubernetes_daemonset.validation.containers_view import APP, INIT_CONTAINERS, SIDECARS, container_views
from kubernetes_daemonset.validation.rules.finding import Finding


def volumes_have_one_description(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    described = {name: (path, source) for path, name, source in reversed(list(_descriptions(manifest)))}
    for path, name, source in _descriptions(manifest):
        first, meant = described[name]
        if source != meant:
            text = f'"{name}" is a different volume at {first}; rename one of them'
            yield Finding(f"{path}.name", text, (path, first))
    for container in container_views(manifest):
        for path, mount in container.mounts:
            if mount.name and mount.name not in described:
                choice = "add host_path, config_map, secret, empty_dir or pvc"
                text = f'volume "{mount.name}" has no source; {choice}'
                yield Finding(path, text, (f"{APP}.volume_mounts", SIDECARS, INIT_CONTAINERS))


def mounts_fit(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        seen: dict[str, str] = {}
        for path, mount in container.mounts:
            if mount.mount_path and (other := seen.setdefault(mount.mount_path, path)) != path:
                yield Finding(
                    f"{path}.mount_path", f'"{mount.mount_path}" is already used by {other}; choose another path'
                )
            if mount.sub_path and mount.sub_path_expr:
                yield Finding(f"{path}.sub_path_expr", "cannot be combined with sub_path; remove one of them")
            if mount.mount_propagation == "Bidirectional" and not container.body.security_context.privileged:
                text = "Bidirectional requires security_context.privileged: true; otherwise use HostToContainer"
                yield Finding(f"{path}.mount_propagation", text, (f"{container.path}.security_context",))


def files_have_keys(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        for path, mount in container.mounts:
            for kind, source in (("config_map", mount.config_map), ("secret", mount.secret)):
                if source.path and not source.key:
                    text = "requires key; add key or remove path"
                    yield Finding(f"{path}.{kind}.path", text, (f"{path}.{kind}.key",))


def folders_have_a_size(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for container in container_views(manifest):
        for path, mount in container.mounts:
            if (limit := mount.empty_dir.size_limit) and ((amount := quantities.parse(limit)) is None or amount < 0):
                right = quantities.suggest(limit) or "a quantity such as 64Mi"
                text = f'"{limit}" is invalid; expected {right}'
                yield Finding(f"{path}.empty_dir.size_limit", text)


def _descriptions(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str, Json]]:
    """Yield the mounts that define a volume: the path, the volume's name and its source."""
    for container in container_views(manifest):
        for path, mount in container.mounts:
            if source := volumes.source(mount):
                yield path, mount.name, source
