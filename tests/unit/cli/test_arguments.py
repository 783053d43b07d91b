"""What can be typed: arguments, their mistakes, and what the shell offers meanwhile."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kube_node_ready import version
from kube_node_ready.cli import completion, config_check, main, node_names, status, verify
from kube_node_ready.cli.cluster import ClusterLocation
from kube_node_ready.cli.program import program, seconds
from kube_node_ready.cli.selector import Requirement, Selector
from kube_node_ready.commands import CHANGING, COMPLETE_VARIABLE, VERBS, meant
from kubekit import completion as shell_completion
from kubekit.completion import SHELLS
from tests import specification
from tests.support.shell import ROOT
from tests.support.terminals import on_a_terminal
from tools.docs import cli

PROGRAM = Path(sys.executable).with_name("kube-node-ready")
NODES = ("node-1", "node-2", "other")


@pytest.fixture
def _cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_names, "of_nodes", lambda *_: list(NODES))


def script(shell: str) -> str:
    return shell_completion.script(shell, program, "kube-node-ready", COMPLETE_VARIABLE)


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """Return what kubectl gets."""
    assert completion.answer("kube-node-ready", words) == 0
    return capsys.readouterr().out.splitlines()


Capture = pytest.CaptureFixture[str]


@pytest.mark.usefixtures("_cluster")
class TestCompletion:
    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ([""], list(VERBS)),
            ([], list(VERBS)),
            (["ver"], ["verify", "version"]),
            (["config", ""], ["check"]),
            (["help", "st"], ["status"]),
            (["help", "config", ""], ["check"]),
            (["no-such-command", ""], list(VERBS)),
            (["status", "--no-such-flag", ""], list(NODES)),
        ],
    )
    def test_commands(self, capsys: Capture, words: list[str], expected: list[str]) -> None:
        assert answer(capsys, *words) == [*expected, ":4"]

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (["status", ""], list(NODES)),
            (["status", "--gated", "node-"], ["node-1", "node-2"]),
            (["verify", "node-1", "node-"], ["node-2"]),
            (["explain", "no"], ["node-1", "node-2"]),
            (["explain", "node-1", ""], []),
            (["status", "--namespace", "x", "no"], ["node-1", "node-2"]),
        ],
    )
    def test_nodes_are_completed_once_each(self, capsys: Capture, words: list[str], expected: list[str]) -> None:
        assert answer(capsys, *words) == [*expected, ":4"]

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (["status", "--w"], ["--watch"]),
            (["status", "-o", ""], ["table", "wide", "json", "yaml"]),
            (["status", "--output="], ["table", "wide", "json", "yaml"]),
            (["status", "--output=y"], ["yaml"]),
            (["completion", "z"], ["zsh"]),
            (["status", "--namespace", "no"], []),
            (["status", "--no-such-option=y"], []),
        ],
    )
    def test_options_and_their_values(self, capsys: Capture, words: list[str], expected: list[str]) -> None:
        assert answer(capsys, *words) == [*expected, ":4"]

    @pytest.mark.parametrize(
        "words",
        [
            ("config", "check", ""),
            ("status", "--kubeconfig", ""),
            ("status", "--kubeconfig=/etc/"),
            ("check", "--config", "a"),
        ],
    )
    def test_files(self, capsys: Capture, words: tuple[str, ...]) -> None:
        assert answer(capsys, *words) == [":0"]

    def test_a_name_that_is_not_printable_is_not_offered(
        self, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(node_names, "of_nodes", lambda *_: ["node-1\nnode-2", "node-3", "node\x1b[2J"])
        assert answer(capsys, "explain", "") == ["node-3", ":4"]

    @pytest.mark.parametrize(
        ("shell", "line", "expected"),
        [
            ("bash", "status --output = y", "plain,yaml\n"),
            ("zsh", "status --output=y", "plain\n--output=yaml\n_\n"),
            ("fish", "status --output=y", "plain,--output=yaml\n"),
            ("zsh", "conf", "plain\nconfig\nValidate configuration files.\n"),
        ],
    )
    def test_each_shell_gets_its_own_format(
        self, capsys: Capture, monkeypatch: pytest.MonkeyPatch, shell: str, line: str, expected: str
    ) -> None:
        words = line.split()
        monkeypatch.setenv(COMPLETE_VARIABLE, f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", f"kube-node-ready {line}")
        monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words)))
        assert completion.answer("kube-node-ready", []) == 0
        assert capsys.readouterr().out == expected

    @pytest.mark.parametrize("value", ["", "tcsh_complete", "bash_complete"])
    def test_an_invalid_completion_variable_is_an_error(
        self, capsys: Capture, monkeypatch: pytest.MonkeyPatch, value: str
    ) -> None:
        monkeypatch.setenv(COMPLETE_VARIABLE, value)
        assert (completion.answer("kube-node-ready", []), capsys.readouterr().out) == (2, "")

    @pytest.mark.parametrize("shell", SHELLS)
    def test_every_shell_has_its_script(self, shell: str) -> None:
        assert f"{COMPLETE_VARIABLE}={shell}_complete" in script(shell)

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

    def test_bash_completes_nodes_from_the_cluster(self, tmp_path: Path) -> None:
        """Here there is none, which must neither hang nor speak."""
        assert bash("kube-node-ready explain ", KUBECONFIG=str(tmp_path / "none")) == []

    @pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
    def test_the_scripts_are_understood(self, shell: str, tmp_path: Path) -> None:
        file = tmp_path / "script"
        file.write_text(script(shell))
        assert subprocess.run([shell, "-n", file], check=False).returncode == 0


def bash(line: str, **variables: str) -> list[str]:
    """What bash offers after a TAB."""
    words = line.split(" ")
    ask = (
        f"{script('bash')}\nCOMP_WORDS=({' '.join(word or chr(39) * 2 for word in words)})\n"
        f"COMP_CWORD={len(words) - 1}\n_kube_node_ready_completion kube-node-ready\n"
        f"printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    )
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", **variables}
    done = subprocess.run(["bash", "-c", ask], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [word for word in done.stdout.splitlines() if word]


class TestArguments:
    @pytest.mark.parametrize(
        ("text", "expected"), [("120s", 120), ("2m", 120), ("1h30m", 5400), ("90", 90), ("0.5s", 0.5)]
    )
    def test_durations_are_parsed(self, text: str, expected: float) -> None:
        assert seconds(text) == expected

    @pytest.mark.parametrize("text", ["", "soon", "-1s", "1d", "5 s"])
    def test_an_invalid_duration_is_rejected(self, text: str) -> None:
        assert seconds(text) is None

    @pytest.mark.parametrize(
        ("words", "complaint"),
        [
            (["verify"], "name the nodes to verify, or use --all-failed"),
            (["verify", "a", "--all-failed"], "name the nodes to verify, or use --all-failed"),
            (["status", "--watch", "-o", "json"], "--output: json cannot be combined with --watch or --until"),
            (["status", "--timeout", "5s"], "--timeout: needs --watch or --until"),
            (["verify", "a", "--timeout", "5s"], "--timeout: needs --wait"),
            (["status", "--timeout", "soon", "--watch"], '--timeout: "soon" is invalid; expected a duration such as'),
            (["status", "-o", "xml"], '--output: "xml" is invalid; expected table, wide, json or yaml\n'),
            (
                ["status", "-l", "a=("],
                '--selector: "a=(" is invalid; expected a label selector such as disk=ssd,!gpu\n',
            ),
            (["status", "--sort-by", "x"], '--sort-by: "x" is invalid; expected name, phase, age or pool\n'),
            (["status", "--group-by", "zone", "-o", "json"], "--output: json cannot be combined with --group-by"),
            (["completion", "tcsh"], 'SHELL: "tcsh" is invalid; expected bash, zsh or fish\n'),
            (["explain"], "missing argument NODE\n"),
            (["config"], "missing command; expected check\n"),
            (["status", "--watc"], "unknown flag --watc; did you mean --watch?\n"),
            (["status", "--watc"], "Run 'kube-node-ready status --help' for usage.\n"),
            (["status", "--quite-different=1"], "unknown flag --quite-different\n"),
            (["status", "--watch=yes"], "--watch: takes no value\n"),
            (["status", "--timeout"], "--timeout: is missing its value\n"),
            (["explain", "node-1", "node-2"], 'unexpected argument "node-2"\n'),
            (["explain", "node-1", "\x1b[2J"], 'unexpected argument "\ufffd[2J"\n'),
            (["config", "check", "a.yaml", "--workers"], "unknown flag --workers; did you mean --worker?\n"),
            (["--no-such-flag"], "unknown flag --no-such-flag\n"),
            (["statu"], 'unknown command "statu"; did you mean status?\n'),
            (["other"], 'unknown command "other"\n'),
            (["config", "chek"], 'unknown command "chek"; did you mean check?\n'),
            (["help", "statu"], 'unknown command "statu"; did you mean status?\n'),
            (["help", "status", "x"], 'unexpected argument "x"\n'),
        ],
    )
    def test_an_error_is_named(self, words: list[str], complaint: str, capsys: Capture) -> None:
        assert code(words) == 2
        assert complaint in capsys.readouterr().err

    @pytest.mark.parametrize("word", ["verif", "verfy", "paus", "pauze", "resum", "rseume"])
    def test_no_typo_suggests_a_command_with_side_effects(self, word: str, capsys: Capture) -> None:
        assert code([word]) == 2
        assert capsys.readouterr().err.startswith(f'kube-node-ready: unknown command "{word}"\n')

    @pytest.mark.parametrize("verb", VERBS)
    def test_suggestions_are_commands_that_only_read(self, verb: str) -> None:
        assert meant(verb[:-1]) == (None if verb in CHANGING else verb)

    def test_nodes_can_be_before_and_after_options(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[verify.Options] = []

        def run(options: verify.Options) -> int:
            asked.append(options)
            return 0

        monkeypatch.setattr(verify, "run", run)
        assert code(["verify", "node-1", "--wait", "node-2", "-n", "x"]) == 0
        assert asked == [verify.Options(ClusterLocation("x"), ("node-1", "node-2"), wait=True)]

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ([], status.Options(ClusterLocation("kube-system"))),
            (
                ["--pool", "spot", "-o", "wide"],
                status.Options(ClusterLocation("kube-system"), pool="spot", output="wide"),
            ),
            (
                ["-l", "a=b", "--sort-by=age", "--group-by=zone"],
                status.Options(
                    ClusterLocation("kube-system"),
                    selector=Selector((Requirement("a", frozenset("b")),)),
                    sort_by="age",
                    group_by="zone",
                ),
            ),
        ],
    )
    def test_the_options_of_status(
        self, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: status.Options
    ) -> None:
        asked: list[status.Options] = []

        def run(options: status.Options) -> int:
            asked.append(options)
            return 0

        monkeypatch.setattr(status, "run", run)
        assert code(["status", *words]) == 0
        assert asked == [expected]

    def test_without_a_command_there_is_help(self, capsys: Capture) -> None:
        assert main.run("kubectl node-ready", []) == 0
        output = capsys.readouterr().out
        assert output.startswith("Usage: kubectl node-ready")
        assert all(about in output for about in VERBS.values())

    @pytest.mark.parametrize("verb", VERBS)
    def test_help_has_examples(self, verb: str, capsys: Capture) -> None:
        assert code([verb, "--help"]) == 0
        output = capsys.readouterr().out
        assert verb in ("config", "version") or f"Examples:\n  kube-node-ready {verb}" in output
        assert code(["help", verb]) == 0
        assert capsys.readouterr().out == output

    def test_help_without_a_command_lists_all(self, capsys: Capture) -> None:
        assert code(["help"]) == 0
        listed = capsys.readouterr().out
        assert code(["--help"]) == 0
        assert capsys.readouterr().out == listed

    def test_version_is_a_command_and_a_flag(self, capsys: Capture) -> None:
        for words in (["version"], ["--version"]):
            assert main.run("kubectl node-ready", words) == 0
            assert capsys.readouterr().out == f"kubectl node-ready {version.describe()}\n"

    def test_in_a_terminal_without_a_node_there_is_help(self) -> None:
        bare = {name: value for name, value in os.environ.items() if name != "NODE_NAME"}
        done = on_a_terminal([str(PROGRAM)], bare)
        assert (done.code, "Usage: kube-node-ready" in done.text) == (0, True)
        node = on_a_terminal([str(PROGRAM)], {**bare, "NODE_NAME": "node-1", "KUBECONFIG": "/nonexistent"})
        assert (node.code, "Usage:" in node.text) == (3, False), "DaemonSet mode"

    def test_in_a_pipe_without_a_node_it_is_daemonset_mode(self) -> None:
        output = bash_run(f"env -u NODE_NAME {PROGRAM} </dev/null | cat; exit ${{PIPESTATUS[0]}}")
        assert (output.returncode, "NODE_NAME" in output.stderr) == (2, True)

    def test_a_missing_kubeconfig_is_reported_in_one_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
        assert code(["status"]) == 3
        output = capsys.readouterr().err
        assert output.startswith("kube-node-ready: cannot connect to the Kubernetes API: ")
        assert output.count("\n") == 1

    @pytest.mark.parametrize("closed", ["1", "2"])
    def test_a_closed_stream_is_not_an_error(self, closed: str) -> None:
        output = bash_run(f"{PROGRAM} config check examples/controller-config.yaml {closed}>&-")
        assert (output.returncode, "Traceback" in output.stderr) == (0, False)

    def test_a_closed_pipe_is_not_an_error(self) -> None:
        output = bash_run(f"{PROGRAM} completion bash | true; echo ${{PIPESTATUS[0]}}")
        assert output.stderr == ""

    def test_other_roles_do_not_load_it(self) -> None:
        asks = (
            "import sys; from kube_node_ready import entrypoints, agent, controller, worker\n"
            "from kube_node_ready.agent import main; from kube_node_ready.controller import runtime\n"
            "from kube_node_ready.worker import main, responder\n"
            "print([m for m in sys.modules if m.startswith(('kube_node_ready.cli', 'click', 'rich'))])"
        )
        output = subprocess.run([sys.executable, "-c", asks], cwd=ROOT, capture_output=True, text=True, check=True)
        assert output.stdout.strip() == "[]"

    def test_completion_does_not_load_the_client(self) -> None:
        asks = (
            "import sys; from kube_node_ready.cli import main; main.run('x', ['__complete', 'st'])\n"
            "print([m for m in ('lightkube', 'httpx2', 'msgspec', 'rich') if m in sys.modules])"
        )
        output = subprocess.run([sys.executable, "-c", asks], cwd=ROOT, capture_output=True, text=True, check=True)
        assert output.stdout.splitlines() == ["status", ":4", "[]"]


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

    @pytest.fixture(autouse=True)
    def own_image(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("POD_IMAGE", "registry.example/kube-node-ready:1")

    def test_an_image_that_might_not_work_is_warned_of(
        self, file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.write_text(specification.text("operator/values-controller.yaml"))
        assert code(["config", "check", str(file)]) == 0
        assert 'differs from the controller\'s image, "registry.example/kube-node-ready:1"' in capsys.readouterr().err
        monkeypatch.delenv("POD_IMAGE")
        assert code(["config", "check", str(file)]) == 0
        assert "is the image of the Go version: its worker exits with code 3 here" in capsys.readouterr().err
        file.write_text("")
        assert code(["config", "check", str(file)]) == 2
        assert "worker.image.repository: is missing" in capsys.readouterr().err

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
    def test_it_is_loaded_as_the_program_loads_it(self, file: Path, text: str, words: list[str], expected: int) -> None:
        file.write_text(text)
        assert code(["config", "check", str(file), *words]) == expected

    def test_all_errors_are_reported_with_their_lines(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file.write_text("reconciliation: {maxRetrys: 7}\nlogging: {level: loud}")
        assert code(["config", "check", str(file)]) == 2
        first, second = capsys.readouterr().err.splitlines()
        assert "did you mean maxRetries?" in first
        assert second.startswith(f"{file}:2: logging.level: ")

    def test_a_missing_file_is_named_once(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for words in ([], ["--worker"]):
            assert code(["config", "check", str(file), *words]) == 2
            assert capsys.readouterr().err.count(str(file)) == 1

    def test_a_valid_file_is_reported_with_settings_without_effect(
        self, file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file.write_text("worker: {job: {backoffLimit: 3}}")
        assert code(["config", "check", str(file)]) == 0
        output = capsys.readouterr()
        assert output.out == f"{file}: valid\n"
        assert "worker.job.backoffLimit has no effect" in output.err

    def test_the_examples_are_fine(self) -> None:
        for name in ("controller-config.yaml", "worker-config.yaml"):
            assert code(["config", "check", str(ROOT / "examples" / name)]) == 0, name

    def test_the_kind_of_a_file_is_detected_by_its_keys(self) -> None:
        assert config_check.looks_like_workers({"payload", "logging"})
        assert not config_check.looks_like_workers({"logging"})
        assert not config_check.looks_like_workers({"worker"})

    @pytest.mark.parametrize("name", ["values-daemonset-once.yaml", "values-two-replicas.yaml"])
    def test_values_of_the_chart_are_detected(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert code(["config", "check", str(ROOT / "examples" / name)]) == 2
        assert "note: these look like values of the Helm chart" in capsys.readouterr().err


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == cli.page(), cli.__doc__
