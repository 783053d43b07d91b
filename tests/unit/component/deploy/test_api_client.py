"""Answers and addresses that are valid JSON or look like a URL, and are not what an API server has."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from kubernetes_daemonset.deploy.api_client import Cluster, ClusterError, Unreadable
from kubernetes_daemonset.deploy.kubeconfig import connect
from kubernetes_daemonset.deploy.plan import Ref

THING = Ref("Namespace", "thing")


def answering(status: int, body: object) -> Cluster:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, json=body))
    return Cluster(httpx2.Client(transport=transport, base_url="https://cluster.test"))


@pytest.mark.parametrize("status", [400, 403, 409, 422, 500])
@pytest.mark.parametrize(
    "body",
    [
        {"details": None},
        {"details": []},
        {"details": "text"},
        {"details": {"causes": None}},
        {"details": {"causes": "text"}},
        {"details": {"causes": ["text", None]}},
    ],
)
def test_an_error_with_odd_details_is_an_error_of_the_cluster(status: int, body: object) -> None:
    with pytest.raises(ClusterError, match=r"Namespace thing|thing"), answering(status, body) as cluster:
        cluster.apply({"kind": "Namespace", "metadata": {"name": "thing"}})


@pytest.mark.parametrize("body", [{}, {"metadata": None}, {"metadata": []}, {"metadata": "text"}])
def test_an_object_without_metadata_is_not_readable(body: object) -> None:
    with answering(200, body) as cluster, pytest.raises(Unreadable, match="without metadata"):
        cluster.get(THING)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"items": [], "metadata": None},
        {"items": None, "metadata": {}},
        {"items": 7, "metadata": {}},
        {"items": [None], "metadata": {}},
        {"items": [{}], "metadata": {}},
    ],
)
def test_a_list_of_anything_else_is_not_readable(body: object) -> None:
    with answering(200, body) as cluster, pytest.raises(Unreadable):
        list(cluster.list("Pod", "here", {}))


def test_a_servers_message_is_cut() -> None:
    with (
        answering(500, {"message": "x" * 10**6}) as cluster,
        pytest.raises(ClusterError, match=r"thing: x+…$") as caught,
    ):
        cluster.get(THING)
    assert len(str(caught.value)) < 11_000


@pytest.mark.parametrize("charset", ["zlib", "bz2", "hex", "idna", "rot13", "undefined", "unicode_escape", "no-such"])
@pytest.mark.parametrize("status", [200, 404, 500])
def test_a_page_of_a_proxy_is_not_decoded(status: int, charset: str) -> None:
    headers = {"Content-Type": f"text/html; charset={charset}"}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, content=b"<html>\\x", headers=headers))
    client = httpx2.Client(transport=transport, base_url="https://cluster.test")
    with Cluster(client) as cluster, pytest.raises(ClusterError, match="not a JSON object"):
        cluster.get(THING)


@pytest.mark.parametrize("body", [{"status": 3}, {"status": None}, {}])
def test_a_review_without_a_status_allows_nothing(body: object) -> None:
    with answering(201, body) as cluster:
        assert not cluster.can_i("get", THING)


@pytest.mark.parametrize("server", ["https://256.1.1.1:6443", f"https://a/{'a' * 70_000}", f"https://a/{'a' * 65_500}"])
def test_an_invalid_server_url_is_a_cluster_error(tmp_path: Path, server: str) -> None:
    config: dict[str, Any] = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": server}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    with pytest.raises(ClusterError) as refused, connect(tmp_path / "config", None) as cluster:
        cluster.get(THING)
    assert len(str(refused.value)) < 1000
