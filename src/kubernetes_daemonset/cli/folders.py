"""Files written into a folder that other users may be able to write to: nothing prepared there is followed or reused.

A folder is held by its descriptor, so that it cannot be exchanged meanwhile. Each file is new, and its name cannot be
guessed until it takes its place; a rename replaces a symlink and does not follow it.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

PRIVATE: Final = 0o600
PUBLIC: Final = 0o644

_MOST_READ: Final = 4 * 1024 * 1024  # bytes; what we write ourselves is smaller
_NO_FOLDER: Final = (errno.ELOOP, errno.ENOTDIR)


class FolderError(Exception):
    """A file or folder, and why it cannot be written."""


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder."""

    path: Path
    descriptor: int

    def put(self, name: str, content: str, mode: int) -> None:
        """Whole or not at all, and with these rights from the first byte on."""
        unfinished = f".{name}.{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            opened = os.open(unfinished, flags, mode, dir_fd=self.descriptor)
            try:
                with os.fdopen(opened, "w", encoding="utf-8") as file:
                    file.write(content)
                os.replace(unfinished, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
            except BaseException:
                os.unlink(unfinished, dir_fd=self.descriptor)
                raise
        except OSError as error:
            _fail(self.path / name, error)

    def read(self, name: str) -> str | None:
        """The text of a regular file; None if it is anything else, a symlink included, or not there."""
        try:
            # Without O_NONBLOCK, a pipe would be waited for.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, dir_fd=self.descriptor), "rb") as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_READ:
                    return None
                return file.read(_MOST_READ).decode()
        except (OSError, UnicodeDecodeError):
            return None

    def mode(self, name: str) -> int | None:
        """The rights of a file, of a symlink its own; None if it is not there."""
        try:
            return stat.S_IMODE(os.stat(name, dir_fd=self.descriptor, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return None

    def is_file(self, name: str) -> bool:
        try:
            return stat.S_ISREG(os.stat(name, dir_fd=self.descriptor, follow_symlinks=False).st_mode)
        except OSError:
            return False

    def remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self.descriptor)
        except OSError as error:
            raise FolderError(f"{self.path / name}: cannot be removed: {error.strerror}") from error


@contextmanager
def opened(base: Path, below: Sequence[str]) -> Iterator[Folder]:
    """A folder below another one, both made if they are missing. The base can be a symlink; what is below cannot."""
    path = base
    try:
        base.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in below:
                path = path / name
                descriptor = _entered(descriptor, name)
        except OSError:
            os.close(descriptor)
            raise
    except OSError as error:
        _fail(path, error)
    try:
        yield Folder(path, descriptor)
    finally:
        os.close(descriptor)


def _entered(parent: int, name: str) -> int:
    """The descriptor of a folder in another one, which is closed."""
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    os.close(parent)
    return descriptor


def _fail(path: Path, error: OSError) -> NoReturn:
    reason = "is a symbolic link, or no folder" if error.errno in _NO_FOLDER else error.strerror
    raise FolderError(f"{path}: cannot be written: {reason}") from error
