"""Where the API server is and what we show it, from files that are right and files that are not."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_node_ready.kube.access import Access, TokenSource, access
from kube_node_ready.kube.errors import AccessError
from kubekit.credentials import Identity
from lab import pki
from tests.support import virtual_time


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


def test_a_kubeconfig_sets_server_and_namespace(tmp_path: Path) -> None:
    found = access(written(tmp_path, a_config({"token": "secret"})))
    assert (found.server, found.namespace) == ("https://192.0.2.1:6443/prefix", "mine")


def test_a_broken_kubeconfig_is_rejected_in_one_line_that_names_it(tmp_path: Path) -> None:
    file = written(tmp_path, a_config() | {"current-context": "there"})
    with pytest.raises(AccessError) as refused:
        access(file)
    assert str(refused.value) == f'{file}: context "there" is not defined; expected "here"'


def test_an_unusable_certificate_is_rejected_immediately(tmp_path: Path) -> None:
    (tmp_path / "pem").write_text("no certificate")
    for content in (a_config(authority="pem"), a_config({"client-certificate": "pem", "client-key": "pem"})):
        with pytest.raises(AccessError, match=r"certificate.* is invalid"):
            access(written(tmp_path, content))


def test_a_proxy_without_credentials_can_be_plain(tmp_path: Path) -> None:
    assert access(written(tmp_path, a_config(server="http://127.0.0.1:8001"))).server == "http://127.0.0.1:8001"


def test_several_kubeconfigs_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, a_config())
    assert access(Path(f"{tmp_path}/none:{file}")).namespace == "mine"
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none:{file}")
    assert access().namespace == "mine"


def login(folder: Path, user: dict[str, Any]) -> TokenSource:
    found: Access = access(written(folder, a_config(user)))
    return TokenSource(found)


def test_a_rotated_token_file_is_detected_after_a_minute(tmp_path: Path) -> None:
    """Its path is relative to the kubeconfig's."""
    (tmp_path / "token").write_text("first\n")

    async def main() -> None:
        shown = login(tmp_path, {"tokenFile": "token"})
        assert await shown.identity() == Identity("Bearer first")
        (tmp_path / "token").write_text("second\n")
        assert await shown.identity() == Identity("Bearer first")
        await asyncio.sleep(61)
        assert await shown.identity() == Identity("Bearer second")

    virtual_time.run(main())


def test_a_rejected_token_file_is_read_again_immediately(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")

    async def main() -> None:
        shown = login(tmp_path, {"tokenFile": "token"})
        first = await shown.identity()
        assert await shown.refresh(first) == first, "there is nothing else to show yet"
        (tmp_path / "token").write_text("second")
        assert await shown.refresh(first) == await shown.identity() == Identity("Bearer second")

    virtual_time.run(main())


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "fixed"}, "Bearer fixed"),
        ({"username": "a", "password": "b"}, "Basic YTpi"),
        ({}, ""),
    ],
)
def test_credentials_that_cannot_be_renewed_are_kept(tmp_path: Path, user: dict[str, Any], header: str) -> None:
    async def main() -> None:
        shown = login(tmp_path, user)
        first = await shown.identity()
        assert first.authorization == header
        assert await shown.refresh(first) == await shown.identity() == first

    virtual_time.run(main())


def a_plugin(folder: Path, script: str) -> dict[str, Any]:
    plugin = folder / "plugin"
    plugin.write_text(f"#!/bin/sh\n{script}\n")
    plugin.chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo '{\"status\":{}}'", "printed neither a token nor a client certificate"),
        ("exit 3", "exited with code 3"),
    ],
)
def test_a_plugin_that_fails_is_reported(tmp_path: Path, script: str, complaint: str) -> None:
    user = a_plugin(tmp_path, script)
    with pytest.raises(AccessError, match=f"cannot authenticate to https://.*plugin' {complaint}"):
        asyncio.run(login(tmp_path, user).identity())


def test_a_plugin_that_cannot_be_run_is_reported(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/such", "installHint": "get it"}}
    with pytest.raises(AccessError, match="cannot run exec plugin '/no/such': No such file or directory; get it"):
        asyncio.run(login(tmp_path, user).identity())


def test_a_plugin_does_not_outlive_the_request_that_waits_for_it(tmp_path: Path) -> None:
    user = a_plugin(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600")

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await login(tmp_path, user).identity()
        await asyncio.sleep(0.5)  # while it is reaped

    asyncio.run(main())
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_another_client_certificate_is_announced(tmp_path: Path) -> None:
    pair = pki.Authority(tmp_path / "pki").sign("client", "someone")
    status = {"clientCertificateData": pair.certificate.read_text(), "clientKeyData": pair.key.read_text()}
    (tmp_path / "answer").write_text(json.dumps({"status": status}))
    found = access(written(tmp_path, a_config(a_plugin(tmp_path, f"cat {tmp_path}/answer"))))

    async def main() -> None:
        contexts: list[object] = []
        shown = TokenSource(found, contexts.append)
        first = await shown.identity()
        assert await shown.identity() is first
        assert len(contexts) == 1
        await TokenSource(found, contexts.append).identity()
        assert len(contexts) == 2, "two clients can share the credentials"

    asyncio.run(main())


@pytest.mark.parametrize("token", ["secret\r\nX: y", "secret\x00", "secrét"])
def test_a_token_that_cannot_be_sent_is_rejected_and_not_shown(tmp_path: Path, token: str) -> None:
    (tmp_path / "token").write_text(token)
    with pytest.raises(AccessError, match=r"cannot authenticate to .*: the token in .* is invalid") as refused:
        asyncio.run(login(tmp_path, {"tokenFile": "token"}).identity())
    assert "secr" not in str(refused.value)
    assert "\n" not in str(refused.value)
