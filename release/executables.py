"""Executables that need a Python and nothing else: no environment, no checkout, no network.

Each is a zip archive with a first line that names the interpreter. `any/` holds what every Python can use, `cp311/` and
its like the compiled modules for one version; release/bootstrap.py, their `__main__`, chooses.
"""

import io
import json
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from release import bootstrap, facts, rules, wheels
from release.store import Store, sha256
from release.tree import File, of_wheel
from release.wheels import MACHINES, Target, Wheel

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_SHEBANG = b"#!/usr/bin/env python3\n"
_FIRST_TIME_IN_ZIP = (1980, 1, 1, 0, 0, 0)
_SMALL = "kube-node-ready-worker"
_OTHER_PRODUCT = "kubernetes_daemonset/"


@dataclass(frozen=True)
class Workshop:
    checkout: Path
    store: Store
    own: Wheel
    epoch: int

    def make(self, program: str, into: Path) -> Path:
        """For this machine's architecture."""
        small = program == _SMALL
        files = dict(self._small() if small else self._full())
        about = {
            "identity": identity(files),
            "machine": MACHINES[wheels.machine_architecture()],
            "pythons": [] if small else PYTHONS,
            "target": facts.project(self.checkout).scripts[program],
        }
        into.mkdir(parents=True, exist_ok=True)
        path = into / program
        path.write_bytes(archive(files, about, self.epoch))
        path.chmod(0o755)
        return path

    def _small(self) -> Iterator[tuple[str, bytes]]:
        """The worker needs no wheel, but its settings may be YAML. The compiled half of that parser is optional."""
        yaml = [wheel for wheel in self._fetch(PYTHONS[0]) if wheel.name == "pyyaml"]
        for path, content in _members([self.own, *yaml], bootstrap.EVERYWHERE):
            if not path.endswith(".so"):
                yield path, content

    def _full(self) -> Iterator[tuple[str, bytes]]:
        yield from _members([self.own], bootstrap.EVERYWHERE)
        for python in PYTHONS:
            native = f"cp{python.replace('.', '')}"
            for wheel in self._fetch(python):
                yield from _members([wheel], native if wheel.compiled else bootstrap.EVERYWHERE)

    def _fetch(self, python: str) -> Sequence[Wheel]:
        return wheels.fetch(self.checkout, Target(wheels.machine_architecture(), python), self.store)


def archive(files: Mapping[str, bytes], about: Mapping[str, object], epoch: int) -> bytes:
    """The same bytes for the same content."""
    buffer = io.BytesIO()
    buffer.write(_SHEBANG)
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
        for path, entry in rules.installed(of_wheel(wheel.path, folder)).items():
            if isinstance(entry, File) and not path.startswith(f"{folder}/{_OTHER_PRODUCT}"):
                yield path, entry.content
