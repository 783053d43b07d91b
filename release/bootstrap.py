"""What an executable in bin/ runs first, as the `__main__` of its archive: any Python may be the one that starts it.

Compiled modules cannot be imported from an archive. So an executable that has some unpacks itself, once, into a folder
of the user's cache that is named after its content, and imports from there. Bytecode then has a place, too.

This file must be valid in old versions of Python, so that they can say what is wrong.
"""

import importlib
import json
import os
import platform
import sys
import tempfile
import zipfile
from pathlib import Path

_OLDEST = (3, 11)
EVERYWHERE = "any"
"""The folder of the archive that holds what every Python can use; beside it there is one a version, such as cp311."""


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
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches / "kube-node-ready" / "bin" / f"{identity}-{native}"
    if _whole(folder, members):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=str(folder.parent)) as place:
            _extract(archive, members, Path(place, "new"))
            _put_in_place(Path(place), folder)
    except OSError as why:
        if not _whole(folder, members):  # unless another process was quicker
            return _for_once(archive, members, why)
    return folder


def _members(archive: zipfile.ZipFile, native: str) -> "dict[str, zipfile.ZipInfo]":
    parted = ((member, member.filename.partition("/")) for member in archive.infolist())
    return {path: member for member, (kind, _, path) in parted if kind in (EVERYWHERE, native)}


def _whole(folder: Path, members: "dict[str, zipfile.ZipInfo]") -> bool:
    try:
        return all((folder / path).stat().st_size == member.file_size for path, member in members.items())
    except OSError:
        return False


def _extract(archive: zipfile.ZipFile, members: "dict[str, zipfile.ZipInfo]", folder: Path) -> None:
    for path, member in members.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(archive.read(member))


def _put_in_place(place: Path, folder: Path) -> None:
    if folder.exists():
        folder.rename(place / "damaged")
    (place / "new").rename(folder)


def _for_once(archive: zipfile.ZipFile, members: "dict[str, zipfile.ZipInfo]", why: OSError) -> Path:
    """Where nothing can be kept, a folder for this run alone."""
    import atexit  # noqa: PLC0415
    import shutil  # noqa: PLC0415

    sys.stderr.write(f"unpacking for this run only: {why} (XDG_CACHE_HOME names a place to keep it)\n")
    folder = tempfile.mkdtemp(prefix="kube-node-ready-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _extract(archive, members, Path(folder))
    return Path(folder)


if __name__ == "__main__":
    main()
