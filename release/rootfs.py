"""A file system as data: files by path. Directories are implied by their files; root owns everything."""

import io
import posixpath
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from release.errors import ReleaseError


@dataclass(frozen=True)
class File:
    content: bytes
    executable: bool = False


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


Entry = File | Link
Tree = Mapping[str, Entry]
"""Files by absolute path, without the leading slash."""


def of_deb(package: Path) -> Tree:
    """Return the files that a Debian package would install."""
    unpacked = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=False)
    if unpacked.returncode:
        raise ReleaseError(f"{package.name} cannot be unpacked: {unpacked.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(unpacked.stdout)) as tar:
        return dict(_members(tar))


def _members(tar: tarfile.TarFile) -> Iterator[tuple[str, Entry]]:
    for member in tar:
        path = posixpath.normpath(member.name)
        if member.issym():
            yield path, Link(member.linkname)
        elif member.isfile() or member.islnk():
            content = tar.extractfile(member)
            assert content
            yield path, File(content.read(), executable=bool(member.mode & 0o100))


def of_wheel(wheel: Path, folder: str) -> Tree:
    """Return the files that a wheel would install into `folder`: its modules and data, without scripts."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            f"{folder}/{place}": File(archive.read(name), executable=name.endswith(".so"))
            for name in archive.namelist()
            if (place := _installed_as(name))
        }


def _installed_as(name: str) -> str:
    """Return the installed path of a file. `*.data` contains scripts, headers, and sometimes modules."""
    if name.endswith("/"):
        return ""
    if ".data/" not in name:
        return name
    kind, _, rest = name.partition(".data/")[2].partition("/")
    return rest if kind in ("purelib", "platlib") else ""


def resolve(tree: Tree, path: str) -> tuple[str, ...]:
    """Return the path and the targets of its links, down to the file. Empty if there is none."""
    seen: list[str] = []
    while isinstance(entry := tree.get(path), Link) and path not in seen:
        seen.append(path)
        path = posixpath.normpath(posixpath.join("/", posixpath.dirname(path), entry.target)).lstrip("/")
    return (*seen, path) if isinstance(entry, File) else ()


def folders(tree: Tree) -> list[str]:
    """Return all directories that the tree implies, parents first."""
    found = {parent for path in tree for parent in _parents(path)}
    return sorted(found)


def _parents(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def unpack(tree: Tree, into: Path) -> None:
    """Write the files to this machine, with their modes in the image."""
    into.mkdir(parents=True, exist_ok=True)
    for folder in folders(tree):
        (into / folder).mkdir(exist_ok=True)
        (into / folder).chmod(0o755)
    for path, entry in sorted(tree.items()):
        match entry:
            case Link(target):
                (into / path).symlink_to(target)
            case File(content, executable):
                (into / path).write_bytes(content)
                (into / path).chmod(0o755 if executable else 0o644)
