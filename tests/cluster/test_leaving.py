"""However a run ends, nothing of it remains: no process, namespace, bridge, mount, cgroup or file."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab
from lab import cleanup, network, runs, waiting
from tests.support.shell import ROOT, machine, traces, wait_gone

# What a dead owner left is removed by the next run, which must not be another test.
pytestmark = pytest.mark.alone
REAL_NODE = "plane.node('a'); plane.wait_for_dns()" if network.is_root() else "plane.simulated_nodes(1)"
OWNER = f"""
import lab, time
with lab.plane() as plane:
    {REAL_NODE}
    print(plane.run.folder, flush=True)
    time.sleep(600)
"""


def start(*command: str) -> subprocess.Popen[str]:
    # Tests that run in the background inherit an ignored Ctrl-C.
    heeding = ["env", "--default-signal=INT", sys.executable, *command]
    return subprocess.Popen(heeding, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def owner() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that has a plane with a node, and that plane's folder."""
    with start("-c", OWNER) as process:
        assert process.stdout
        folder = Path(process.stdout.readline().strip())
        assert set(traces(folder)) >= {"processes", "files"}
        yield process, folder
        process.kill()
    wait_gone(folder)


def reaper_of(folder: Path) -> int:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended since
            words = entry.read_text(errors="replace").split("\0")
            if str(folder) in words and cleanup.__file__ in words:
                return int(entry.parent.name)
    pytest.fail(f"{folder} has no reaper")


def test_a_killed_owner_leaves_nothing(before: dict[str, set[str]], owner: tuple[subprocess.Popen[str], Path]) -> None:
    """Neither what the lab knows how to find, nor anything else."""
    process, folder = owner
    assert leftovers(before)
    process.kill()
    wait_gone(folder)
    waiting.until(f"the machine is as it was ({leftovers(before)})", lambda: not leftovers(before), 180)


@pytest.fixture
def before(plane: lab.Plane) -> dict[str, set[str]]:
    """The machine before the test; the run's shared plane is part of it."""
    plane.check()
    return machine()


def leftovers(before: dict[str, set[str]]) -> dict[str, set[str]]:
    after = machine()
    return {kind: new for kind, old in before.items() if (new := after[kind] - old)}


def test_clean_recovers_after_the_reaper_was_killed(owner: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = owner
    os.kill(reaper_of(folder), signal.SIGKILL)
    process.kill()
    process.wait()
    kinds = {"processes", "files"} | ({"links", "cgroups"} if network.is_root() else set())
    assert set(traces(folder)) == kinds
    done = subprocess.run([sys.executable, "-m", "lab", "clean"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert str(folder) in done.stderr
    assert not traces(folder)


def test_clean_keeps_live_runs(owner: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = owner
    subprocess.run([sys.executable, "-m", "lab", "clean"], cwd=ROOT, capture_output=True, check=True)
    assert process.poll() is None
    assert set(traces(folder)) >= {"processes", "files"}


def test_ctrl_c_leaves_nothing(owner: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = owner
    process.send_signal(signal.SIGINT)
    assert process.wait(120) != 0
    assert not traces(folder)


def test_an_exception_leaves_nothing() -> None:
    with pytest.raises(ZeroDivisionError), lab.plane() as plane:
        folder = plane.run.folder
        _ = 1 / 0
    assert not traces(folder)


def test_a_slot_whose_owner_died_is_used_again(owner: tuple[subprocess.Popen[str], Path]) -> None:
    """Starting a plane first removes the leftovers of dead runs, so they never accumulate."""
    process, folder = owner
    os.kill(reaper_of(folder), signal.SIGKILL)
    process.kill()
    process.wait()
    claimed = runs.claim()
    assert claimed.run.folder == folder
    assert set(traces(folder)) == {"files"}
    claimed.release()
    assert not traces(folder)


def test_a_reaper_keeps_the_slots_next_owner() -> None:
    """However late it wakes up."""
    first = runs.claim()
    os.kill(first.reaper.pid, signal.SIGSTOP)
    cleanup.remove(first.run.folder)
    cleanup.drop_lock(first.lock)
    second = runs.claim()
    assert second.run.folder == first.run.folder
    os.kill(first.reaper.pid, signal.SIGCONT)
    assert first.reaper.stdin
    first.reaper.stdin.close()
    first.reaper.wait()
    assert second.run.folder.exists()
    second.release()


def test_a_folder_of_another_user_is_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a shared temporary folder anyone can make it first, and put programs there for us to run."""
    monkeypatch.setenv("KUBE_NODE_READY_LAB_DIR", str(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    with pytest.raises(lab.LabError, match=f"{tmp_path} belongs to user {os.geteuid()}, not to you"):
        runs.claim()
