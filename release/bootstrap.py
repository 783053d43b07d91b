"""What an executable in bin/ runs first, as the `__main__` of its archive: any Python may be the one that starts it.

Compiled modules cannot be imported from an archive. So an executable that has some unpacks itself, once, into a folder
of the user's cache that is named after its content, and imports from there. Bytecode then has a place, too.

What lies in that folder is code that will run. It is used only if no other user could have put it there: every folder
on the way to it and everything in it belongs to the user or to root and cannot be written to by others, every file has
the hash that the archive names, and no further file could be imported. Bytecode is known by its module's
name; its content is Python's own, and the owner is all that speaks for it. `sudo -E` with another user's cache finds a
folder of another owner, and unpacks for one run.

This file must be valid in old versions of Python, so that they can say what is wrong.
"""

import hashlib
import importlib
import json
import os
import platform
import stat
import sys
import tempfile
import zipfile
from pathlib import Path

_OLDEST = (3, 11)
EVERYWHERE = "any"
"""The folder of the archive that holds what every Python can use; beside it there is one a version, such as cp311."""
HASHES = "hashes.json"
"""The file of the archive that holds the SHA-256 of every other one that is unpacked."""
_BYTECODE = "__pycache__"
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ENTERED_BY_OTHERS = stat.S_IXGRP | stat.S_IXOTH


def main() -> None:
    own = Path(sys.path[0]).absolute()
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if sys.version_info[:2] < _OLDEST:
        sys.exit(f"{own.name} needs Python 3.11 or newer; {sys.executable} is {version}")
    with zipfile.ZipFile(str(own)) as archive:
        about = json.loads(archive.read("about.json").decode())
        if about["pythons"]:
            _check(own.name, version, about)
            place = _unpacked(archive, about["identity"], f"cp{version.replace('.', '')}")
        else:
            place = own / EVERYWHERE
    sys.path[0] = str(place)
    module, function = about["target"].split(":")
    getattr(importlib.import_module(module), function)()


def _check(program: str, version: str, about: "dict[str, str]") -> None:
    if version not in about["pythons"]:
        known = ", ".join(about["pythons"])
        sys.exit(f"{program} carries compiled modules for Python {known}; {sys.executable} is {version}")
    if (sys.platform, platform.machine()) != ("linux", about["machine"]):
        sys.exit(f"{program} is for Linux on {about['machine']}; this is {sys.platform} on {platform.machine()}")


def _unpacked(archive: zipfile.ZipFile, identity: str, native: str) -> Path:
    """The folder with the modules for this Python."""
    members = _members(archive, native)
    hashes = json.loads(archive.read(HASHES).decode())
    expected = {path: hashes[member.filename] for path, member in members.items()}
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.path.realpath(str(caches)), "kube-node-ready", "bin", f"{identity}-{native}")
    try:
        _prepare(folder.parent)
        if _whole(folder, expected):
            return folder
        with tempfile.TemporaryDirectory(dir=str(folder.parent)) as place:
            _extract(archive, members, Path(place, "new"))
            _put_in_place(Path(place), folder)
    except _UntrustedError as why:
        return _for_once(archive, members, why)
    except OSError as why:
        if not _whole(folder, expected):  # unless another process was quicker
            return _for_once(archive, members, why)
    return folder


class _UntrustedError(Exception):
    """Another user could have put something there."""


def _prepare(folder: Path) -> None:
    """Makes the folder. Before anything is made, the folders above it are looked at: another user's stay untouched."""
    _trust(folder)
    for one in (*reversed(folder.parents), folder):
        if not one.exists():
            one.mkdir(mode=0o700, exist_ok=True)
    _trust(folder)


def _trust(folder: Path, *, may_be_shared: bool = False) -> None:
    """Raises if another user can change what a path below this folder leads to. What is not there is passed over.

    In a folder with the sticky bit, such as /tmp, others can add entries and cannot exchange ours. Below a folder that
    other users cannot enter, rights for a group or for all are of no use to them.
    """
    closed = False
    for one in (*reversed(folder.parents), folder):
        try:
            about = one.lstat()
        except FileNotFoundError:
            return
        if about.st_uid not in (0, os.geteuid()):
            raise _UntrustedError(f"{one} belongs to user {about.st_uid}")
        sticky = about.st_mode & stat.S_ISVTX and (may_be_shared or one != folder)
        if about.st_mode & _BY_OTHERS and not sticky and not closed:
            raise _UntrustedError(f"{one} can be written to by others")
        closed = closed or not about.st_mode & _ENTERED_BY_OTHERS


