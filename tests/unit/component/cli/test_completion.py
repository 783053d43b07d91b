"""Completion of the command line: what click offers, by way of the script and a real bash."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.component_tool import COMMAND

FUNCTION = "_kubernetes_daemonset_completion"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, check=False, text=True)


def completed(line: str, tmp_path: Path) -> list[str]:
    """What bash offers for the last word of a line."""
    program = tmp_path / "kubernetes-daemonset"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    program.chmod(0o755)
    words = line.split(" ")
    script = f"""
    eval "$({shlex.quote(str(program))} completion bash)"
    COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}
    {FUNCTION} {program}
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, text=True, env=dict(os.environ))
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("kubernetes-daemonset val", ["validate"]),
        ("kubernetes-daemonset apply --no-", ["--no-wait", "--no-prune"]),
        ("kubernetes-daemonset outputs -o m", ["manifest"]),
        ("kubernetes-daemonset init flu", ["fluentd"]),
        ("kubernetes-daemonset completion z", ["zsh"]),
        ("kubernetes-daemonset nothing-like-this", []),
    ],
)
def test_bash_completes(line: str, offered: list[str], tmp_path: Path) -> None:
    # Bash runs the program by the name in COMP_WORDS.
    first, _, rest = line.partition(" ")
    assert completed(f"{tmp_path / first} {rest}", tmp_path) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_printed_without_running_the_shell(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert "_KUBERNETES_DAEMONSET_COMPLETE=" in done.stdout


def test_bash_accepts_its_script() -> None:
    subprocess.run(["bash", "-n"], input=run("completion", "bash").stdout, check=True, text=True)


@pytest.mark.parametrize("asked", ["", "tcsh_complete", "bash_complete"])
def test_a_variable_that_no_shell_set_completes_nothing(asked: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMP_")}
    environment["_KUBERNETES_DAEMONSET_COMPLETE"] = asked
    done = subprocess.run(COMMAND, capture_output=True, check=False, env=environment, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
