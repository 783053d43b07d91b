"""Runs: which exist, who owns them, and which were left behind.

A run's folder is named by a number, its slot, which decides the run's ports, bridge and subnets; so runs on one machine
cannot meet. Beside the folder lies the slot's lock. Its holder, and nobody else, may make or remove the folder: a run's
owner holds it from the beginning, and the kernel drops it when the owner dies. A folder whose lock is free was left
behind, unless it is marked as kept (`python -m lab up`).
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lab import disk, invocation, remains
from lab.errors import LabError

SLOTS = 32
DEFAULT_NAME = "default"
"""Of a cluster that is kept, unless it is given another one."""
_NEEDED_MEBIBYTES = 500
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
            return str(json.loads((self.folder / remains.KEPT).read_text())["name"])
        return None

    def keep(self, name: str) -> None:
        """From now on the run outlives its owner."""
        (self.folder / remains.KEPT).write_text(json.dumps({"name": name}))

    @property
    def in_use(self) -> bool:
        """Whether a living process owns it."""
        with _held(self) as mine:
            return not mine

    def environment(self) -> dict[str, str]:
        """What every process of the run carries: how `remains` finds it, and that no proxy leads to its peers."""
        return {**os.environ, remains.MARK: str(self.folder), "NO_PROXY": "*", "no_proxy": "*"}


@dataclass(frozen=True)
class Ownership:
    """A claim on a run for as long as this process lives. The reaper takes over from there."""

    run: Run
    lock: IO[str]
    reaper: subprocess.Popen[bytes]

    def release(self) -> None:
        """Remove the run, unless it is kept, and let go of it."""
        try:
            if self.run.name is None:
                remains.remove(self.run.folder)
        finally:
            # Its token is gone, or the run is kept: either way the reaper has nothing left to do.
            assert self.reaper.stdin
            self.reaper.stdin.close()
            self.reaper.wait()
            remains.drop_lock(self.lock)


def claim() -> Ownership:
    """Take a free slot, having first removed what a dead owner left there."""
    root = _root()
    disk.require(root, _NEEDED_MEBIBYTES, to="run a cluster", way_out=f"let {_FOLDER_VARIABLE} name another folder")
    for slot in range(SLOTS):
        run = Run(root / str(slot))
        if (lock := remains.take_lock(run.folder)) is None:
            continue
        if run.name is None:
            remains.remove(run.folder)
            if not _is_ours(gateway(slot)):  # else a run under another folder, such as another TMPDIR, has this number
                return _own(run, lock)
        remains.drop_lock(lock)
    raise LabError(f"all {SLOTS} places under {root} are taken; `{invocation.lab('status')}` lists who has them")


def gateway(slot: int) -> str:
    """The address at which a run's nodes find this machine."""
    return f"10.89.{slot}.1"


def existing() -> list[Run]:
    return [Run(folder) for folder in sorted(_root().iterdir()) if folder.name.isdigit()]


def kept(name: str) -> Run | None:
    return next((run for run in existing() if run.name == name), None)


def remove(run: Run, *, spare_kept: bool = False) -> bool:
    """Remove a run that nobody owns. False if someone does, or if it is kept and kept ones are spared."""
    with _held(run) as mine:
        if not mine or (spare_kept and run.name is not None):
            return False
        remains.remove(run.folder)
        return True


def remove_abandoned() -> list[Run]:
    """Remove every run whose owner died before it could; the reaper was killed too, or the machine lost power."""
    return [run for run in existing() if remove(run, spare_kept=True)]


def _root() -> Path:
    """Where runs live. One folder a user, since another user's runs are not ours to remove, and theirs not to plant."""
    default = Path(tempfile.gettempdir()) / f"kube-node-ready-lab-{os.getuid()}"
    root = Path(os.environ.get(_FOLDER_VARIABLE, default))
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = root.stat().st_uid
    except OSError as why:
        raise LabError(
            f"cannot use {root} for the lab's runs: {why.strerror}. {_FOLDER_VARIABLE} names another"
        ) from why
    if owner != os.getuid():
        raise LabError(f"{root} belongs to user {owner}, not to you; let {_FOLDER_VARIABLE} name another folder")
    return root


def _is_ours(address: str) -> bool:
    """Whether this machine has the address: one can bind to no other."""
    with socket.socket() as attempt, contextlib.suppress(OSError):
        attempt.bind((address, 0))
        return True
    return False


def _own(run: Run, lock: IO[str]) -> Ownership:
    token = str(uuid.uuid4())
    # Isolated mode: whatever the tests did to Python's path or environment is not the reaper's business.
    command = [sys.executable, "-I", remains.__file__, str(run.folder), token]
    try:
        run.folder.mkdir()
        (run.folder / remains.OWNER_MARK).write_text(token)
        return Ownership(run, lock, subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))
    except BaseException:  # Ctrl-C, too: there is no reaper yet
        remains.remove(run.folder)
        remains.drop_lock(lock)
        raise


@contextlib.contextmanager
def _held(run: Run) -> Iterator[bool]:
    lock = remains.take_lock(run.folder)
    try:
        yield lock is not None
    finally:
        if lock:
            remains.drop_lock(lock)
