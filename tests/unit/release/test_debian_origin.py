"""Which packages an image is made of: Debian's own, however many other sources this machine's apt has.

By the real apt, with repositories on this disk.
"""

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from release import debian
from release.content_cache import ContentCache
from release.errors import ReleaseError

pytestmark = pytest.mark.skipif(
    not shutil.which("apt-get") or not shutil.which("dpkg-deb"), reason="needs apt, as building an image does"
)

NAME = "kube-node-ready-test-package"


class Machine:
    """Apt's own configuration, with local repositories for sources."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._sources: list[str] = []
        self._monkeypatch = monkeypatch
        self.store = ContentCache(folder / "cache")
        monkeypatch.setattr(debian, "PACKAGES", {NAME: "for a test"})
        monkeypatch.delenv(debian.SNAPSHOT, raising=False)
        self.believes_every_source()

    def believes_every_source(self) -> None:
        """These repositories are not signed by Debian."""
        self._checked = debian.require_debian_signatures
        self._forgotten = debian.forget_other_sources
        self._monkeypatch.setattr(debian, "require_debian_signatures", lambda *_: None)
        self._monkeypatch.setattr(debian, "forget_other_sources", lambda *_: None)

    def checks_signatures(self) -> None:
        self._monkeypatch.setattr(debian, "require_debian_signatures", self._checked)
        self._monkeypatch.setattr(debian, "forget_other_sources", self._forgotten)

    def source(self, name: str, version: str, origin: str = "Debian", codename: str = "bookworm") -> None:
        root = self._folder / name
        pool, index = root / "pool", root / f"dists/{codename}/main/binary-amd64"
        for folder in (pool, index):
            folder.mkdir(parents=True)
        deb = self._package(pool, version, name)
        about = subprocess.run(["dpkg-deb", "--field", deb], capture_output=True, text=True, check=True).stdout
        digest = hashlib.sha256(deb.read_bytes()).hexdigest()
        entry = f"{about}Filename: pool/{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n"
        (index / "Packages").write_text(entry)
        listed = f" {hashlib.sha256(entry.encode()).hexdigest()} {len(entry)} main/binary-amd64/Packages"
        (root / f"dists/{codename}/Release").write_text(
            f"Origin: {origin}\nLabel: {origin}\nSuite: oldstable\nCodename: {codename}\n"
            f"Date: Sat, 01 Jan 2022 00:00:00 UTC\nArchitectures: amd64\nComponents: main\nSHA256:\n{listed}\n"
        )
        self._sources.append(f"deb [trusted=yes arch=amd64] file:{root} {codename} main")

    def _package(self, pool: Path, version: str, maker: str) -> Path:
        content = self._folder / f"{maker}-content"
        (content / "DEBIAN").mkdir(parents=True)
        (content / "DEBIAN/control").write_text(
            f"Package: {NAME}\nVersion: {version}\nArchitecture: amd64\nMaintainer: {maker}\nDescription: a test's\n"
        )
        deb = pool / f"{NAME}_{version}_amd64.deb"
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", content, deb], capture_output=True, check=True)
        return deb

    def fetched(self) -> Sequence[debian.Package]:
        (self._folder / "sources.list").write_text("\n".join(self._sources) + "\n")
        (self._folder / "apt.conf").write_text(
            f'Dir::Etc::SourceList "{self._folder}/sources.list";\nDir::Etc::SourceParts "/dev/null";\n'
        )
        self._monkeypatch.setenv("APT_CONFIG", str(self._folder / "apt.conf"))
        debian.fetch.cache_clear()
        return debian.fetch("amd64", self.store)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.mark.parametrize("origin", ["Evil", "", "Debian Backports", "NotDebian"])
def test_a_newer_package_of_another_origin_is_not_taken(machine: Machine, origin: str) -> None:
    machine.source("another", "2.0", origin=origin)
    machine.source("debian", "1.0")
    (package,) = machine.fetched()
    assert package.version == "1.0"


def test_a_package_that_only_another_origin_has_is_an_error(machine: Machine) -> None:
    machine.source("another", "2.0", origin="Evil")
    with pytest.raises(ReleaseError, match="apt-get download failed"):
        machine.fetched()


@pytest.mark.parametrize("codename", ["bookworm-updates", "bookworm-security"])
def test_debians_fixes_are_taken(machine: Machine, codename: str) -> None:
    machine.source("debian", "1.0")
    machine.source("fixes", "1.1", codename=codename)
    (package,) = machine.fetched()
    assert package.version == "1.1"


@pytest.mark.parametrize("codename", ["trixie", "bookworm-backports", "bookworm-proposed-updates", "xbookworm"])
def test_other_releases_of_debian_are_not_taken(machine: Machine, codename: str) -> None:
    machine.source("other", "2.0", codename=codename)
    machine.source("debian", "1.0")
    (package,) = machine.fetched()
    assert package.version == "1.0"


def test_a_source_that_only_claims_to_be_debians_is_an_error(machine: Machine) -> None:
    machine.checks_signatures()
    machine.source("forged", "2.0")
    with pytest.raises(ReleaseError, match=r"names Debian as its origin, but is not signed by a key of .*keyring\.gpg"):
        machine.fetched()


def test_a_source_of_another_origin_needs_no_signature_of_debian(machine: Machine) -> None:
    machine.checks_signatures()
    machine.source("another", "2.0", origin="Evil")
    with pytest.raises(ReleaseError, match="apt-get download failed"):
        machine.fetched()


@pytest.mark.parametrize("status", ["", "BADSIG 1 a\n[GNUPG:] VALIDSIG 2 b", "ERRSIG 1", "NODATA 3"])
def test_one_valid_signature_and_no_bad_one_is_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    (tmp_path / "x_InRelease").write_text("Origin: Debian\nCodename: bookworm\n")
    gpgv = tmp_path / "gpgv"
    gpgv.write_text(f"#!/bin/sh\ncat <<'END'\n[GNUPG:] {status}\nEND\n" if status else "#!/bin/sh\n")
    gpgv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ReleaseError, match="x_InRelease names Debian"):
        debian.require_debian_signatures(tmp_path)
    gpgv.write_text("#!/bin/sh\necho '[GNUPG:] ERRSIG 1'\necho '[GNUPG:] VALIDSIG 2'\n")
    debian.require_debian_signatures(tmp_path)


def test_an_older_image_can_be_rebuilt_from_a_snapshot() -> None:
    text = debian.sources("http://archive.example/past", "20261117T000000Z")
    assert [line.split()[2:] for line in text.splitlines()] == [
        ["http://archive.example/past/debian/20261117T000000Z", "bookworm", "main"],
        ["http://archive.example/past/debian/20261117T000000Z", "bookworm-updates", "main"],
        ["http://archive.example/past/debian-security/20261117T000000Z", "bookworm-security", "main"],
    ]
    assert text.count("[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]") == 3


def test_with_a_snapshot_no_other_source_is_used(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the machine are not asked, not even for what the snapshot lacks."""
    machine.source("debian", "1.0")
    monkeypatch.setenv(debian.SNAPSHOT, "20261117T000000Z")
    monkeypatch.setenv(debian.ARCHIVE, "file:/nonexistent")
    with pytest.raises(ReleaseError, match="apt-get update failed"):
        machine.fetched()


