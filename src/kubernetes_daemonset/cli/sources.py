"""Read manifests from files, directories and standard input (-f)."""

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kubekit.diagnostics import Diagnostic, Location, Severity
from kubernetes_daemonset.deploy.plan import Ref
from kubernetes_daemonset.errors import ManifestError, UnreadableFileError
from kubernetes_daemonset.manifest import files, registry_logins
from kubernetes_daemonset.manifest.overrides import override
from kubernetes_daemonset.manifest.reader import KIND, Loaded, load
from kubernetes_daemonset.render.resources import named
from kubernetes_daemonset.validation.rules.images import images

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_STDIN: Final = "standard input"
_LOGIN: Final = "docker_config_json"


@dataclass(frozen=True, slots=True)
class Read:
    """All manifests with the values of the command line, their diagnostics, and the files that cannot be read."""

    loaded: list[Loaded]
    diagnostics: list[Diagnostic]
    unreadable: list[Diagnostic]


def read(paths: Sequence[str], assignments: Sequence[str] = (), docker_config: Path | None = None) -> Read:
    diagnostics: list[Diagnostic] = []
    unreadable: list[Diagnostic] = []
    manifests: list[Loaded] = []
    login = _login(docker_config, unreadable)
    for content, source, in_folder in _texts(paths, unreadable):
        try:
            manifests += [override(document, assignments) for document in load(content, source, skip_others=in_folder)]
        except ManifestError as error:
            diagnostics += map(_without_line_if_set, error.diagnostics)
    if not manifests and not diagnostics and not unreadable:
        diagnostics.append(Diagnostic("", f"contains no manifest of kind {KIND}", Location(", ".join(paths))))
    if login and docker_config:
        manifests = _with_logins(manifests, login, Location(str(docker_config)))
    return Read(manifests, list(dict.fromkeys(diagnostics)), unreadable)


def _without_line_if_set(diagnostic: Diagnostic) -> Diagnostic:
    """Return the diagnostic without a line if it is about a value of the command line."""
    return (
        diagnostic._replace(location=Location(diagnostic.location.source))
        if diagnostic.location.source.startswith("--set ")
        else diagnostic
    )


def collisions(loaded: Sequence[Loaded]) -> list[Diagnostic]:
    """Return an error for each object that two manifests define; namespaces can be shared."""
    makers: dict[Ref, Loaded] = {}
    diagnostics = []
    for document in loaded:
        for ref in map(Ref.of, named(document.input)):
            if ref.kind != "Namespace" and (other := makers.setdefault(ref, document)) is not document:
                text = f"{ref} is also defined by {other.location('metadata.name')}; rename one of them"
                diagnostics.append(Diagnostic("metadata.name", text, document.location("metadata.name")))
    return diagnostics


def _texts(paths: Sequence[str], unreadable: list[Diagnostic]) -> Iterator[tuple[bytes, str, bool]]:
    """Yield each text, its name, and whether it is from a directory. Unreadable files are recorded."""
    for path in paths:
        if path == "-":
            if (stdin := _noting(lambda: files.whole(sys.stdin.buffer, _STDIN), unreadable)) is not None:
                yield stdin, _STDIN, False
            continue
        in_folder = os.path.isdir(path)  # noqa: PTH112  False, and no error, if it cannot be determined
        for file in _in_folder(Path(path), unreadable) if in_folder else [Path(path)]:
            if (content := _content(file, unreadable)) is not None:
                yield content, str(file), in_folder


def _in_folder(folder: Path, unreadable: list[Diagnostic]) -> list[Path]:
    try:
        return [file for file in sorted(folder.iterdir()) if file.suffix in _SUFFIXES and not _is_special(file)]
    except OSError as error:
        unreadable.append(Diagnostic("", f"cannot be read: {error.strerror}", Location(str(folder))))
        return []


def _is_special(file: Path) -> bool:
    """Return whether the file is a pipe, a device or a socket, or a link to one.

    In a directory they are skipped: another user's could block, and a device can do anything when it is read.
    """
    try:
        mode = file.stat().st_mode
    except OSError:  # reported when the file is read
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _content(file: Path, unreadable: list[Diagnostic]) -> bytes | None:
    return _noting(lambda: files.content(file), unreadable)


def _noting(read: Callable[[], bytes], unreadable: list[Diagnostic]) -> bytes | None:
    try:
        return read()
    except UnreadableFileError as error:
        unreadable += error.diagnostics
        return None


def _login(docker_config: Path | None, unreadable: list[Diagnostic]) -> str:
    content = _content(docker_config, unreadable) if docker_config else None
    try:
        return (content or b"").decode()
    except UnicodeDecodeError:
        unreadable.append(Diagnostic("", "cannot be read: not valid UTF-8", Location(str(docker_config))))
        return ""


def _with_logins(loaded: Sequence[Loaded], text: str, location: Location) -> list[Loaded]:
    """Return each manifest with the credentials that its images need. It is an error if no manifest needs any."""
    config = registry_logins.read(text)
    if config is None:  # reported by `rules`
        return [_with_login(document, text, location) for document in loaded]
    logins = [registry_logins.needed(config, images(document.manifest)) for document in loaded]
    severity = Severity.WARNING if any(login.text for login in logins) else Severity.ERROR
    return [
        _with_login(document, kept.text, location) if kept.text else _without_login(document, kept, location, severity)
        for document, kept in zip(loaded, logins, strict=True)
    ]


def _with_login(loaded: Loaded, login: str, location: Location) -> Loaded:
    stack_input = type(loaded.input)()
    stack_input.CopyFrom(loaded.input)
    stack_input.docker_config_json = login
    return replace(loaded, input=stack_input, locations={**loaded.locations, _LOGIN: location})


def _without_login(loaded: Loaded, kept: registry_logins.Logins, location: Location, severity: Severity) -> Loaded:
    registries = dict.fromkeys(map(registry_logins.registry, images(loaded.manifest)))
    if not registries or loaded.diagnostics:  # the images might be among the unreadable fields
        return loaded
    text = (
        f"has no credentials for {', '.join(registries)}; expected an entry of auths with auth, or with username and"
        f" password{'; nodes cannot use a credential helper (credsStore, credHelpers)' if kept.by_helper else ''}"
    )
    return replace(loaded, diagnostics=(Diagnostic(_LOGIN, text, location, severity),))
