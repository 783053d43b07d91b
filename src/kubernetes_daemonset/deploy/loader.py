"""Load a manifest from any form that a program has it in, or raise one error with all diagnostics."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Final

import yaml

from kubekit.diagnostics import Diagnostic, Location
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.errors import ManifestError
from kubernetes_daemonset.manifest import files
from kubernetes_daemonset.manifest.reader import KIND, Loaded, load, map_entry
from kubernetes_daemonset.validation import validate

_DEEPEST: Final = 64  # a manifest has 12 levels at most

Manifest = Mapping[str, Any] | str | os.PathLike[str] | KubernetesDaemonSet | KubernetesDaemonSetStackInput | Loaded


def load_valid(manifest: Manifest, source: str) -> tuple[Loaded, list[Diagnostic]]:
    """Return a valid manifest and its warnings. `source` is the name of input that has no file name."""
    loaded = read(manifest, source)
    diagnostics = validate.validate(loaded)
    if wrong := validate.errors(diagnostics):
        raise ManifestError(wrong)
    return loaded, diagnostics


def read(manifest: Manifest, source: str) -> Loaded:
    match manifest:
        case Loaded():
            return manifest
        case KubernetesDaemonSetStackInput():
            return Loaded(manifest, source, {})
        case KubernetesDaemonSet():
            return Loaded(KubernetesDaemonSetStackInput(target=manifest), source, {})
        case Mapping():
            return _from_mapping(manifest, source)
        case str() if _is_text(manifest):
            return _only(load(manifest.encode(errors="surrogatepass"), source), source)
        case str() | os.PathLike():
            return _only(load(files.content(Path(manifest)), str(manifest)), str(manifest))
        case _:
            what = type(manifest).__name__
            text = f"{what} is not a manifest; expected a mapping, YAML, the path of a file or a message"
            raise ManifestError([Diagnostic("", text, Location(source))])


def _is_text(manifest: str) -> bool:
    """Return whether this is a manifest, which has several lines unless it is JSON, and not a path."""
    return "\n" in manifest or manifest.lstrip().startswith("{") or not manifest.strip()


def _from_mapping(manifest: Mapping[str, Any], source: str) -> Loaded:
    """Load a mapping by way of equivalent YAML. That text exists in no file, so its lines are not reported."""
    plain = _Plain(source)
    content = plain.mapping(manifest, "")
    if plain.diagnostics:
        raise ManifestError(plain.diagnostics)
    try:
        text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
        loaded = _only(load(text.encode(errors="surrogatepass"), source), source)
    except ManifestError as error:
        raise ManifestError(
            [diagnostic._replace(location=Location(source)) for diagnostic in error.diagnostics]
        ) from None
    return replace(loaded, locations={})


def _only(manifests: list[Loaded], source: str) -> Loaded:
    if len(manifests) > 1:
        raise ManifestError(
            [Diagnostic("", f"{len(manifests)} documents found; expected one {KIND}", Location(source))]
        )
    if manifests[0].diagnostics:
        raise ManifestError(validate.errors(validate.validate(manifests[0])))
    return manifests[0]


@dataclass
class _Plain:
    """Converts values to plain types that YAML supports, such as enums to strings, and records unsupported ones."""

    source: str
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def mapping(self, value: Mapping[Any, Any], path: str, depth: int = 0) -> dict[Any, Any]:
        found = {}
        for key, item in value.items():
            if isinstance(key, str | int | float | date | None):
                name = self.of(key, path, depth)
                found[name] = self.of(item, map_entry(path, str(name)).removeprefix("."), depth + 1)
            else:
                self._note(key, path)
        return found

    def of(self, value: object, path: str, depth: int) -> object:
        if depth > _DEEPEST:  # possibly a mapping that contains itself
            raise ManifestError([*self.diagnostics, Diagnostic(path, "is nested too deeply", Location(self.source))])
        match value:
            case None | bool():
                return value
            case int():
                return int(value)
            case float():
                return float(value)
            case date():
                return value.isoformat()
            case str():
                return str.__str__(value)
            case Mapping():
                return self.mapping(value, path, depth)
            case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
                return [self.of(item, f"{path}[{at}]", depth + 1) for at, item in enumerate(value)]
            case _:
                self._note(value, path)
                return None

    def _note(self, value: object, path: str) -> None:
        what = type(value).__name__
        text = f"{what} is not allowed in a manifest; expected a text, a number, true, false, a list or a mapping"
        self.diagnostics.append(Diagnostic(path, text, Location(self.source)))
