"""What the programs in bin/ do before they are themselves."""

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from release import executables, wheels
from release.content_cache import ContentCache
from release.wheels import Target, Wheel
from tests.support.shell import ROOT


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


def test_damaged_files_are_unpacked_again(tmp_path: Path) -> None:
    program = an_executable(tmp_path)
    run(program, XDG_CACHE_HOME=tmp_path / "cache")
    (folder,) = (tmp_path / "cache/kube-node-ready/bin").iterdir()
    (folder / "thing.py").unlink()
    assert run(program, XDG_CACHE_HOME=tmp_path / "cache").stdout == f"hello from {folder}/thing.py\n"
    assert list(folder.parent.iterdir()) == [folder]


def test_without_a_cache_it_still_runs(tmp_path: Path) -> None:
    program = an_executable(tmp_path)
    (tmp_path / "temporary").mkdir()
    output = run(program, XDG_CACHE_HOME="/proc/nowhere", TMPDIR=tmp_path / "temporary")
    assert output.stdout.startswith(f"hello from {tmp_path}/temporary/")
    assert "XDG_CACHE_HOME" in output.stderr
    assert not list((tmp_path / "temporary").iterdir())


def test_an_unsupported_python_gets_an_error_that_lists_the_supported_ones(tmp_path: Path) -> None:
    output = run(an_executable(tmp_path, pythons=["2.7"]))
    assert output.returncode == 1
    assert "carries compiled modules for Python 2.7; " in output.stderr


def test_the_same_content_is_the_same_archive() -> None:
    files = {"any/b": b"", "any/a": b""}
    assert executables.archive(files, {}, 0) == executables.archive(dict(reversed(files.items())), {}, 0)


@pytest.mark.parametrize(
    ("program", "requirements"),
    [
        ("kube-node-ready", "requirements/cli.txt"),
        ("kube-node-ready-controller", "requirements/runtime.txt"),
        ("kube-node-ready-worker", "requirements/runtime.txt"),
    ],
)
def test_only_the_executable_for_people_contains_their_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, requirements: str
) -> None:
    fetched: list[str] = []

    def fetch(_: Path, __: Target, ___: ContentCache, file: Path) -> list[Wheel]:
        fetched.append(str(file))
        return []

    monkeypatch.setattr(wheels, "fetch", fetch)
    monkeypatch.setattr(executables, "_members", lambda *_: ())
    own = Wheel("kube-node-ready", "1", "a.whl", "", tmp_path)
    executables.Workshop(ROOT, ContentCache(tmp_path / "cache"), own, 0).make(program, tmp_path)
    assert set(fetched) == {requirements}


HELLO = b"def main():\n    print('hello from', __file__)\n"


def an_executable(folder: Path, pythons: list[str] | None = None, content: bytes = HELLO) -> Path:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
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


EVIL = "import sys\nsys.stderr.write('EVIL')\n"
ANOTHER = 12345
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return an_executable(tmp_path)


