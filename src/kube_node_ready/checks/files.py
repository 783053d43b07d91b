"""Reading and writing small files without `pathlib`, whose import takes as long as a check."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os


def read(path: str | os.PathLike[str]) -> str:
    """Text in UTF-8. That it is not, is an OSError too, so that callers need know only one."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            return file.read()
    except UnicodeDecodeError as why:
        raise OSError(0, "it is not text in UTF-8") from why


def write(path: str | os.PathLike[str], content: bytes) -> None:
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(content)
