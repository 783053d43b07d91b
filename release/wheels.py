"""Wheels: those pinned in requirements/runtime.txt, downloaded by pip for each platform, and our own.

The pins apply to every Python and platform, so they have markers; pip would evaluate those for the machine it runs on,
not for the target. So the markers are evaluated here, and pip receives the remaining pins.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import Requirement

from release import build_info
from release.build_info import BuildInfo
from release.content_cache import ContentCache, sha256
from release.errors import ReleaseError

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
PINS = Path("requirements/runtime.txt")
PINS_WITH_CLI = Path("requirements/cli.txt")
"""With the packages that commands for people need: not in the image."""
# The C libraries that a wheel can be built for; Debian's is newer.
_OLDEST_GLIBC, _NEWEST_GLIBC = 17, 28
_FIRST_ZIP_TIME = 315532800  # 1980: the earliest time in a zip archive


def machine_architecture() -> str:
    """Return Debian's name of this machine's architecture, without Debian's tools."""
    names = {machine: architecture for architecture, machine in MACHINES.items()}
    if (found := names.get(platform.machine())) is None:
        raise ReleaseError(
            f"this machine is {platform.machine()}; what we depend on is compiled for {', '.join(names)}"
        )
    return found


@dataclass(frozen=True)
class Target:
    """The platform and Python version of wheels."""

    architecture: str
    python: str

    @property
    def tags(self) -> Sequence[str]:
        machine = MACHINES[self.architecture]
        platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(_NEWEST_GLIBC, _OLDEST_GLIBC - 1, -1)]
        return [*platforms, f"manylinux2014_{machine}"]

    def environment(self) -> dict[str, str]:
        """Return the environment for markers."""
        return {
            "implementation_name": "cpython",
            "os_name": "posix",
            "platform_machine": MACHINES[self.architecture],
            "platform_python_implementation": "CPython",
            "platform_system": "Linux",
            "python_full_version": f"{self.python}.0",
            "python_version": self.python,
            "sys_platform": "linux",
        }


@dataclass(frozen=True)
class Wheel:
    name: str
    version: str
    file: str
    digest: str
    path: Path
    license: str = ""
    """Return the distribution's license, if it is a valid SPDX expression."""

    @property
    def compiled(self) -> bool:
        return not self.file.endswith("-any.whl")


@dataclass(frozen=True)
class Pin:
    requirement: Requirement
    digests: Sequence[str]

    def line(self) -> str:
        bare = f"{self.requirement.name}{self.requirement.specifier}"
        return " ".join([bare, *(f"--hash=sha256:{digest}" for digest in self.digests)])


def pins(text: str) -> Iterator[Pin]:
    for line in re.sub(r"\\\n", "", re.sub(r"(?m)^ *#.*$", "", text)).splitlines():
        if line.strip():
            requirement, *digests = line.split("--hash=sha256:")
            yield Pin(Requirement(requirement), [digest.strip() for digest in digests])


def needed(text: str, target: Target) -> list[Pin]:
    environment = target.environment()
    return [pin for pin in pins(text) if not (marker := pin.requirement.marker) or marker.evaluate(environment)]


def fetch(checkout: Path, target: Target, store: ContentCache, requirements: Path = PINS) -> list[Wheel]:
    """Return the wheels of all packages that are pinned there, for this target, sorted by name."""
    wanted = needed((checkout / requirements).read_text(), target)
    question = ["wheels", target.architecture, target.python, [pin.line() for pin in wanted]]
    pinned = {digest for pin in wanted for digest in pin.digests}
    files: dict[str, str] = store.note(question) or {}
    if not files or not all(digest in pinned and store.find(digest) for digest in files.values()):
        files = _download(wanted, target, store, requirements)
        store.remember(question, files)
    return sorted((read(store.folder / digest, file) for file, digest in files.items()), key=lambda wheel: wheel.name)


def _download(wanted: Sequence[Pin], target: Target, store: ContentCache, pinned: Path) -> dict[str, str]:
    with store.workplace() as folder:
        requirements = folder / "requirements.txt"
        requirements.write_text("\n".join(pin.line() for pin in wanted))
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--require-hashes", "--only-binary=:all:", f"--requirement={requirements}", f"--dest={folder}/got"]
        command += [f"--python-version={target.python}", "--implementation=cp"]
        command += [f"--abi={abi}" for abi in (f"cp{target.python.replace('.', '')}", "abi3", "none")]
        command += [f"--platform={tag}" for tag in target.tags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ReleaseError(
                f"pip cannot fetch {pinned} for Python {target.python} on {target.architecture}:\n{done.stderr.strip()}"
            )
        return {file.name: store.put(file.read_bytes()).name for file in sorted((folder / "got").iterdir())}


def own(checkout: Path, build: BuildInfo, store: ContentCache) -> Wheel:
    """Build the wheel of this project with build information, from a copy, so that the checkout is not modified."""
    with store.workplace() as folder:
        for name in ("LICENSE", "README.md", "pyproject.toml"):
            shutil.copy(checkout / name, folder)
        shutil.copytree(checkout / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        build_info.write(folder, build)
        command = [sys.executable, "-m", "hatchling", "build", "--target=wheel", f"--directory={folder}/dist"]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(build.epoch or _FIRST_ZIP_TIME)}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ReleaseError(f"this project's wheel cannot be built:\n{done.stderr.strip()}")
        (wheel,) = (folder / "dist").glob("*.whl")
        return read(store.put(wheel.read_bytes()), wheel.name)


def read(path: Path, file: str) -> Wheel:
    with zipfile.ZipFile(path) as archive:
        (metadata,) = (name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        fields = HeaderParser().parsestr(archive.read(metadata).decode())
    name = re.sub(r"[-_.]+", "-", fields["Name"]).lower()
    return Wheel(name, fields["Version"], file, sha256(path.read_bytes()), path, fields.get("License-Expression", ""))
