"""The lab's command line in processes of its own, and what a run leaves on the machine."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lab import cleanup, runs, waiting

ROOT = Path(__file__).parents[2]
NAME = f"test-{os.getpid()}"


def run_lab(*words: str, prefix: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*prefix, sys.executable, "-m", "lab", "--name", NAME, *words]
    merged = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=merged)


@contextlib.contextmanager
def kept_cluster(*words: str, prefix: tuple[str, ...] = ()) -> Iterator[subprocess.CompletedProcess[str]]:
    """`up`, and at the end `down`; also if this process is killed on the way, since a kept cluster has no reaper."""
    down = [*prefix, sys.executable, "-m", "lab", "--name", NAME, "down"]
    guard = ["sh", "-c", 'cat >/dev/null; exec "$@"', "sh", *down]
    silent = subprocess.DEVNULL
    with subprocess.Popen(guard, cwd=ROOT, stdin=subprocess.PIPE, stderr=silent, start_new_session=True):
        yield run_lab("up", *words, prefix=prefix)


def kept_folder() -> Path:
    run = runs.kept(NAME)
    assert run
    return run.folder


def traces(folder: Path) -> dict[str, object]:
    """Everything of a run that can be found from its folder, by kind; empty when it is gone."""
    found = {
        "processes": list(cleanup.processes(folder)),
        "links": cleanup.links(folder),
        "mounts": cleanup.mounts(folder),
        "cgroups": cleanup.cgroups(folder),
        "files": [path for path in (folder, folder.with_name(f".{folder.name}.lock")) if path.exists()],
    }
    return {kind: things for kind, things in found.items() if things}


def wait_gone(folder: Path) -> None:
    waiting.until(f"{folder} is gone", lambda: not traces(folder), 180)


def machine() -> dict[str, set[str]]:
    """What the whole machine holds, seen without the lab's own eyes."""
    spaces = [path for kind in ("net", "mnt", "pid", "uts", "ipc") for path in Path("/proc").glob(f"[0-9]*/ns/{kind}")]
    return {
        "namespaces": {link for path in spaces if (link := _link(path))},
        "links": {path.name for path in Path("/sys/class/net").iterdir()},
        "mounts": {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()},
        "cgroups": {folder for folder, _, _ in os.walk("/sys/fs/cgroup")},
        "programs": {
            f"{path.parent.name} {name}" for path in Path("/proc").glob("[0-9]*/comm") if (name := _program(path))
        },
    }


def _link(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return str(path.readlink())
    return None


def _program(comm: Path) -> str | None:
    """Those a run consists of, containers included."""
    with contextlib.suppress(OSError):
        name = comm.read_text().strip()
        if name.startswith(("etcd", "kube", "kwok", "containerd", "coredns", "toolbox", "nsenter", "unshare")):
            return name
    return None
