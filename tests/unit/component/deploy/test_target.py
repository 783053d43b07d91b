"""Which cluster a manifest is deployed to: its label cannot choose one, only confirm the current one."""

import gc
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubernetes_daemonset import cli
from tests.component import a_manifest, as_yaml
from tests.component_tool import Ran

Json = dict[str, Any]

LABEL = "kubernetes.project-planton.org/context"
VERBS = ("diff", "apply", "delete", "outputs")


class Place:
    """A kubeconfig with two contexts, each with a login program that leaves a file behind."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys
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

    def run(self, verb: str, *flags: str, labels: tuple[str, ...] = ("prod",)) -> Ran:
        (self._folder / "kubeconfig").write_text(yaml.safe_dump(self.kubeconfig))
        named = [a_manifest({"metadata": {"name": f"agent-{at}"}}) for at in range(len(labels))]
        for manifest, label in zip(named, labels, strict=True):
            manifest["metadata"] |= {"labels": {LABEL: label}} if label else {}
        (self._folder / "agent.yaml").write_text(as_yaml(*named))
        words = ["-f", str(self._folder / "agent.yaml"), "--kubeconfig", str(self._folder / "kubeconfig")]
        with pytest.raises(SystemExit) as ended:
            cli.main([verb, *words, *flags])
        gc.enable()
        said = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, said.out, said.err)


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, capsys)


@pytest.mark.parametrize("verb", VERBS)
def test_a_label_does_not_choose_another_context(place: Place, verb: str) -> None:
    ran = place.run(verb)
    assert place.logins == []
    assert ran.code == 2
    assert (
        f'metadata.labels["{LABEL}"]: "prod" is not allowed; expected the current context, "dev"; '
        "use --kube-context to choose the cluster\n"
    ) in ran.err


def test_one_label_of_several_is_enough_to_stop(place: Place) -> None:
    ran = place.run("diff", labels=("dev", "", "prod"))
    assert (ran.code, place.logins, ran.err.count("is not allowed")) == (2, [], 1)


def test_a_label_that_names_the_current_context_is_fine(place: Place) -> None:
    place.run("diff", labels=("dev", ""))
    assert place.logins == ["dev"]


def test_the_flag_chooses_whatever_the_label_says(place: Place) -> None:
    place.run("diff", "--kube-context", "prod")
    assert place.logins == ["prod"]
    place.run("diff", "--kube-context", "dev")
    assert place.logins == ["dev", "prod"]


def test_without_a_current_context_a_label_is_not_enough(place: Place) -> None:
    del place.kubeconfig["current-context"]
    ran = place.run("diff")
    assert (ran.code, place.logins) == (2, [])
    assert "expected the current context, and there is none; use --kube-context" in ran.err
