"""The image that is released, for the lab's nodes. Built once for the same sources."""

import contextlib
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from kube_node_ready import __version__
from lab import build
from release import wheels

REPOSITORY = "lab.local/kube-node-ready"
NAME = f"{REPOSITORY}:{__version__}"
ROOT = Path(__file__).parents[1]
_SOURCES = ("src/kube_node_ready", "release", "requirements/runtime.txt", "pyproject.toml")
# What it says about itself must not depend on the moment, or it would be another image each time.
_STAMP = {"COMMIT_HASH": "0000000", "BUILD_DATE": "2026-01-01T00:00:00Z", "SOURCE_DATE_EPOCH": "1767225600"}
_SECONDS_TO_IMPORT = 600


def archive() -> Path:
    """The image's OCI archive, for this machine's architecture. The first build takes half a minute."""
    final = build.cache() / f"release-image-{_identity()}.tar"
    if not final.exists():
        final.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=final.parent) as folder:
            architecture = f"--arch={wheels.machine_architecture()}"
            words = ["image", architecture, f"--name={REPOSITORY}", f"--into={folder}"]
            environment = {**os.environ, **_STAMP}
            environment.pop("VERSION", None)
            subprocess.run([sys.executable, "-m", "release", *words], cwd=ROOT, env=environment, check=True)
            (made,) = Path(folder).glob("*.tar")
            made.rename(final)
        _forget_former(final)
    return final


def _forget_former(final: Path) -> None:
    """But not what another run may be about to import."""
    for former in final.parent.glob("release-image-*.tar"):
        with contextlib.suppress(FileNotFoundError):
            if former != final and former.stat().st_mtime < time.time() - _SECONDS_TO_IMPORT:
                former.unlink()


def _identity() -> str:
    digest = hashlib.sha256(__version__.encode())
    for source in _SOURCES:
        path = ROOT / source
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        for file in files:
            digest.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]
