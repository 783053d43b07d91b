"""What `make run` shows is a program of its own, which has a terminal to give back before anything else is said."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.shell import ROOT

TABLE = """#!/bin/sh
trap 'sleep 1; echo given back; exit 130' INT TERM
echo taken
while :; do sleep 0.1; done
"""
DEMO = """
import signal, sys
from demo import __main__ as demo
signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
demo._PROGRAM, demo._kubeconfig = sys.argv[1], str
code = demo._watch("none")
print("told afterwards")
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("number", "to", "ends"),
    [
        (signal.SIGINT, os.killpg, (130, ["given back", "told afterwards"])),
        (signal.SIGTERM, os.kill, (143, ["given back"])),
    ],
    ids=["Ctrl-C", "kill"],
)
def test_the_table_ends_first(number: int, to: object, ends: tuple[int, list[str]], tmp_path: Path) -> None:
    assert callable(to)
    table = tmp_path / "table"
    table.write_text(TABLE)
    table.chmod(0o755)
    command = [sys.executable, "-c", DEMO, str(table)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as demo:
        assert demo.stdout
        assert demo.stdout.readline() == "taken\n"
        to(demo.pid, number)
        try:
            output, _ = demo.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(demo.pid, signal.SIGKILL)
    assert (demo.returncode, output.splitlines()) == ends
