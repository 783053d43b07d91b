"""The image as a node would run it: as user 1000, on a read-only root. Built twice, with nothing shared."""

import ast
import json
import os
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kube_node_ready import __version__
from release import contents, debian, image_spec, wheels
from release.content_cache import ContentCache, default_folder, sha256
from release.rootfs import of_deb, of_wheel
from release.wheels import Target

pytestmark = [pytest.mark.usefixtures("as_root"), pytest.mark.timeout(900)]
CHECKOUT = Path(__file__).parent.parent.parent
BUILD = {"VERSION": "9.8.7", "COMMIT_HASH": "abc1234", "BUILD_DATE": "2026-01-02T03:04:05Z"}
IMAGE = "example.com/kube-node-ready:9.8.7"
MEGABYTE = 1_000_000
# Read-only, as user and group 1000 without any other group, in namespaces of its own.
ENTER = """
mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"
exec chroot --userspec=1000:1000 --groups= "$0" "$@"
"""


# They need what was left out, and are not used. (An encoding that cannot be imported is an unknown encoding.)
NEVER_IMPORTED = {
    "asyncio/__main__.py",
    "dist-packages/truststore/_macos.py",
    "dist-packages/truststore/_windows.py",
    "dist-packages/uvloop/_testbase.py",
    "multiprocessing/sharedctypes.py",
}


@dataclass(frozen=True)
class Built:
    archive: Path
    bill: Path

    @property
    def blobs(self) -> dict[str, bytes]:
        def content() -> Iterator[tuple[str, bytes]]:
            with tarfile.open(self.archive) as tar:
                for member in tar:
                    file = tar.extractfile(member)
                    assert file
                    yield member.name, file.read()

        return dict(content())

    def manifests(self) -> dict[str, dict[str, Any]]:
        """By architecture."""
        top = json.loads(self.blobs["index.json"])
        index = json.loads(self.blob(top["manifests"][0]["digest"]))
        return {
            found["platform"]["architecture"]: json.loads(self.blob(found["digest"])) for found in index["manifests"]
        }

    def blob(self, digest: str) -> bytes:
        return self.blobs[f"blobs/{digest.replace(':', '/')}"]


