"""Build programs from pinned Go modules: once, cached by content, verified before use.

Each target is a Go module in `lab/binaries/`. Its programs are in the user's cache directory, under a name with the
hash of all inputs: the module's files, the build flags and Go's version. A directory appears there only when it is
complete (it is renamed into place), and its manifest shows whether a file was damaged later.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab import disk
from lab.errors import LabError
from lab.progress import Progress, say

SOURCES = Path(__file__).parent / "binaries"
KUBERNETES_VERSION = "1.36.3"
KUBERNETES_PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
)
_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Target:
    """Programs that are built together."""

    name: str
    module: Path
    programs: Mapping[str, str]
    """Package by program."""
    minutes: int
    """Minutes that a first build takes on two cores, for the progress message."""
    mebibytes: int
    """Disk space of a first build, most of it in Go's own cache."""
    version: str = ""
    modfile: str = "go.mod"
    links: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Additional names of a program that depends on the name it is started with."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Directories of other modules to copy: module by the directory in it."""
    flags: Sequence[str] = ()


def kubernetes(version: str = KUBERNETES_VERSION) -> Target:
    module = SOURCES / "kubernetes"
    modfile = "go.mod" if version == KUBERNETES_VERSION else f"v{version}.mod"
    if not (module / modfile).exists():
        known = sorted(path.stem.removeprefix("v") for path in module.glob("v*.mod"))
        raise LabError(f"no Kubernetes {version!r} in {module}; there are {', '.join([*known, KUBERNETES_VERSION])}")
    major, minor, _ = version.split(".")
    package = "k8s.io/component-base/version"
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    return Target(
        name="kubernetes",
        module=module,
        programs={"kubernetes": "."},
        minutes=9,
        mebibytes=4000,
        version=version,
        modfile=modfile,
        links={"kubernetes": KUBERNETES_PROGRAMS},
        flags=["-ldflags", " ".join(["-s -w", *(f"-X {package}.{name}={value}" for name, value in stamps.items())])],
    )


def tools() -> Target:
    return Target(
        name="tools",
        module=SOURCES / "tools",
        programs={
            "coredns": "./coredns",
            "helm": "helm.sh/helm/v4/cmd/helm",
            "kwok": "sigs.k8s.io/kwok/cmd/kwok",
            "toolbox": "./toolbox",
        },
        minutes=4,
        mebibytes=2000,
        files={"kustomize/crd/bases": "sigs.k8s.io/kwok"},
        flags=["-ldflags", "-s -w"],
    )


def karpenter() -> Target:
    return Target(
        name="karpenter",
        module=SOURCES / "karpenter",
        programs={"karpenter": "sigs.k8s.io/karpenter/kwok"},
        minutes=4,
        mebibytes=2000,
        files={"pkg/apis/crds": "sigs.k8s.io/karpenter", "kwok/apis/crds": "sigs.k8s.io/karpenter"},
        flags=["-ldflags", "-s -w"],
    )


def terraform() -> Target:
    """Return the target of a Terraform provider. The kubernetes target has already compiled most of it."""
    return Target(
        name="terraform",
        module=SOURCES / "terraform",
        programs={"terraform-provider-kubectl": "."},
        minutes=1,
        mebibytes=1000,
        flags=["-ldflags", "-s -w"],
    )


@dataclass(frozen=True)
class Programs:
    """The locations of programs and of the files that belong to them."""

    folders: tuple[Path, ...]

    def path(self, program: str) -> Path:
        for folder in self.folders:
            if (found := folder / program).exists():
                return found
        places = " or ".join(map(str, self.folders))
        hint = "; KUBEBUILDER_ASSETS must hold every program the lab uses, or be unset" if _assets() else ""
        raise LabError(f"there is no {program} in {places}{hint}")


def programs(version: str = KUBERNETES_VERSION) -> Programs:
    """Return the programs for planes and nodes, built if needed; with KUBEBUILDER_ASSETS, those in it."""
    if assets := _assets():
        if not assets.is_dir():
            raise LabError(f"KUBEBUILDER_ASSETS names {assets}, which is not a folder")
        return Programs((assets,))
    return Programs((build(kubernetes(version)), build(tools())))


def build(target: Target) -> Path:
    """Return the directory with the target's programs, complete and intact."""
    compiler = _go(target)
    final = cache() / _identity(target, compiler)
    if _intact(final):
        return final  # without a lock: the cache can belong to another user and be read-only
    with _locked(final):
        if _intact(final):
            return final
        unfinished = final.with_name(f"{final.name}.unfinished")
        for stale in (final, unfinished):
            shutil.rmtree(stale, ignore_errors=True)
        disk.require(final.parent, target.mebibytes, to=f"build {target.name}", way_out="set XDG_CACHE_HOME")
        unfinished.mkdir()
        try:
            _compile(target, compiler, unfinished)
            _take_along(target, compiler, unfinished)
            _write_manifest(unfinished)
            unfinished.rename(final)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return final


def cache() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kube-node-ready" / "lab"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(
            f"cannot use {folder} to keep the lab's programs: {error.strerror}. XDG_CACHE_HOME names another"
        ) from error
    return folder


def _assets() -> Path | None:
    return Path(named) if (named := os.environ.get("KUBEBUILDER_ASSETS")) else None


@dataclass(frozen=True)
class _Go:
    path: str
    version: str


