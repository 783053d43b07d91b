"""A manifest in whatever form a program holds it -> one that is read, or one error with all mistakes."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Final

import yaml

from kubernetes_daemonset import files, validate
from kubernetes_daemonset.api.v1.api_pb2 import KubernetesDaemonSet
from kubernetes_daemonset.api.v1.stack_input_pb2 import KubernetesDaemonSetStackInput
from kubernetes_daemonset.manifest import KIND, Loaded, entry, load
from kubernetes_daemonset.mistakes import ManifestError, Mistake, Place

_DEEPEST: Final = 64  # a manifest has 12 levels at most

Manifest = Mapping[str, Any] | str | os.PathLike[str] | KubernetesDaemonSet | KubernetesDaemonSetStackInput | Loaded


def checked(manifest: Manifest, source: str) -> tuple[Loaded, list[Mistake]]:
    """A manifest without errors, and the warnings about it. `source` stands for what has no file name."""
    loaded = read(manifest, source)
    found = validate.validate(loaded)
    if wrong := validate.errors(found):
        raise ManifestError(wrong)
    return loaded, found


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
            text = f"{what} is no manifest; give a mapping, YAML, the path of a file or a message"
            raise ManifestError([Mistake("", text, Place(source))])


def _is_text(manifest: str) -> bool:
    """A manifest has more than one line, unless it is JSON; a path has one."""
    return "\n" in manifest or manifest.lstrip().startswith("{") or not manifest.strip()


def _from_mapping(manifest: Mapping[str, Any], source: str) -> Loaded:
    """Read as the text that would say the same. Nobody wrote that text, so its lines are not spoken of."""
    plain = _Plain(source)
    content = plain.mapping(manifest, "")
    if plain.mistakes:
        raise ManifestError(plain.mistakes)
    try:
        text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
        loaded = _only(load(text.encode(errors="surrogatepass"), source), source)
    except ManifestError as why:
        raise ManifestError([replace(one, place=Place(source)) for one in why.mistakes]) from None
    return replace(loaded, places={})


def _only(found: list[Loaded], source: str) -> Loaded:
    if len(found) > 1:
        raise ManifestError([Mistake("", f"{len(found)} documents; give one {KIND} at a time", Place(source))])
    if found[0].mistakes:
        raise ManifestError(validate.errors(validate.validate(found[0])))
    return found[0]


@dataclass
class _Plain:
    """Makes plain values of those that YAML knows under another type, such as enums, and notes those it does not."""

    source: str
    mistakes: list[Mistake] = field(default_factory=list)

    def mapping(self, value: Mapping[Any, Any], path: str, depth: int = 0) -> dict[Any, Any]:
        found = {}
        for key, item in value.items():
            if isinstance(key, str | int | float | date | None):
                name = self.of(key, path, depth)
                found[name] = self.of(item, entry(path, str(name)).removeprefix("."), depth + 1)
            else:
                self._note(key, path)
        return found

    def of(self, value: object, path: str, depth: int) -> object:
        if depth > _DEEPEST:  # a mapping that holds itself, perhaps
            raise ManifestError([*self.mistakes, Mistake(path, "nested too deep", Place(self.source))])
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
        text = f"{what} cannot stand in a manifest; write a text, a number, true, false, a list or a mapping"
        self.mistakes.append(Mistake(path, text, Place(self.source)))
