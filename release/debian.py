"""Download Debian packages with apt: with the machine's sources, keys and proxies, but a separate state.

Nothing is installed and root is not needed. The latest packages of the release are used, so a rebuilt image has
Debian's security fixes; the bill of materials lists them. DEBIAN_SNAPSHOT sets a point in time instead, to rebuild
an older image, and DEBIAN_SNAPSHOT_ARCHIVE the archive of Debian snapshots.

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

from release.content_cache import ContentCache
from release.errors import ReleaseError

RELEASE = "bookworm"
NUMBER = "12"
PACKAGES = {
    "base-files": "names the Debian release, and contains the licenses that others refer to",
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
    """The dpkg status of an installed package."""


@functools.cache  # once per run: the latest version must not change while an image is built
def fetch(architecture: str, store: ContentCache) -> tuple[Package, ...]:
    """Return the latest versions of PACKAGES for this architecture, sorted by name."""
    moment = _snapshot(os.environ.get(SNAPSHOT, ""))
    archive = _archive(os.environ.get(ARCHIVE, "")) if moment else ""
    state = store.apt / f"{architecture}{f'-{moment}' if moment else ''}"
    apt = _Apt(architecture, state, sources(archive, moment) if moment else "")
    with apt.prepared():
        apt.get("update")
        require_debian_signatures(apt.state / "lists")
        forget_other_sources(apt.state / "lists")
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


def _read(digest: str, file: str, store: ContentCache) -> Package:
    path = store.find(digest)
    if path is None:
        raise ReleaseError(f"what apt fetched as {file} is not what Debian's index promises (SHA256 {digest})")
    control = _run(["dpkg-deb", "--field", str(path)])
    fields = dict(re.findall(r"(?m)^(\S+): (.*)$", control))
    return Package(fields["Package"], fields["Version"], fields["Architecture"], digest, path, control)


def require_debian_signatures(lists: Path) -> None:
    """Raise an error if a source claims to be Debian without Debian's signature. Apt trusts other keys, too."""
    for path in sorted((*lists.glob("*_InRelease"), *lists.glob("*_Release"))):
        fields = dict(re.findall(r"(?m)^(\S+): *(.*?) *$", path.read_text(errors="replace")))
        if fields.get("Origin") == ORIGIN and fields.get("Codename") in _CODENAMES and not _is_signed(path):
            raise ReleaseError(
                f"{path.name} names {ORIGIN} as its origin, but is not signed by a key of {KEYRING}; "
                "remove that source, or install debian-archive-keyring"
            )


def forget_other_sources(lists: Path) -> None:
    """Delete the indexes of every source that is not signed by Debian, regardless of its claimed origin.

    Apt's pins alone are not sufficient: apt compares origins case-insensitively and accepts more forms of Release files
    than can be listed here. Apt cannot select a package without an index.
    """
    for path in sorted((*lists.glob("*_InRelease"), *lists.glob("*_Release"))):
        if not _is_signed(path):
            source = re.sub(r"(In)?Release$", "", path.name)
            for index in [path for path in lists.iterdir() if path.is_file() and path.name.startswith(source)]:
                index.unlink()


def _is_signed(path: Path) -> bool:
    """Return whether a key of Debian signed it. A Release file has a separate signature, an InRelease file its own."""
    signed = [str(path)] if path.name.endswith("_InRelease") else [f"{path}.gpg", str(path)]
    command = ["gpgv", "--keyring", str(KEYRING), "--status-fd", "1", *signed]
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError as error:
        raise ReleaseError("cannot verify Debian's signatures: gpgv is not installed") from error
    # Debian signs with several keys, and an older keyring lacks the latest: one good signature suffices if none is bad.
    words = [line.split()[1] for line in output.splitlines() if line.startswith("[GNUPG:] ")]
    return "VALIDSIG" in words and "BADSIG" not in words


def _snapshot(moment: str) -> str:
    if moment and not _MOMENT.fullmatch(moment):
        raise ReleaseError(f'{SNAPSHOT}: "{moment}" is invalid; expected a moment such as 20261117T000000Z')
    return moment


def _archive(address: str) -> str:
    """Validate the address: it becomes a field of apt's list of sources, so it has no spaces and brackets."""
    if not _ARCHIVE.fullmatch(address):
        raise ReleaseError(
            f'{ARCHIVE}: "{address}" is invalid; expected the address of an archive of snapshots, with the folders '
            "debian and debian-security"
        )
    return address.rstrip("/")


def preferences() -> str:
    """Return apt's preferences. The first match applies; a version with a negative priority is never selected."""
    ours = [_pin(f"release o={ORIGIN}, n={codename}", 990) for codename in _CODENAMES]
    return "\n".join([*ours, _pin("release *", -1)])


def sources(archive: str, moment: str) -> str:
    """Return the snapshot sources in apt's format."""
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
    """Sources to use instead of the machine's."""

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Prepare apt's state directory and lock it: apt does not wait for another process, but fails."""
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
        except FileNotFoundError as error:
            raise ReleaseError("cannot download Debian packages: apt-get is not installed") from error
        except subprocess.CalledProcessError as error:
            raise ReleaseError(
                f"apt-get {words[0]} failed for {self.architecture}; Debian {RELEASE} must be among apt's sources:\n"
                f"{error.stderr.strip()}"
            ) from error

    def _options(self) -> Sequence[str]:
        options = {
            "APT::Architecture": self.architecture,
            "APT::Architectures": self.architecture,
            "APT::Sandbox::User": "root",  # apt's own user cannot enter the cache directory
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
                "Acquire::Check-Valid-Until": "false",  # the index of a snapshot has expired
                "Dir::Etc::SourceList": str(self.state / "sources.list"),
                "Dir::Etc::SourceParts": "/dev/null",
            }
        return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