@pytest.fixture
def cache(tmp_path: Path, program: Path) -> Path:
    """A cache in which the program is unpacked already."""
    run(program, XDG_CACHE_HOME=tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that everyone can enter; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # where everyone can go
        Path(folder).chmod(0o755)
        yield Path(folder)


def unpacked(cache: Path) -> Path:
    (folder,) = (cache / "kube-node-ready/bin").iterdir()
    return folder


def give_to_another(*paths: Path) -> None:
    for path in paths:
        for one in (path, *path.rglob("*")):
            os.chown(one, ANOTHER, ANOTHER, follow_symlinks=False)


# Each is something that Python would import before it imports what belongs there.
ADDED = {
    "another file": "json.py",
    "another package": "json/__init__.py",
    "a compiled module": "json.cpython-311-x86_64-linux-gnu.so",
    "bytecode without a source": "json.pyc",
    "bytecode of another module": f"__pycache__/json.{sys.implementation.cache_tag}.pyc",
}
OPENED = {"a folder for all": ".", "a file for all": "thing.py", "a folder of bytecode for all": "__pycache__"}


def tampered(folder: Path, what: str) -> None:
    module, elsewhere = folder / "thing.py", folder.parent.parent.parent / "elsewhere.py"
    if what in ADDED:
        (folder / ADDED[what]).parent.mkdir(exist_ok=True)
        (folder / ADDED[what]).write_text(EVIL)
    elif what in OPENED:
        (folder / OPENED[what]).chmod(0o777)
    elif what == "a symlink":
        module.rename(elsewhere)
        module.symlink_to(elsewhere)
    else:
        size = module.stat().st_size
        module.write_text(f"{EVIL}def main(): print('hello')".ljust(size)[:size])


TAMPERED = [*ADDED, *OPENED, "a symlink", "content of the same size"]


@pytest.mark.parametrize("what", TAMPERED)
def test_a_cache_that_was_tampered_with_is_unpacked_again(program: Path, cache: Path, what: str) -> None:
    folder = unpacked(cache)
    identity = folder.stat().st_ino
    tampered(folder, what)
    output = run(program, XDG_CACHE_HOME=cache)
    assert (output.stdout, output.stderr) == (f"hello from {folder}/thing.py\n", "")
    assert folder.stat().st_ino != identity
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    assert sorted(path.name for path in folder.iterdir()) == ["__pycache__", "thing.py"]


@needs_root
@pytest.mark.parametrize("what", ["the folder", "a file", "a folder of bytecode"])
def test_files_of_another_user_are_unpacked_again(program: Path, cache: Path, what: str) -> None:
    folder = unpacked(cache)
    give_to_another({"the folder": folder, "a file": folder / "thing.py"}.get(what, folder / "__pycache__"))
    assert run(program, XDG_CACHE_HOME=cache).stdout == f"hello from {folder}/thing.py\n"
    assert {one.stat().st_uid for one in (folder, *folder.rglob("*"))} == {os.geteuid()}


@needs_root
@pytest.mark.parametrize("above", [".", "kube-node-ready", "kube-node-ready/bin"])
def test_a_cache_below_another_users_folder_is_not_used(program: Path, cache: Path, tmp_path: Path, above: str) -> None:
    """`sudo -E` keeps XDG_CACHE_HOME, and that user can exchange the folder at any time."""
    unpacked(cache).joinpath("json.py").write_text(EVIL)
    os.chown(cache / above, ANOTHER, ANOTHER)
    before = sorted(cache.rglob("*"))
    output = run(program, XDG_CACHE_HOME=cache, TMPDIR=tmp_path)
    assert output.stdout.startswith(f"hello from {tmp_path}/kube-node-ready-")
    assert f"unpacking for this run only: {os.path.normpath(cache / above)} belongs to user {ANOTHER}" in output.stderr
    assert sorted(cache.rglob("*")) == before


@needs_root
def test_nothing_is_made_in_another_users_cache(program: Path, tmp_path: Path) -> None:
    """Or that user could not use it any more."""
    (tmp_path / "cache").mkdir()
    os.chown(tmp_path / "cache", ANOTHER, ANOTHER)
    assert run(program, XDG_CACHE_HOME=tmp_path / "cache").returncode == 0
    assert not list((tmp_path / "cache").iterdir())


@needs_root
def test_another_users_folder_for_temporary_files_is_not_used(program: Path, tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    os.chown(tmp_path / "temporary", ANOTHER, ANOTHER)
    output = run(program, XDG_CACHE_HOME="/proc/nowhere", TMPDIR=tmp_path / "temporary")
    assert output.stdout.startswith("hello from /tmp/kube-node-ready-")


@pytest.mark.parametrize("above", [".", "kube-node-ready", "kube-node-ready/bin"])
def test_a_cache_that_others_can_write_to_is_not_used(program: Path, open_folder: Path, above: str) -> None:
    cache = open_folder / "cache"
    run(program, XDG_CACHE_HOME=cache)
    for path in (cache, cache / "kube-node-ready", cache / above):
        path.chmod(0o777 if path == cache / above else 0o755)
    output = run(program, XDG_CACHE_HOME=cache, TMPDIR=open_folder)
    assert output.stdout.startswith(f"hello from {open_folder}/kube-node-ready-")
    assert f"{os.path.normpath(cache / above)} can be written to by others" in output.stderr


def test_a_group_writable_cache_in_a_private_folder_is_used(program: Path, tmp_path: Path) -> None:
    """A umask of 002 makes ~/.cache writable for a group, in a home folder that other users cannot enter."""
    tmp_path.chmod(0o700)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o775)
    assert run(program, XDG_CACHE_HOME=tmp_path / "cache").stderr == ""


@pytest.mark.parametrize("umask", ["000", "002", "022", "077"])
def test_it_is_unpacked_privately_with_any_umask(program: Path, open_folder: Path, umask: str) -> None:
    tmp_path = open_folder
    command = f'umask {umask}; exec "$0" "$@"'
    (tmp_path / "cache").mkdir(mode=0o755)
    identities = set()
    for _ in range(3):
        words = ["sh", "-c", command, sys.executable, str(program)]
        environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        output = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        assert output.stderr == ""
        identities.add(unpacked(tmp_path / "cache").stat().st_ino)
    assert len(identities) == 1
    assert list(unpacked(tmp_path / "cache").rglob("*.pyc")), "bytecode is kept"
    for path in (tmp_path / "cache").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0 or path.suffix == ".pyc", path
        assert path.stat().st_mode & 0o022 == 0, path


@pytest.fixture
def pythons(tmp_path: Path) -> Path:
    """A folder with a python3 that is not of a virtual environment, since those have no user site directory."""
    folder = tmp_path / "pythons"
    folder.mkdir()
    (folder / "python3").symlink_to(os.path.realpath(sys.executable))
    return folder


def started(program: Path, pythons: Path, *words: str, **environ: object) -> subprocess.CompletedProcess[str]:
    """By its first line, as a shell starts it."""
    program.chmod(0o755)
    environment = {"PATH": f"{pythons}:/usr/bin:/bin"} | {name: str(value) for name, value in environ.items()}
    return subprocess.run([program, *words], env=environment, capture_output=True, text=True, check=False)


def test_a_user_site_directory_of_another_home_is_not_used(program: Path, pythons: Path, tmp_path: Path) -> None:
    """`sudo -E` can keep HOME, and Python runs lines of .pth files that it finds below it before any other code."""
    home, cache = tmp_path / "home", tmp_path / "cache"
    site = home / f".local/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    site.mkdir(parents=True)
    (site / "evil.pth").write_text("import sys; sys.stderr.write('EVIL')\n")
    (site / "usercustomize.py").write_text(EVIL)
    environ = {"HOME": str(home), "PATH": str(pythons)}
    shown = subprocess.run(["python3", "-c", ""], env=environ, capture_output=True, text=True, check=True)
    assert "EVIL" in shown.stderr, "the attack works on Python itself"
    output = started(program, pythons, HOME=home, XDG_CACHE_HOME=cache)
    assert (output.returncode, output.stderr) == (0, "")
    assert output.stdout == f"hello from {unpacked(cache)}/thing.py\n"


def test_variables_of_python_add_no_modules(program: Path, pythons: Path, tmp_path: Path) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "path/json.py").write_text(EVIL)
    output = started(program, pythons, PYTHONPATH=tmp_path / "path", XDG_CACHE_HOME=tmp_path / "cache")
    assert (output.returncode, output.stderr) == (0, "")


def test_arguments_arrive_as_they_were_given(tmp_path: Path, pythons: Path) -> None:
    program = an_executable(tmp_path, content=b"import sys\n\ndef main():\n    print(sys.argv[1:])\n")
    words = ["a b", "", "$HOME", "-I", "*", "'"]
    assert started(program, pythons, *words, XDG_CACHE_HOME=tmp_path / "cache").stdout == f"{words}\n"


def test_a_missing_python_is_an_error(program: Path, tmp_path: Path) -> None:
    program.chmod(0o755)
    output = subprocess.run([program], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert output.returncode == 127
    assert "python3" in output.stderr
