"""-f: files, folders and standard input -> manifests."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from kubernetes_daemonset.changes import Ref
from kubernetes_daemonset.manifest import KIND, Loaded, load
from kubernetes_daemonset.mistakes import ManifestError, Mistake, Place, UnreadableError
from kubernetes_daemonset.override import override
from kubernetes_daemonset.resources import render

_SUFFIXES: Final = (".yaml", ".yml", ".json")


def read(paths: Sequence[str], assignments: Sequence[str] = (), docker_config: Path | None = None) -> list[Loaded]:
    """Every manifest, with what the command line says about it. Raises one ManifestError with all mistakes."""
    mistakes: list[Mistake] = []
    found: list[Loaded] = []
    for path in paths:
        for content, source, in_folder in _texts(path):
            try:
                found += [override(one, assignments) for one in load(content, source, skip_others=in_folder)]
            except ManifestError as why:
                mistakes += why.mistakes
    if not found and not mistakes:
        mistakes.append(Mistake("", f"no manifest of kind {KIND} in it", Place(", ".join(paths))))
    if mistakes:
        raise ManifestError(list(dict.fromkeys(mistakes)))
    if docker_config:
        login = _content(docker_config, str(docker_config)).decode(errors="replace")
        for one in found:
            one.input.docker_config_json = login
    return found


def collisions(loaded: Sequence[Loaded]) -> list[Mistake]:
    """Objects that two of these manifests would both make; a namespace may be shared."""
    makers: dict[Ref, Loaded] = {}
    found = []
    for one in loaded:
        for ref in map(Ref.of, render(one.input)):
            if ref.kind != "Namespace" and (other := makers.setdefault(ref, one)) is not one:
                text = f"{ref} is also made by {other.place('metadata.name')}; give one of them another name"
                found.append(Mistake("metadata.name", text, one.place("metadata.name")))
    return found


def _texts(path: str) -> Iterator[tuple[bytes, str, bool]]:
    if path == "-":
        yield sys.stdin.buffer.read(), "standard input", False
    elif Path(path).is_dir():
        for file in sorted(Path(path).iterdir()):
            if file.suffix in _SUFFIXES and file.is_file():
                yield _content(file, str(file)), str(file), True
    else:
        yield _content(Path(path), path), path, False


def _content(file: Path, source: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as why:
        raise UnreadableError([Mistake("", f"cannot be read: {why.strerror}", Place(source))]) from why
