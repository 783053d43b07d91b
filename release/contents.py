"""Select which files of the packages are in the image: only those needed at run time, and their licenses.

From Debian's packages only listed files are included. From the standard library everything except listed files is
included: an unexpected import must not fail on a node.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from release import elf
from release.errors import ReleaseError
from release.rootfs import Entry, File, Link, Tree, resolve

PYTHON = "3.11"
INTERPRETER = f"usr/bin/python{PYTHON}"
LIBRARY = f"usr/lib/python{PYTHON}"
PACKAGES = f"usr/local/lib/python{PYTHON}/dist-packages"
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
LOADERS = {"amd64": "/ld-linux-x86-64.so.2", "arm64": "/ld-linux-aarch64.so.1"}
_CERTIFICATES = "usr/share/ca-certificates/mozilla/"
BUNDLE = "etc/ssl/certs/ca-certificates.crt"

LEFT_OUT = {
    "for people at a terminal": "_curses _curses_panel antigravity cmd code codeop curses getpass idlelib pdb pydoc "
    "pydoc_data readline rlcompleter this tkinter turtle turtledemo webbrowser",
    "to test, measure and take programs apart": "__hello__ __phello__ _ctypes_test _lsprof _testbuffer _testcapi "
    "_testclinic _testimportmultiple _testinternalcapi _testmultiphase _xxsubinterpreters _xxtestfuzz bdb cProfile "
    "doctest modulefinder pickletools profile pstats pyclbr symtable tabnanny test trace unittest xxlimited "
    "xxlimited_35",
    "to build and install programs": "_distutils_system_mod distutils ensurepip lib2to3 venv zipapp",
    "other systems, and Debian's own reports of crashes": "_aix_support _bootsubprocess _osx_support sitecustomize",
    "databases": "_dbm _sqlite3 dbm shelve sqlite3",
    "mail, news and other old protocols": "asynchat asyncore cgi cgitb ftplib imaplib mailbox mailcap nis nntplib "
    "poplib smtpd smtplib telnetlib xdrlib xmlrpc",
    "sounds and pictures": "aifc audioop chunk colorsys imghdr ossaudiodev sndhdr sunau wave",
    "calls into any library there is": "_ctypes ctypes",
    "passwords, terminals and pipes": "_crypt crypt pipes pty",
    "compression that is not used": "_bz2 _lzma bz2 lzma",
    "what compiled modules do as well": "_pydecimal _pyio",
    "encodings that no file of Kubernetes has": "_codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr "
    "_codecs_tw _multibytecodec",
    "a library's worth for one function that has another way": "_uuid",
}
MODULES_LEFT_OUT = frozenset(name for names in LEFT_OUT.values() for name in names.split())
# Loaded by name at run time, so no file is linked with them.
_LIBRARIES_BY_NAME = ("libgcc_s.so.1",)
_PAPERS = re.compile(r"usr/share/doc/[^/]+/copyright|usr/share/common-licenses/[^/]+|(etc|usr/lib)/os-release")
_NOT_RUN = re.compile(r"\.(pyi|pyx|pxd|pxi|c|h|cpp|hpp|rst|css|ps1|csh|fish|typed)$|/(tests?|testing)/")
_DIST_INFO = re.compile(
    r"\.dist-info/(METADATA|licen[cs]es?/.+|(LICEN[CS]E|COPYING|NOTICE|AUTHORS)[^/]*)$", re.IGNORECASE
)


def debian(files: Tree) -> dict[str, Entry]:
    """Return the selected files except shared libraries, which are determined by linkage."""
    kept = {path: entry for path, entry in files.items() if _PAPERS.fullmatch(path) or path == INTERPRETER}
    for path in files:
        if path.startswith(f"{LIBRARY}/") and in_library(path) and (real := resolve(files, path)):
            kept[path] = files[real[-1]]
    return kept | _authorities(files)


def in_library(path: str) -> bool:
    """Return whether a file of the standard library is included in the image."""
    inner = path.removeprefix(f"{LIBRARY}/").removeprefix("lib-dynload/")
    module = re.split(r"[./]", inner)[0]
    return inner.endswith((".py", ".so")) and module not in MODULES_LEFT_OUT and not _NOT_RUN.search(path)


def _authorities(files: Tree) -> dict[str, Entry]:
    """Return the bundle that `update-ca-certificates` would create, at the path where OpenSSL looks for it."""
    single = (entry for path, entry in sorted(files.items()) if path.startswith(_CERTIFICATES))
    joined = [entry.content.strip() for entry in single if isinstance(entry, File)]
    return {BUNDLE: File(b"\n".join([*joined, b""])), "usr/lib/ssl/cert.pem": Link(f"/{BUNDLE}")}


def installed(files: Tree) -> dict[str, Entry]:
    """Return the selected files of wheels."""
    return {path: _lean(entry) for path, entry in files.items() if _of_wheels(path.removeprefix(f"{PACKAGES}/"))}


def _lean(entry: Entry) -> Entry:
    if isinstance(entry, File) and elf.is_elf(entry.content):
        return File(elf.stripped(entry.content), entry.executable)
    return entry


def _of_wheels(path: str) -> bool:
    if ".dist-info/" in path:
        return bool(_DIST_INFO.search(path))
    return not _NOT_RUN.search(path)


def libraries(kept: Tree, available: Tree, architecture: str) -> dict[str, Entry]:
    """Return the shared libraries that the selected files need, transitively, and the loader."""
    beside = {posixpath.basename(path) for path in kept}
    found: dict[str, Entry] = {}
    wanted = [*_LIBRARIES_BY_NAME, *_needed(kept.values())]
    while wanted:
        name = wanted.pop()
        if name in beside:
            continue
        paths = next(filter(None, (resolve(available, place) for place in _places(name, architecture))), ())
        if not paths:
            raise ReleaseError(f"a file in the image is linked with {name}, which no package provides")
        if paths[0] not in found:
            new = {path: available[path] for path in paths}
            found |= new
            wanted += _needed(new.values())
    return found


def _needed(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, File) and elf.is_elf(entry.content):
            yield from elf.needed(entry.content)


def _places(name: str, architecture: str) -> list[str]:
    """Return the paths that the loader searches."""
    if name.startswith("/"):
        return [name.lstrip("/")]
    return [f"{folder}/{name}" for folder in library_folders(architecture)]


def library_folders(architecture: str) -> list[str]:
    return [f"{folder}/{TRIPLETS[architecture]}" for folder in ("lib", "usr/lib")]


def sources(files: Tree) -> Mapping[str, bytes]:
    """Return the sources to compile, by the path that tracebacks show."""
    return {
        f"/{path}": entry.content for path, entry in files.items() if path.endswith(".py") and isinstance(entry, File)
    }


def compiled(files: Tree, bytecode: Mapping[str, bytes]) -> dict[str, Entry]:
    """Return the modules as bytecode only: the interpreter has no source to compare it with, and nowhere to write."""
    others = {path: entry for path, entry in files.items() if not path.endswith(".py")}
    return others | {f"{path}c": File(bytecode[f"/{path}"]) for path in files if path.endswith(".py")}
