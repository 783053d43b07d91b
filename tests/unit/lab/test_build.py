"""Programs from Go modules: built once, kept by content, noticed when damaged, and clear about what is missing."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab import build
from lab.errors import LabError

# With package net, a program is linked to the machine's C library unless that is forbidden.
MAIN = 'package main\n\nimport (\n\t_ "net"\n\t"os"\n)\n\nfunc main() { os.Exit(7) }\n'


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> build.Target:
    """A module with one small program, and an empty cache."""
    go_cache = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    monkeypatch.setenv("GOCACHE", go_cache)  # Go's own cache would move along with the next line, and cost minutes
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    module = tmp_path / "module"
    module.mkdir()
    (module / "go.mod").write_text("module small\n\ngo 1.21\n")
    (module / "go.sum").write_text("")
    (module / "main.go").write_text(MAIN)
    return build.Target("small", module, programs={"small": "."}, minutes=1, mebibytes=50, links={"small": ["alias"]})


def exit_code(program: Path) -> int:
    return subprocess.run([program], check=False).returncode


def test_a_program_is_built_once(target: build.Target) -> None:
    folder = build.build(target)
    assert exit_code(folder / "small") == exit_code(folder / "alias") == 7
    built = (folder / "small").stat().st_mtime_ns
    assert build.build(target) == folder
    assert (folder / "small").stat().st_mtime_ns == built


def test_a_program_needs_nothing_of_the_machine_it_runs_on(target: build.Target) -> None:
    program = build.build(target) / "small"
    output = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    assert "not a dynamic executable" in output.stdout + output.stderr


def test_another_source_is_another_program(target: build.Target) -> None:
    before = build.build(target)
    (target.module / "main.go").write_text(MAIN.replace("7", "8"))
    after = build.build(target)
    assert (exit_code(before / "small"), exit_code(after / "small")) == (7, 8)


def test_other_flags_are_another_program(target: build.Target) -> None:
    assert build.build(target) != build.build(dataclasses.replace(target, flags=["-ldflags", "-s"]))


@pytest.mark.parametrize(
    "damage",
    ["truncated", "overwritten", "deleted", "link lost", "manifest lost", "not a manifest", "manifest garbled"],
)
def test_a_damaged_build_is_noticed_and_redone(target: build.Target, damage: str) -> None:
    folder = build.build(target)
    program, manifest = folder / "small", folder / "manifest.json"
    content = program.read_bytes()
    match damage:
        case "truncated":
            program.write_bytes(content[:-100])
        case "overwritten":
            program.write_bytes(content[:-100] + bytes(100))
        case "deleted":
            program.unlink()
        case "link lost":
            (folder / "alias").unlink()
        case "not a manifest":
            manifest.write_text("[]")
        case "manifest lost":
            manifest.unlink()
        case _:
            manifest.write_text("{")
    assert exit_code(build.build(target) / "alias") == 7
    assert program.read_bytes() == content


def test_a_copy_with_other_times_is_still_the_same_program(target: build.Target) -> None:
    """A restored cache need not be built again: its content proves itself."""
    program = build.build(target) / "small"
    os.utime(program, (1, 1))
    build.build(target)
    assert program.stat().st_mtime == 1


def test_an_interrupted_build_leaves_no_program_behind(target: build.Target) -> None:
    """Killed in the middle, it never looks finished, and the next attempt succeeds."""
    script = f"""
import os, signal
from pathlib import Path
from lab import build
build._take_along = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
module = Path({str(target.module)!r})
options = dict(programs={{"small": "."}}, minutes=1, mebibytes=50, links={{"small": ["alias"]}})
build.build(build.Target("small", module, **options))
"""
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert killed.returncode == -9
    assert [path.name for path in build.cache().iterdir() if (path / "manifest.json").exists()] == []
    assert exit_code(build.build(target) / "small") == 7


def test_leftovers_of_killed_builds_are_removed(target: build.Target) -> None:
    folder = build.build(target)
    litter = folder.with_name(f"{folder.name}.unfinished")
    litter.mkdir()
    (litter / "half").touch()
    (folder / "small").unlink()
    build.build(target)
    assert not litter.exists()
    assert not (folder / "half").exists()


def test_two_concurrent_builders_build_once(target: build.Target, capfd: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(build.build, [target, target])
    assert first == second
    assert capfd.readouterr().err.count("lab: building small (") == 1


def test_a_compile_error_is_shown_unmodified(target: build.Target) -> None:
    (target.module / "main.go").write_text("package main\n\nfunc main() { undefinedThing() }\n")
    with pytest.raises(LabError, match=r"small could not be built:\n(.|\n)*undefined: undefinedThing"):
        build.build(target)


def test_an_old_go_is_reported_in_one_line(
    target: build.Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "go"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho go version go1.20.1 linux/amd64\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=":")
    with pytest.raises(
        LabError, match=r"^Go 1\.21 or newer is needed to build small, and .*go1\.20\.1.*: install it, or"
    ):
        build.build(target)


def test_no_go_is_reported_in_one_line(target: build.Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LabError, match=r"^Go 1\.21 or newer is needed to build small, and there is no `go` in PATH"):
        build.build(target)


def test_the_assets_of_the_environment_are_used_and_nothing_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etcd").touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    programs = build.programs()
    assert programs.path("etcd") == tmp_path / "etcd"
    with pytest.raises(
        LabError, match=f"there is no kubelet in {tmp_path}; KUBEBUILDER_ASSETS must hold every program"
    ):
        programs.path("kubelet")


def test_assets_that_are_not_a_folder_are_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", "/nowhere")
    with pytest.raises(LabError, match="KUBEBUILDER_ASSETS names /nowhere, which is not a folder"):
        build.programs()


def test_an_unknown_kubernetes_version_is_reported_with_the_known_ones() -> None:
    with pytest.raises(LabError, match=r"no Kubernetes '1\.2\.3' in .*; there are 1\.31\.4, 1\.36\.3"):
        build.kubernetes("1.2.3")


@pytest.mark.usefixtures("as_root")
class TestAFullDisk:
    """A real one: a file system of one megabyte."""

    @pytest.fixture(autouse=True)
    def small_cache(self, tmp_path: Path) -> Iterator[None]:
        cache = tmp_path / "cache"
        cache.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", cache], check=True)
        yield
        subprocess.run(["umount", cache], check=True)

    def test_is_reported_in_one_line_before_the_build(self, target: build.Target) -> None:
        with pytest.raises(
            LabError, match=r"has 1 MiB free, and to build small takes about 50 MiB: make room, or set XDG_CACHE_HOME"
        ):
            build.build(target)

    def test_is_reported_in_one_line_during_the_build(self, target: build.Target) -> None:
        greedy = dataclasses.replace(target, mebibytes=0)
        with pytest.raises(LabError, match="the disk is full: small could not be built"):
            build.build(greedy)
