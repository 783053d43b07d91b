"""Files that are given by name."""

from pathlib import Path

from kubernetes_daemonset.mistakes import Mistake, Place, UnreadableError


def content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as why:  # the second: a name that no file can have
        reason = why.strerror if isinstance(why, OSError) else why
        raise UnreadableError([Mistake("", f"cannot be read: {reason}", Place(str(path)))]) from why