def _go(target: Target) -> _Go:
    """Return the installed Go if it is new enough for the target's module."""
    needed = re.search(r"^go ([\d.]+)", (target.module / target.modfile).read_text(), re.MULTILINE)
    assert needed, f"{target.module / target.modfile} has no go line"
    path = shutil.which("go")
    requirement = f"Go {needed[1]} or newer is needed to build {target.name}"
    way_out = "install it, or let KUBEBUILDER_ASSETS name a folder with the programs"
    if path is None:
        raise LabError(f"{requirement}, and there is no `go` in PATH: {way_out}")
    # In the module's directory, where Go can select another toolchain, or report that it must not.
    answer = subprocess.run([path, "version"], cwd=target.module, capture_output=True, text=True, check=False)
    output = (answer.stdout or answer.stderr).strip()
    found = re.search(r"go version (go([\d.]+)\S*)", output)
    if not found or _parts(found[2]) < _parts(needed[1]):
        raise LabError(f"{requirement}, and {path} says {output!r}: {way_out}")
    return _Go(path, found[1])


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _identity(target: Target, compiler: _Go) -> str:
    """Return a name that changes whenever the programs could change."""
    digest = hashlib.sha256()
    digest.update(repr((target.programs, target.links, target.files, target.flags)).encode())
    digest.update(f"{compiler.version} {platform.machine()}".encode())
    sums = Path(target.modfile).with_suffix(".sum").name
    for source in sorted([*target.module.rglob("*.go"), target.module / target.modfile, target.module / sums]):
        digest.update(f"\0{source.relative_to(target.module)}\0".encode())
        digest.update(source.read_bytes())
    return "-".join(filter(None, [target.name, target.version, digest.hexdigest()[:16]]))


@contextlib.contextmanager
def _locked(final: Path) -> Iterator[None]:
    """Lock the cache for one builder; others wait and then use its result."""
    with (final.parent / f"{final.name}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is building {final.name}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _compile(target: Target, compiler: _Go, into: Path) -> None:
    """Build the programs one by one, so that the order is fixed and a failure names its program."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": f"-modfile={target.modfile} -trimpath -buildvcs=false"}
    packages = _packages(target, compiler, environment)
    title = " ".join(filter(None, [f"building {target.name}", target.version]))
    estimate = f"about {target.minutes} min the first time"
    with Progress(title, total=packages, unit="packages", note=estimate) as progress:
        for program, package in target.programs.items():
            command = [compiler.path, "build", "-v", *target.flags, "-o", str(into / program), package]
            _run_build(command, target, environment, progress)
            for link in target.links.get(program, ()):
                (into / link).symlink_to(program)


def _packages(target: Target, compiler: _Go, environment: Mapping[str, str]) -> int:
    """Return how many packages there are to compile, and download the modules."""
    say(f"fetching the Go modules of {target.name}")
    command = [compiler.path, "list", "-deps", *target.programs.values()]
    return len(_go_says(command, target, environment).splitlines())


def _run_build(command: Sequence[str], target: Target, environment: Mapping[str, str], progress: Progress) -> None:
    output: list[str] = []
    with subprocess.Popen(
        command, cwd=target.module, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as compiler:
        assert compiler.stdout
        for line in compiler.stdout:
            output.append(line)
            # With -v, Go prints the path of each package it has compiled; anything with a space is an error message.
            if " " not in line:
                progress.advance()
    if compiler.returncode:
        raise _build_error(target, output)


def _go_says(command: Sequence[str], target: Target, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=target.module, env=dict(environment), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise _build_error(target, done.stderr.splitlines(keepends=True))
    return done.stdout


def _build_error(target: Target, output: Sequence[str]) -> LabError:
    tail = "".join([line for line in output if " " in line][-10:]).strip()
    if "no space left on device" in tail:
        return LabError(f"the disk is full: {target.name} could not be built. About {target.mebibytes} MiB are needed")
    return LabError(f"{target.name} could not be built:\n{tail}")


def _take_along(target: Target, compiler: _Go, into: Path) -> None:
    """Copy additional files that the programs need, such as their CustomResourceDefinitions."""
    environment = {**os.environ, "GOFLAGS": f"-modfile={target.modfile}"}
    for folder, module in target.files.items():
        command = [compiler.path, "list", "-m", "-f", "{{.Dir}}", module]
        source = Path(_go_says(command, target, environment).strip())
        for file in sorted((source / folder).glob("*.yaml")):
            shutil.copyfile(file, into / file.name)


def _write_manifest(folder: Path) -> None:
    files = {path.name: _facts(path) | {"sha256": _hash(path)} for path in sorted(folder.iterdir())}
    (folder / _MANIFEST).write_text(json.dumps(files, indent=1))


def _intact(folder: Path) -> bool:
    """Return whether all files are as built. Only a file with changed metadata is hashed."""
    try:
        files = json.loads((folder / _MANIFEST).read_text())
        return all(_unchanged(folder / name, facts) for name, facts in files.items())
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return False


def _unchanged(path: Path, recorded: Mapping[str, object]) -> bool:
    facts = _facts(path)
    if facts["size"] != recorded["size"]:
        return False
    return facts["modified"] == recorded["modified"] or _hash(path) == recorded["sha256"]


def _facts(path: Path) -> dict[str, object]:
    status = path.stat()
    return {"size": status.st_size, "modified": status.st_mtime_ns}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
