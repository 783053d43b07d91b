"""Cache of downloads and layers by content, in the user's cache directory.

A name is the hash of the file's content and is verified on each use: a damaged file counts as missing.
Requests of a build and the resulting files are stored as notes, under the hash of the request.
"""

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any

from release.errors import ReleaseError

_APT = "apt"
_MONTH = 30 * 24 * 3600


def default_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kube-node-ready" / "release"


@dataclass(frozen=True)
class ContentCache:
    folder: Path

    def __post_init__(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ReleaseError(
                f"cannot use {self.folder} to keep downloads: {error.strerror}. XDG_CACHE_HOME names another"
            ) from error

    def find(self, digest: str) -> Path | None:
        path = self.folder / digest
        try:
            if sha256(path.read_bytes()) != digest:
                return None
        except FileNotFoundError:
            return None
        os.utime(path)
        return path

    def put(self, content: bytes) -> Path:
        path = self.folder / sha256(content)
        with NamedTemporaryFile(dir=self.folder, delete=False) as unfinished:
            unfinished.write(content)
        Path(unfinished.name).rename(path)
        return path

    def note(self, question: object) -> Any | None:  # noqa: ANN401  whatever was remembered
        path = self._note(question)
        with contextlib.suppress(FileNotFoundError, ValueError):
            answer = json.loads(path.read_text())
            path.touch()  # marks it as recently used
            return answer
        return None

    def remember(self, question: object, answer: object) -> None:
        with NamedTemporaryFile("w", dir=self.folder, delete=False) as unfinished:
            json.dump(answer, unfinished)
        Path(unfinished.name).rename(self._note(question))

    @property
    def apt(self) -> Path:
        return self.folder / _APT

    @contextlib.contextmanager
    def workplace(self) -> Iterator[Path]:
        with TemporaryDirectory(dir=self.folder) as folder:
            yield Path(folder)

    def forget_unused(self) -> None:
        """Delete files that no build used for a month, and temporary files of killed builds."""
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                if path.name != _APT and path.stat().st_mtime < time.time() - _MONTH:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _note(self, question: object) -> Path:
        return self.folder / f"{sha256(json.dumps(question, sort_keys=True).encode())}.json"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def code() -> Sequence[str]:
    """Return hashes of this package's code: a part of the request for everything that it generates."""
    return [sha256(path.read_bytes()) for path in sorted(Path(__file__).parent.glob("*.py"))]
