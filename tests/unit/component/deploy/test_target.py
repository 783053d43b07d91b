"""Which cluster a manifest is deployed to: its label and `target_cluster` cannot choose one, only confirm it."""

import gc
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubernetes_daemonset.cli import main as cli
from tests.support.component_tool import Ran
from tests.support.manifests.builders import a_manifest, as_yaml

Json = dict[str, Any]

LABEL = "kubernetes.project-planton.org/context"
TARGET = "spec.target_cluster"
VERBS = ("diff", "apply", "delete", "outputs")


class Location:
    """A kubeconfig with two contexts, each with a login program that leaves a file behind."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys
        self.flags: tuple[str, ...] = ("--kubeconfig", str(folder / "kubeconfig"))
        self.kubeconfig: Json = {
            "current-context": "dev",
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in ("dev", "prod")],
            "clusters": [{"name": name, "cluster": {"server": "https://127.0.0.1:9"}} for name in ("dev", "prod")],
            "users": [{"name": name, "user": {"exec": self._login(name)}} for name in ("dev", "prod")],
        }

    def _login(self, name: str) -> Json:
        script = f"touch {self._folder}/login-of-{name}; exit 1"
        return {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script]}

    @property
    def logins(self) -> list[str]:
        """The contexts whose login program ran."""
        return sorted(file.name.removeprefix("login-of-") for file in self._folder.glob("login-of-*"))

    def run(self, verb: str, *flags: str, labels: tuple[str, ...] = ("prod",), target: str = "") -> Ran:
        (self._folder / "kubeconfig").write_text(yaml.safe_dump(self.kubeconfig))
        for_a_cluster = {TARGET: {"cluster_kind": "AwsEksCluster", "cluster_name": target}} if target else {}
        named = [a_manifest({"metadata": {"name": f"agent-{at}"}} | for_a_cluster) for at in range(len(labels))]
        for manifest, label in zip(named, labels, strict=True):
            manifest["metadata"] |= {"labels": {LABEL: label}} if label else {}
        (self._folder / "agent.yaml").write_text(as_yaml(*named))
        words = ["-f", str(self._folder / "agent.yaml"), *self.flags]
        with pytest.raises(SystemExit) as ended:
            cli.main([verb, *words, *flags])
        gc.enable()
        output = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, output.out, output.err)


@pytest.fixture
def location(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Location:
    return Location(tmp_path, capsys)


@pytest.mark.parametrize("verb", VERBS)
def test_a_label_does_not_choose_another_context(location: Location, verb: str) -> None:
    ran = location.run(verb)
    assert location.logins == []
    assert ran.code == 2
    assert (
        f'metadata.labels["{LABEL}"]: "prod" is not allowed; expected the current context, "dev"; '
        "use --kube-context to choose the cluster\n"
    ) in ran.err


def test_one_conflicting_label_is_sufficient_to_stop(location: Location) -> None:
    ran = location.run("diff", labels=("dev", "", "prod"))
    assert (ran.code, location.logins, ran.err.count("is not allowed")) == (2, [], 1)


def test_a_label_that_names_the_current_context_is_accepted(location: Location) -> None:
    location.run("diff", labels=("dev", ""))
    assert location.logins == ["dev"]


def test_the_flag_takes_precedence_over_the_label(location: Location) -> None:
    location.run("diff", "--kube-context", "prod")
    assert location.logins == ["prod"]
    location.run("diff", "--kube-context", "dev")
    assert location.logins == ["dev", "prod"]


def test_without_a_current_context_a_label_is_not_sufficient(location: Location) -> None:
    del location.kubeconfig["current-context"]
    ran = location.run("diff")
    assert (ran.code, location.logins) == (2, [])
    assert "expected the current context, and there is none; use --kube-context" in ran.err


NO_LABEL = ("",)


@pytest.mark.parametrize("verb", VERBS)
def test_a_manifest_for_another_context_is_not_deployed_to_the_current_one(location: Location, verb: str) -> None:
    ran = location.run(verb, labels=NO_LABEL, target="prod")
    assert location.logins == []
    assert ran.code == 2
    line = next(line for line in ran.err.splitlines() if " error: " in line)
    assert "/agent.yaml:" in line
    assert line.endswith(
        f'{TARGET}.cluster_name: "prod" is not allowed, because it is another context of the kubeconfig;'
        ' expected the current context, "dev"; use --kube-context to choose the cluster'
    )


def test_one_conflicting_target_is_sufficient_to_stop(location: Location) -> None:
    ran = location.run("apply", labels=("", ""), target="prod")
    assert (ran.code, location.logins, ran.err.count("is not allowed")) == (2, [], 2)


@pytest.mark.parametrize("context", ["dev", "prod"])
def test_the_flag_takes_precedence_over_the_target(location: Location, context: str) -> None:
    location.run("apply", "--kube-context", context, labels=NO_LABEL, target="prod")
    assert location.logins == [context]


@pytest.mark.parametrize("target", ["dev", "a-name-of-some-platform"])
def test_an_unknown_target_only_warns(location: Location, target: str) -> None:
    ran = location.run("apply", labels=NO_LABEL, target=target)
    assert location.logins == ["dev"]
    assert f'warning: {TARGET}.cluster_name: "{target}" does not choose the cluster' in ran.err


def test_a_cluster_of_another_context_is_a_target_too(location: Location) -> None:
    """Contexts are often called after their users: `admin@production` is a context of the cluster `production`."""
    for entry in location.kubeconfig["contexts"]:
        entry["name"] = f"admin@{entry['name']}"
    location.kubeconfig["current-context"] = "admin@dev"
    ran = location.run("apply", labels=NO_LABEL, target="prod")
    assert (ran.code, location.logins) == (2, [])
    assert 'another cluster of the kubeconfig; expected the current context, "admin@dev"; use' in ran.err
    location.run("apply", labels=NO_LABEL, target="dev")
    assert location.logins == ["dev"]


def test_without_a_current_context_a_target_is_not_sufficient(location: Location) -> None:
    del location.kubeconfig["current-context"]
    ran = location.run("apply", labels=NO_LABEL, target="prod")
    assert (ran.code, location.logins) == (2, [])
    assert "expected the current context, and there is none; use --kube-context" in ran.err


def test_a_target_does_not_confirm_the_context_that_the_label_denies(location: Location) -> None:
    ran = location.run("apply", labels=("prod",), target="dev")
    assert (ran.code, location.logins, ran.err.count("is not allowed")) == (2, [], 1)


def test_the_first_of_several_kubeconfigs_sets_the_current_context(
    location: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KUBECONFIG names two files: the current context is of the one, the other context of the other."""
    whole = location.kubeconfig
    files = []
    for at, name in enumerate(("dev", "prod")):
        part = {kind: [one for one in whole[kind] if one["name"] == name] for kind in ("contexts", "clusters", "users")}
        files.append(tmp_path / f"kubeconfig-of-{name}")
        files[at].write_text(yaml.safe_dump(part | {"current-context": name}))
    monkeypatch.setenv("KUBECONFIG", ":".join(map(str, files)))
    location.flags = ()
    ran = location.run("apply", labels=NO_LABEL, target="prod")
    assert (ran.code, location.logins) == (2, [])
    monkeypatch.setenv("KUBECONFIG", ":".join(map(str, reversed(files))))
    location.run("apply", labels=NO_LABEL, target="prod")
    assert location.logins == ["prod"]
