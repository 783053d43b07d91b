"""Tasks for the image's own Python, so that a build depends only on Debian's packages and not on the machine.

Bytecode belongs to one version of Python, and the bytes that zlib writes to one version of zlib. This file is run by
that interpreter, from a directory into which its package was unpacked: it can use only the standard library.
"""

import gzip
import json
import os
import py_compile
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

_LEVEL = 6  # the best level takes four times as long and saves 1 %


class TargetPython:
    """The interpreter in `root`. It is started by its own loader, so it need not be the machine's own."""

    def __init__(self, root: Path, *, loader: str, libraries: Sequence[str], interpreter: str, identity: str) -> None:
        self.identity = identity
        path = ":".join(str(root / folder) for folder in libraries)
        self._command = [str(root / loader), "--library-path", path, str(root / interpreter), "-SBP", __file__]
        self._environment = {
            "PYTHONHOME": str((root / interpreter).parent.parent),
            "PYTHONHASHSEED": "0",  # determines the order of sets, also in bytecode
            "PYTHONNODEBUGRANGES": "1",  # columns underline source code, which the image does not contain
        }

    def compile(self, sources: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return bytecode by the path in tracebacks. One process and a fixed order, because both affect the result."""
        with TemporaryDirectory() as folder:
            shown = sorted(sources)
            for number, path in enumerate(shown):
                Path(folder, f"{number}.py").write_bytes(sources[path])
            Path(folder, "shown.json").write_text(json.dumps(shown))
            self._run("compile", folder)
            return {path: Path(folder, f"{number}.pyc").read_bytes() for number, path in enumerate(shown)}

    def gzip(self, content: bytes) -> bytes:
        return self._run("gzip", stdin=content)

    def _run(self, *words: str, stdin: bytes = b"") -> bytes:
        command = [*self._command, *words]
        return subprocess.run(command, env=self._environment, input=stdin, stdout=subprocess.PIPE, check=True).stdout


def _compile(folder: Path) -> None:
    for number, path in enumerate(json.loads((folder / "shown.json").read_text())):
        py_compile.compile(
            str(folder / f"{number}.py"),
            cfile=str(folder / f"{number}.pyc"),
            dfile=path,
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )


def _gzip() -> None:
    with os.fdopen(1, "wb") as raw, gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as compressed:
        compressed.write(sys.stdin.buffer.read())


if __name__ == "__main__":
    if sys.argv[1] == "gzip":
        _gzip()
    else:
        _compile(Path(sys.argv[2]))
