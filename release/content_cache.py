"""Downloads and made layers, kept by content in the user's cache folder, outside the checkout.

A name is the hash of what the file holds, and is checked whenever the file is used: a damaged file counts as missing.
What a build asked for and which files it got are remembered as notes, under the hash of the question.
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
class Store:
    folder: Path

    def __post_init__(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as why:
            raise ReleaseError(
                f"cannot use {self.folder} to keep downloads: {why.strerror}. XDG_CACHE_HOME names another"
            ) from why

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
            path.touch()  # it was of use today
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
        """What no build asked for in a month, and what a killed one left."""
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                if path.name != _APT and path.stat().st_mtime < time.time() - _MONTH:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _note(self, question: object) -> Path:
        return self.folder / f"{sha256(json.dumps(question, sort_keys=True).encode())}.json"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def code() -> Sequence[str]:
    """What the programs of this package are: a part of every question whose answer they make."""
    return [sha256(path.read_bytes()) for path in sorted(Path(__file__).parent.glob("*.py"))]
