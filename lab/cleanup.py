"""What a run leaves in the system, and how to remove every trace of it.

A run is a folder. Everything the lab makes can be found from that folder's path alone: its processes carry the path
in their environment, its network links and cgroups are named after it, its mounts lie beneath it (or in mount
namespaces that die with their processes). So nothing has to be written down at the moment it is made, and there is no
moment at which a SIGKILL could leave something that `remove` does not find.

Started as a program, this file is the reaper: it waits until its standard input closes, which the kernel sees to
however the run's owner ends, and then removes the run if its owner did not. So it uses the standard library and nothing
else of the lab.
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
    """Stop and delete all that belongs to the run in `folder`, and the folder. For whoever holds the slot's lock."""
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
    """Every process of the run that the kernel shows us. (A node's containers die with the node's first process.)"""
    wanted = f"{MARK}={folder}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)


def links(folder: Path) -> list[str]:
    """The run's bridge and the host's ends of its nodes' cables."""
    bridge = bridge_name(folder)
    present = [link.name for link in Path("/sys/class/net").iterdir()]
    return [name for name in present if name == bridge or name.startswith(f"{bridge}-")]


def mounts(folder: Path) -> list[str]:
    """Mount points beneath the run's folder, deepest first."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return sorted((point for point in points if point.startswith(f"{folder}/")), reverse=True)


def cgroups(folder: Path) -> list[Path]:
    """The run's control groups, one in each hierarchy (there is only one hierarchy with cgroup v2)."""
    groups = [hierarchy / cgroup_name(folder) for hierarchy in cgroup_hierarchies()]
    return [group for group in groups if group.is_dir()]


def cgroup_hierarchies() -> list[Path]:
    """Where control groups can be made: one place with cgroup v2, one for each controller with v1."""
    mounted = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [Path(fields[1]) for fields in mounted if fields[2] in ("cgroup", "cgroup2")]


def take_lock(folder: Path) -> IO[str] | None:
    """The lock of a run's slot, or None if someone has it. Whoever drops a lock deletes its file: see `drop_lock`."""
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
        lock.close()  # of a file that was deleted while we opened it: the lock of nothing


def drop_lock(lock: IO[str]) -> None:
    """Delete first, while it is still ours; who opened the file meanwhile will notice."""
    Path(lock.name).unlink()
    lock.close()


def bridge_name(folder: Path) -> str:
    """At most 15 characters with a node's number behind it: that is all the kernel takes."""
    return f"knr{_fingerprint(folder)}{folder.name}"


def cgroup_name(folder: Path) -> str:
    return f"kube-node-ready-lab-{_fingerprint(folder)}-{folder.name}"


def _fingerprint(folder: Path) -> str:
    """Tells slot 0 here from slot 0 under another folder, which is not ours to remove."""
    return hashlib.sha256(str(folder).encode()).hexdigest()[:4]


def remove_cgroup(top: Path) -> None:
    """With all below it. A group can be removed once it is empty; the kernel takes a moment to notice deaths in it."""
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
    """Remove the run that has this token, once its owner is dead; but not its successor, nor a run that is kept."""
    while _has_token(folder, token):
        if lock := take_lock(folder):
            if _has_token(folder, token):
                remove(folder)
            drop_lock(lock)
        else:
            time.sleep(0.02)  # a dying owner's pipe may close before its lock is free


def _has_token(folder: Path, token: str) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return (folder / OWNER_MARK).read_text() == token and not (folder / KEPT).exists()
    return False


if __name__ == "__main__":
    sys.stdin.read()
    reap(Path(sys.argv[1]), sys.argv[2])
