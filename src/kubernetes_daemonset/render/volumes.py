"""Volumes and their mounts."""

from collections.abc import Iterator

from kubernetes_daemonset.api.shared.volume_pb2 import ConfigMapSource, SecretSource, VolumeMount
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetSpec
from kubernetes_daemonset.render.fields import drop_none, optional
from kubernetes_daemonset.types import Json


def of_pod(spec: KubernetesDaemonSetSpec) -> list[Json]:
    """Return one volume per name; the first mount with a source defines it."""
    volumes: dict[str, Json] = {}
    for mount in _mounts(spec):
        if (described := source(mount)) and mount.name not in volumes:
            volumes[mount.name] = {"name": mount.name} | described
    return list(volumes.values())


def source(mount: VolumeMount) -> Json | None:
    """Return the source of a mount's volume; None if another mount of the same name defines it."""
    if mount.HasField("host_path"):
        return {"hostPath": drop_none({"path": mount.host_path.path, "type": mount.host_path.type or None})}
    if mount.HasField("config_map"):
        return {"configMap": {"name": mount.config_map.name} | _files(mount.config_map)}
    if mount.HasField("secret"):
        return {"secret": {"secretName": mount.secret.name} | _files(mount.secret)}
    if mount.HasField("empty_dir"):
        folder = mount.empty_dir
        return {"emptyDir": drop_none({"medium": folder.medium or None, "sizeLimit": folder.size_limit or None})}
    if mount.HasField("pvc"):
        claim = drop_none({"claimName": mount.pvc.claim_name, "readOnly": mount.pvc.read_only or None})
        return {"persistentVolumeClaim": claim}
    return None


def mount(mount: VolumeMount) -> Json:
    return drop_none(
        {
            "name": mount.name,
            "mountPath": mount.mount_path,
            "readOnly": mount.read_only or None,
            "subPath": mount.sub_path or None,
            "subPathExpr": mount.sub_path_expr or None,
            "mountPropagation": mount.mount_propagation or None,
        }
    )


def _mounts(spec: KubernetesDaemonSetSpec) -> Iterator[VolumeMount]:
    yield from spec.container.app.volume_mounts
    for container in (*spec.container.sidecars, *spec.init_containers):
        yield from container.volume_mounts


def _files(this: ConfigMapSource | SecretSource) -> Json:
    items = [{"key": this.key, "path": this.path or this.key}] if this.key else None
    return drop_none({"items": items, **optional(this, "default_mode", "optional")})
