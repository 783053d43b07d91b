"""What can be typed: arguments, their mistakes, and what the shell offers meanwhile."""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kube_node_ready.console import completion, file_check, main, reference
from kube_node_ready.console.parser import SHELLS, parsed, parser, seconds
from kube_node_ready.verbs import VERBS
from tests.shell import ROOT

PROGRAM = Path(sys.executable).with_name("kube-node-ready")
NODES = ("node-1", "node-2", "other")


def offered(*words: str) -> list[str]:
    return completion.candidates(parser("kube-node-ready"), words, lambda: NODES)[0]


def wants_file(*words: str) -> bool:
    return completion.candidates(parser("kube-node-ready"), words, lambda: NODES)[1]


class TestCompletion:
    def test_verbs(self) -> None:
        assert offered("") == list(VERBS)
        assert offered("ver") == ["verify"]
        assert offered("config", "") == ["check"]

    def test_nodes_where_a_node_may_stand_and_none_twice(self) -> None:
        assert offered("status", "") == list(NODES)
        assert offered("status", "--gated", "node-") == ["node-1", "node-2"]
        assert offered("verify", "node-1", "node-") == ["node-2"]
        assert offered("explain", "node-1", "") == [], "it takes one"

    def test_options_and_their_choices(self) -> None:
        assert offered("status", "--w") == ["--watch"]
        assert offered("status", "--watch", "--wa") == []
        assert offered("status", "-o", "") == ["table", "wide", "json", "yaml"]
        assert offered("status", "--output", "=") == ["table", "wide", "json", "yaml"]
        assert offered("completion", "z") == ["zsh"]
        assert offered("status", "--namespace", "no") == [], "any word may follow"
        assert offered("status", "--namespace", "x", "no") == ["node-1", "node-2"]

    def test_a_value_right_behind_its_option(self) -> None:
        assert offered("status", "--output=y") == ["yaml"]
        assert offered("status", "--watch=") == []
        assert offered("status", "--no-such-option=y") == []
        assert wants_file("status", "--kubeconfig=/etc/")

    def test_files(self) -> None:
        assert wants_file("config", "check", "")
        assert wants_file("status", "--kubeconfig", "")
        assert not wants_file("status", "")

    @pytest.mark.parametrize("shell", SHELLS)
    def test_every_shell_has_its_script(self, shell: str) -> None:
        assert "kube-node-ready __complete" in completion.script(shell)

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("kube-node-ready st", ["status"]),
            ("kube-node-ready status -o y", ["yaml"]),
            ("kube-node-ready status --output = y", ["yaml"]),
            ("kube-node-ready config ", ["check"]),
        ],
    )
    def test_bash_completes_by_it(self, line: str, expected: list[str]) -> None:
        assert bash(line) == expected

    def test_bash_completes_nodes_by_asking_the_cluster(self, tmp_path: Path) -> None:
        """Here there is none, which must neither hang nor speak."""
        assert bash("kube-node-ready explain ", KUBECONFIG=str(tmp_path / "none")) == []

    @pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
    def test_the_scripts_are_understood(self, shell: str, tmp_path: Path) -> None:
        file = tmp_path / "script"
        file.write_text(completion.script(shell))
        assert subprocess.run([shell, "-n", file], check=False).returncode == 0


