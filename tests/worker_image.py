"""The worker as a container image for the lab's nodes, made of the Python that runs the tests.

What the worker loads, and nothing else: the interpreter, the modules that it imports (as bytecode), and the shared
libraries of both. There is no shell in it and nothing to write to.
"""

import contextlib
import hashlib
import importlib.util
import py_compile
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import kube_node_ready
from lab import build, images

NAME = "lab.local/kube-node-ready:1"
_SECONDS_TO_IMPORT = 600
COMMAND = "/kube-node-ready-worker"
_HOME = f"/python/lib/python{sys.version_info.major}.{sys.version_info.minor}"
_INTERPRETER = f"/python/bin/python{sys.version_info.major}.{sys.version_info.minor}"
# Isolated, and without `site`: there is nothing installed that it could find.
_SCRIPT = f"#!{_INTERPRETER} -IS\nfrom kube_node_ready.worker import main\nmain()\n"
# Those that are imported only when they are needed, too.
_LIST_MODULES = """
import sys
sys.path += sys.argv[1:]
import kube_node_ready.worker, argparse, difflib, encodings.idna, locale, shutil, traceback, yaml
for name, module in sys.modules.items():
    if getattr(module, "__file__", None) and name != "__main__":
        print(name, module.__file__)
"""


def archive() -> Path:
    """The image's OCI archive. Made once for the same content."""
    modules = dict(_modules())
    final = build.cache() / f"worker-image-{_identity(modules)}.tar"
    if not final.exists():
        final.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=final.parent) as folder:
            made = images.write(Path(folder, "image.tar"), NAME, _files(modules, Path(folder)), [COMMAND])
            made.rename(final)
        _forget_former(final)
    return final


def _forget_former(final: Path) -> None:
    """But not what another run may be about to import."""
    for former in final.parent.glob("worker-image-*.tar"):
        with contextlib.suppress(FileNotFoundError):
            if former != final and former.stat().st_mtime < time.time() - _SECONDS_TO_IMPORT:
                former.unlink()


def _identity(modules: dict[str, Path]) -> str:
    digest = hashlib.sha256(f"{sys.version}{sorted(modules)}".encode())
    own = (path for name, path in sorted(modules.items()) if name.startswith("kube_node_ready"))
    for path in (Path(__file__), *own):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _modules() -> Iterator[tuple[str, Path]]:
    """What the worker imports, by name."""
    spec = importlib.util.find_spec("yaml")
    assert spec
    assert spec.origin
    places = [str(Path(kube_node_ready.__file__).parent.parent), str(Path(spec.origin).parent.parent)]
    command = [sys.executable, "-IS", "-c", _LIST_MODULES, *places]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        name, _, path = line.partition(" ")
        yield name, Path(path)


def _files(modules: dict[str, Path], folder: Path) -> dict[str, Path]:
    interpreter = Path(sys.executable).resolve()
    script = folder / "script"
    script.write_text(_SCRIPT)
    files = {COMMAND: script, _INTERPRETER: interpreter}
    for name, path in modules.items():
        place = f"{_HOME}/{name.replace('.', '/')}"
        if path.suffix == ".so":
            # The interpreter takes this folder for the sign that its extension modules are there.
            inner = f"{_HOME}/lib-dynload" if path.parent.name == "lib-dynload" else str(Path(place).parent)
            files[f"{inner}/{path.name}"] = path
        else:
            inner = f"{place}/__init__.pyc" if path.name == "__init__.py" else f"{place}.pyc"
            files[inner] = _compiled(path, folder / f"{name}.pyc", inner)
    objects = [interpreter, *(path for path in modules.values() if path.suffix == ".so")]
    return files | _libraries(objects)


def _compiled(source: Path, into: Path, shown_as: str) -> Path:
    py_compile.compile(
        str(source),
        cfile=str(into),
        dfile=shown_as,
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    return into


def _libraries(objects: Iterable[Path]) -> dict[str, Path]:
    """Those that the objects are linked with, in a folder that the loader searches; and the loader, in its place."""
    listing = subprocess.run(["ldd", *map(str, objects)], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in listing.splitlines():
        words = line.split()
        if "=>" in words and words[2].startswith("/"):
            found[f"/lib/{words[0]}"] = Path(words[2])
        elif words[0].startswith("/") and len(words) > 1:
            found[words[0]] = Path(words[0])
    return found
