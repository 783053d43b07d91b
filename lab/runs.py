"""Runs: which exist, which process owns them, and which are abandoned.

A run's directory is named by a number, its slot, which determines the run's ports, bridge and subnets; so runs on one
machine cannot collide. Only the holder of the slot's lock is allowed to create or remove the directory: a run's
owner holds it from the start, and the kernel releases it when the owner exits. A directory whose lock is free is
abandoned, unless it is marked as kept (`python -m lab up`).
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

from lab import cleanup, command_hint, disk
from lab.errors import LabError

SLOTS = 32
DEFAULT_NAME = "default"
"""The default name of a kept cluster."""
_NEEDED_MEBIBYTES = 500
_FOLDER_VARIABLE = "KUBE_NODE_READY_LAB_DIR"


@dataclass(frozen=True)
class Run:
    """The directory of one plane; its ports and addresses follow from its slot."""

    folder: Path

    @property
    def slot(self) -> int:
        return int(self.folder.name)

    @property
    def name(self) -> str | None:
        """The name it is kept under, or None if it is removed with its owner."""
        with contextlib.suppress(FileNotFoundError):
            return str(json.loads((self.folder / cleanup.KEPT).read_text())["name"])
        return None

    def keep(self, name: str) -> None:
        """Keep the run after its owner exits."""
        (self.folder / cleanup.KEPT).write_text(json.dumps({"name": name}))

    @property
    def in_use(self) -> bool:
        """Whether a running process owns it."""
        with _held(self) as mine:
            return not mine

    def environment(self) -> dict[str, str]:
        """The environment of every process of the run: the mark by which it is found, and no proxies."""
        return {**os.environ, cleanup.MARK: str(self.folder), "NO_PROXY": "*", "no_proxy": "*"}


@dataclass(frozen=True)
class Ownership:
    """Ownership of a run while this process runs. Afterwards the reaper removes it."""

    run: Run
    lock: IO[str]
    reaper: subprocess.Popen[bytes]

    def release(self) -> None:
        """Remove the run, unless it is kept, and release it."""
        try:
            if self.run.name is None:
                cleanup.remove(self.run.folder)
        finally:
            # Its token is gone, or the run is kept: in both cases the reaper has nothing to do.
            assert self.reaper.stdin
            self.reaper.stdin.close()
            self.reaper.wait()
            cleanup.drop_lock(self.lock)


def claim() -> Ownership:
    """Claim a free slot, and first remove what a dead owner left there."""
    root = _root()
    disk.require(root, _NEEDED_MEBIBYTES, to="run a cluster", way_out=f"let {_FOLDER_VARIABLE} name another folder")
    for slot in range(SLOTS):
        run = Run(root / str(slot))
        if (lock := cleanup.take_lock(run.folder)) is None:
            continue
        if run.name is None:
            cleanup.remove(run.folder)
            if not _is_ours(
                gateway(slot)
            ):  # otherwise a run under another directory, such as another TMPDIR, has this number
                return _own(run, lock)
        cleanup.drop_lock(lock)
    raise LabError(f"all {SLOTS} places under {root} are taken; `{command_hint.lab('status')}` lists who has them")


def gateway(slot: int) -> str:
    """Return the address of this machine for a run's nodes."""
    return f"10.89.{slot}.1"


def existing() -> list[Run]:
    return [Run(folder) for folder in sorted(_root().iterdir()) if folder.name.isdigit()]


def kept(name: str) -> Run | None:
    return next((run for run in existing() if run.name == name), None)


def remove(run: Run, *, spare_kept: bool = False) -> bool:
    """Remove a run without an owner. Returns False if it has one, or if it is kept and kept runs are excluded."""
    with _held(run) as mine:
        if not mine or (spare_kept and run.name is not None):
            return False
        cleanup.remove(run.folder)
        return True


def remove_abandoned() -> list[Run]:
    """Remove every abandoned run: its owner and reaper were killed, or the machine lost power."""
    return [run for run in existing() if remove(run, spare_kept=True)]


def _root() -> Path:
    """Return the directory of all runs. It is per user: users must not remove or create runs of others."""
    default = Path(tempfile.gettempdir()) / f"kube-node-ready-lab-{os.getuid()}"
    root = Path(os.environ.get(_FOLDER_VARIABLE, default))
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = root.stat().st_uid
    except OSError as error:
        raise LabError(
            f"cannot use {root} for the lab's runs: {error.strerror}. {_FOLDER_VARIABLE} names another"
        ) from error
    if owner != os.getuid():
        raise LabError(f"{root} belongs to user {owner}, not to you; let {_FOLDER_VARIABLE} name another folder")
    return root


def _is_ours(address: str) -> bool:
    """Return whether this machine has the address: binding to any other fails."""
    with socket.socket() as attempt, contextlib.suppress(OSError):
        attempt.bind((address, 0))
        return True
    return False


def _own(run: Run, lock: IO[str]) -> Ownership:
    token = str(uuid.uuid4())
    # Isolated mode: changes of tests to Python's path or environment must not affect the reaper.
    command = [sys.executable, "-I", cleanup.__file__, str(run.folder), token]
    try:
        run.folder.mkdir()
        (run.folder / cleanup.OWNER_MARK).write_text(token)
        return Ownership(run, lock, subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))
    except BaseException:  # also on Ctrl-C: there is no reaper yet
        cleanup.remove(run.folder)
        cleanup.drop_lock(lock)
        raise


@contextlib.contextmanager
def _held(run: Run) -> Iterator[bool]:
    lock = cleanup.take_lock(run.folder)
    try:
        yield lock is not None
    finally:
        if lock:
            cleanup.drop_lock(lock)
