"""The verbs that need no cluster, as they are run."""

import errno
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kubekit.diagnostics import Diagnostic, Location, Severity
from kubernetes_daemonset.cli import commands, offline, sources
from kubernetes_daemonset.cli import main as cli
from kubernetes_daemonset.errors import first
from kubernetes_daemonset.manifest.explain import NoSuchField, explain
from kubernetes_daemonset.manifest.reader import load
from kubernetes_daemonset.validation.validate import validate
from tests.support.component_tool import COMMAND
from tests.support.shell import ROOT

GOOD = (ROOT / "src/kubernetes_daemonset/starters/node-exporter.yaml").read_text()
LONG = "a" * 300
STARTERS = sorted(offline.starters())


def run(*words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *map(str, words)], capture_output=True, check=False, input=stdin, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("name", STARTERS)
def test_starter_manifests_are_valid(name: str) -> None:
    (loaded,) = load(offline.starters()[name].encode(), name)
    assert validate(loaded) == []


def test_validate_accepts_the_output_of_init() -> None:
    output = run("validate", "-f", "-", stdin=run("init", "fluentd").stdout)
    assert (output.returncode, output.stdout) == (0, "1 manifest valid\n")


def test_init_alone_lists_them_all() -> None:
    lines = run("init").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == STARTERS


def test_init_names_the_nearest() -> None:
    output = run("init", "fluentt")
    assert output.returncode == 2
    assert "did you mean fluentd?" in output.stderr


def test_all_errors_of_all_files_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace("namespace: monitoring", "namespace: Bad_One"))
    (tmp_path / "b.yaml").write_text(GOOD.replace("host_network: true", "host_network: maybe"))
    output = run("validate", "-f", tmp_path / "a.yaml", "-f", tmp_path / "b.yaml")
    assert output.returncode == 1
    assert f"{tmp_path}/a.yaml:7:3: error: spec.namespace" in output.stdout
    assert f"{tmp_path}/b.yaml:9:17: error: spec.host_network: expected true or false" in output.stdout
    assert output.stdout.endswith("2 errors\n")

    (tmp_path / "b.yaml").write_text(GOOD.replace("container_port: 9100", "container_port: 99999"))
    output = run("validate", "-f", tmp_path)
    assert f"{tmp_path}/a.yaml:7:3: error: spec.namespace" in output.stdout
    assert (
        f"{tmp_path}/b.yaml:29:11: error: spec.container.app.ports[0].container_port: 99999 is invalid; expected a port"
        in output.stdout
    )
    assert output.stdout.endswith("2 errors\n")


def test_a_file_that_is_not_yaml_does_not_hide_errors_of_others(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace("namespace: monitoring", "namespace: Bad_One"))
    (tmp_path / "b.yaml").write_text("a: b: c")
    (tmp_path / "c.yaml").write_text("")
    output = run("validate", *(word for name in "abc" for word in ("-f", tmp_path / f"{name}.yaml")))
    assert [line.split(": ")[0] for line in output.stdout.splitlines()] == [
        f"{tmp_path}/a.yaml:7:3",
        f"{tmp_path}/b.yaml:1:5",
        f"{tmp_path}/c.yaml",
        "3 errors",
    ]


