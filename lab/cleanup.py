"""Remove everything that a run leaves in the system.

A run is a directory. Everything that the lab creates can be found from its path alone: its processes carry the path
in their environment, its network links and cgroups are named after it, its mounts lie beneath it (or in mount
namespaces that end with their processes). So nothing has to be recorded when it is created, and there is no moment at
which a SIGKILL could leave something that `remove` does not find.

Started as a program, this file is the reaper: it waits until its standard input closes, which the kernel ensures
however the run's owner exits, and then removes the run if its owner did not. So it uses only the standard library.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

MARK = "KUBE_NODE_READY_LAB_RUN"
KEPT = "kept.json"
OWNER_MARK = "owner"
_PATIENCE_SECONDS = 20.0


def remove(folder: Path) -> None:
    """Stop and delete everything of the run in `folder`, and the directory. The caller must hold the slot's lock."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while pids := list(processes(folder)):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {pids} of {folder} survive SIGKILL")
        time.sleep(0.02)
    for link in links(folder):
        _quietly("ip", "link", "delete", link)
    for mount in mounts(folder):
        _quietly("umount", "--lazy", mount)
    for cgroup in cgroups(folder):
        remove_cgroup(cgroup)
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
        if time.monotonic() > deadline:
            raise TimeoutError(f"{folder} cannot be deleted")


def processes(folder: Path) -> Iterator[int]:
    """Yield every visible process of the run. (A node's containers end with the node's first process.)"""
    wanted = f"{MARK}={folder}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)


def links(folder: Path) -> list[str]:
    """Return the run's bridge and the host ends of its nodes' veth pairs."""
    bridge = bridge_name(folder)
    present = [link.name for link in Path("/sys/class/net").iterdir()]
    return [name for name in present if name == bridge or name.startswith(f"{bridge}-")]


def mounts(folder: Path) -> list[str]:
    """Return the mount points below the run's directory, deepest first."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return sorted((point for point in points if point.startswith(f"{folder}/")), reverse=True)


def cgroups(folder: Path) -> list[Path]:
    """Return the run's control groups, one in each hierarchy (there is only one with cgroup v2)."""
    groups = [hierarchy / cgroup_name(folder) for hierarchy in cgroup_hierarchies()]
    return [group for group in groups if group.is_dir()]


def cgroup_hierarchies() -> list[Path]:
    """Return where control groups can be created: one place with cgroup v2, one per controller with v1."""
    mounted = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [Path(fields[1]) for fields in mounted if fields[2] in ("cgroup", "cgroup2")]


def take_lock(folder: Path) -> IO[str] | None:
    """Return the lock of a run's slot, or None if it is taken. The holder deletes its file: see `drop_lock`."""
    path = folder.with_name(f".{folder.name}.lock")
    while True:
        lock = path.open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(lock.fileno()).st_ino:
                return lock
        lock.close()  # the file was deleted while we opened it, so this lock is void


def drop_lock(lock: IO[str]) -> None:
    """Release a lock. The file is deleted first; a process that opened it meanwhile notices that."""
    Path(lock.name).unlink()
    lock.close()


def bridge_name(folder: Path) -> str:
    """Return a name that has at most 15 characters with a node's number appended, the kernel's limit."""
    return f"knr{_fingerprint(folder)}{folder.name}"


def cgroup_name(folder: Path) -> str:
    return f"kube-node-ready-lab-{_fingerprint(folder)}-{folder.name}"


def _fingerprint(folder: Path) -> str:
    """Return a tag that distinguishes this slot from the same one under another directory, which must stay."""
    return hashlib.sha256(str(folder).encode()).hexdigest()[:4]


def remove_cgroup(top: Path) -> None:
    """Remove a control group and all below it. Only empty ones can be removed, and exits are noticed with a delay."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for group in sorted([top, *(path for path in top.rglob("*") if path.is_dir())], reverse=True):
        while group.exists():
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            if time.monotonic() > deadline:
                raise TimeoutError(f"the cgroup {group} cannot be removed")
            time.sleep(0.02)


def _quietly(*command: str) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def reap(folder: Path, token: str) -> None:
    """Remove the run that has this token when its owner is dead, but not its successor or a run that is kept."""
    while _has_token(folder, token):
        if lock := take_lock(folder):
            if _has_token(folder, token):
                remove(folder)
            drop_lock(lock)
        else:
            time.sleep(0.02)  # the pipe of an exiting owner can close before its lock is released


def _has_token(folder: Path, token: str) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return (folder / OWNER_MARK).read_text() == token and not (folder / KEPT).exists()
    return False


if __name__ == "__main__":
    sys.stdin.read()
    reap(Path(sys.argv[1]), sys.argv[2])
