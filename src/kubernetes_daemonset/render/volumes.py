"""Volumes, and where containers see them."""

from collections.abc import Iterator

from kubernetes_daemonset.api.shared.volume_pb2 import ConfigMapSource, SecretSource, VolumeMount
from kubernetes_daemonset.api.v1.spec_pb2 import KubernetesDaemonSetSpec
from kubernetes_daemonset.objects import Json
from kubernetes_daemonset.pod.fields import given, optional


def of_pod(spec: KubernetesDaemonSetSpec) -> list[Json]:
    """One volume for each name, whoever mounts it and however often; the first mount that says what it is decides."""
    found: dict[str, Json] = {}
    for one in _mounts(spec):
        if (described := source(one)) and one.name not in found:
            found[one.name] = {"name": one.name} | described
    return list(found.values())


def source(one: VolumeMount) -> Json | None:
    """What a mount says its volume is; None if it leaves that to another mount of the same name."""
    if one.HasField("host_path"):
        return {"hostPath": given({"path": one.host_path.path, "type": one.host_path.type or None})}
    if one.HasField("config_map"):
        return {"configMap": {"name": one.config_map.name} | _files(one.config_map)}
    if one.HasField("secret"):
        return {"secret": {"secretName": one.secret.name} | _files(one.secret)}
    if one.HasField("empty_dir"):
        folder = one.empty_dir
        return {"emptyDir": given({"medium": folder.medium or None, "sizeLimit": folder.size_limit or None})}
    if one.HasField("pvc"):
        claim = given({"claimName": one.pvc.claim_name, "readOnly": one.pvc.read_only or None})
        return {"persistentVolumeClaim": claim}
    return None


def mount(one: VolumeMount) -> Json:
    return given(
        {
            "name": one.name,
            "mountPath": one.mount_path,
            "readOnly": one.read_only or None,
            "subPath": one.sub_path or None,
            "subPathExpr": one.sub_path_expr or None,
            "mountPropagation": one.mount_propagation or None,
        }
    )


def _mounts(spec: KubernetesDaemonSetSpec) -> Iterator[VolumeMount]:
    yield from spec.container.app.volume_mounts
    for one in (*spec.container.sidecars, *spec.init_containers):
        yield from one.volume_mounts


def _files(this: ConfigMapSource | SecretSource) -> Json:
    items = [{"key": this.key, "path": this.path or this.key}] if this.key else None
    return given({"items": items, **optional(this, "default_mode", "optional")})
