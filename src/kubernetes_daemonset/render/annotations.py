"""The annotations of each object: the manifest's own, and those that tell Kubernetes or another tool something."""

import hashlib
from collections.abc import Mapping
from typing import Final

from kubernetes_daemonset import names
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet

CONFIG_CHECKSUM: Final = "kubernetes-daemonset/config-checksum"
SECRETS_CHECKSUM: Final = "kubernetes-daemonset/secrets-checksum"

CHECKSUM_DIGITS: Final = 64  # 256 bits


def of_object(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """What every object carries."""
    return _in_order(manifest.metadata.annotations)


def of_account(manifest: KubernetesDaemonSet) -> dict[str, str]:
    return _in_order({**manifest.metadata.annotations, **manifest.spec.service_account_annotations})


def of_daemon_set(manifest: KubernetesDaemonSet) -> dict[str, str]:
    required = {names.REQUIRED: "true"} if manifest.spec.require_on_new_nodes else {}
    return _in_order({**manifest.metadata.annotations, **required})


def of_pods(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """Without the manifest's own annotations: a note about who deployed it is no reason to roll every node."""
    return _in_order({**manifest.spec.pod_annotations, **_checksums(manifest)})


def size_of_pods(manifest: KubernetesDaemonSet) -> int:
    """In bytes. The sums are as long as any, and need not be made for it: one of them takes its time."""
    sums = [CONFIG_CHECKSUM] if manifest.spec.config_maps else []
    sums += [SECRETS_CHECKSUM] if names.secret_texts(manifest) else []
    return size({**manifest.spec.pod_annotations, **dict.fromkeys(sums, "0" * CHECKSUM_DIGITS)})


def size(annotations: Mapping[str, str]) -> int:
    """In bytes, as an API server counts them."""
    return sum(len(text.encode()) for item in annotations.items() for text in item)


def _checksums(manifest: KubernetesDaemonSet) -> dict[str, str]:
    """Changed configuration changes these, and so rolls the pods."""
    found = {}
    if manifest.spec.config_maps:
        found[CONFIG_CHECKSUM] = hashlib.sha256(_joined(manifest.spec.config_maps)).hexdigest()
    if secrets := names.secret_texts(manifest):
        # Slow on purpose: more people read annotations than Secrets, and a fast sum of a short password gives it away.
        # With these n and r it takes 8 MiB and some 25 ms, which one render can bear and a million guesses cannot.
        salt = f"{names.namespace(manifest)}/{manifest.metadata.name}".encode()
        found[SECRETS_CHECKSUM] = hashlib.scrypt(_joined(secrets), salt=salt, n=2**13, r=8, p=1, dklen=32).hex()
    return found


def _joined(texts: Mapping[str, str]) -> bytes:
    """Unambiguous: the length of each part stands before it."""
    parts = [part.encode() for item in sorted(texts.items()) for part in item]
    return b"".join(b"%d:%b" % (len(part), part) for part in parts)


def _in_order(found: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(found.items()))
