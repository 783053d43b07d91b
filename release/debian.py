"""Packages from Debian, by apt's own means: the machine's sources, keys and proxies, and a state of our own.

Nothing is installed and no root is needed. The newest packages of the release are taken, so a rebuilt image has
Debian's security fixes; the bill of materials says which they were.
"""

import fcntl
import functools
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
    apt = _Apt(architecture, store.apt / architecture)
    with apt.prepared():
        apt.get("update", release=False)
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


@dataclass(frozen=True)
class _Apt:
    architecture: str
    state: Path

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """The state that apt wants to find. One user at a time: apt would not wait for another, but fail."""
        for folder in ("lists/partial", "archives/partial"):
            (self.state / folder).mkdir(parents=True, exist_ok=True)
        (self.state / "status").touch()
        with (self.state / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def get(self, *words: str, release: bool = True, folder: Path | None = None) -> str:
        # The release's own name, its updates and its fixes, and no other source that this machine may have.
        chosen = ["-o", f"APT::Default-Release=/^{RELEASE}(|-updates|-security)$/"] if release else []
        try:
            return _run(["apt-get", "--quiet=2", *self._options(), *chosen, *words], folder)
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
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
        }
        return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
