"""The installed programs, run as users run them."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
INPUTS: Final = Path(__file__).parent / "inputs"
SECONDS: Final = 60
Done = subprocess.CompletedProcess[str]


def run(program: str, *words: str, **variables: str) -> Done:
    """Run a console script far from any cluster, in the folder of the inputs, with these variables and no others."""
    # Wide enough that no line of the help is wrapped; without a home there is no ~/.kube/config.
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "COLUMNS": "500", **variables}
    command = [str(Path(sys.executable).with_name(program)), *words]
    done = subprocess.run(
        command, capture_output=True, check=False, cwd=INPUTS, env=environment, text=True, timeout=SECONDS
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def run_all(commands: list[list[str]]) -> list[Done]:
    """Run several, a few at a time. A word with `=` before the program is a variable."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(_run_line, commands))


def _run_line(words: list[str]) -> Done:
    variables: dict[str, Any] = {}
    while "=" in words[0]:
        name, _, variables[name] = words[0].partition("=")
        words = words[1:]
    return run(*words, **variables)
