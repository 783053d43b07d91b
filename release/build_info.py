"""Build information: version, commit and time. The same commit has the same build information on every machine.

VERSION, COMMIT_HASH and BUILD_DATE, as in build arguments, or SOURCE_DATE_EPOCH take precedence over git. With
neither, as in an unpacked archive, the build is "from source".
"""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import InvalidVersion, Version

from release.errors import ReleaseError

# The inputs of a build: other changes do not affect it.
INGREDIENTS = ("LICENSE", "README.md", "pyproject.toml", "release", "requirements", "src")
_STAMPED = Path("src/kube_node_ready/__init__.py")
_SHORT = 7
_COMMIT = re.compile(r"[0-9A-Za-z._-]{1,64}")


@dataclass(frozen=True)
class BuildInfo:
    version: str
    commit: str = ""
    """The short commit hash. Ends in `-dirty` if the checkout has uncommitted changes."""
    revision: str = ""
    """The full commit hash, for labels."""
    epoch: int = 0
    """The commit's time, and that of every generated file. In seconds since 1970."""

    @property
    def built(self) -> str:
        return f"{datetime.fromtimestamp(self.epoch, UTC):%Y-%m-%dT%H:%M:%SZ}" if self.epoch else ""


def of_checkout(checkout: Path, environ: Mapping[str, str]) -> BuildInfo:
    version = _valid(environ.get("VERSION", "") or _own_version(checkout))
    epoch = _epoch(environ) or int(_git(checkout, "log", "-1", "--format=%ct") or 0)
    if commit_hash := environ.get("COMMIT_HASH", ""):
        if not _COMMIT.fullmatch(commit_hash):
            raise ReleaseError(
                f"COMMIT_HASH: {commit_hash!r} is invalid; expected letters, digits, dots, hyphens and underscores"
            )
        return BuildInfo(version, commit_hash, commit_hash, epoch)
    revision = _git(checkout, "rev-parse", "HEAD")
    changed = "-dirty" if revision and _git(checkout, "status", "--porcelain", "--", *INGREDIENTS) else ""
    return BuildInfo(version, revision[:_SHORT] + changed, revision + changed, epoch)


def write(checkout: Path, stamp: BuildInfo) -> None:
    """Write the build information to a copy of the checkout, from which a wheel is built."""
    path = checkout / _STAMPED
    text = path.read_text()
    for name, value in {"version": stamp.version, "commit": stamp.commit, "built": stamp.built}.items():
        text, lines = re.subn(rf'(?m)^__{name}__ = ".*"$', f'__{name}__ = "{value}"', text)
        if lines != 1:
            raise ReleaseError(f"{_STAMPED} should have one line `__{name}__ = …`, and has {lines}")
    path.write_text(text)


def _valid(version: str) -> str:
    """Return the version unmodified: the image's tag is the chart's appVersion, which must be SemVer: `1.0.0-alpha.1`.

    Python packages accept that format, too. The leading `v` of a git tag is removed.
    """
    plain = version.removeprefix("v")
    try:
        Version(plain)
    except InvalidVersion:
        plain = ""
    if not re.fullmatch(r"[0-9A-Za-z.-]+", plain):  # what a tag of an image can contain
        raise ReleaseError(f"VERSION: {version!r} is invalid; expected a version such as 1.0.0 or 1.0.0-rc.1")
    return plain


def _own_version(checkout: Path) -> str:
    found = re.search(r'(?m)^__version__ = "(.+)"$', (checkout / _STAMPED).read_text())
    assert found, f"{_STAMPED} has no version"
    return found[1]


def _epoch(environ: Mapping[str, str]) -> int:
    epoch, date = environ.get("SOURCE_DATE_EPOCH", ""), environ.get("BUILD_DATE", "")
    try:
        if epoch:
            return int(epoch)
        moment = datetime.fromisoformat(date) if date else datetime.fromtimestamp(0, UTC)
        # Not this machine's time zone: the same value must result in the same build everywhere.
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except ValueError as error:
        raise ReleaseError(
            f"the build's time is given as {epoch or date!r}: SOURCE_DATE_EPOCH takes seconds since 1970, "
            "BUILD_DATE a time such as 2026-11-16T04:20:20Z"
        ) from error


def _git(checkout: Path, *words: str) -> str:
    """Return the output of git, or "" in an unpacked archive. Raises ReleaseError if git fails."""
    if not (checkout / ".git").exists():
        return ""
    try:
        return subprocess.run(["git", *words], cwd=checkout, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        message = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else error.strerror
        raise ReleaseError(
            f"git cannot determine the commit ({message}); fix it, or set COMMIT_HASH and BUILD_DATE"
        ) from error
