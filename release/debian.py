"""Packages from Debian, by apt's own means: the machine's sources, keys and proxies, and a state of our own.

Nothing is installed and no root is needed. The newest packages of the release are taken, so a rebuilt image has
Debian's security fixes; the bill of materials says which they were. DEBIAN_SNAPSHOT names a moment instead, to rebuild
an older image, and DEBIAN_SNAPSHOT_ARCHIVE the archive of Debian's past that has it.

A machine can have other sources. Only those whose Release file names Debian as its origin and this release as its
codename are used, and since any source can claim that, each of them must be signed by Debian's own keys.
"""

import fcntl
import functools
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from release.errors import ReleaseError
from release.store import Store

RELEASE = "bookworm"
NUMBER = "12"
PACKAGES = {
    "base-files": "says which Debian this is, and holds the licences that others refer to",
    "ca-certificates": "for API servers whose certificate a public authority signed",
    "libc6": "everything is linked with it",
    "libexpat1": "the interpreter is linked with it",
    "libgcc-s1": "the C library loads it to end a thread",
    "libpython3.11-minimal": "a half of the standard library",
    "libpython3.11-stdlib": "the other half",
    "libssl3": "TLS",
    "python3.11-minimal": "the interpreter",
    "zlib1g": "the interpreter is linked with it",
}
ORIGIN = "Debian"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SNAPSHOT = "DEBIAN_SNAPSHOT"
ARCHIVE = "DEBIAN_SNAPSHOT_ARCHIVE"
_CODENAMES = tuple(f"{RELEASE}{part}" for part in ("", "-updates", "-security"))
_MOMENT = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_ARCHIVE = re.compile(r"(https?://|file:/)[!-Z^-~]+")  # plain HTTP is sufficient: Debian signs its indexes
_URI = re.compile(r"^'.+' (?P<file>\S+) \d+ SHA256:(?P<digest>[0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    architecture: str
    digest: str
    path: Path
    control: str
    """What dpkg knows of an installed package."""


@functools.cache  # asked once a run: the newest must not become another one while an image is made
def fetch(architecture: str, store: Store) -> tuple[Package, ...]:
    """The newest of PACKAGES for this architecture, in order of name."""
    moment = _snapshot(os.environ.get(SNAPSHOT, ""))
    archive = _archive(os.environ.get(ARCHIVE, "")) if moment else ""
    state = store.apt / f"{architecture}{f'-{moment}' if moment else ''}"
    apt = _Apt(architecture, state, sources(archive, moment) if moment else "")
    with apt.prepared():
        apt.get("update")
        require_debian_signatures(apt.state / "lists")
        asked = apt.get("download", "--print-uris", *PACKAGES)
        wanted = {found["digest"]: found["file"] for found in _URI.finditer(asked)}
        if len(wanted) != len(PACKAGES):
            raise ReleaseError(f"apt names {len(wanted)} files for {len(PACKAGES)} packages ({architecture}):\n{asked}")
        if any(store.find(digest) is None for digest in wanted):
            with store.workplace() as folder:
                apt.get("download", *PACKAGES, folder=folder)
                for file in folder.iterdir():
                    store.put(file.read_bytes())
    packages = (_read(digest, file, store) for digest, file in wanted.items())
    return tuple(sorted(packages, key=lambda package: package.name))


def _read(digest: str, file: str, store: Store) -> Package:
    path = store.find(digest)
    if path is None:
        raise ReleaseError(f"what apt fetched as {file} is not what Debian's index promises (SHA256 {digest})")
    control = _run(["dpkg-deb", "--field", str(path)])
    fields = dict(re.findall(r"(?m)^(\S+): (.*)$", control))
    return Package(fields["Package"], fields["Version"], fields["Architecture"], digest, path, control)


def require_debian_signatures(lists: Path) -> None:
    """Of every source that passes for Debian's. Apt checks each source by the keys that this machine trusts it with."""
    for path in sorted((*lists.glob("*_InRelease"), *lists.glob("*_Release"))):
        fields = dict(re.findall(r"(?m)^(\S+): *(.*?) *$", path.read_text(errors="replace")))
        if fields.get("Origin") == ORIGIN and fields.get("Codename") in _CODENAMES and not _is_signed(path):
            raise ReleaseError(
                f"{path.name} names {ORIGIN} as its origin, but is not signed by a key of {KEYRING}; "
                "remove that source, or install debian-archive-keyring"
            )


def _is_signed(path: Path) -> bool:
    """By a key of Debian's. A Release file has its signature beside it, an InRelease in itself."""
    signed = [str(path)] if path.name.endswith("_InRelease") else [f"{path}.gpg", str(path)]
    command = ["gpgv", "--keyring", str(KEYRING), "--status-fd", "1", *signed]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError as why:
        raise ReleaseError("Debian's signatures are checked by gpgv, and there is none on this machine") from why
    # Debian signs by several keys, and an older keyring lacks the newest: one good signature is enough, if none is bad.
    words = [line.split()[1] for line in told.splitlines() if line.startswith("[GNUPG:] ")]
    return "VALIDSIG" in words and "BADSIG" not in words


def _snapshot(moment: str) -> str:
    if moment and not _MOMENT.fullmatch(moment):
        raise ReleaseError(f'{SNAPSHOT}: "{moment}" is invalid; expected a moment such as 20261117T000000Z')
    return moment


def _archive(address: str) -> str:
    """It becomes a field of apt's list of sources, so it has no blanks and brackets."""
    if not _ARCHIVE.fullmatch(address):
        raise ReleaseError(
            f'{ARCHIVE}: "{address}" is invalid; expected the address of an archive of snapshots, with the folders '
            "debian and debian-security"
        )
    return address.rstrip("/")


def preferences() -> str:
    """Apt takes the first record that fits a source. A version with a negative priority is never taken."""
    ours = [_pin(f"release o={ORIGIN}, n={codename}", 990) for codename in _CODENAMES]
    return "\n".join([*ours, _pin("release *", -1)])


def sources(archive: str, moment: str) -> str:
    """Debian as it was then, in apt's format."""
    main, security = f"{archive}/debian/{moment}", f"{archive}/debian-security/{moment}"
    places = {RELEASE: main, f"{RELEASE}-updates": main, f"{RELEASE}-security": security}
    return "".join(f"deb [signed-by={KEYRING}] {where} {codename} main\n" for codename, where in places.items())


def _pin(source: str, priority: int) -> str:
    return f"Package: *\nPin: {source}\nPin-Priority: {priority}\n"


@dataclass(frozen=True)
class _Apt:
    architecture: str
    state: Path
    sources: str = ""
    """Instead of the machine's."""

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """The state that apt wants to find. One user at a time: apt would not wait for another, but fail."""
        for folder in ("lists/partial", "archives/partial"):
            (self.state / folder).mkdir(parents=True, exist_ok=True)
        (self.state / "status").touch()
        (self.state / "preferences").write_text(preferences())
        if self.sources:
            (self.state / "sources.list").write_text(self.sources)
        with (self.state / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def get(self, *words: str, folder: Path | None = None) -> str:
        try:
            return _run(["apt-get", "--quiet=2", *self._options(), *words], folder)
        except FileNotFoundError as why:
            raise ReleaseError("an image is made of Debian packages, and there is no apt-get on this machine") from why
        except subprocess.CalledProcessError as why:
            raise ReleaseError(
                f"apt-get {words[0]} failed for {self.architecture}; Debian {RELEASE} must be among apt's sources:\n"
                f"{why.stderr.strip()}"
            ) from why

    def _options(self) -> Sequence[str]:
        options = {
            "APT::Architecture": self.architecture,
            "APT::Architectures": self.architecture,
            "APT::Sandbox::User": "root",  # apt's own user cannot enter the cache folder
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Dir::Cache": str(self.state),
            "Dir::Cache::archives": "archives",
            "Dir::State": str(self.state),
            "Dir::State::lists": "lists",
            "Dir::State::status": str(self.state / "status"),
            "Dir::Etc::Preferences": str(self.state / "preferences"),
            "Dir::Etc::PreferencesParts": "/dev/null",
        }
        if self.sources:
            options |= {
                "Acquire::Check-Valid-Until": "false",  # an index of the past has expired
                "Dir::Etc::SourceList": str(self.state / "sources.list"),
                "Dir::Etc::SourceParts": "/dev/null",
            }
        return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
