"""-f: files, folders and standard input -> manifests."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kubernetes_daemonset import files, registry_logins
from kubernetes_daemonset.changes import Ref
from kubernetes_daemonset.manifest import KIND, Loaded, load
from kubernetes_daemonset.mistakes import ManifestError, Mistake, Place, Severity, UnreadableError
from kubernetes_daemonset.override import override
from kubernetes_daemonset.resources import named
from kubernetes_daemonset.rules.images import images

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_LOGIN: Final = "docker_config_json"


@dataclass(frozen=True, slots=True)
class Read:
    """Every manifest, with what the command line says about it; what is wrong; and which files are not there."""

    loaded: list[Loaded]
    mistakes: list[Mistake]
    unreadable: list[Mistake]


def read(paths: Sequence[str], assignments: Sequence[str] = (), docker_config: Path | None = None) -> Read:
    mistakes: list[Mistake] = []
    unreadable: list[Mistake] = []
    found: list[Loaded] = []
    login = _login(docker_config, unreadable)
    for content, source, in_folder in _texts(paths, unreadable):
        try:
            found += [override(one, assignments) for one in load(content, source, skip_others=in_folder)]
        except ManifestError as why:
            mistakes += map(_without_line_if_set, why.mistakes)
    if not found and not mistakes and not unreadable:
        mistakes.append(Mistake("", f"no manifest of kind {KIND} in it", Place(", ".join(paths))))
    if login and docker_config:
        found = _with_logins(found, login, Place(str(docker_config)))
    return Read(found, list(dict.fromkeys(mistakes)), unreadable)


def _without_line_if_set(one: Mistake) -> Mistake:
    """A value of the command line is in no line of any file."""
    return replace(one, place=Place(one.place.source)) if one.place.source.startswith("--set ") else one


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


def _with_logins(loaded: Sequence[Loaded], text: str, place: Place) -> list[Loaded]:
    """Each manifest with the logins that its own images need. It is an error if none of them needs any."""
    config = registry_logins.read(text)
    if config is None:  # which `rules` find
        return [_with_login(one, text, place) for one in loaded]
    logins = [registry_logins.needed(config, images(one.manifest)) for one in loaded]
    severity = Severity.WARNING if any(one.text for one in logins) else Severity.ERROR
    return [
        _with_login(one, kept.text, place) if kept.text else _without_login(one, kept, place, severity)
        for one, kept in zip(loaded, logins, strict=True)
    ]


def _with_login(loaded: Loaded, login: str, place: Place) -> Loaded:
    given = type(loaded.input)()
    given.CopyFrom(loaded.input)
    given.docker_config_json = login
    return replace(loaded, input=given, places={**loaded.places, _LOGIN: place})


def _without_login(loaded: Loaded, kept: registry_logins.Logins, place: Place, severity: Severity) -> Loaded:
    registries = dict.fromkeys(map(registry_logins.registry, images(loaded.manifest)))
    if not registries or loaded.mistakes:  # the images may be among what could not be read
        return loaded
    text = (
        f"has no login for {', '.join(registries)}; expected an entry of auths for it, with auth, or with username and"
        f" password{'; nodes cannot ask a credential helper (credsStore, credHelpers)' if kept.by_helper else ''}"
    )
    return replace(loaded, mistakes=(Mistake(_LOGIN, text, place, severity),))
