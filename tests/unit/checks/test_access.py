"""How a pod finds the API server and proves who it is."""

import json
from pathlib import Path

import pytest

from kube_node_ready.checks import access, transport
from kube_node_ready.checks.access import NoAccessError
from lab import pki

ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("the-token\n")
    (tmp_path / "ca.crt").write_bytes(pki.Authority(tmp_path / "pki").certificate.read_bytes())
    return tmp_path


def test_a_pod_connects_by_its_environment_and_mounted_account(folder: Path) -> None:
    found = access.in_pod(ENVIRONMENT, folder)
    assert (found.host, found.port, found.token) == ("fd00::1", 6443, "the-token")
    assert found.target == "[fd00::1]:6443"


def test_outside_a_pod_there_is_no_connection(folder: Path) -> None:
    with pytest.raises(NoAccessError, match="KUBERNETES_SERVICE_HOST is not set"):
        access.in_pod({}, folder)


@pytest.mark.parametrize("file", ["token", "ca.crt"])
@pytest.mark.parametrize("content", [None, "", b"\xff\xfe"])
def test_a_missing_or_empty_file_is_named(folder: Path, file: str, content: str | bytes | None) -> None:
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(NoAccessError, match=f"(cannot read .*/{file}: |/{file} is empty)"):
        access.in_pod(ENVIRONMENT, folder)


def test_an_invalid_certificate_is_named(folder: Path) -> None:
    (folder / "ca.crt").write_text("no certificate")
    with pytest.raises(NoAccessError, match=r"ca\.crt is invalid; expected a certificate in PEM format"):
        access.in_pod(ENVIRONMENT, folder)


@pytest.mark.parametrize("token", ["secret\r\nX: y", "a secrét", "secret\x00"])
def test_a_token_that_cannot_be_sent_is_rejected_and_not_shown(folder: Path, token: str) -> None:
    (folder / "token").write_text(token)
    with pytest.raises(NoAccessError, match="token: the token is invalid; expected visible ASCII") as refused:
        access.in_pod(ENVIRONMENT, folder)
    assert "secr" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOST", "a b"),
        ("HOST", "a\r\nX: y"),
        ("HOST", "user@host"),
        ("PORT", "٤٤٣"),
        ("PORT", "4" * 5000),
        ("PORT", "0"),
    ],
)
def test_a_service_that_cannot_be_addressed_is_rejected(folder: Path, name: str, value: str) -> None:
    with pytest.raises(NoAccessError, match=f"KUBERNETES_SERVICE_{name}"):
        access.in_pod(ENVIRONMENT | {f"KUBERNETES_SERVICE_{name}": value}, folder)


def test_the_reason_of_a_rejection_is_shortened() -> None:
    answer = transport.Response(403, {}, json.dumps({"message": "no " * 1000}).encode(), 0, 0)
    assert len(access.reason(answer)) <= 300
