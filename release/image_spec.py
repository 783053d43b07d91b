"""The definition of the image. A test compares the Dockerfile, which cannot import it, with it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from release.build_info import BuildInfo
from release.contents import INTERPRETER, PACKAGES
from release.rootfs import Entry, File

NAME = "kube-node-ready"
PROGRAMS = ("kube-node-ready", "kube-node-ready-controller", "kube-node-ready-worker")
ENTRYPOINT = "/kube-node-ready"
ARCHITECTURES = ("amd64", "arm64")
USER, USER_ID = "nodecheck", 1000
# Isolated from the environment, and without site packages.
FLAGS = "-IS"
BUILD_ARGUMENTS = ("VERSION", "COMMIT_HASH", "BUILD_DATE", "SOURCE_URL")


@dataclass(frozen=True)
class Project:
    """The project's metadata from pyproject.toml."""

    description: str
    license: str
    scripts: Mapping[str, str]


def project(checkout: Path) -> Project:
    project_table = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    return Project(
        project_table["description"],
        project_table["license"],
        {name: project_table["scripts"][name] for name in PROGRAMS},
    )


def labels(about: Project, build: BuildInfo, source: str = "") -> dict[str, str]:
    """Return the labels by their OCI names, without unknown values."""
    said = {
        "title": NAME,
        "description": about.description,
        "version": build.version,
        "revision": build.revision,
        "created": build.built,
        "licenses": about.license,
        "source": source,
    }
    return {f"org.opencontainers.image.{name}": value for name, value in said.items() if value}


def own_files(about: Project) -> dict[str, Entry]:
    """Return the files of the image besides packages: its programs at the root, and its users."""
    files: dict[str, Entry] = {
        "etc/group": File(f"root:x:0:\n{USER}:x:{USER_ID}:\n".encode()),
        "etc/nsswitch.conf": File(b"passwd: files\ngroup: files\nhosts: files dns\n"),
        "etc/passwd": File(
            f"root:x:0:0:root:/:/nonexistent\n{USER}:x:{USER_ID}:{USER_ID}:{NAME}:/:/nonexistent\n".encode()
        ),
    }
    return files | {name: File(launcher(target), executable=True) for name, target in about.scripts.items()}


def launcher(target: str) -> bytes:
    """Return a program that calls `package.module:function`."""
    module, _, function = target.partition(":")
    return (
        f"#!/{INTERPRETER} {FLAGS}\n"
        "import sys\n"
        f'sys.path.append("/{PACKAGES}")\n'
        f"from {module} import {function}\n"
        f"{function}()\n"
    ).encode()
