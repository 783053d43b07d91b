"""However a run ends, nothing of it remains: no process, namespace, bridge, mount, cgroup or file."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab
from lab import network, remains, runs, waiting

ROOT = Path(__file__).parents[2]
REAL_NODE = "plane.node('a'); plane.wait_for_dns()" if network.is_root() else "plane.fake_nodes(1)"
OWNER = f"""
import lab, time
with lab.plane() as plane:
    {REAL_NODE}
    print(plane.run.folder, flush=True)
    time.sleep(600)
"""


def traces(folder: Path) -> dict[str, object]:
    """Everything of a run that can be seen on this machine, by kind; empty when it is gone."""
    found = {
        "processes": list(remains.processes(folder)),
        "links": remains.links(folder),
        "mounts": remains.mounts(folder),
        "cgroups": remains.cgroups(folder),
        "files": [folder] if folder.exists() else [],
    }
    return {kind: things for kind, things in found.items() if things}


def wait_gone(folder: Path) -> None:
    waiting.until(f"{folder} is gone ({traces(folder)})", lambda: not traces(folder), 30)


def start(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def owner() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that has a plane with a node, and that plane's folder."""
    with start("-c", OWNER) as process:
        assert process.stdout
        folder = Path(process.stdout.readline().strip())
        assert set(traces(folder)) >= {"processes", "files"}
        yield process, folder
        process.kill()


def reaper_of(folder: Path) -> int:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        words = entry.read_text(errors="replace").split("\0")
        if str(folder) in words and remains.__file__ in words:
            return int(entry.parent.name)
    pytest.fail(f"{folder} has no reaper")


def test_a_killed_owner_leaves_nothing(owner: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = owner
    process.kill()
    wait_gone(folder)


def test_clean_mends_even_when_the_reaper_was_killed_too(owner: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = owner
    os.kill(reaper_of(folder), signal.SIGKILL)
    process.kill()
    process.wait()
    kinds = {"processes", "files"} | ({"links", "cgroups"} if network.is_root() else set())
    assert set(traces(folder)) == kinds
    done = subprocess.run([sys.executable, "-m", "lab", "clean"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert str(folder) in done.stderr
    assert not traces(folder)


def test_clean_spares_whoever_is_alive(owner: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = owner
    subprocess.run([sys.executable, "-m", "lab", "clean"], cwd=ROOT, capture_output=True, check=True)
    assert process.poll() is None
    assert set(traces(folder)) >= {"processes", "files"}


def test_ctrl_c_leaves_nothing(owner: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = owner
    process.send_signal(signal.SIGINT)
    assert process.wait(30) != 0
    assert not traces(folder)


def test_an_exception_leaves_nothing() -> None:
    with pytest.raises(ZeroDivisionError), lab.plane() as plane:
        folder = plane.run.folder
        _ = 1 / 0
    assert not traces(folder)


def test_a_slot_whose_owner_died_is_used_again(owner: tuple[subprocess.Popen[str], Path]) -> None:
    """Starting a plane first takes away what the dead left, so runs never pile up."""
    process, folder = owner
    os.kill(reaper_of(folder), signal.SIGKILL)
    process.kill()
    process.wait()
    claimed = runs.claim()
    assert claimed.run.folder == folder
    claimed.release()
    assert not traces(folder)
