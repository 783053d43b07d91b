"""Build executables that need only Python: no environment, no checkout, no network.

Each is a zip archive after two lines for a shell, which start the interpreter. `any/` holds what every Python can use,
`cp311/` and its like the compiled modules for one version; release/bootstrap.py, their `__main__`, chooses.
"""

import io
import json
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from release import bootstrap, contents, image_spec, wheels
from release.content_cache import ContentCache, sha256
from release.rootfs import File, of_wheel
from release.wheels import MACHINES, Target, Wheel

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# -I: neither a user site directory, whose .pth files Python would run, nor variables such as PYTHONPATH add code. With
# `sudo -E`, both can be another user's. By a shell, since `env -S` is missing in BusyBox.
_START = b'#!/bin/sh\nexec python3 -I "$0" "$@"\n'
_FIRST_TIME_IN_ZIP = (1980, 1, 1, 0, 0, 0)
_SMALL = "kube-node-ready-worker"
_FOR_PEOPLE = "kube-node-ready"
_OTHER_PRODUCT = "kubernetes_daemonset/"


@dataclass(frozen=True)
class Workshop:
    checkout: Path
    store: ContentCache
    own: Wheel
    epoch: int

    def make(self, program: str, into: Path) -> Path:
        """Build an executable for this machine's architecture."""
        small = program == _SMALL
        requirements = wheels.PINS_WITH_CLI if program == _FOR_PEOPLE else wheels.PINS
        files = dict(self._small() if small else self._full(requirements))
        about = {
            "identity": identity(files),
            "machine": MACHINES[wheels.machine_architecture()],
            "pythons": [] if small else PYTHONS,
            "target": image_spec.project(self.checkout).scripts[program],
        }
        into.mkdir(parents=True, exist_ok=True)
        path = into / program
        path.write_bytes(archive(files, about, self.epoch))
        path.chmod(0o755)
        return path

    def _small(self) -> Iterator[tuple[str, bytes]]:
        """Yield the files of the worker, which needs only the YAML parser, whose compiled part is optional."""
        yaml = [wheel for wheel in self._fetch(PYTHONS[0], wheels.PINS) if wheel.name == "pyyaml"]
        for path, content in _members([self.own, *yaml], bootstrap.EVERYWHERE):
            if not path.endswith(".so"):
                yield path, content

    def _full(self, requirements: Path) -> Iterator[tuple[str, bytes]]:
        yield from _members([self.own], bootstrap.EVERYWHERE)
        for python in PYTHONS:
            native = f"cp{python.replace('.', '')}"
            for wheel in self._fetch(python, requirements):
                yield from _members([wheel], native if wheel.compiled else bootstrap.EVERYWHERE)

    def _fetch(self, python: str, requirements: Path) -> Sequence[Wheel]:
        return wheels.fetch(self.checkout, Target(wheels.machine_architecture(), python), self.store, requirements)


def archive(files: Mapping[str, bytes], about: Mapping[str, object], epoch: int) -> bytes:
    """Return a reproducible archive."""
    buffer = io.BytesIO()
    buffer.write(_START)
    hashes = {path: sha256(content) for path, content in sorted(files.items())}
    first = {
        "__main__.py": Path(bootstrap.__file__).read_bytes(),
        "about.json": json.dumps(about).encode(),
        bootstrap.HASHES: json.dumps(hashes).encode(),
    }
    moment = max(_FIRST_TIME_IN_ZIP, time.gmtime(epoch)[:6])
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        for path, content in (*first.items(), *sorted(files.items())):
            entry = zipfile.ZipInfo(path, moment)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            zipped.writestr(entry, content)
    return buffer.getvalue()


def identity(files: Mapping[str, bytes]) -> str:
    return sha256(json.dumps({path: sha256(content) for path, content in sorted(files.items())}).encode())[:16]


def _members(from_wheels: Iterable[Wheel], folder: str) -> Iterator[tuple[str, bytes]]:
    for wheel in from_wheels:
        for path, entry in contents.installed(of_wheel(wheel.path, folder)).items():
            if isinstance(entry, File) and not path.startswith(f"{folder}/{_OTHER_PRODUCT}"):
                yield path, entry.content
