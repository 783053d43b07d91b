"""Programs from pinned Go modules: built once, kept by content, checked before use.

Each target is a Go module in `lab/binaries/`. Its programs live in the user's cache folder, under a name that holds
the hash of everything that went into them: the module's files, the build flags and Go's version. A folder appears there
only when it is complete (it is renamed into place), and its manifest tells whether a file was damaged since.
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
    """What a first build takes on two cores, to tell whoever waits."""
    mebibytes: int
    """And how much room, most of it in Go's own cache."""
    version: str = ""
    modfile: str = "go.mod"
    links: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Further names of a program that looks at the name it is started under."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Folders of other modules to take along: module by folder inside it."""
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
    """A provider for Terraform, whose own program is the machine's. The kubernetes target has compiled most of it."""
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
    """Where to find programs and the files that came along with them."""

    folders: tuple[Path, ...]

    def path(self, program: str) -> Path:
        for folder in self.folders:
            if (found := folder / program).exists():
                return found
        places = " or ".join(map(str, self.folders))
        hint = "; KUBEBUILDER_ASSETS must hold every program the lab uses, or be unset" if _assets() else ""
        raise LabError(f"there is no {program} in {places}{hint}")


def programs(version: str = KUBERNETES_VERSION) -> Programs:
    """All that planes and nodes need, built if it must be; or what KUBEBUILDER_ASSETS holds, and nothing is built."""
    if assets := _assets():
        if not assets.is_dir():
            raise LabError(f"KUBEBUILDER_ASSETS names {assets}, which is not a folder")
        return Programs((assets,))
    return Programs((build(kubernetes(version)), build(tools())))


def build(target: Target) -> Path:
    """The folder with the target's programs, whole and undamaged."""
    compiler = _go(target)
    final = cache() / _identity(target, compiler)
    if _intact(final):
        return final  # without a lock: the cache may be someone else's, and read-only
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
    except OSError as why:
        raise LabError(
            f"cannot use {folder} to keep the lab's programs: {why.strerror}. XDG_CACHE_HOME names another"
        ) from why
    return folder


def _assets() -> Path | None:
    return Path(named) if (named := os.environ.get("KUBEBUILDER_ASSETS")) else None


@dataclass(frozen=True)
class _Go:
    path: str
    version: str


def _go(target: Target) -> _Go:
    """The machine's Go, if it is new enough for the target's module."""
    needed = re.search(r"^go ([\d.]+)", (target.module / target.modfile).read_text(), re.MULTILINE)
    assert needed, f"{target.module / target.modfile} has no go line"
    path = shutil.which("go")
    wish = f"Go {needed[1]} or newer is needed to build {target.name}"
    way_out = "install it, or let KUBEBUILDER_ASSETS name a folder with the programs"
    if path is None:
        raise LabError(f"{wish}, and there is no `go` in PATH: {way_out}")
    # In the module's folder, where Go may choose another toolchain, or say that it must not.
    answer = subprocess.run([path, "version"], cwd=target.module, capture_output=True, text=True, check=False)
    said = (answer.stdout or answer.stderr).strip()
    found = re.search(r"go version (go([\d.]+)\S*)", said)
    if not found or _parts(found[2]) < _parts(needed[1]):
        raise LabError(f"{wish}, and {path} says {said!r}: {way_out}")
    return _Go(path, found[1])


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _identity(target: Target, compiler: _Go) -> str:
    """A name that changes whenever the programs could."""
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
    """One builder at a time; the others wait and then find it done."""
    with (final.parent / f"{final.name}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is building {final.name}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _compile(target: Target, compiler: _Go, into: Path) -> None:
    """Each program on its own, so that the order is fixed and a failure names its program."""
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
    """How many packages there are to compile, fetching the modules on the way."""
    say(f"fetching the Go modules of {target.name}")
    command = [compiler.path, "list", "-deps", *target.programs.values()]
    return len(_go_says(command, target, environment).splitlines())


def _run_build(command: Sequence[str], target: Target, environment: Mapping[str, str], progress: Progress) -> None:
    said: list[str] = []
    with subprocess.Popen(
        command, cwd=target.module, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as compiler:
        assert compiler.stdout
        for line in compiler.stdout:
            said.append(line)
            # With -v, Go prints the path of each package it has compiled; anything with a space is an error message.
            if " " not in line:
                progress.advance()
    if compiler.returncode:
        raise _build_error(target, said)


def _go_says(command: Sequence[str], target: Target, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=target.module, env=dict(environment), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise _build_error(target, done.stderr.splitlines(keepends=True))
    return done.stdout


def _build_error(target: Target, said: Sequence[str]) -> LabError:
    tail = "".join([line for line in said if " " in line][-10:]).strip()
    if "no space left on device" in tail:
        return LabError(f"the disk is full: {target.name} could not be built. About {target.mebibytes} MiB are needed")
    return LabError(f"{target.name} could not be built:\n{tail}")


def _take_along(target: Target, compiler: _Go, into: Path) -> None:
    """Copy files that the programs need beside them, such as the definitions of their resources."""
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
    """Whether every file is as it was built. An untouched file is believed; a touched one must prove its content."""
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
