"""What the programs in bin/ do before they are themselves."""

import platform
import subprocess
import sys
from pathlib import Path

from release import executables


def test_modules_are_taken_from_the_archive_where_none_is_compiled(tmp_path: Path) -> None:
    program = an_executable(tmp_path, pythons=[])
    assert run(program, HOME=tmp_path / "home").stdout == f"hello from {program}/any/thing.py\n"
    assert not (tmp_path / "home").exists()


def test_an_archive_with_compiled_modules_is_unpacked_once(tmp_path: Path) -> None:
    program = an_executable(tmp_path)
    first = run(program, XDG_CACHE_HOME=tmp_path / "cache")
    (folder,) = (tmp_path / "cache/kube-node-ready/bin").iterdir()
    assert first.stdout == f"hello from {folder}/thing.py\n"
    written = (folder / "thing.py").stat().st_mtime_ns
    assert run(program, XDG_CACHE_HOME=tmp_path / "cache").stdout == first.stdout
    assert (folder / "thing.py").stat().st_mtime_ns == written


def test_what_was_damaged_since_is_unpacked_again(tmp_path: Path) -> None:
    program = an_executable(tmp_path)
    run(program, XDG_CACHE_HOME=tmp_path / "cache")
    (folder,) = (tmp_path / "cache/kube-node-ready/bin").iterdir()
    (folder / "thing.py").unlink()
    assert run(program, XDG_CACHE_HOME=tmp_path / "cache").stdout == f"hello from {folder}/thing.py\n"
    assert list(folder.parent.iterdir()) == [folder]


def test_where_nothing_can_be_kept_it_runs_all_the_same(tmp_path: Path) -> None:
    program = an_executable(tmp_path)
    (tmp_path / "temporary").mkdir()
    said = run(program, XDG_CACHE_HOME="/proc/nowhere", TMPDIR=tmp_path / "temporary")
    assert said.stdout.startswith(f"hello from {tmp_path}/temporary/")
    assert "XDG_CACHE_HOME" in said.stderr
    assert not list((tmp_path / "temporary").iterdir())


def test_a_python_that_it_has_no_modules_for_is_told_which_it_has(tmp_path: Path) -> None:
    said = run(an_executable(tmp_path, pythons=["2.7"]))
    assert said.returncode == 1
    assert "carries compiled modules for Python 2.7; " in said.stderr


def test_the_same_content_is_the_same_archive() -> None:
    files = {"any/b": b"", "any/a": b""}
    assert executables.archive(files, {}, 0) == executables.archive(dict(reversed(files.items())), {}, 0)


def an_executable(folder: Path, pythons: list[str] | None = None) -> Path:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    content = b"def main():\n    print('hello from', __file__)\n"
    about = {
        "identity": "0123",
        "machine": platform.machine(),
        "pythons": [here] if pythons is None else pythons,
        "target": "thing:main",
    }
    program = folder / "program"
    program.write_bytes(executables.archive({"any/thing.py": content, "cp99/other.py": b""}, about, 0))
    return program


def run(program: Path, **environ: object) -> subprocess.CompletedProcess[str]:
    environment = {name: str(value) for name, value in environ.items()}
    return subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=False)