def _members(archive: zipfile.ZipFile, native: str) -> "dict[str, zipfile.ZipInfo]":
    parted = ((member, member.filename.partition("/")) for member in archive.infolist())
    return {path: member for member, (kind, _, path) in parted if kind in (EVERYWHERE, native)}


def _whole(folder: Path, expected: "dict[str, str]") -> bool:
    """Whether all files are there, and nothing else that could be imported."""
    try:
        return _is_ours(folder.lstat()) and _found(str(folder), "", _folders(list(expected)), expected) == len(expected)
    except OSError:
        return False


def _found(top: str, below: str, folders: "set[str]", expected: "dict[str, str]") -> int:
    """How many of the expected files are in a folder. Raises OSError if anything is not as it was unpacked."""
    count = 0
    with os.scandir(f"{top}/{below}") as entries:
        for entry in entries:
            path = f"{below}{entry.name}"
            about = entry.stat(follow_symlinks=False)
            if not _is_ours(about):
                raise OSError(f"{path} is not ours")
            if stat.S_ISDIR(about.st_mode) and path in folders:
                count += _found(top, f"{path}/", folders, expected)
            elif not stat.S_ISREG(about.st_mode):
                raise OSError(f"{path} does not belong there")
            elif path in expected:
                if hashlib.sha256(_content(entry.path, about.st_size)).hexdigest() != expected[path]:
                    raise OSError(f"{path} was changed")
                count += 1
            elif _source(path) not in expected:
                raise OSError(f"{path} does not belong there")
    return count


def _content(path: str, size: int) -> bytes:
    """By two system calls: there are hundreds of files, and `open` takes longer than hashing them."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        return os.read(opened, size + 1)
    finally:
        os.close(opened)


def _source(path: str) -> str:
    """The module of a file with bytecode: a/__pycache__/b.cpython-311.pyc is a/b.py's."""
    folder, _, name = path.rpartition("/")
    above, _, last = folder.rpartition("/")
    module, _, tag = name.partition(".")
    if last != _BYTECODE or not tag.startswith(f"{sys.implementation.cache_tag}.") or not tag.endswith("pyc"):
        return ""
    return f"{above}/{module}.py".lstrip("/")


def _is_ours(about: os.stat_result) -> bool:
    return about.st_uid in (0, os.geteuid()) and not about.st_mode & _BY_OTHERS


def _folders(paths: "list[str]") -> "set[str]":
    """All folders of these files, and those for bytecode."""
    found = set()  # type: set[str]
    for path in paths:
        folder = path.rpartition("/")[0]
        if path.endswith(".py"):
            found.add(f"{folder}/{_BYTECODE}".lstrip("/"))
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _extract(archive: zipfile.ZipFile, members: "dict[str, zipfile.ZipInfo]", folder: Path) -> None:
    """For this user alone, whatever the umask; Python would make folders for bytecode as the umask has it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in sorted(_folders(list(members))):  # those above come first
        (folder / path).mkdir(mode=0o700, exist_ok=True)
    for path, member in members.items():
        opened = os.open(str(folder / path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "wb") as file:
            file.write(archive.read(member))


def _put_in_place(place: Path, folder: Path) -> None:
    if folder.is_symlink() or folder.exists():
        folder.rename(place / "damaged")
    (place / "new").rename(folder)


def _for_once(archive: zipfile.ZipFile, members: "dict[str, zipfile.ZipInfo]", why: Exception) -> Path:
    """Where nothing can be kept, a folder for this run alone."""
    import atexit  # noqa: PLC0415
    import shutil  # noqa: PLC0415

    sys.stderr.write(f"unpacking for this run only: {why} (XDG_CACHE_HOME names a place to keep it)\n")
    folder = tempfile.mkdtemp(prefix="kube-node-ready-", dir=_temporary())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _extract(archive, members, Path(folder))
    return Path(folder)


def _temporary() -> str:
    """A folder for temporary files. TMPDIR can be another user's, as the cache can."""
    usual = os.path.realpath(tempfile.gettempdir())
    try:
        _trust(Path(usual), may_be_shared=True)
    except _UntrustedError:
        return "/tmp"  # noqa: S108  root's, with the sticky bit
    return usual


if __name__ == "__main__":
    main()
