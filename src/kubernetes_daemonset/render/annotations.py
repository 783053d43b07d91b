"""The annotations of each object: those of the manifest, and those that Kubernetes or other tools read."""

import hashlib
from collections.abc import Mapping
from typing import Final

from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.render import naming

CONFIG_CHECKSUM: Final = "kubernetes-daemonset/config-checksum"
SECRETS_CHECKSUM: Final = "kubernetes-daemonset/secrets-checksum"

CHECKSUM_DIGITS: Final = 64  # 256 bits


def of_object(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """Return the annotations of every object."""
    return _in_order(manifest.metadata.annotations)


def of_account(manifest: KubernetesDaemonSet) -> dict[str, str]:
    return _in_order({**manifest.metadata.annotations, **manifest.spec.service_account_annotations})


def of_daemon_set(manifest: KubernetesDaemonSet) -> dict[str, str]:
    required = {naming.REQUIRED: "true"} if manifest.spec.require_on_new_nodes else {}
    return _in_order({**manifest.metadata.annotations, **required})


def of_pods(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """Return the annotations of the pods, without those of the manifest, whose changes must not trigger a rollout."""
    return _in_order({**manifest.spec.pod_annotations, **_checksums(manifest)})


def size_of_pods(manifest: KubernetesDaemonSet) -> int:
    """Return the size in bytes. Checksums have a fixed length and are not computed, because one of them is slow."""
    sums = [CONFIG_CHECKSUM] if manifest.spec.config_maps else []
    sums += [SECRETS_CHECKSUM] if naming.secret_texts(manifest) else []
    return size({**manifest.spec.pod_annotations, **dict.fromkeys(sums, "0" * CHECKSUM_DIGITS)})


def size(annotations: Mapping[str, str]) -> int:
    """Return the size in bytes as an API server counts it."""
    return sum(len(text.encode()) for item in annotations.items() for text in item)


def _checksums(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """Return checksums of the configuration, so that changing it triggers a rollout."""
    result = {}
    if manifest.spec.config_maps:
        result[CONFIG_CHECKSUM] = hashlib.sha256(_joined(manifest.spec.config_maps)).hexdigest()
    if secrets := naming.secret_texts(manifest):
        # Deliberately slow: more users can read annotations than Secrets, and a fast hash reveals a short password.
        # With these n and r it takes 8 MiB and about 25 ms: acceptable for one render, but not for a million guesses.
        salt = f"{naming.namespace(manifest)}/{manifest.metadata.name}".encode()
        result[SECRETS_CHECKSUM] = hashlib.scrypt(_joined(secrets), salt=salt, n=2**13, r=8, p=1, dklen=32).hex()
    return result


def _joined(texts: Mapping[str, str]) -> bytes:
    """Join the texts unambiguously: each part is preceded by its length."""
    parts = [part.encode() for item in sorted(texts.items()) for part in item]
    return b"".join(b"%d:%b" % (len(part), part) for part in parts)


def _in_order(annotations: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(annotations.items()))
