"""The programs where click and rich are not installed, as in the image."""

import os
import subprocess
import sys

import pytest

from kube_node_ready import __version__
from kube_node_ready.commands import COMPLETE, VERBS
from kube_node_ready.entrypoints import _FOR_PEOPLE
from tests.support.shell import ROOT
from tests.support.terminals import on_a_terminal

WITHOUT = (
    "import sys; sys.modules.update(dict.fromkeys({missing}))\nfrom kube_node_ready import entrypoints\n{function}"
)


def command(*words: str, missing: tuple[str, ...] = _FOR_PEOPLE, function: str = "entrypoints.main()") -> list[str]:
    return [sys.executable, "-c", WITHOUT.format(missing=missing, function=function), *words]


def run(*words: str, **options: str | tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name not in ("NODE_NAME", "KUBECONFIG")}
    return subprocess.run(
        command(*words, **options),  # type: ignore[arg-type]
        cwd=ROOT,
        env={**environ, "HOME": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("verb", sorted({*VERBS, COMPLETE} - {"check", "version"}))
def test_a_command_without_its_packages_names_the_package_and_the_remedy(verb: str) -> None:
    done = run(verb)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "kube-node-ready: the Python package click is not installed; run pip install '.[cli]' in a checkout\n"
    )


def test_each_package_is_named() -> None:
    assert "the Python package rich is not installed" in run("status", missing=("rich",)).stderr
    assert run("status", function="entrypoints.kubectl()").returncode == 2


def test_check_runs_in_the_image() -> None:
    done = run("check", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("CHECK ")
    assert run("check", "--no-such-flag").returncode == 2
    assert "--dry-run" in run("check", "--help").stdout


@pytest.mark.parametrize("word", ["version", "--version"])
def test_the_version_is_printed(word: str) -> None:
    assert run(word).stdout == f"kube-node-ready {__version__} (from source)\n"


@pytest.mark.parametrize(
    ("words", "code", "output"),
    [
        (["--help"], 0, "usage: kube-node-ready [COMMAND] [flags]"),
        (["--dry-run", "--dns-test-domains=localhost", "--kubeconfig=/nonexistent"], 3, "/nonexistent"),
        ([], 2, "NODE_NAME"),
        (["statu"], 2, 'unknown command "statu"; did you mean status?'),
        (["verif"], 2, 'unknown command "verif"; --help lists all of them'),
    ],
)
def test_daemonset_mode_runs(words: list[str], code: int, output: str) -> None:
    done = run(*words)
    assert (done.returncode, output in done.stdout + done.stderr) == (code, True), done


@pytest.mark.parametrize(
    ("words", "function"),
    [
        (["--help"], "entrypoints.controller()"),
        (["--help"], "from kube_node_ready.worker.main import main; main()"),
        (["respond", "--help"], "entrypoints.main()"),
    ],
)
def test_the_other_programs_start(words: list[str], function: str) -> None:
    done = run(*words, function=function)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done


def test_a_terminal_gets_the_help_of_daemonset_mode() -> None:
    environ = {name: value for name, value in os.environ.items() if name != "NODE_NAME"}
    done = on_a_terminal(command(), environ)
    assert (done.code, "usage: kube-node-ready [COMMAND] [flags]" in done.text) == (0, True), done