def test_output_can_be_json(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(GOOD.replace("tag: v1.7.0", "tag: latest"))
    output = run("validate", "-f", file, "-o", "json")
    (finding,) = json.loads(output.stdout)
    assert output.returncode == 0
    assert finding["severity"] == "warning"
    assert (finding["file"], finding["line"]) == (str(file), 17)
    assert finding["path"] == "spec.container.app.image"


def test_other_kinds_in_a_folder_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text(GOOD + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
    (tmp_path / "notes.txt").write_text("{{ no yaml")
    assert run("validate", "-f", tmp_path).stdout == "1 manifest valid\n"
    output = run("validate", "-f", tmp_path / "agent.yaml")
    assert 'kind: "ConfigMap" is invalid; expected KubernetesDaemonSet' in output.stdout


def test_a_pipe_in_a_folder_does_not_block(tmp_path: Path) -> None:
    """In a shared folder, another user can create one."""
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "agent.yaml").write_text(GOOD)
    command = [*COMMAND, "validate", "-f", str(tmp_path)]
    assert subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


def test_an_empty_directory_is_an_error(tmp_path: Path) -> None:
    output = run("render", "-f", tmp_path)
    assert output.returncode == 2
    assert f"{tmp_path}: error: contains no manifest of kind KubernetesDaemonSet" in output.stderr


def test_two_manifests_with_the_same_object_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text(GOOD)
    output = run("validate", "-f", tmp_path)
    assert output.returncode == 1
    assert f"DaemonSet monitoring/node-exporter is also defined by {tmp_path}/a.yaml:5:3" in output.stdout


@pytest.mark.parametrize("words", [("render", "-f", "gone.yaml"), ("validate", "-f", "gone.yaml")])
def test_a_missing_file_is_bad_input(words: tuple[str, ...]) -> None:
    output = run(*words)
    assert output.returncode == 2
    assert output.stderr == "gone.yaml: error: cannot be read: No such file or directory\n"


@pytest.mark.parametrize("word", ["/dev/zero", "-"])
def test_an_endless_file_is_not_read_whole(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Path("/dev/zero").open() as endless, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", endless)
        with pytest.raises(SystemExit) as ended:
            cli.main(["validate", "-f", word])
    assert ended.value.code == 2
    name = "standard input" if word == "-" else word
    assert capsys.readouterr().err == f"{name}: error: cannot be read: it is too large; expected at most 4 MiB\n"


def test_every_missing_file_is_named(tmp_path: Path) -> None:
    output = run("validate", "-f", "gone.yaml", "-f", tmp_path / "gone", "--docker-config", tmp_path / "config.json")
    assert output.returncode == 2
    assert [line.partition(": error")[0] for line in output.stderr.splitlines()] == [
        f"{tmp_path}/config.json",
        "gone.yaml",
        f"{tmp_path}/gone",
    ]


def test_an_invalid_manifest_is_not_rendered(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(GOOD.replace("namespace: monitoring", "namespace: Bad_One"))
    output = run("render", "-f", file)
    assert (output.returncode, output.stdout) == (2, "")
    assert "spec.namespace" in output.stderr


def test_render_prints_objects_as_yaml_as_a_list_and_as_a_table(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(GOOD)
    kinds = ["Namespace", "DaemonSet"]
    assert [one["kind"] for one in yaml.safe_load_all(run("render", "-f", file).stdout)] == kinds
    listed = json.loads(run("render", "-f", file, "-o", "json").stdout)
    assert [one["kind"] for one in listed["items"]] == kinds
    assert [line.split()[0] for line in run("render", "-f", file, "-o", "table").stdout.splitlines()[1:]] == kinds


def test_render_normalizes_every_dialect(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(GOOD)
    once = run("render", "-f", file, "--to", "manifest").stdout
    assert "namespace:\n    value: monitoring\n" in once
    file.write_text(once)
    assert run("render", "-f", file, "--to", "manifest").stdout == once


@pytest.mark.parametrize(("to", "expected"), [("terraform", "main.tf.json"), ("pulumi", "Pulumi.yaml")])
def test_modules_and_projects_are_written_into_a_folder(tmp_path: Path, to: str, expected: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(GOOD)
    assert run("render", "-f", file, "--to", to).returncode == 2
    output = run("render", "-f", file, "--to", to, "--into", tmp_path / "out")
    assert output.returncode == 0, output.stderr
    assert (tmp_path / "out" / expected).exists()
    private = {"terraform": "terraform.tfvars.json", "pulumi": "stack-input.yaml"}[to]
    assert (tmp_path / "out" / private).stat().st_mode & 0o077 == 0


def test_explain_prints_the_comments_of_the_proto_files() -> None:
    output = run("explain", "spec.container.app.volume_mounts[0].hostPath").stdout
    assert output.startswith("spec.container.app.volume_mounts.host_path: HostPathSource\nA path on the node.\n")
    assert "DirectoryOrCreate" in output


@pytest.mark.parametrize(
    ("path", "head"),
    [
        ("spec.tolerations[0].key", "spec.tolerations.key: text"),
        ("spec.tolerations.key", "spec.tolerations.key: text"),
        ("spec.tolerations[0]", "spec.tolerations: KubernetesDaemonSetToleration"),
        ("spec.tolerations", "spec.tolerations: list of KubernetesDaemonSetToleration"),
        ("spec.container.app.args[0]", "spec.container.app.args: text"),
        ("spec.container.app.env.variables[FOO]", "spec.container.app.env.variables.FOO: KubernetesDaemonSetEnvValue"),
        ("spec.container.app.env.variables.FOO", "spec.container.app.env.variables.FOO: KubernetesDaemonSetEnvValue"),
        ("spec.container.app.env.variables[FOO].value", "spec.container.app.env.variables.FOO.value: text"),
        ("spec.node_selector[kubernetes.io/os]", 'spec.node_selector["kubernetes.io/os"]: text'),
        ('spec.node_selector["kubernetes.io/os"]', 'spec.node_selector["kubernetes.io/os"]: text'),
        (r"spec.node_selector.kubernetes\.io/os", 'spec.node_selector["kubernetes.io/os"]: text'),
    ],
)
def test_explain_accepts_paths_of_diagnostics_and_typed_paths(path: str, head: str) -> None:
    found = explain(path)
    assert f"{found.path}: {found.type}" == head
    assert found.about


@pytest.mark.parametrize(
    ("path", "output"),
    [
        ("spec.host_network[0]", "spec.host_network has a single value and no field 0"),
        ("spec.container.app.args[0].x", "spec.container.app.args has a single value and no field x"),
        ("spec.tolerations[first].key", "spec.tolerations: unknown field 'first'"),
        ("spec.container[app", '"spec.container[app" is not a valid path; expected names separated by dots'),
        ("volume_mounts[0].name", "the manifest: unknown field 'volume_mounts'; expected"),
    ],
)
def test_explain_reports_what_to_type_instead(path: str, output: str) -> None:
    with pytest.raises(NoSuchField) as why:
        explain(path)
    assert output in str(why.value)


def test_explain_names_the_nearest_field() -> None:
    output = run("explain", "spec.tolerationz")
    assert output.returncode == 2
    assert "did you mean tolerations?" in output.stderr


def test_validate_loads_no_modules_of_other_commands() -> None:
    script = "import sys; import kubernetes_daemonset.cli.validate; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    unneeded = {"httpx2", "importlib.metadata", "importlib.resources", "kubernetes_daemonset.deploy.terraform"}
    assert not unneeded & set(done.stdout.split())


def test_a_reader_that_stops_early_gets_no_traceback() -> None:
    with subprocess.Popen([*COMMAND, "init", "fluentd"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("redirection", [">&-", "<&-", ">/dev/full", "| true"])
@pytest.mark.parametrize("words", ["init fluentd", "validate -f -", "--version", "--help"])
def test_no_stream_ends_in_a_traceback(words: str, redirection: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = f"{shlex.join(COMMAND)} {words} {redirection}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, check=False, env=environment, stdin=subprocess.DEVNULL, text=True
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("text", ["soon", "-1", "1d", ""])
def test_an_invalid_timeout_is_named(text: str) -> None:
    output = run("apply", "-f", "x", f"--timeout={text}")
    assert output.returncode == 2
    assert f'"{text}" is invalid; expected seconds, or a duration such as 90s, 5m or 1h30m' in output.stderr


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("1.5", 1.5), ("90s", 90), ("5m", 300), ("1h30m", 5400)])
def test_a_timeout_is_seconds_or_has_units(text: str, seconds: float) -> None:
    assert commands.seconds(text) == seconds


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (("delete", "-f", "x", "--delete"), "unknown flag --delete; did you mean --delete-namespace?"),
        (("render", "-f", "x", "--int=y"), "unknown flag --int; did you mean --into?"),
        (("apply", "-f", "x", "--frobnicate"), "unknown flag --frobnicate"),
        (("apply", "-f", "x", "y"), 'unexpected argument "y"; pass manifests with -f'),
        (("init", "fluentd", "y"), 'unexpected argument "y"'),
        (("aply", "-f", "x"), 'unknown command "aply"'),
        (("del", "-f", "x"), 'unknown command "del"'),
        (("rendr", "-f", "x"), 'unknown command "rendr"; did you mean render?'),
        (("--verson",), "unknown flag --verson; did you mean --version?"),
        (("diff", "-f", "x", "-o", "y"), '--output: "y" is invalid; expected diff or table'),
        (("diff", "-f", "x", "-o", "\x1b'y"), '--output: "\\x1b\'y" is invalid; expected diff or table'),
        (("render", "-f", "x", "--to="), '--to: "" is invalid; expected yaml, manifest, terraform or pulumi'),
        (("render",), "missing flag --file"),
        (("render", "-f"), "--file: is missing its value"),
        (("apply", "-f", "x", "--dry-run=3"), "--dry-run: takes no value"),
        (
            ("apply", "-f", "x", "--timeout", "soon"),
            '--timeout: "soon" is invalid; expected seconds, or a duration such as 90s, 5m or 1h30m',
        ),
    ],
)
def test_usage_errors_are_named(words: tuple[str, ...], output: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    of = "" if words[0] in {"aply", "del", "rendr", "--verson"} else f" {words[0]}"
    hint = f"Run 'kubernetes-daemonset{of} --help' for usage."
    assert done.stderr == f"kubernetes-daemonset: {output}\n{hint}\n"


@pytest.mark.parametrize(
    ("flags", "output"),
    [
        (("--into", "x"), "--into requires --to terraform or --to pulumi; --to yaml prints"),
        (("--to", "manifest", "--into", "x"), "--into requires --to terraform or --to pulumi; --to manifest prints"),
        (("--to", "manifest", "-o", "json"), "-o json requires --to yaml; --to manifest prints YAML"),
        (("--to", "terraform", "-o", "json", "--into", "x"), "-o json requires --to yaml; --to terraform writes"),
    ],
)
def test_invalid_combinations_of_render_flags_are_rejected(tmp_path: Path, flags: tuple[str, ...], output: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(GOOD)
    done = run("render", "-f", file, *(tmp_path / "x" if flag == "x" else flag for flag in flags))
    assert (done.returncode, done.stdout) == (2, "")
    assert output in done.stderr


def test_a_missing_file_does_not_hide_errors_of_others(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace("namespace: monitoring", "namespace: Bad_One"))
    for verb in ("validate", "render"):
        output = run(verb, "-f", tmp_path / "a.yaml", "-f", "gone.yaml")
        assert output.returncode == 2
        assert "gone.yaml: error: cannot be read" in output.stderr
        assert f"{tmp_path}/a.yaml:7:3: error: spec.namespace" in output.stderr


def test_a_wrong_login_is_reported_at_its_own_file(tmp_path: Path) -> None:
    login = tmp_path / "config.json"
    login.write_text("{}")
    two = GOOD + "---\n" + GOOD.replace("name: node-exporter", "name: another", 1)
    output = run("validate", "-f", "-", "--docker-config", login, stdin=two)
    assert output.stdout.count("is not a Docker config.json") == 1
    assert output.stdout.splitlines()[0].startswith(f"{login}: error: docker_config_json: is not a Docker config.json")


@pytest.mark.parametrize("assignment", ["spec.host_network=maybe", "spec.hostt=1", "spec.namespace=Bad_One"])
def test_errors_in_set_values_have_no_line(assignment: str) -> None:
    output = run("validate", "-f", "-", "-o", "json", "--set", assignment, stdin=GOOD)
    (finding,) = json.loads(output.stdout)
    assert finding["file"] == f"--set {assignment.partition('=')[0]}"
    assert (finding["line"], finding["column"]) == (None, None)


def test_only_files_that_left_the_module_are_removed(tmp_path: Path) -> None:
    into, file = tmp_path / "module", tmp_path / "a.yaml"
    file.write_text(GOOD + "  config_maps: {gone: '1', kept: '1'}\n")
    run("render", "-f", file, "--to", "terraform", "--into", into)
    (into / "config_map_theirs.yaml").write_text("not ours")
    file.write_text(GOOD + "  config_maps: {kept: '1'}\n")
    output = run("render", "-f", file, "--to", "terraform", "--into", into)
    assert output.returncode == 0
    assert f"removed {into}/config_map_gone.yaml" in output.stderr
    assert not (into / "config_map_gone.yaml").exists()
    assert (into / "config_map_kept.yaml").exists()
    assert (into / "config_map_theirs.yaml").exists()


@pytest.mark.parametrize(("first", "second"), [("terraform", "pulumi"), ("pulumi", "terraform")])
def test_a_directory_of_the_other_kind_is_rejected(tmp_path: Path, first: str, second: str) -> None:
    run("render", "-f", "-", "--to", first, "--into", tmp_path, stdin=GOOD)
    before = sorted(tmp_path.iterdir())
    output = run("render", "-f", "-", "--to", second, "--into", tmp_path, stdin=GOOD)
    assert output.returncode == 2
    assert f"{tmp_path}: contains files for {first.title()}; choose another directory" in output.stderr
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/tty", "/dev/null"])
def test_a_link_to_a_device_in_a_directory_is_not_read(device: str, tmp_path: Path) -> None:
    """Another user could have put it there. Reading a terminal waits for its user."""
    (tmp_path / "agent.yaml").write_text(GOOD)
    (tmp_path / "device.yaml").symlink_to(device)
    output = run("validate", "-f", tmp_path)
    assert (output.returncode, output.stdout) == (0, "1 manifest valid\n")


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (("validate", "-f", LONG), f"{LONG}: error: cannot be read: File name too long"),
        (("render", "--to=terraform", "--into", LONG, "-f", "-"), f"cannot write {LONG}: File name too long"),
    ],
)
def test_a_name_that_is_too_long_is_not_blamed_on_standard_output(words: tuple[str, ...], output: str) -> None:
    done = run(*words, stdin=GOOD)
    assert done.returncode in (1, 2)
    assert output in done.stdout + done.stderr


def test_a_directory_that_cannot_be_listed_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(_: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", fail)
    found = sources.read([str(tmp_path)])
    assert [str(each) for each in found.unreadable] == [f"{tmp_path}: cannot be read: Permission denied"]


def test_of_many_errors_100_are_printed_and_the_others_are_counted(tmp_path: Path) -> None:
    """A manifest can have a hundred thousand: an item of a list takes three bytes."""
    tolerations = "[&a {effect: Odd}" + ", *a" * 200 + "]"
    (tmp_path / "a.yaml").write_text(GOOD.replace("  host_network: true", f"  tolerations: {tolerations}"))
    printed = run("validate", "-f", tmp_path / "a.yaml").stdout.splitlines()
    assert len(printed) == 102
    assert printed[-2:] == [
        f"{tmp_path}/a.yaml: error: 303 more errors or warnings are not shown",
        "403 errors",
    ]
    rejected = run("render", "-f", tmp_path / "a.yaml").stderr.splitlines()
    assert len(rejected) == 101
    listed = json.loads(run("validate", "-o", "json", "-f", tmp_path / "a.yaml").stdout)
    assert len(listed) == 101
    assert listed[-1]["message"] == "303 more errors or warnings are not shown"


def test_errors_are_printed_rather_than_warnings() -> None:
    warning = Diagnostic("a", "odd", Location("a.yaml", 1), Severity.WARNING)
    errors = [Diagnostic("b", f"wrong {number}", Location("a.yaml", 2)) for number in range(80)]
    shown = first([*[warning] * 30, *errors])
    assert shown[:20] == [warning] * 20
    assert shown[20:100] == errors
    assert shown[100] == warning._replace(
        path="", message="10 more errors or warnings are not shown", location=Location("a.yaml")
    )


def test_a_long_path_is_truncated(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace("  host_network: true", f"  config_maps: {{? {'X' * 100_000} : y}}"))
    ran = run("validate", "-f", tmp_path / "a.yaml")
    assert ran.returncode == 1
    assert len(ran.stdout) < 2_000