def build(folder: Path) -> Built:
    words = [sys.executable, "-m", "release", f"--cache={folder}/cache", "image", f"--into={folder}"]
    subprocess.run(words, cwd=CHECKOUT, env={**os.environ, **BUILD}, check=True)
    return Built(folder / "kube-node-ready-9.8.7.tar", folder / "kube-node-ready-9.8.7.cdx.json")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def root(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image for this machine, unpacked layer by layer as a runtime does."""
    folder = tmp_path_factory.mktemp("root")
    folder.chmod(0o755)
    for layer in built.manifests()[wheels.machine_architecture()]["layers"]:
        subprocess.run(
            ["tar", "--extract", "--gzip", "--same-permissions", f"--directory={folder}"],
            input=built.blob(layer["digest"]),
            check=True,
        )
    return folder


def run(root: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    entered = ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-ec", ENTER, str(root), *words]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environ}
    return subprocess.run(entered, env=environment, capture_output=True, text=True, check=False)


def imported(source: bytes) -> set[str]:
    """What a module imports as soon as it is imported, unless it tries to and would do without."""
    found = set()
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
            found.add(statement.module.partition(".")[0])
    return found


def test_two_builds_produce_the_same_image(built: Built, tmp_path: Path) -> None:
    again = build(tmp_path)
    assert sha256(again.archive.read_bytes()) == sha256(built.archive.read_bytes())
    assert again.bill.read_bytes() == built.bill.read_bytes()


@pytest.mark.parametrize("architecture", image_spec.ARCHITECTURES)
def test_it_is_small(built: Built, architecture: str) -> None:
    assert sum(layer["size"] for layer in built.manifests()[architecture]["layers"]) < 40 * MEGABYTE


@pytest.mark.parametrize("architecture", image_spec.ARCHITECTURES)
def test_the_image_is_labeled_and_runs_unprivileged(built: Built, architecture: str) -> None:
    config = json.loads(built.blob(built.manifests()[architecture]["config"]["digest"]))
    assert config["architecture"] == architecture
    assert config["config"]["User"] == "1000:1000"
    assert config["config"]["Entrypoint"] == ["/kube-node-ready"]
    labels = config["config"]["Labels"]
    assert labels["org.opencontainers.image.version"] == "9.8.7"
    assert labels["org.opencontainers.image.revision"] == "abc1234"
    assert labels["org.opencontainers.image.created"] == config["created"] == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize("program", image_spec.PROGRAMS)
def test_every_program_prints_its_build(root: Path, program: str) -> None:
    output = run(root, f"/{program}", "--version")
    assert output.stdout == f"{program} 9.8.7 (commit abc1234, built 2026-01-02T03:04:05Z)\n", output.stderr


def test_the_worker_rejects_invalid_settings(root: Path) -> None:
    output = run(root, "/kube-node-ready-worker", NODE_NAME="n", KUBE_NODE_READY_WORKER_CONFIG='{"dnsTestDomain": []}')
    assert output.returncode == 2, output.stderr
    assert "dnsTestDomain" in output.stdout


def test_the_worker_reads_yaml(root: Path) -> None:
    """The parser and its compiled half are in the image, and the file is found to be wrong rather than unreadable."""
    script = "import yaml; print(yaml.load('{a: [1, 2]}', yaml.CSafeLoader))"
    assert run(root, "/usr/bin/python3.11", "-c", script).stdout == "{'a': [1, 2]}\n"


def test_the_controller_starts_until_it_needs_a_cluster(root: Path) -> None:
    output = run(root, "/kube-node-ready-controller", POD_IMAGE=IMAGE)
    assert output.returncode == 3, output.stderr
    assert "Traceback" not in output.stderr


def test_every_module_can_be_imported(root: Path) -> None:
    """Ours, and all of the wheels that these import; also where nothing but the image is to be found."""
    script = (
        "import importlib, pkgutil, kube_node_ready.controller.runtime\n"
        "found = list(pkgutil.walk_packages(kube_node_ready.__path__, 'kube_node_ready.'))\n"
        "print(len([importlib.import_module(module.name) for module in found]))\n"
    )
    output = run(root, "/usr/bin/python3.11", "-c", script)
    assert output.stderr == ""
    assert int(output.stdout) > 50


def test_no_module_imports_what_was_left_out() -> None:
    """Read from the sources: also what no test runs, and what a new version of a wheel begins to import."""
    store = ContentCache(default_folder())
    target = Target(wheels.machine_architecture(), contents.PYTHON)
    files = {
        path: entry
        for package in debian.fetch(target.architecture, store)
        for path, entry in of_deb(package.path).items()
    }
    kept = dict(contents.sources(contents.debian(files)))
    for wheel in wheels.fetch(CHECKOUT, target, store):
        kept |= contents.sources(contents.installed(of_wheel(wheel.path, contents.PACKAGES)))
    left_out = contents.MODULES_LEFT_OUT
    needing = {path.partition("python3.11/")[2] for path, source in kept.items() if imported(source) & left_out}
    assert {path for path in needing if not path.startswith("encodings/")} <= NEVER_IMPORTED


def test_a_thread_can_end(root: Path) -> None:
    """For which the C library loads a library by name. A daemon thread is ended by the interpreter's own end."""
    script = "import threading, time; threading.Thread(target=time.sleep, args=[0.2], daemon=True).start()"
    output = run(root, "/usr/bin/python3.11", "-IS", "-c", script)
    assert (output.returncode, output.stderr) == (0, "")


def test_texts_are_utf_8_and_authorities_are_known(root: Path) -> None:
    script = "import ssl, sys; print('ö', sys.stdout.encoding, len(ssl.create_default_context().get_ca_certs()) > 100)"
    assert run(root, "/usr/bin/python3.11", "-I", "-c", script).stdout == "ö utf-8 True\n"


def test_no_module_is_compiled_again(root: Path) -> None:
    sources = [path for path in root.rglob("*.py") if path.is_file()]
    assert sources == []
    assert not list(root.rglob("__pycache__"))


@pytest.mark.parametrize("architecture", image_spec.ARCHITECTURES)
def test_there_is_no_shell_no_installer_and_no_setuid_program(built: Built, architecture: str, tmp_path: Path) -> None:
    programs = set()
    for layer in built.manifests()[architecture]["layers"]:
        (tmp_path / "layer").write_bytes(built.blob(layer["digest"]))
        with tarfile.open(tmp_path / "layer") as tar:
            for member in tar:
                assert not member.mode & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX), member.name
                assert member.issym() or not member.mode & 0o022, member.name
                assert (member.uid, member.gid) == (0, 0), member.name
                assert member.isdir() or member.isfile() or member.issym(), member.name
                if member.isfile() and member.mode & 0o111 and ".so" not in member.name:
                    programs.add(member.name)
    assert programs == {contents.INTERPRETER, *image_spec.PROGRAMS}


def test_the_bill_of_materials_is_complete(built: Built, root: Path) -> None:
    components = json.loads(built.bill.read_text())["components"]
    listed = {component["name"] for component in components if component["purl"].startswith("pkg:deb/")}
    assert listed == {path.name for path in (root / "var/lib/dpkg/status.d").iterdir()}
    distributions = {component["name"] for component in components if component["purl"].startswith("pkg:pypi/")}
    folders = (path.name.partition("-")[0] for path in (root / contents.PACKAGES).glob("*.dist-info"))
    assert distributions == {name.replace("_", "-").lower() for name in folders}


def test_executables_need_a_python_and_nothing_else(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "release", "executables", f"--into={tmp_path}/bin"]
    subprocess.run(words, cwd=CHECKOUT, env={**os.environ, **BUILD}, check=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    for program in image_spec.PROGRAMS:
        command = [sys.executable, "-IS", f"{tmp_path}/bin/{program}", "--version"]
        output = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)
        assert output.stdout == f"{program} 9.8.7 (commit abc1234, built 2026-01-02T03:04:05Z)\n", output.stderr
    command = [sys.executable, "-IS", f"{tmp_path}/bin/kube-node-ready-controller"]
    with_image = {**environment, "POD_IMAGE": IMAGE}
    output = subprocess.run(command, cwd="/", env=with_image, capture_output=True, text=True, check=False)
    assert output.returncode == 3, output.stderr
    assert __version__ != "9.8.7"
