"""Which build this is: its version, its commit, its time. The same commit gives the same stamp, whoever builds it.

VERSION, COMMIT_HASH and BUILD_DATE, as build arguments know them, or SOURCE_DATE_EPOCH win over what git says. With
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

# What a build is made of: a change to anything else does not make it another one.
INGREDIENTS = ("LICENSE", "README.md", "pyproject.toml", "release", "requirements", "src")
_STAMPED = Path("src/kube_node_ready/__init__.py")
_SHORT = 7
_COMMIT = re.compile(r"[0-9A-Za-z._-]{1,64}")


@dataclass(frozen=True)
class Stamp:
    version: str
    commit: str = ""
    """As people quote it. Ends in `-dirty` if the checkout held changes that are not committed."""
    revision: str = ""
    """The same in full, as labels have it."""
    epoch: int = 0
    """The commit's time, and that of every file that is made here. In seconds since 1970."""

    @property
    def built(self) -> str:
        return f"{datetime.fromtimestamp(self.epoch, UTC):%Y-%m-%dT%H:%M:%SZ}" if self.epoch else ""


def of_checkout(checkout: Path, environ: Mapping[str, str]) -> Stamp:
    version = _valid(environ.get("VERSION", "") or _own_version(checkout))
    epoch = _epoch(environ) or int(_git(checkout, "log", "-1", "--format=%ct") or 0)
    if told := environ.get("COMMIT_HASH", ""):
        if not _COMMIT.fullmatch(told):
            raise ReleaseError(f"COMMIT_HASH is {told!r}, and must be letters, digits, dots, dashes and underscores")
        return Stamp(version, told, told, epoch)
    revision = _git(checkout, "rev-parse", "HEAD")
    changed = "-dirty" if revision and _git(checkout, "status", "--porcelain", "--", *INGREDIENTS) else ""
    return Stamp(version, revision[:_SHORT] + changed, revision + changed, epoch)


def write(checkout: Path, stamp: Stamp) -> None:
    """Into a copy of the checkout, of which a wheel is then made."""
    path = checkout / _STAMPED
    text = path.read_text()
    for name, value in {"version": stamp.version, "commit": stamp.commit, "built": stamp.built}.items():
        text, lines = re.subn(rf'(?m)^__{name}__ = ".*"$', f'__{name}__ = "{value}"', text)
        if lines != 1:
            raise ReleaseError(f"{_STAMPED} should have one line `__{name}__ = …`, and has {lines}")
    path.write_text(text)


def _valid(version: str) -> str:
    try:
        return str(Version(version))
    except InvalidVersion as why:
        raise ReleaseError(
            f"VERSION is {version!r}, which is not a version as Python has them: 1.0.0, 1.0.0rc1"
        ) from why


def _own_version(checkout: Path) -> str:
    found = re.search(r'(?m)^__version__ = "(.+)"$', (checkout / _STAMPED).read_text())
    assert found, f"{_STAMPED} has no version"
    return found[1]


def _epoch(environ: Mapping[str, str]) -> int:
    epoch, date = environ.get("SOURCE_DATE_EPOCH", ""), environ.get("BUILD_DATE", "")
    try:
        if epoch:
            return int(epoch)
        given = datetime.fromisoformat(date) if date else datetime.fromtimestamp(0, UTC)
        # Not this machine's time zone: the same words must give the same build everywhere.
        return int((given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp())
    except ValueError as why:
        raise ReleaseError(
            f"the build's time is given as {epoch or date!r}: SOURCE_DATE_EPOCH takes seconds since 1970, "
            "BUILD_DATE a time such as 2026-11-16T04:20:20Z"
        ) from why


def _git(checkout: Path, *words: str) -> str:
    """What git says, or nothing: there may be no git, and the checkout may be an unpacked archive."""
    if not (checkout / ".git").exists():
        return ""
    try:
        return subprocess.run(["git", *words], cwd=checkout, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as why:
        said = why.stderr.strip() if isinstance(why, subprocess.CalledProcessError) else why.strerror
        raise ReleaseError(
            f"git cannot tell which commit this is ({said}): mend it, or set COMMIT_HASH and BUILD_DATE"
        ) from why
