"""The image as `make image` builds it, for nodes of the lab. Built once per content."""

import contextlib
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from kube_node_ready import __version__
from lab import build
from lab.errors import LabError
from release import build_info, image_spec, wheels

CHECKOUT = Path(__file__).parents[1]
REPOSITORY = f"lab.local/{image_spec.NAME}"
TAG = __version__
NAME = f"{REPOSITORY}:{TAG}"
WORKER = "/kube-node-ready-worker"
_SECONDS_TO_IMPORT = 3600


def archive() -> Path:
    """Return the image's OCI archive in the lab's cache. The first build takes half a minute and requires apt."""
    identity = _identity()
    final = build.cache() / f"image-{identity}.tar"
    if not final.exists():
        final.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=final.parent) as folder:
            _build(Path(folder), identity).rename(final)
        _forget_former(final)
    return final


def _build(folder: Path, identity: str) -> Path:
    words = ["--arch", wheels.machine_architecture(), "--name", REPOSITORY, "--into", str(folder)]
    # Not the commit: tested code is often uncommitted, and the same content must result in the same image.
    build_arguments = {"VERSION": TAG, "COMMIT_HASH": identity, "BUILD_DATE": "2026-01-01T00:00:00Z"}
    command = [sys.executable, "-m", "release", "image", *words]
    environment = {**os.environ, **build_arguments}
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"the image could not be built: {done.stderr.strip()}")
    (archive,) = folder.glob("*.tar")
    return archive


def _identity() -> str:
    digest = hashlib.sha256(wheels.machine_architecture().encode())
    for path in (Path(__file__), *_ingredients()):
        digest.update(f"{path.relative_to(CHECKOUT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _ingredients() -> Iterator[Path]:
    for name in build_info.INGREDIENTS:
        top = CHECKOUT / name
        files = sorted(top.rglob("*")) if top.is_dir() else [top]
        yield from (path for path in files if path.is_file() and "__pycache__" not in path.parts)


def _forget_former(final: Path) -> None:
    """Remove old archives, except those that another run can still import."""
    for former in final.parent.glob("image-*.tar"):
        with contextlib.suppress(FileNotFoundError):
            if former != final and former.stat().st_mtime < time.time() - _SECONDS_TO_IMPORT:
                former.unlink()
