"""Paths of the Kubernetes API: what becomes part of one, and that nothing else builds them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube_node_ready.api_paths import InvalidNameError, collection_path, group_path, is_dns_subdomain, object_path
from tests.shell import ROOT

LONGEST = ".".join(["a" * 63] * 3 + ["a" * 61])
HOSTILE = [
    "",
    ".",
    "..",
    "a/b",
    "../../nodes/b",
    "a?dryRun=All",
    "a#b",
    "a%2fb",
    "a b",
    "a\tb",
    "a\r\nX: y",
    "x HTTP/1.1\r\nHost: h\r\n\r\nDELETE /api/v1/nodes/b HTTP/1.1\r\nX-Rest: ",
    "a\x00",
    "a\n",
    "A",
    "ä",
    "a_b",
    "-a",
    "a-",
    "a..b",
    ".a",
    "a.",
    LONGEST + "a",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_not_the_name_of_an_object_is_rejected(name: str) -> None:
    assert not is_dns_subdomain(name)
    with pytest.raises(InvalidNameError, match=r"^name in nodes: .+ is invalid; expected a DNS subdomain"):
        object_path("v1", "nodes", name)
    with pytest.raises(InvalidNameError, match=r"^namespace: "):
        collection_path("v1", "pods", namespace=name)


def test_an_error_shows_a_long_name_in_part_and_on_one_line() -> None:
    with pytest.raises(InvalidNameError) as caught:
        object_path("v1", "nodes", "\n" * 10_000)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["a", "0", "ip-10-0-0-1.eu-west-1.compute.internal", LONGEST])
def test_names_of_objects_are_part_of_the_path_as_they_are(name: str) -> None:
    assert object_path("v1", "nodes", name) == f"/api/v1/nodes/{name}"


def test_every_kind_of_path() -> None:
    assert collection_path("v1", "nodes") == "/api/v1/nodes"
    assert collection_path("v1", "pods", namespace="n") == "/api/v1/namespaces/n/pods"
    assert object_path("v1", "nodes", "a", subresource="status") == "/api/v1/nodes/a/status"
    leases = "/apis/coordination.k8s.io/v1/namespaces/n/leases"
    assert object_path("coordination.k8s.io/v1", "leases", "l", namespace="n") == f"{leases}/l"
    assert group_path("karpenter.sh") == "/apis/karpenter.sh"


ALLOWED = {
    "api_paths.py": "builds them",
    "checks/api.py": "the path of the discovery document, which has no names in it",
}


def texts(module: Path) -> Iterator[str]:
    """Every text of a module that code can use: docstrings and other statements without effect are left out."""
    tree = ast.parse(module.read_text())
    idle = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in idle:
            yield node.value


def test_no_path_of_the_api_is_built_elsewhere() -> None:
    source = ROOT / "src" / "kube_node_ready"
    roots = ("/api/", "/apis/", "/namespaces/")
    found = {
        str(module.relative_to(source))
        for module in source.rglob("*.py")
        if any(f"{text}/".startswith(roots) for text in texts(module))
    }
    assert found == set(ALLOWED)
