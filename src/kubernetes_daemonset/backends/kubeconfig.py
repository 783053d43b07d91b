"""KUBECONFIG may name several files. They are merged as kubectl does it: what two of them say, the first one says."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml
from lightkube.config.kubeconfig import DEFAULT_KUBECONFIG, KubeConfig
from lightkube.core.exceptions import ConfigError

from kubernetes_daemonset.objects import Json

# Names of files, which are relative to the kubeconfig that they stand in.
_PATHS: Final[dict[str, tuple[str, ...]]] = {
    "contexts": (),
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key", "tokenFile"),
}


def load(kubeconfig: Path | None) -> tuple[KubeConfig, str]:
    """That file; without one a pod's account, or what KUBECONFIG names, or ~/.kube/config. And what was read."""
    if kubeconfig:
        return _merged([kubeconfig], str(kubeconfig))
    try:
        return KubeConfig.from_service_account(), "the pod's own account"
    except ConfigError:
        listed = os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG
        return _merged([Path(one) for one in listed.split(os.pathsep) if one], listed)


def _merged(files: Sequence[Path], named: str) -> tuple[KubeConfig, str]:
    there = [path for file in files if (path := file.expanduser()).is_file()]
    if not there:
        raise ConfigError(f"{named}: there is no such file")
    contents = [_read(file) for file in there]
    context = next((one["current-context"] for one in contents if one.get("current-context")), None)
    read = os.pathsep.join(map(str, there))
    try:
        merged = {"current-context": context} | {kind: _entries(kind, contents) for kind in _PATHS}
        return KubeConfig.from_dict(merged), read
    except (TypeError, AttributeError, KeyError, ValueError) as why:
        raise ConfigError(f"{read}: this is no kubeconfig: {why}") from why


def _entries(kind: str, contents: Sequence[Json]) -> list[Json]:
    found = {entry["name"]: entry for one in reversed(contents) for entry in one[kind]}
    return list(found.values())


def _read(file: Path) -> Json:
    try:
        content: Json = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        return content | {kind: [_at_home(entry, kind, file) for entry in content.get(kind) or []] for kind in _PATHS}
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, TypeError, KeyError) as why:
        raise ConfigError(f"{file} is no kubeconfig") from why


def _at_home(entry: Json, kind: str, file: Path) -> Json:
    singular = kind.removesuffix("s")
    about: Json = entry[singular]
    paths = {field: str(file.parent / about[field]) for field in _PATHS[kind] if about.get(field)}
    return {"name": entry["name"], singular: about | paths}
