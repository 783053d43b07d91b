"""Requests of DaemonSet mode, whatever libc does meanwhile."""

import ssl
import threading
from pathlib import Path

import pytest

from kube_node_ready.agent import api
from kube_node_ready.agent.api import Api
from kube_node_ready.checks import transport
from kube_node_ready.checks.access import Access
from kube_node_ready.kube import errors
from kube_node_ready.kube.errors import KubeError, Unreachable
from tests.support.check_servers import FakeApi


def test_a_name_that_does_not_resolve_in_time_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a node whose DNS is broken, in a cluster whose API server has a name."""
    is_resolved = threading.Event()

    def resolve(_: str) -> list[str]:
        is_resolved.wait()
        return []

    monkeypatch.setattr(transport, "addresses_of", resolve)
    monkeypatch.setattr(api, "CALL_SECONDS", 0.1)
    where = Access("api.example", 443, ssl.create_default_context(), "a-token")
    with pytest.raises(Unreachable, match=r"no response within 0\.1 s"):
        Api(lambda: where).get("/api/v1/nodes/a")
    assert not is_resolved.is_set()
    is_resolved.set()


def test_a_name_with_a_line_break_is_not_a_second_request(tmp_path: Path) -> None:
    with FakeApi(tmp_path / "pki").running() as fake:
        where = fake.access
        with pytest.raises(KubeError) as error:
            Api(lambda: where).get("/api/v1/nodes/a HTTP/1.1\r\nHost: h\r\n\r\nGET /api/v1/nodes/b")
        assert not fake.asked
    assert isinstance(error.value, errors.InvalidRequest)
    assert str(error.value).startswith("GET: target: ")
    assert str(error.value).isprintable()
