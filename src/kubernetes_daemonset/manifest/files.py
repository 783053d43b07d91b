"""Read files, with a size limit."""

from pathlib import Path
from typing import BinaryIO

from kubekit.diagnostics import Diagnostic, Location
from kubernetes_daemonset.errors import UnreadableFileError

_MOST_MIB = 16
"""The API server stores 1.5 MiB per object, and a YAML parser needs minutes for more than this."""


def content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return whole(file, str(path))
    except (OSError, ValueError) as error:  # ValueError: an invalid file name
        reason = error.strerror if isinstance(error, OSError) else error
        raise UnreadableFileError([Diagnostic("", f"cannot be read: {reason}", Location(str(path)))]) from error


def whole(stream: BinaryIO, name: str) -> bytes:
    """Return everything in the stream. Too much of it, such as that of /dev/zero, is an error."""
    content = stream.read(_MOST_MIB * 2**20 + 1)
    if len(content) > _MOST_MIB * 2**20:
        raise UnreadableFileError(
            [
                Diagnostic(
                    "", f"cannot be read: it has more than {_MOST_MIB} MiB; expected at most 4 MiB", Location(name)
                )
            ]
        )
    return content
