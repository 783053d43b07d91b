"""`scripts/test-on-clusters` repeats a test that failed, and reports it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.shell import ROOT

TESTS = """
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", range({count}))
def test_it(number):
    runs = Path("{folder}", f"runs-{{number}}")
    runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
    assert len(runs.read_text()) > {failures}
"""


@pytest.mark.parametrize(
    ("folder", "count", "failures", "code", "runs"),
    [
        ("tests/cluster", 1, 0, 0, 1),
        ("tests/cluster", 2, 1, 0, 2),
        ("tests/cluster", 1, 2, 1, 2),
        ("tests/cluster", 3, 1, 1, 1),
        ("tests/attacks", 1, 1, 1, 1),
    ],
    ids=["passes", "passes when repeated", "fails twice", "too many fail", "an attack succeeds once"],
)
def test_up_to_two_failed_tests_run_once_more_except_attacks(
    tmp_path: Path, folder: str, count: int, failures: int, code: int, runs: int
) -> None:
    file = tmp_path / folder / "test_it.py"
    file.parent.mkdir(parents=True)
    file.write_text(TESTS.format(count=count, folder=tmp_path, failures=failures))
    stage = f"unit-{tmp_path.name}"
    command = [str(ROOT / "scripts" / "test-on-clusters"), stage, "--quiet", f"--rootdir={tmp_path}", str(file)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    shutil.rmtree(ROOT / ".pytest_cache" / stage, ignore_errors=True)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert [path.read_text() for path in tmp_path.glob("runs-*")] == ["x" * runs] * count
    assert ("FLAKY: passed when repeated" in ran.stdout) == (code == 0 and runs > 1)