@pytest.mark.parametrize("moment", ["yesterday", "20261117", "20261117T000000Z\n", "../../x"])
def test_an_invalid_timestamp_is_an_error(machine: Machine, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    monkeypatch.setenv(debian.SNAPSHOT, moment)
    with pytest.raises(ReleaseError, match=r"(?s)DEBIAN_SNAPSHOT: .* is invalid; expected a moment such as"):
        machine.fetched()


@pytest.mark.parametrize(
    "archive", ["", "nowhere", "http://a b", "http://a\ndeb http://b", "http://a]", "ftp://a", "http://"]
)
def test_an_archive_that_is_not_an_address_is_an_error(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, archive: str
) -> None:
    monkeypatch.setenv(debian.SNAPSHOT, "20261117T000000Z")
    monkeypatch.setenv(debian.ARCHIVE, archive)
    with pytest.raises(ReleaseError, match=r"(?s)DEBIAN_SNAPSHOT_ARCHIVE: .* is invalid; expected the address"):
        machine.fetched()


@pytest.mark.parametrize(
    "message",
    [
        "Origin: debian\nCodename: bookworm\n",
        "Origin: Debian\nCodename: BOOKWORM\n",
        "origin: Debian\nCodename: bookworm\n",
        "Origin : Debian\nCodename: bookworm\n",
        "Origin:\tDebian\nCodename: bookworm\n",
        "Origin: Debian\t\nCodename: bookworm\n",
        "Origin:\n Debian\nCodename: bookworm\n",
    ],
)
def test_no_forged_origin_installs_a_package(machine: Machine, tmp_path: Path, message: str) -> None:
    """Apt takes all of these for Debian's."""
    machine.source("forged", "2.0")
    release = tmp_path / "forged/dists/bookworm/Release"
    release.write_text(
        message + release.read_text().replace("Origin: Debian\n", "").replace("Codename: bookworm\n", "")
    )
    (package,) = machine.fetched()
    assert package.version == "2.0", "for apt"
    machine.checks_signatures()
    with pytest.raises(ReleaseError):
        machine.fetched()