def bash(line: str, **variables: str) -> list[str]:
    """What bash offers after a TAB."""
    words = line.split(" ")
    ask = (
        f"{completion.script('bash')}\nCOMP_WORDS=({' '.join(word or chr(39) * 2 for word in words)})\n"
        f"COMP_CWORD={len(words) - 1}\n_kube_node_ready\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    )
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", **variables}
    done = subprocess.run(["bash", "-c", ask], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [word for word in done.stdout.splitlines() if word]


class TestArguments:
    @pytest.mark.parametrize(
        ("text", "expected"), [("120s", 120), ("2m", 120), ("1h30m", 5400), ("90", 90), ("0.5s", 0.5)]
    )
    def test_spans_of_time(self, text: str, expected: float) -> None:
        assert seconds(text) == expected

    @pytest.mark.parametrize("text", ["", "soon", "-1s", "1d", "5 s"])
    def test_what_is_no_span_of_time(self, text: str) -> None:
        with pytest.raises(argparse.ArgumentTypeError, match="120s, 2m and 1h30m are"):
            seconds(text)

    @pytest.mark.parametrize(
        ("words", "complaint"),
        [
            (["verify"], "name the nodes to verify, or say --all-failed"),
            (["verify", "a", "--all-failed"], "name the nodes to verify, or say --all-failed"),
            (["status", "--watch", "-o", "json"], "-o json is for a single look"),
            (["status", "--timeout", "5s"], "--timeout is for --watch and --until"),
            (["verify", "a", "--timeout", "5s"], "--timeout is for --wait"),
            (["status", "--timeout", "soon", "--watch"], "'soon' is no span of time"),
            (["explain"], "NODE"),
            (["config"], "ACTION"),
            (["status", "--watc"], "usage: kube-node-ready status"),
            (["status", "--watc"], "there is no --watc; did you mean --watch?"),
            (["status", "--quite-different=1"], "there is no --quite-different\n"),
            (["explain", "node-1", "node-2"], "'node-2' is one word too many"),
            (["config", "check", "a.yaml", "--workers"], "there is no --workers; did you mean --worker?"),
            (["--no-such-flag"], "there is no --no-such-flag"),
            (["statu"], "'statu' is no verb; did you mean status?\n"),
            (["other"], "'other' is no verb; there is status, explain, verify"),
            (["config", "chek"], "'chek' is no verb; did you mean check?\n"),
        ],
    )
    def test_a_mistake_is_named(self, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert code(words) == 2
        assert complaint in capsys.readouterr().err

    def test_a_verb_that_is_missing_is_asked_for(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            parsed("kube-node-ready", [])
        assert "a verb is missing: status, explain" in capsys.readouterr().err

    def test_nodes_may_stand_before_and_behind_options(self) -> None:
        options = parsed("kube-node-ready", ["verify", "node-1", "--wait", "node-2"])
        assert (options.node, options.wait) == (["node-1", "node-2"], True)

    def test_without_a_verb_there_is_help(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main.run("kubectl node-ready", []) == 0
        said = capsys.readouterr().out
        assert said.startswith("usage: kubectl node-ready")
        assert all(about in said for about in VERBS.values())

    @pytest.mark.parametrize("verb", VERBS)
    def test_help_teaches_by_examples(self, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert code([verb, "--help"]) == 0
        said = capsys.readouterr().out
        assert verb == "config" or f"examples:\n  kube-node-ready {verb}" in said

    def test_without_a_kubeconfig_one_sentence_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
        assert code(["status"]) == 3
        said = capsys.readouterr().err
        assert said.startswith("kube-node-ready: there is no way to Kubernetes: ")
        assert said.count("\n") == 1

    @pytest.mark.parametrize("closed", ["1", "2"])
    def test_a_stream_that_is_closed_is_no_trouble(self, closed: str) -> None:
        said = bash_run(f"{PROGRAM} config check examples/controller-config.yaml {closed}>&-")
        assert (said.returncode, "Traceback" in said.stderr) == (0, False)

    def test_a_reader_that_has_seen_enough_is_no_trouble(self) -> None:
        said = bash_run(f"{PROGRAM} completion bash | true; echo ${{PIPESTATUS[0]}}")
        assert said.stderr == ""

    def test_other_roles_do_not_load_it(self) -> None:
        asks = "import sys; from kube_node_ready import cli; print([m for m in sys.modules if 'console' in m])"
        said = subprocess.run([sys.executable, "-c", asks], cwd=ROOT, capture_output=True, text=True, check=True)
        assert said.stdout.strip() == "[]"

    def test_completion_does_not_load_the_client(self) -> None:
        asks = (
            "import sys; from kube_node_ready.console import main; main.run('x', ['__complete', 'st'])\n"
            "print([m for m in ('lightkube', 'httpx2', 'msgspec') if m in sys.modules])"
        )
        said = subprocess.run([sys.executable, "-c", asks], cwd=ROOT, capture_output=True, text=True, check=True)
        assert said.stdout.splitlines() == ["status", ":4", "[]"]


def bash_run(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)


def code(words: list[str]) -> int:
    try:
        return main.run("kube-node-ready", words)
    except SystemExit as ended:
        return int(ended.code or 0)


class TestConfigCheck:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return tmp_path / "config.yaml"

    @pytest.mark.parametrize(
        ("text", "words", "expected"),
        [
            ("reconciliation: {maxRetries: 7}", [], 0),
            ("", [], 0),
            ("dnsTestDomains: [example.com]", [], 0),
            ("reconciliation: {maxRetrys: 7}\nlogging: {level: loud}", [], 2),
            ("dnsTestDomains: [example.com]\npayload: perhaps", [], 2),
            ("reconciliation: {maxRetries: 7}", ["--worker"], 2),
            ("a: [", [], 2),
        ],
    )
    def test_it_is_read_as_it_would_be(self, file: Path, text: str, words: list[str], expected: int) -> None:
        file.write_text(text)
        assert code(["config", "check", str(file), *words]) == expected

    def test_all_mistakes_are_told_with_their_lines(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file.write_text("reconciliation: {maxRetrys: 7}\nlogging: {level: loud}")
        assert code(["config", "check", str(file)]) == 2
        first, second = capsys.readouterr().err.splitlines()
        assert "did you mean maxRetries?" in first
        assert "[config.yaml line 2]" in second

    def test_a_file_that_is_not_there_is_named_once(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for words in ([], ["--worker"]):
            assert code(["config", "check", str(file), *words]) == 2
            assert capsys.readouterr().err.count(str(file)) == 1

    def test_what_is_fine_is_called_so_with_what_has_no_effect(
        self, file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file.write_text("worker: {job: {backoffLimit: 3}}")
        assert code(["config", "check", str(file)]) == 0
        said = capsys.readouterr()
        assert said.out == f"{file}: fine\n"
        assert "worker.job.backoffLimit has no effect" in said.err

    def test_the_examples_are_fine(self) -> None:
        for name in ("controller-config.yaml", "worker-config.yaml"):
            assert code(["config", "check", str(ROOT / "examples" / name)]) == 0, name

    def test_whose_it_is_is_seen_by_its_keys(self) -> None:
        assert file_check.is_workers({"payload", "logging"})
        assert not file_check.is_workers({"logging"})
        assert not file_check.is_workers({"worker"})

    @pytest.mark.parametrize("name", ["values-daemonset-once.yaml", "values-two-replicas.yaml"])
    def test_values_of_the_chart_are_called_so(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert code(["config", "check", str(ROOT / "examples" / name)]) == 2
        assert "note: these look like values of the Helm chart" in capsys.readouterr().err


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == reference.page(), reference.__doc__
