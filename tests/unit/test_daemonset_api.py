"""Requests of DaemonSet mode, whatever libc does meanwhile."""

import ssl
import threading

import pytest

from kube_node_ready.checks import wire
from kube_node_ready.checks.access import Access
from kube_node_ready.daemonset import api
from kube_node_ready.daemonset.api import Api
from kube_node_ready.kube.errors import Unreachable


def test_a_name_that_takes_for_ever_to_resolve_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a node whose DNS is broken, in a cluster whose API server has a name."""
    is_resolved = threading.Event()

    def resolve(_: str) -> list[str]:
        is_resolved.wait()
        return []

    monkeypatch.setattr(wire, "addresses_of", resolve)
    monkeypatch.setattr(api, "CALL_SECONDS", 0.1)
    where = Access("api.example", 443, ssl.create_default_context(), "a-token")
    with pytest.raises(Unreachable, match=r"no answer within 0\.1 s"):
        Api(lambda: where).get("/api/v1/nodes/a")
    assert not is_resolved.is_set()
    is_resolved.set()
