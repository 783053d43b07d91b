"""Fingerprint of what a worker pod runs: pods with equal fingerprints produce equally good verdicts.

A verdict counts only if the pod is what the controller asks for. Admission changes pods (defaults, token volumes,
registry mirrors, sidecars), so the spec is not compared with our template but with what the API server makes of it: the
answer to the creation, or to a dry run of one. See docs/decisions/0008-genuine-workers.md.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

Spec = Mapping[str, Any]

_SCHEDULING = frozenset(
    {
        "affinity",
        "nodeName",
        "nodeSelector",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "schedulingGates",
        "tolerations",
    }
)
"""Where a pod runs and what has to wait for it: this differs between workers, or can change after their creation.

It does not change a verdict. Resources and deadlines do: a worker that gets no CPU finds the network slow.
"""

_CONTAINERS = ("containers", "initContainers")
_TOKEN_VOLUME = "kube-api-access-"  # noqa: S105  its name, to which the server appends five random letters
_RANDOM_LETTERS = 5


def fingerprint(spec: Spec) -> str:
    """Covers every field that can decide what runs in the pod, those of future Kubernetes versions included."""
    kept = {key: value for key, value in spec.items() if key not in _SCHEDULING}
    for key in _CONTAINERS:
        kept[key] = [_container(container) for container in spec.get(key) or ()]
    kept["volumes"] = [_renamed(volume) for volume in spec.get("volumes") or ()]
    return hashlib.blake2b(msgspec.json.encode(kept, order="deterministic"), digest_size=16).hexdigest()


def _container(container: Spec) -> dict[str, Any]:
    return {**container, "volumeMounts": [_renamed(mount) for mount in container.get("volumeMounts") or ()]}


def _renamed(volume: Spec) -> Spec:
    """Give the volume of the ServiceAccount's token, or a mount of it, the same name in all pods."""
    name = str(volume.get("name", ""))
    is_token = name.startswith(_TOKEN_VOLUME) and len(name) == len(_TOKEN_VOLUME) + _RANDOM_LETTERS
    return {**volume, "name": f"{_TOKEN_VOLUME}*"} if is_token else volume
