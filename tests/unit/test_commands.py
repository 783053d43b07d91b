"""The two products' commands, as installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from kube_node_ready import __version__

OPERATOR = ["kube-node-ready", "kube-node-ready-controller", "kube-node-ready-worker"]
COMMANDS = [*OPERATOR, "kubernetes-daemonset"]


def run(command: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name(command), *words], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", OPERATOR)
def test_a_command_prints_its_version_as_a_development_build(command: str) -> None:
    assert run(command, "--version").stdout == f"{command} {__version__} (from source)\n"


def test_a_version_is_one_line_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert run("kube-node-ready-controller", "--version").stdout.count("\n") == 1


def test_the_component_prints_its_version() -> None:
    assert run("kubernetes-daemonset", "--version").stdout == f"kubernetes-daemonset {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_word_is_an_error_that_names_it(command: str) -> None:
    output = run(command, "--no-such-flag")
    assert output.returncode == 2
    assert "--no-such-flag" in output.stderr
