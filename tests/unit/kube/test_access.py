"""Where the API server is and what we show it, from files that are right and files that are not."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_node_ready.kube.access import Access, Login, access
from kube_node_ready.kube.errors import AccessError
from tests import virtual_time


def a_config(
    user: dict[str, Any] | None = None, *, server: object = "https://192.0.2.1:6443/prefix/", authority: str = ""
) -> dict[str, Any]:
    cluster = {"server": server} | ({"certificate-authority": authority} if authority else {})
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me", "namespace": "mine"}}],
        "clusters": [{"name": "one", "cluster": cluster}],
        "users": [{"name": "me", "user": user or {}}],
    }


def written(folder: Path, content: object) -> Path:
    file = folder / "kubeconfig"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return file


def test_a_kubeconfig_says_where_and_in_which_namespace(tmp_path: Path) -> None:
    found = access(written(tmp_path, a_config({"token": "secret"})))
    assert (found.server, found.namespace) == ("https://192.0.2.1:6443/prefix", "mine")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a: [", "this is not YAML"),
        ("", "this is no kubeconfig"),
        ("just words", "this is no kubeconfig"),
        ({}, "'clusters' is missing"),
        (a_config() | {"current-context": "there"}, "Context 'there' not found"),
        (a_config() | {"current-context": None}, "No current context set"),
        (a_config() | {"clusters": []}, "'one' is missing"),
        (a_config() | {"users": []}, "'me' is missing"),
        (a_config(server=7), "Expected `str`, got `int`"),
        (a_config(authority="ca.crt"), "certificate-authority names ca.crt, and there is no such file"),
        (a_config({"client-certificate": "/no.crt"}), "client-certificate names /no.crt, and there is no such file"),
        (a_config({"tokenFile": "token"}), "tokenFile names .*token, and there is no such file"),
        (a_config(authority="/dev/null"), "a certificate or key in it cannot be used"),
        (a_config({"auth-provider": {"name": "gcp"}}), "auth-provider not supported"),
        (a_config({"token": "secret\r\nX: y"}), "token: a value that is not shown is invalid"),
        (a_config({"token": "secret\n"}), "token: a value that is not shown is invalid"),
        (a_config({"token": "secrét"}), "token: a value that is not shown is invalid"),
        (a_config(server="https://me:secret@10.0.0.1:6443"), r"server: .*@10\.0\.0\.1:6443' is invalid"),
        (a_config({"token": "secret"}, server="http://10.0.0.1"), "would send the user's credentials unencrypted"),
        (
            a_config({"exec": {"apiVersion": "x", "command": "secret"}}, server="HTTP://10.0.0.1"),
            "credentials unencrypted",
        ),
        (a_config({"username": "me", "password": "secret"}, server="http://10.0.0.1"), "credentials unencrypted"),
        (a_config({"tokenFile": "/dev/null"}, server="http://10.0.0.1"), "credentials unencrypted"),
        (a_config({"client-key-data": "c2VjcmV0"}, server="http://10.0.0.1"), "credentials unencrypted"),
        (a_config(server="https://10.0.0.1 :6443"), "server: .* is invalid"),
        (a_config(server="https://10.0.0.1:6443/a b"), "server: .* is invalid"),
        (a_config(server="https://10.0.0.1\n:6443"), "server: .* is invalid"),
        (a_config(server="https://10.0.0.1:6443/?a"), "server: .* is invalid"),
        (a_config(server="https://10.0.0.1:6443/#a"), "server: .* is invalid"),
        (a_config(server="https://ä.example"), "server: .* is invalid"),
    ],
)
def test_a_broken_kubeconfig_is_refused_in_one_sentence_that_names_it(
    tmp_path: Path, content: object, complaint: str
) -> None:
    file = written(tmp_path, content)
    with pytest.raises(AccessError, match=complaint) as refused:
        access(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert "\n" not in str(refused.value)
    assert "secr" not in str(refused.value)


def test_a_proxy_without_credentials_can_be_plain(tmp_path: Path) -> None:
    assert access(written(tmp_path, a_config(server="http://127.0.0.1:8001"))).server == "http://127.0.0.1:8001"


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"Configuration file .*/none not found"):
        access(tmp_path / "none")


def test_without_any_configuration_all_places_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with pytest.raises(AccessError, match=r"ServiceAccount, KUBECONFIG or ~/.kube/config: .*not found"):
        access()


def test_several_kubeconfigs_are_one_in_which_the_first_that_says_something_wins(tmp_path: Path) -> None:
    """Files that are not there, and entries that are empty, are passed over; a path is relative to its own file."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "token").write_text("first")
    users = written(tmp_path / "a", {"users": a_config({"tokenFile": "token"})["users"]})
    whole = written(tmp_path, a_config({"token": "second"}))

    found = access(Path(f":{tmp_path}/none::{users}:{whole}:"))

    assert (found.server, found.namespace) == ("https://192.0.2.1:6443/prefix", "mine")
    assert asyncio.run(Login(found).header()) == "Bearer first"


