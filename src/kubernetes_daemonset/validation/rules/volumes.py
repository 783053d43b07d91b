"""Volumes and their mounts."""

from collections.abc import Iterator

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.objects import Json
from kubernetes_daemonset.pod import volumes
from kubernetes_daemonset.quantities import nearest, parsed
from kubernetes_daemonset.rules.finding import Finding
from kubernetes_daemonset.rules.parts import APP, INIT_CONTAINERS, SIDECARS, parts


def volumes_have_one_description(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    described = {name: (path, source) for path, name, source in reversed(list(_descriptions(manifest)))}
    for path, name, source in _descriptions(manifest):
        first, meant = described[name]
        if source != meant:
            text = f'"{name}" is another volume at {first}; give one of them another name'
            yield Finding(f"{path}.name", text, (path, first))
    for part in parts(manifest):
        for path, mount in part.mounts:
            if mount.name and mount.name not in described:
                choice = "add host_path, config_map, secret, empty_dir or pvc"
                text = f'no mount says what volume "{mount.name}" is; {choice}'
                yield Finding(path, text, (f"{APP}.volume_mounts", SIDECARS, INIT_CONTAINERS))


def mounts_fit(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        seen: dict[str, str] = {}
        for path, mount in part.mounts:
            if mount.mount_path and (other := seen.setdefault(mount.mount_path, path)) != path:
                yield Finding(f"{path}.mount_path", f'"{mount.mount_path}" is taken by {other}; write another path')
            if mount.sub_path and mount.sub_path_expr:
                yield Finding(f"{path}.sub_path_expr", "cannot stand beside sub_path; leave one of them out")
            if mount.mount_propagation == "Bidirectional" and not part.body.security_context.privileged:
                text = "Bidirectional needs security_context.privileged: true; write HostToContainer without"
                yield Finding(f"{path}.mount_propagation", text, (f"{part.path}.security_context",))


def files_have_keys(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        for path, mount in part.mounts:
            for kind, source in (("config_map", mount.config_map), ("secret", mount.secret)):
                if source.path and not source.key:
                    text = "names the file of one key, and no key is named; add key, or leave path out"
                    yield Finding(f"{path}.{kind}.path", text, (f"{path}.{kind}.key",))


def folders_have_a_size(manifest: KubernetesDaemonSet) -> Iterator[Finding]:
    for part in parts(manifest):
        for path, mount in part.mounts:
            if (limit := mount.empty_dir.size_limit) and ((amount := parsed(limit)) is None or amount < 0):
                right = nearest(limit) or "a number with a unit, such as 64Mi"
                text = f'"{limit}" is no amount; write {right}'
                yield Finding(f"{path}.empty_dir.size_limit", text)


def _descriptions(manifest: KubernetesDaemonSet) -> Iterator[tuple[str, str, Json]]:
    """Mounts that say what their volumes are: the path, the volume's name, and what it is."""
    for part in parts(manifest):
        for path, mount in part.mounts:
            if source := volumes.source(mount):
                yield path, mount.name, source
