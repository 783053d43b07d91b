"""Build container images without a registry: a reproducible OCI archive of a few files."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

TOOLBOX = "lab.local/toolbox:1"
COREDNS = "lab.local/coredns:1"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_ROOT_OWNED_EXECUTABLE = 0o755


def write(archive: Path, name: str, files: Mapping[str, Path], entrypoint: Sequence[str]) -> Path:
    """Write an image `name` with one layer that contains `files` (path in the image: local file)."""
    layer = _layer(files)
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    config = _json(
        {
            "architecture": architecture,
            "os": "linux",
            "config": {"Entrypoint": list(entrypoint), "User": "1000:1000"},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    kind = "application/vnd.oci.image"
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{kind}.manifest.v1+json",
            "config": _described(config, f"{kind}.config.v1+json"),
            "layers": [_described(layer, f"{kind}.layer.v1.tar")],
        }
    )
    named = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    index = _json(
        {"schemaVersion": 2, "manifests": [{**_described(manifest, f"{kind}.manifest.v1+json"), "annotations": named}]}
    )
    blobs = {f"blobs/sha256/{_digest(blob).removeprefix('sha256:')}": blob for blob in (layer, config, manifest)}
    with tarfile.open(archive, "w") as tar:
        for path, content in {
            "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
            "index.json": index,
            **blobs,
        }.items():
            _add(tar, path, content)
    return archive


def _layer(files: Mapping[str, Path]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, source in sorted(files.items()):
            _add(tar, path.lstrip("/"), source.read_bytes())
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, path: str, content: bytes) -> None:
    # A new TarInfo has no time and no owner name, so the archive depends only on its content.
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(content), _ROOT_OWNED_EXECUTABLE
    tar.addfile(entry, io.BytesIO(content))


def _described(blob: bytes, kind: str) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
