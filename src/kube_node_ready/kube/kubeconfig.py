"""KUBECONFIG may name several files. They are merged as kubectl does it: what two of them say, the first one says."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from lightkube.config.kubeconfig import DEFAULT_KUBECONFIG, KubeConfig
from lightkube.core.exceptions import ConfigError

Content = Mapping[str, Any]

# Names of files, which are relative to the kubeconfig that they stand in.
_PATHS: Mapping[str, Sequence[str]] = {
    "contexts": (),
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key", "tokenFile"),
}


def load(named: Path | None) -> KubeConfig:
    """That file or those; without one a pod's ServiceAccount, or what KUBECONFIG names, or ~/.kube/config."""
    if named is not None:
        return _merged(str(named))
    try:
        return KubeConfig.from_service_account()
    except ConfigError:
        return _merged(os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG)


def _merged(named: str) -> KubeConfig:
    there = [path for one in named.split(os.pathsep) if one and (path := Path(one).expanduser()).is_file()]
    if len(there) < 2:  # noqa: PLR2004  nothing to merge
        return KubeConfig.from_file(there[0] if there else named)
    contents = [_read(file) for file in there]
    context = next((one["current-context"] for one in contents if one.get("current-context")), None)
    return KubeConfig.from_dict({"current-context": context} | {kind: _entries(kind, contents) for kind in _PATHS})


def _entries(kind: str, contents: Sequence[Content]) -> list[Content]:
    found = {entry["name"]: entry for one in reversed(contents) for entry in one[kind]}
    return list(found.values())


def _read(file: Path) -> Content:
    try:
        content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        return content | {kind: [_at_home(entry, kind, file) for entry in content.get(kind) or []] for kind in _PATHS}
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, TypeError, KeyError) as why:
        raise ConfigError(f"{file} is no kubeconfig") from why


def _at_home(entry: Content, kind: str, file: Path) -> Content:
    singular = kind.removesuffix("s")
    about: dict[str, Any] = entry[singular]
    paths = {field: str(file.parent / about[field]) for field in _PATHS[kind] if about.get(field)}
    return {"name": entry["name"], singular: about | paths}