def test_the_variable_may_name_several_kubeconfigs_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, a_config())
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none:{file}")
    assert access().namespace == "mine"


@pytest.mark.parametrize("content", ["a: [", "just words", "users: [{}]"])
def test_of_several_kubeconfigs_the_broken_one_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "a").mkdir()
    broken, whole = written(tmp_path / "a", content), written(tmp_path, a_config())
    with pytest.raises(AccessError, match=f"{broken}.* is no kubeconfig"):
        access(Path(f"{whole}:{broken}"))


@pytest.mark.parametrize("named", ["/nowhere/a:/nowhere/b", ":"])
def test_where_no_kubeconfig_is_there_all_are_named(named: str) -> None:
    with pytest.raises(AccessError, match=f"{named}: .*not found"):
        access(Path(named))


def test_a_context_can_be_chosen(tmp_path: Path) -> None:
    content = a_config()
    content["contexts"].append({"name": "there", "context": {"cluster": "one", "user": "me", "namespace": "theirs"}})
    assert access(written(tmp_path, content), "there").namespace == "theirs"
    with pytest.raises(AccessError, match="Context 'nowhere' not found"):
        access(written(tmp_path, content), "nowhere")


def login(folder: Path, user: dict[str, Any]) -> Login:
    found: Access = access(written(folder, a_config(user)))
    return Login(found)


def test_a_rotated_token_file_is_noticed_after_a_minute(tmp_path: Path) -> None:
    """Its path is relative to the kubeconfig's."""
    (tmp_path / "token").write_text("first\n")

    async def main() -> None:
        shown = login(tmp_path, {"tokenFile": "token"})
        assert await shown.header() == "Bearer first"
        (tmp_path / "token").write_text("second\n")
        assert await shown.header() == "Bearer first"
        await asyncio.sleep(61)
        assert await shown.header() == "Bearer second"

    virtual_time.run(main())


def test_a_refused_token_file_is_read_again_at_once(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")

    async def main() -> None:
        shown = login(tmp_path, {"tokenFile": "token"})
        assert await shown.header() == "Bearer first"
        assert not await shown.renew("Bearer first"), "there is nothing else to show yet"
        (tmp_path / "token").write_text("second")
        assert await shown.renew("Bearer first")
        assert await shown.header() == "Bearer second"

    virtual_time.run(main())


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "fixed"}, "Bearer fixed"),
        ({"username": "a", "password": "b"}, "Basic YTpi"),
        ({}, None),
    ],
)
def test_what_cannot_be_renewed_is_shown_for_ever(tmp_path: Path, user: dict[str, Any], header: str | None) -> None:
    async def main() -> None:
        shown = login(tmp_path, user)
        assert await shown.header() == header
        assert not await shown.renew(header)
        assert await shown.header() == header

    virtual_time.run(main())


def test_a_plugin_that_gives_no_token_is_not_understood(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text("#!/bin/sh\necho '{\"status\":{}}'\n")
    plugin.chmod(0o755)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}

    async def main() -> None:
        with pytest.raises(AccessError, match="answer has no 'token'"):
            await login(tmp_path, user).header()

    asyncio.run(main())


@pytest.mark.parametrize("token", ["secret\r\nX: y", "secret\x00", "secrét"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(tmp_path: Path, token: str) -> None:
    (tmp_path / "token").write_text(token)
    with pytest.raises(AccessError, match=r"no credentials for .*: the token is") as refused:
        asyncio.run(login(tmp_path, {"tokenFile": "token"}).header())
    assert "secr" not in str(refused.value)
    assert "\n" not in str(refused.value)
