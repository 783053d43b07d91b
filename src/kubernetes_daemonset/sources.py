"""-f: files, folders and standard input -> manifests."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from kubernetes_daemonset import files
from kubernetes_daemonset.changes import Ref
from kubernetes_daemonset.manifest import KIND, Loaded, load
from kubernetes_daemonset.mistakes import ManifestError, Mistake, Place, UnreadableError
from kubernetes_daemonset.override import override
from kubernetes_daemonset.resources import named

_SUFFIXES: Final = (".yaml", ".yml", ".json")


def read(paths: Sequence[str], assignments: Sequence[str] = (), docker_config: Path | None = None) -> list[Loaded]:
    """Every manifest, with what the command line says about it.

    Raises one ManifestError with the mistakes of all files, or one UnreadableError with all files that are not there.
    """
    mistakes: list[Mistake] = []
    unreadable: list[Mistake] = []
    found: list[Loaded] = []
    login = _login(docker_config, unreadable)
    for content, source, in_folder in _texts(paths, unreadable):
        try:
            found += [
                _with_login(override(one, assignments), login) for one in load(content, source, skip_others=in_folder)
            ]
        except ManifestError as why:
            mistakes += why.mistakes
    if unreadable:
        raise UnreadableError([*unreadable, *mistakes])
    if not found and not mistakes:
        mistakes.append(Mistake("", f"no manifest of kind {KIND} in it", Place(", ".join(paths))))
    if mistakes:
        raise ManifestError(list(dict.fromkeys(mistakes)))
    return found


def collisions(loaded: Sequence[Loaded]) -> list[Mistake]:
    """Objects that two of these manifests would both make; a namespace may be shared."""
    makers: dict[Ref, Loaded] = {}
    found = []
    for one in loaded:
        for ref in map(Ref.of, named(one.input)):
            if ref.kind != "Namespace" and (other := makers.setdefault(ref, one)) is not one:
                text = f"{ref} is also made by {other.place('metadata.name')}; give one of them another name"
                found.append(Mistake("metadata.name", text, one.place("metadata.name")))
    return found


def _texts(paths: Sequence[str], unreadable: list[Mistake]) -> Iterator[tuple[bytes, str, bool]]:
    """Each text, what it is called, and whether it was found in a folder; what cannot be read is noted."""
    for path in paths:
        if path == "-":
            yield sys.stdin.buffer.read(), "standard input", False
            continue
        in_folder = Path(path).is_dir()
        found = [one for one in sorted(Path(path).iterdir()) if one.suffix in _SUFFIXES] if in_folder else [Path(path)]
        for file in found:
            if (content := _content(file, unreadable)) is not None:
                yield content, str(file), in_folder


def _content(file: Path, unreadable: list[Mistake]) -> bytes | None:
    try:
        return files.content(file)
    except UnreadableError as why:
        unreadable += why.mistakes
        return None


def _login(docker_config: Path | None, unreadable: list[Mistake]) -> str:
    content = _content(docker_config, unreadable) if docker_config else None
    try:
        return (content or b"").decode()
    except UnicodeDecodeError:
        unreadable.append(Mistake("", "cannot be read: not a text in UTF-8", Place(str(docker_config))))
        return ""


def _with_login(loaded: Loaded, login: str) -> Loaded:
    if not login:
        return loaded
    given = type(loaded.input)()
    given.CopyFrom(loaded.input)
    given.docker_config_json = login
    return replace(loaded, input=given)
