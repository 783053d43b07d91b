"""Read files, with a size limit."""

from pathlib import Path
from typing import BinaryIO

from kubekit.diagnostics import Diagnostic, Location
from kubernetes_daemonset.errors import UnreadableFileError
from kubernetes_daemonset.manifest.yamltree import MAX_BYTES


def content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return whole(file, str(path))
    except (OSError, ValueError) as error:  # ValueError: an invalid file name
        reason = error.strerror if isinstance(error, OSError) else error
        raise UnreadableFileError([Diagnostic("", f"cannot be read: {reason}", Location(str(path)))]) from error


def whole(stream: BinaryIO, name: str) -> bytes:
    """Return everything in the stream. Too much of it, such as that of /dev/zero, is an error."""
    content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        reason = f"cannot be read: it is too large; expected at most {MAX_BYTES >> 20} MiB"
        raise UnreadableFileError([Diagnostic("", reason, Location(name))])
    return content
