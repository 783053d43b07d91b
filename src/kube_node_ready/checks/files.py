"""Read and write small files without `pathlib`, whose import takes as long as a check."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os


_MOST_KIB = 16 * 1024


def read(path: str | os.PathLike[str], most_kib: int = _MOST_KIB) -> str:
    """Return text in UTF-8. Other content, or too much of it, is an OSError too, so that callers handle only one."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            content = file.read(most_kib * 1024 + 1)
        if len(content) > most_kib * 1024:
            raise OSError(0, f"it has more than {most_kib} KiB")
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise OSError(0, "it is not text in UTF-8") from error


def write(path: str | os.PathLike[str], content: bytes) -> None:
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(content)
