"""Write container images in OCI layout: layers, a manifest per architecture and an index, in one tar archive.

Times, owners and order are fixed, so the archive depends only on its content.
"""

import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from release.content_cache import sha256
from release.rootfs import File, Link, Tree, folders

_KIND = "application/vnd.oci.image"
_STATEMENT = "application/vnd.in-toto+json"
_NO_PLATFORM = {"architecture": "unknown", "os": "unknown"}
_FOLDER, _PROGRAM, _DATA = 0o755, 0o755, 0o644


@dataclass(frozen=True)
class Layer:
    about: str
    blob: bytes
    """Compressed."""
    diff: str
    """The hash of the uncompressed layer."""
    unpacked: int


@dataclass(frozen=True)
class Image:
    architecture: str
    layers: Sequence[Layer]
    entrypoint: Sequence[str]
    user: str
    labels: Mapping[str, str]
    created: str


def layer(tree: Tree, epoch: int) -> bytes:
    """Return the tree as a tar archive, directories first: a runtime unpacks it in order."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder in folders(tree):
            _add(tar, _entry(folder, tarfile.DIRTYPE, _FOLDER, epoch))
        for path, entry in sorted(tree.items()):
            match entry:
                case Link(target):
                    link = _entry(path, tarfile.SYMTYPE, 0o777, epoch)
                    link.linkname = target
                    _add(tar, link)
                case File(content, executable):
                    _add(tar, _entry(path, tarfile.REGTYPE, _PROGRAM if executable else _DATA, epoch), content)
    return buffer.getvalue()


@dataclass(frozen=True)
class Statement:
    """An in-toto statement about an image."""

    predicate_type: str
    content: bytes


Attest = Callable[[Image, str], Statement]
"""Return a statement about an image with this digest."""


def write(archive: Path, images: Sequence[Image], *, name: str, tag: str, attest: Attest | None = None) -> str:
    """Write an archive for `ctr images import`, `docker load` and `podman load`. Returns the digest of its index.

    Statements are in the index, too, like those of BuildKit: engines skip an unknown platform, and tools that copy the
    whole image include them.
    """
    blobs: dict[str, bytes] = {}
    manifests = [_manifest(image, blobs) for image in images]
    if attest:
        about = zip(images, [str(manifest["digest"]) for manifest in manifests], strict=True)
        manifests += [_attestation(attest(image, digest), digest, blobs) for image, digest in about]
    kind = f"{_KIND}.index.v1+json"
    index = _json({"schemaVersion": 2, "mediaType": kind, "manifests": manifests})
    described = _keep(blobs, index, kind)
    named = {"io.containerd.image.name": f"{full_name(name)}:{tag}", "org.opencontainers.image.ref.name": tag}
    top = _json({"schemaVersion": 2, "mediaType": kind, "manifests": [{**described, "annotations": named}]})
    files = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": top}
    files |= {f"blobs/sha256/{digest}": blob for digest, blob in sorted(blobs.items())}
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in files.items():
            _add(tar, _entry(path, tarfile.REGTYPE, _DATA, 0), content)
    return str(described["digest"])


def full_name(name: str) -> str:
    """Return the full name as container runtimes resolve it: without a registry it is on Docker Hub.

    After the import of a shorter name, containerd does not find the image for kubelets under any name.
    """
    first, _, rest = name.partition("/")
    if rest and (set(".:") & set(first) or first == "localhost"):
        return name
    return f"docker.io/{name}" if rest else f"docker.io/library/{name}"


def _manifest(image: Image, blobs: dict[str, bytes]) -> dict[str, object]:
    config = _json(
        {
            **({"created": image.created} if image.created else {}),
            "architecture": image.architecture,
            "os": "linux",
            "config": {
                "User": image.user,
                "Entrypoint": list(image.entrypoint),
                "WorkingDir": "/",
                "Labels": dict(image.labels),
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{part.diff}" for part in image.layers]},
            "history": [{"created_by": part.about} for part in image.layers],
        }
    )
    kind = f"{_KIND}.manifest.v1+json"
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": kind,
            "config": _keep(blobs, config, f"{_KIND}.config.v1+json"),
            "layers": [_keep(blobs, part.blob, f"{_KIND}.layer.v1.tar+gzip") for part in image.layers],
            "annotations": dict(image.labels),
        }
    )
    return _keep(blobs, manifest, kind) | {"platform": {"architecture": image.architecture, "os": "linux"}}


def _attestation(statement: Statement, digest: str, blobs: dict[str, bytes]) -> dict[str, object]:
    """Return the manifest of a statement about the manifest with this digest."""
    layer = _keep(blobs, statement.content, _STATEMENT)
    rootfs = {"type": "layers", "diff_ids": [layer["digest"]]}
    config = _json({**_NO_PLATFORM, "config": {}, "rootfs": rootfs})
    kind = f"{_KIND}.manifest.v1+json"
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": kind,
            "config": _keep(blobs, config, f"{_KIND}.config.v1+json"),
            "layers": [{**layer, "annotations": {"in-toto.io/predicate-type": statement.predicate_type}}],
        }
    )
    related = {"vnd.docker.reference.digest": digest, "vnd.docker.reference.type": "attestation-manifest"}
    return _keep(blobs, manifest, kind) | {"platform": _NO_PLATFORM, "annotations": related}


def _keep(blobs: dict[str, bytes], blob: bytes, kind: str) -> dict[str, object]:
    digest = sha256(blob)
    blobs[digest] = blob
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(blob)}


def _entry(path: str, kind: bytes, mode: int, epoch: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path)
    entry.type, entry.mode, entry.mtime = kind, mode, epoch
    return entry


def _add(tar: tarfile.TarFile, entry: tarfile.TarInfo, content: bytes = b"") -> None:
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
