"""The command lines of the daemons: what is read, and that each error is reported, with the nearest name."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kube_node_ready.settings.flags import Flag, parse

FLAGS = (
    Flag("log-level", "LEVEL", "The level.", "a level", short="l"),
    Flag("dry-run", "true|false", "Change nothing.", "true or false", is_switch=True),
    Flag("quiet", "", "Print nothing."),
)


def read(*words: str) -> tuple[dict[str, str], list[str]]:
    arguments = parse(argparse.ArgumentParser(), words, FLAGS)
    return arguments.flags, [str(diagnostic) for diagnostic in arguments.diagnostics]


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ([], {}),
        (["--log-level=debug"], {"log-level": "debug"}),
        (["--log-level", "debug"], {"log-level": "debug"}),
        (["--log-level="], {"log-level": ""}),
        (["--log-level", ""], {"log-level": ""}),
        (["--log-level", "-1"], {"log-level": "-1"}),
        (["--log-level=a=b"], {"log-level": "a=b"}),
        (["-l", "debug"], {"log-level": "debug"}),
        (["-ldebug"], {"log-level": "debug"}),
        (["-l=debug"], {"log-level": "debug"}),
        (["--log-level=info", "--log-level=debug"], {"log-level": "debug"}),
        (["--dry-run"], {"dry-run": "true"}),
        (["--dry-run", "false"], {"dry-run": "false"}),
        (["--dry-run", "--quiet"], {"dry-run": "true", "quiet": "true"}),
        (["--quiet", "--"], {"quiet": "true"}),
    ],
)
def test_values_are_in_the_same_word_or_in_the_next(words: list[str], flags: dict[str, str]) -> None:
    assert read(*words) == (flags, [])


@pytest.mark.parametrize(
    ("words", "errors"),
    [
        (["--log-levl=debug"], ["--log-levl: unknown flag; did you mean --log-level?"]),
        (["--log"], ["--log: unknown flag; did you mean --log-level?"]),
        (["--versoin"], ["--versoin: unknown flag; did you mean --version?"]),
        (["--xyzzy", "value"], ["--xyzzy: unknown flag; --help lists all of them"]),
        (["-x"], ["-x: unknown flag; --help lists all of them"]),
        (["--log-level"], ["--log-level: is missing its value; expected a level"]),
        (["--log-level", "--quiet"], ["--log-level: is missing its value; expected a level"]),
        (["--quiet=true"], ['--quiet: "true" is invalid; expected no value']),
        (["--quiet", "true"], ['unexpected argument "true"']),
        (["a", "-", "--", "--quiet"], [f'unexpected argument "{word}"' for word in ("a", "-", "--quiet")]),
        (["\x1b[2J"], [r'unexpected argument "\x1b[2J"']),
    ],
)
def test_an_error_is_reported_with_what_is_expected(words: list[str], errors: list[str]) -> None:
    assert read(*words)[1] == errors


def test_all_errors_are_reported_together() -> None:
    flags, errors = read("--dry-rum", "--log-level", "--quiet", "--dry-run=no", "more")
    assert flags == {"quiet": "true", "dry-run": "no"}
    assert [error.partition(":")[0] for error in errors] == [
        "--dry-rum",
        "--log-level",
        'unexpected argument "more"',
    ]


def run(program: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name(program)), *words]
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **variables}
    return subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("program", "word", "nearest"),
    [
        ("kube-node-ready-controller", "--log-levl=debug", "--log-level"),
        ("kube-node-ready-controller", "--metric-bind-address=:1", "--metrics-bind-address"),
        ("kube-node-ready-controller", "--cofig=a", "--config"),
        ("kube-node-ready-worker", "--dry-rum", "--dry-run"),
        ("kube-node-ready", "--max-retrys=3", "--max-retries"),
    ],
)
def test_each_daemon_reports_an_unknown_flag_in_one_line(program: str, word: str, nearest: str) -> None:
    done = run(program, word, NODE_NAME="node-1", POD_IMAGE="registry.example/kube-node-ready:1")
    prefix = "kube-node-ready-worker" if "worker" in program else "kube-node-ready"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{prefix}: {word.partition('=')[0]}: unknown flag; did you mean {nearest}?\n"


def test_the_controller_reports_its_command_line_and_its_file_together(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("worker: {checkTimeoutSecond: 1}\n")
    done = run("kube-node-ready-controller", "--no-such-flag", f"--config={file}", "--log-level=loud")
    assert done.returncode == 2
    assert "--no-such-flag: unknown flag" in done.stderr
    assert "worker.checkTimeoutSecond: unknown key" in done.stderr
    assert "--log-level: " in done.stderr
    done = run("kube-node-ready-controller", "--config=/nonexistent", "--no-such-flag", "--log-level=loud")
    assert [word in done.stderr for word in ("3 errors", "/nonexistent: cannot", "--no-such-flag", "loud")] == [
        True
    ] * 4


@pytest.mark.parametrize("program", ["kube-node-ready-controller", "kube-node-ready-worker", "kube-node-ready"])
def test_help_is_printed_whatever_else_is_wrong(program: str) -> None:
    done = run(program, "--no-such-flag", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {program} ")
