"""--docker-config: of all logins in the file, only those that the manifest's images need leave the machine."""

import base64
import gc
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubernetes_daemonset.cli import main as cli
from tests.support.component_tool import Ran
from tests.support.manifests.builders import a_manifest, a_sidecar, as_yaml, only

Json = dict[str, Any]

LOGIN = {"auth": base64.b64encode(b"user:password").decode()}
HUB = "https://index.docker.io/v1/"


class Location:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def run(self, verb: str, config: Json, *manifests: Json, flags: tuple[str, ...] = ()) -> Ran:
        (self.folder / "config.json").write_text(json.dumps(config))
        (self.folder / "agent.yaml").write_text(as_yaml(*manifests))
        words = ["-f", str(self.folder / "agent.yaml"), "--docker-config", str(self.folder / "config.json"), *flags]
        with pytest.raises(SystemExit) as ended:
            cli.main([verb, *words])
        gc.enable()
        error = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, error.out, error.err)

    def uploaded(self, config: Json, *images: str) -> Json:
        """The pull secret's content, for an agent, a sidecar and an init container with these images."""
        ran = self.run("render", config, of_images(*images), flags=("-o", "json"))
        assert ran.code == 0, ran.err
        return pull_secret(json.loads(ran.out)["items"])


@pytest.fixture
def location(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Location:
    return Location(tmp_path, capsys)


def of_images(*images: str, name: str = "agent") -> Json:
    app, *others = images
    repo, _, tag = app.rpartition(":")
    changes: Json = {"metadata": {"name": name}, "app.image": {"repo": repo, "tag": tag}}
    if others:
        changes["spec.container.sidecars"] = [a_sidecar(image=others[0])]
    if others[1:]:
        changes["spec.init_containers"] = [a_sidecar(name="before", image=others[1])]
    return a_manifest(changes)


def pull_secret(objects: list[Json]) -> Json:
    content: Json = json.loads(base64.b64decode(only("Secret", objects)["data"][".dockerconfigjson"]))
    return content


def test_only_logins_of_used_registries_are_uploaded(location: Location) -> None:
    config = {
        "auths": {
            "registry.example.com": LOGIN | {"email": "a@example.com", "identitytoken": "refresh", "other": 1},
            "sidecar.example.com:5000": {"username": "u", "password": "p"},
            "before.example.com": LOGIN,
            "unrelated.example.com": LOGIN,
            HUB: LOGIN,
        },
        "credHelpers": {"registry.example.com": "secret-tool"},
        "credsStore": "desktop",
        "proxies": {"default": {"httpProxy": "http://user:password@proxy.example.com"}},
        "HttpHeaders": {"X-Token": "secret"},
    }
    images = ("registry.example.com/agent:1", "sidecar.example.com:5000/a/b:2", "before.example.com/c:3")
    assert location.uploaded(config, *images) == {
        "auths": {
            "registry.example.com": LOGIN | {"email": "a@example.com"},
            "sidecar.example.com:5000": {"username": "u", "password": "p"},
            "before.example.com": LOGIN,
        }
    }


MATCHES = [
    ("example/agent:1", HUB, True),
    ("docker.io/example/agent:1", HUB, True),
    ("index.docker.io/example/agent:1", HUB, True),
    ("agent:1", HUB, True),
    ("agent:1", "docker.io", True),
    ("agent:1", "index.docker.io", True),
    ("agent:1", "https://index.docker.io/v2/", True),
    ("agent:1", "docker.io/library/agent", True),
    ("agent:1", "docker.io/other", False),
    ("registry.example.com/agent:1", HUB, False),
    ("registry.example.com/agent:1", "docker.io", False),
    ("registry.example.com/agent:1", "registry.example.com", True),
    ("registry.example.com/agent:1", "https://registry.example.com", True),
    ("registry.example.com/agent:1", "http://registry.example.com/", True),
    ("registry.example.com/agent:1", "https://registry.example.com/v2/", True),
    ("registry.example.com/agent:1", "registry.example.com:443", False),
    ("registry.example.com:5000/agent:1", "registry.example.com:5000", True),
    ("registry.example.com:5000/agent:1", "registry.example.com", False),
    ("registry.example.com:5000/agent:1", "registry.example.com:5001", False),
    ("registry.example.com/team/agent:1", "registry.example.com/team", True),
    ("registry.example.com/team/agent:1", "registry.example.com/team/agent", True),
    ("registry.example.com/team/agent:1", "registry.example.com/other", False),
    ("registry.example.com/agent:1", "*.example.com", True),
    ("registry.example.com/agent:1", "*.com", False),
    ("registry.example.com/agent:1", "example.com", False),
    ("registry.example.com/agent:1", "evil-registry.example.com", False),
    ("localhost/agent:1", "localhost", True),
    ("localhost/agent:1", HUB, False),
    ("localhost:5000/agent:1", "localhost:5000", True),
    ("[::1]:5000/agent:1", "[::1]:5000", True),
    ("registry.example.com/agent:1", "", False),
    ("registry.example.com/agent:1", "https://[", False),
]


@pytest.mark.parametrize(("image", "key", "kept"), MATCHES)
def test_keys_are_matched_as_a_kubelet_matches_them(location: Location, image: str, key: str, kept: bool) -> None:  # noqa: FBT001
    config = {"auths": {"control.example.com": LOGIN, key: LOGIN}}
    assert (key in location.uploaded(config, image, "control.example.com/c:1")["auths"]) is kept


def test_a_manifest_gets_the_logins_of_its_own_images_only(location: Location) -> None:
    config = {"auths": {"a.example.com": LOGIN, "b.example.com": LOGIN}}
    manifests = [of_images("a.example.com/a:1", name="a"), of_images("b.example.com/b:1", name="b")]
    ran = location.run("render", config, *manifests, flags=("-o", "json"))
    secrets = [one for one in json.loads(ran.out)["items"] if one["kind"] == "Secret"]
    assert [list(pull_secret([one])["auths"]) for one in secrets] == [["a.example.com"], ["b.example.com"]]


def test_a_stack_input_for_pulumi_holds_no_other_login(location: Location) -> None:
    config = {"auths": {"registry.example.com": LOGIN, "unrelated.example.com": LOGIN}, "credsStore": "desktop"}
    folder = location.folder / "project"
    ran = location.run("render", config, a_manifest(), flags=("--to", "pulumi", "--into", str(folder)))
    assert ran.code == 0, ran.err
    given = yaml.safe_load((folder / "stack-input.yaml").read_text())
    assert json.loads(given["docker_config_json"]) == {"auths": {"registry.example.com": LOGIN}}


@pytest.mark.parametrize("verb", ["validate", "render"])
def test_a_file_without_usable_logins_is_an_error(location: Location, verb: str) -> None:
    ran = location.run(verb, {"auths": {"unrelated.example.com": LOGIN}}, a_manifest())
    assert ran.code != 0
    assert (
        f"{location.folder}/config.json: error: docker_config_json: has no credentials for registry.example.com;"
        " expected an entry of auths with auth, or with username and password\n"
    ) in ran.out + ran.err


def test_a_login_of_a_credential_helper_is_not_usable(location: Location) -> None:
    """`docker login` with a credential helper leaves an empty entry behind."""
    ran = location.run("render", {"auths": {"registry.example.com": {}}, "credsStore": "desktop"}, a_manifest())
    assert ran.code == 2
    assert "; nodes cannot use a credential helper (credsStore, credHelpers)\n" in ran.err


def test_one_manifest_of_several_without_a_login_is_a_warning(location: Location) -> None:
    manifests = [of_images("a.example.com/a:1", name="a"), of_images("b.example.com/b:1", name="b")]
    ran = location.run("render", {"auths": {"a.example.com": LOGIN}}, *manifests, flags=("-o", "json"))
    assert ran.code == 0
    assert "warning: docker_config_json: has no credentials for b.example.com; expected" in ran.err
    assert len([one for one in json.loads(ran.out)["items"] if one["kind"] == "Secret"]) == 1


def test_an_image_that_needs_no_login_is_not_reported(location: Location) -> None:
    ran = location.run(
        "render", {"auths": {"a.example.com": LOGIN}}, of_images("a.example.com/a:1", "public.example.com/b:1")
    )
    assert (ran.code, ran.err.count("has no credentials")) == (0, 0)
