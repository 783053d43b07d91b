"""The verbs that need no cluster, as they are run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kubernetes_daemonset import cli, offline
from kubernetes_daemonset.explain import NoSuchField, explain
from kubernetes_daemonset.manifest import load
from kubernetes_daemonset.validate import validate
from tests.component_tool import COMMAND
from tests.shell import ROOT

GOOD = (ROOT / "src/kubernetes_daemonset/starters/node-exporter.yaml").read_text()
STARTERS = sorted(offline.starters())


def run(*words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *map(str, words)], capture_output=True, check=False, input=stdin, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("name", STARTERS)
def test_a_manifest_to_start_from_has_nothing_wrong_with_it(name: str) -> None:
    (loaded,) = load(offline.starters()[name].encode(), name)
    assert validate(loaded) == []


def test_init_prints_one_and_validate_takes_it_from_standard_input() -> None:
    said = run("validate", "-f", "-", stdin=run("init", "fluentd").stdout)
    assert (said.returncode, said.stdout) == (0, "1 manifest valid\n")


def test_init_alone_lists_them_all() -> None:
    lines = run("init").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == STARTERS


def test_init_names_the_nearest() -> None:
    said = run("init", "fluentt")
    assert said.returncode == 2
    assert "did you mean fluentd?" in said.stderr


def test_every_mistake_of_every_file_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace("namespace: monitoring", "namespace: Bad_One"))
    (tmp_path / "b.yaml").write_text(GOOD.replace("host_network: true", "host_network: maybe"))
    said = run("validate", "-f", tmp_path / "a.yaml", "-f", tmp_path / "b.yaml")
    assert said.returncode == 1
    assert f"{tmp_path}/a.yaml:7:3: error: spec.namespace" in said.stdout
    assert f"{tmp_path}/b.yaml:9:17: error: spec.host_network: expected true or false" in said.stdout
    assert said.stdout.endswith("2 errors\n")

    (tmp_path / "b.yaml").write_text(GOOD.replace("container_port: 9100", "container_port: 99999"))
    said = run("validate", "-f", tmp_path)
    assert f"{tmp_path}/a.yaml:7:3: error: spec.namespace" in said.stdout
    assert (
        f"{tmp_path}/b.yaml:29:11: error: spec.container.app.ports[0].container_port: 99999 is no port" in said.stdout
    )
    assert said.stdout.endswith("2 errors\n")


def test_a_file_that_is_no_yaml_hides_nothing_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace("namespace: monitoring", "namespace: Bad_One"))
    (tmp_path / "b.yaml").write_text("a: b: c")
    (tmp_path / "c.yaml").write_text("")
    said = run("validate", *(word for name in "abc" for word in ("-f", tmp_path / f"{name}.yaml")))
    assert [line.split(": ")[0] for line in said.stdout.splitlines()] == [
        f"{tmp_path}/a.yaml:7:3",
        f"{tmp_path}/b.yaml:1:5",
        f"{tmp_path}/c.yaml",
        "3 errors",
    ]


def test_machines_are_told_in_json(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(GOOD.replace("tag: v1.7.0", "tag: latest"))
    said = run("validate", "-f", file, "-o", "json")
    (finding,) = json.loads(said.stdout)
    assert said.returncode == 0
    assert finding["severity"] == "warning"
    assert (finding["file"], finding["line"]) == (str(file), 17)
    assert finding["path"] == "spec.container.app.image"


def test_in_a_folder_other_kinds_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text(GOOD + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
    (tmp_path / "notes.txt").write_text("{{ no yaml")
    assert run("validate", "-f", tmp_path).stdout == "1 manifest valid\n"
    said = run("validate", "-f", tmp_path / "agent.yaml")
    assert 'kind: "ConfigMap" is another kind; write KubernetesDaemonSet' in said.stdout


def test_an_empty_folder_is_said_to_hold_none(tmp_path: Path) -> None:
    said = run("render", "-f", tmp_path)
    assert said.returncode == 2
    assert f"{tmp_path}: error: no manifest of kind KubernetesDaemonSet in it" in said.stderr


def test_two_manifests_that_would_make_the_same_object_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text(GOOD)
    said = run("validate", "-f", tmp_path)
    assert said.returncode == 1
    assert f"DaemonSet monitoring/node-exporter is also made by {tmp_path}/a.yaml:5:3" in said.stdout


@pytest.mark.parametrize("words", [("render", "-f", "gone.yaml"), ("validate", "-f", "gone.yaml")])
def test_a_file_that_is_not_there_is_bad_input(words: tuple[str, ...]) -> None:
    said = run(*words)
    assert said.returncode == 2
    assert said.stderr == "gone.yaml: error: cannot be read: No such file or directory\n"


def test_every_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = run("validate", "-f", "gone.yaml", "-f", tmp_path / "gone", "--docker-config", tmp_path / "config.json")
    assert said.returncode == 2
    assert [line.partition(": error")[0] for line in said.stderr.splitlines()] == [
        f"{tmp_path}/config.json",
        "gone.yaml",
        f"{tmp_path}/gone",
    ]


def test_an_invalid_manifest_is_not_rendered(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(GOOD.replace("namespace: monitoring", "namespace: Bad_One"))
    said = run("render", "-f", file)
    assert (said.returncode, said.stdout) == (2, "")
    assert "spec.namespace" in said.stderr


def test_render_prints_objects_as_yaml_as_a_list_and_as_a_table(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(GOOD)
    kinds = ["Namespace", "DaemonSet"]
    assert [one["kind"] for one in yaml.safe_load_all(run("render", "-f", file).stdout)] == kinds
    listed = json.loads(run("render", "-f", file, "-o", "json").stdout)
    assert [one["kind"] for one in listed["items"]] == kinds
    assert [line.split()[0] for line in run("render", "-f", file, "-o", "table").stdout.splitlines()[1:]] == kinds


def test_render_brings_every_dialect_to_one(tmp_path: Path) -> None:
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
    said = run("render", "-f", file, "--to", to, "--into", tmp_path / "out")
    assert said.returncode == 0, said.stderr
    assert (tmp_path / "out" / expected).exists()
    private = {"terraform": "terraform.tfvars.json", "pulumi": "stack-input.yaml"}[to]
    assert (tmp_path / "out" / private).stat().st_mode & 0o077 == 0


def test_explain_tells_what_the_proto_files_say() -> None:
    said = run("explain", "spec.container.app.volume_mounts[0].hostPath").stdout
    assert said.startswith("spec.container.app.volume_mounts.host_path: HostPathSource\nA path of the node.\n")
    assert "DirectoryOrCreate" in said


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
def test_explain_takes_paths_as_mistakes_name_them_and_as_people_type_them(path: str, head: str) -> None:
    found = explain(path)
    assert f"{found.path}: {found.type}" == head
    assert found.about


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("spec.host_network[0]", "spec.host_network holds one value, so there is no 0 in it"),
        ("spec.container.app.args[0].x", "spec.container.app.args holds one value, so there is no x in it"),
        ("spec.tolerations[first].key", "spec.tolerations: unknown field 'first'"),
        ("spec.container[app", '"spec.container[app" is no path; write names with dots between them'),
        ("volume_mounts[0].name", "the manifest: unknown field 'volume_mounts'; it has"),
    ],
)
def test_explain_says_what_to_type_instead(path: str, said: str) -> None:
    with pytest.raises(NoSuchField) as why:
        explain(path)
    assert said in str(why.value)


def test_explain_names_the_nearest_field() -> None:
    said = run("explain", "spec.tolerationz")
    assert said.returncode == 2
    assert "did you mean tolerations?" in said.stderr


def test_validate_loads_nothing_that_only_other_verbs_need() -> None:
    script = "import sys; import kubernetes_daemonset.validating; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    unneeded = {"httpx2", "importlib.metadata", "importlib.resources", "kubernetes_daemonset.backends.terraform"}
    assert not unneeded & set(done.stdout.split())


def test_a_reader_that_stops_early_gets_no_traceback() -> None:
    with subprocess.Popen([*COMMAND, "init", "fluentd"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("text", ["soon", "-1", "1d", ""])
def test_a_timeout_that_is_none_is_named(text: str) -> None:
    said = run("apply", "-f", "x", f"--timeout={text}")
    assert said.returncode == 2
    assert f'"{text}" is no time; write seconds, or 90s, 5m, 1h30m' in said.stderr


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("1.5", 1.5), ("90s", 90), ("5m", 300), ("1h30m", 5400)])
def test_a_timeout_is_seconds_or_has_units(text: str, seconds: float) -> None:
    assert cli._seconds(text) == seconds


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("delete", "-f", "x", "--delete"), "there is no flag --delete; did you mean --delete-namespace?"),
        (("render", "-f", "x", "--int=y"), "there is no flag --int; did you mean --into?"),
        (("apply", "-f", "x", "--frobnicate"), "there is no flag --frobnicate"),
        (("apply", "-f", "x", "y"), 'there is no place for "y"; manifests are given by -f'),
        (("init", "fluentd", "y"), 'there is no place for "y"'),
        (("aply", "-f", "x"), 'there is no verb "aply"; did you mean apply?'),
        (("--verson",), "there is no flag --verson; did you mean --version?"),
    ],
)
def test_what_is_no_flag_is_refused_with_the_nearest_that_is(words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert done.stderr.rstrip().endswith(said)
    of = "" if words[0] in {"aply", "--verson"} else f" {words[0]}"
    assert done.stderr.startswith(f"usage: kubernetes-daemonset{of} ")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--into", "x"), "--into goes with --to terraform and --to pulumi; --to yaml prints"),
        (("--to", "manifest", "--into", "x"), "--into goes with --to terraform and --to pulumi; --to manifest prints"),
        (("--to", "manifest", "-o", "json"), "-o json goes with --to yaml; --to manifest prints YAML"),
        (("--to", "terraform", "-o", "json", "--into", "x"), "-o json goes with --to yaml; --to terraform writes"),
    ],
)
def test_flags_of_render_that_do_not_fit_are_refused(tmp_path: Path, flags: tuple[str, ...], said: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(GOOD)
    done = run("render", "-f", file, *(tmp_path / "x" if flag == "x" else flag for flag in flags))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_file_that_is_not_there_hides_nothing_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace("namespace: monitoring", "namespace: Bad_One"))
    for verb in ("validate", "render"):
        said = run(verb, "-f", tmp_path / "a.yaml", "-f", "gone.yaml")
        assert said.returncode == 2
        assert "gone.yaml: error: cannot be read" in said.stderr
        assert f"{tmp_path}/a.yaml:7:3: error: spec.namespace" in said.stderr


def test_a_wrong_login_is_reported_at_its_own_file(tmp_path: Path) -> None:
    login = tmp_path / "config.json"
    login.write_text("{}")
    two = GOOD + "---\n" + GOOD.replace("name: node-exporter", "name: another", 1)
    said = run("validate", "-f", "-", "--docker-config", login, stdin=two)
    assert said.stdout.count("is no Docker config.json") == 1
    assert said.stdout.splitlines()[0].startswith(f"{login}: error: docker_config_json: is no Docker config.json")


@pytest.mark.parametrize("assignment", ["spec.host_network=maybe", "spec.hostt=1", "spec.namespace=Bad_One"])
def test_what_the_command_line_sets_has_no_line(assignment: str) -> None:
    said = run("validate", "-f", "-", "-o", "json", "--set", assignment, stdin=GOOD)
    (finding,) = json.loads(said.stdout)
    assert finding["file"] == f"--set {assignment.partition('=')[0]}"
    assert (finding["line"], finding["column"]) == (None, None)


def test_what_a_module_no_longer_has_is_removed_and_nothing_else(tmp_path: Path) -> None:
    into, file = tmp_path / "module", tmp_path / "a.yaml"
    file.write_text(GOOD + "  config_maps: {gone: '1', kept: '1'}\n")
    run("render", "-f", file, "--to", "terraform", "--into", into)
    (into / "config_map_theirs.yaml").write_text("not ours")
    file.write_text(GOOD + "  config_maps: {kept: '1'}\n")
    said = run("render", "-f", file, "--to", "terraform", "--into", into)
    assert said.returncode == 0
    assert f"removed {into}/config_map_gone.yaml" in said.stderr
    assert not (into / "config_map_gone.yaml").exists()
    assert (into / "config_map_kept.yaml").exists()
    assert (into / "config_map_theirs.yaml").exists()


@pytest.mark.parametrize(("first", "second"), [("terraform", "pulumi"), ("pulumi", "terraform")])
def test_a_folder_of_the_other_kind_is_refused(tmp_path: Path, first: str, second: str) -> None:
    run("render", "-f", "-", "--to", first, "--into", tmp_path, stdin=GOOD)
    before = sorted(tmp_path.iterdir())
    said = run("render", "-f", "-", "--to", second, "--into", tmp_path, stdin=GOOD)
    assert said.returncode == 2
    assert f"{tmp_path}: holds files for {first.title()}; choose another folder" in said.stderr
    assert sorted(tmp_path.iterdir()) == before
