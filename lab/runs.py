"""Runs: which exist, who owns them, and which were left behind.

A run's folder is named by a number, its slot. Making the folder claims the slot, and the slot decides the run's ports,
bridge and subnets, so runs on one machine cannot meet. The owner holds a file lock in the folder; the kernel drops it
when the owner dies. A run without an owner was left behind, unless it is marked as kept (`python -m lab up`).
"""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lab import invocation, remains
from lab.errors import LabError

SLOTS = 32
_FOLDER_VARIABLE = "KUBE_NODE_READY_LAB_DIR"


@dataclass(frozen=True)
class Run:
    """One plane's folder; all else about where it lives follows from its slot."""

    folder: Path

    @property
    def slot(self) -> int:
        return int(self.folder.name)

    @property
    def name(self) -> str | None:
        """The name it is kept under, or None if it ends with its owner."""
        with contextlib.suppress(FileNotFoundError):
            return str(json.loads((self.folder / "kept.json").read_text())["name"])
        return None

    def keep(self, name: str) -> None:
        """From now on the run outlives its owner."""
        (self.folder / "kept.json").write_text(json.dumps({"name": name}))

    @property
    def abandoned(self) -> bool:
        return self.name is None and not self._owner_lives()

    def _owner_lives(self) -> bool:
        try:
            with (self.folder / "owner").open("a") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            pass  # it is being removed this very moment
        return False

    def environment(self) -> dict[str, str]:
        """What every process of the run carries, so that `remains` finds it."""
        return {**os.environ, remains.MARK: str(self.folder)}


@dataclass(frozen=True)
class Ownership:
    """A claim on a run for as long as this process lives. The reaper takes over from there."""

    run: Run
    lock: IO[str]
    reaper: subprocess.Popen[bytes] | None

    def release(self) -> None:
        """Remove the run, unless it is kept, and let go of it."""
        try:
            if self.run.name is None:
                remains.remove(self.run.folder)
        finally:
            self._dismiss_reaper()
            self.lock.close()

    def _dismiss_reaper(self) -> None:
        if self.reaper is None:
            return
        if self.run.name is not None:
            self.reaper.kill()
        if self.reaper.stdin:
            self.reaper.stdin.close()
        self.reaper.wait()


def base() -> Path:
    """Where runs live. One folder a user, since another user's runs are not ours to remove."""
    default = Path(tempfile.gettempdir()) / f"kube-node-ready-lab-{os.getuid()}"
    return Path(os.environ.get(_FOLDER_VARIABLE, default))


def claim() -> Ownership:
    """Take a free slot, having first removed what dead owners left."""
    remove_abandoned()
    with _guarded() as root:
        for slot in range(SLOTS):
            run = Run(root / str(slot))
            if remains.links(run.folder):
                continue  # taken by a run under another folder, such as another TMPDIR
            with contextlib.suppress(FileExistsError):
                run.folder.mkdir()
                lock = (run.folder / "owner").open("a")
                fcntl.flock(lock, fcntl.LOCK_EX)
                return Ownership(run, lock, _reaper(run))
    raise LabError(f"all {SLOTS} places under {base()} are taken; `{invocation.lab('status')}` lists who has them")


def existing() -> list[Run]:
    with _guarded() as root:
        return [Run(folder) for folder in sorted(root.iterdir()) if folder.name.isdigit()]


def kept(name: str) -> Run | None:
    return next((run for run in existing() if run.name == name), None)


def remove_abandoned() -> list[Run]:
    """Remove every run whose owner died before it could; the reaper was killed too, or the machine lost power."""
    left_behind = [run for run in existing() if run.abandoned]
    for run in left_behind:
        remains.remove(run.folder)
    return left_behind


@contextlib.contextmanager
def _guarded() -> Iterator[Path]:
    """Claiming is two steps (folder, lock); nobody may look in between and think the run abandoned."""
    root = base()
    try:
        root.mkdir(parents=True, exist_ok=True)
        guard = (root / ".guard").open("a")
    except OSError as why:
        raise LabError(
            f"cannot use {root} for the lab's runs: {why.strerror}. {_FOLDER_VARIABLE} names another"
        ) from why
    with guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield root


def _reaper(run: Run) -> subprocess.Popen[bytes]:
    # Isolated mode: whatever the tests did to Python's path or environment is not the reaper's business.
    command = [sys.executable, "-I", remains.__file__, str(run.folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
