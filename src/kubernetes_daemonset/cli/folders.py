"""Write files to a directory that other users might be able to write to: nothing prepared there is followed or reused.

A folder is held by its descriptor, so that it cannot be exchanged meanwhile. Each file is new, and its name cannot be
guessed until it takes its place; a rename replaces a symlink and does not follow it. Where the file system allows it, a
file has no name until it is complete. A process that is killed leaves nothing then, unless it is killed between two
system calls: the one that names the file, and the one that renames it.
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
# Without this flag, as on other systems than Linux, a folder cannot be opened for writing.
_NAMELESS: Final[int] = getattr(os, "O_TMPFILE", 0)
_NO_NAMELESS: Final = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)


class FolderError(Exception):
    """A file or directory cannot be written."""


@dataclass(frozen=True, slots=True)
class Text:
    """The text and mode of a file, and whether the current user owns it, which is uncertain in a shared directory."""

    content: str
    mode: int
    is_own: bool


@dataclass(frozen=True, slots=True)
class Folder:
    """An open directory."""

    path: Path
    descriptor: int

    def put(self, name: str, content: str, mode: int) -> None:
        """Write a file atomically, with this mode from the first byte."""
        unfinished = f".{name}.{os.urandom(8).hex()}"
        try:
            self._create(unfinished, content, mode)
            try:
                os.replace(unfinished, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
            except BaseException:
                os.unlink(unfinished, dir_fd=self.descriptor)
                raise
        except OSError as error:
            _fail(self.path / name, error)

    def _create(self, name: str, content: str, mode: int) -> None:
        """A file that has no name until it is complete: of a process that is killed meanwhile, nothing is left."""
        try:
            opened = os.open(".", os.O_WRONLY | _NAMELESS | os.O_CLOEXEC, mode, dir_fd=self.descriptor)
            with os.fdopen(opened, "w", encoding="utf-8") as file:
                file.write(content)
                file.flush()
                os.link(f"/proc/self/fd/{opened}", name, dst_dir_fd=self.descriptor)
        except OSError as error:
            if error.errno not in _NO_NAMELESS:
                raise
            self._create_named(name, content, mode)

    def _create_named(self, name: str, content: str, mode: int) -> None:
        """For file systems that have no files without a name, such as NFS, and where /proc is missing."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        opened = os.open(name, flags, mode, dir_fd=self.descriptor)
        try:
            with os.fdopen(opened, "w", encoding="utf-8") as file:
                file.write(content)
        except BaseException:
            os.unlink(name, dir_fd=self.descriptor)
            raise

    def read(self, name: str) -> Text | None:
        """Return a regular file; None if it is missing or anything else, including a symlink.

        Text, mode and owner are read from one descriptor: between two calls, another user could replace the file.
        """
        try:
            # Without O_NONBLOCK, opening a pipe would block.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, dir_fd=self.descriptor), "rb") as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_READ:
                    return None
                return Text(file.read(_MOST_READ).decode(), stat.S_IMODE(about.st_mode), about.st_uid == os.geteuid())
        except (OSError, UnicodeDecodeError):
            return None

    def exists(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def is_file(self, name: str) -> bool:
        try:
            return stat.S_ISREG(os.stat(name, dir_fd=self.descriptor, follow_symlinks=False).st_mode)
        except OSError:
            return False

    def remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self.descriptor)
        except OSError as error:
            raise FolderError(f"cannot remove {self.path / name}: {error.strerror}") from error


@contextmanager
def opened(base: Path, below: Sequence[str]) -> Iterator[Folder]:
    """Open a directory below another one, creating both if needed. Only the base can be a symlink."""
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
    """Return the descriptor of a subdirectory, and close that of its parent."""
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    os.close(parent)
    return descriptor


def _fail(path: Path, error: OSError) -> NoReturn:
    reason = "it is a symbolic link or not a directory" if error.errno in _NO_FOLDER else error.strerror
    raise FolderError(f"cannot write {path}: {reason}") from error
