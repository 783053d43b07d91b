"""Paths of the Kubernetes API: what becomes part of one, and that nothing else builds them."""

import ast
from collections.abc import Iterator
from itertools import pairwise

import pytest

from kube_node_ready.api.paths import InvalidNameError, collection_path, group_path, is_dns_subdomain, object_path
from kubernetes_daemonset.deploy.api_client import ClusterError, collection, path
from kubernetes_daemonset.deploy.plan import Ref
from tests.support.shell import ROOT

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


SOURCE = ROOT / "src"
BUILDERS = {
    "kube_node_ready/api/paths.py": "validates every name",
    "kubernetes_daemonset/deploy/api_client.py": "validates or quotes every name; its kinds are constants",
}
ALLOWED = {
    **BUILDERS,
    "kube_node_ready/checks/api_server.py": "the path of the discovery document, which has no names in it",
}
JOINED = {
    # the User-Agent
    "kube_node_ready/agent/api.py": {
        "f'kube-node-ready/{__version__}'",
    },
    # a text for people
    "kube_node_ready/agent/place.py": {
        "f'{bound.namespace}/{bound.pod.name}'",
    },
    # file names in the folder of the ServiceAccount
    "kube_node_ready/checks/access.py": {
        "f'{folder}/ca.crt'",
        "f'{folder}/token'",
    },
    # the path of a URL that the configuration names, for that server only
    "kube_node_ready/checks/settings.py": {
        "f'/{path}'",
    },
    # the User-Agent
    "kube_node_ready/cli/cluster.py": {
        "f'kube-node-ready-cli/{__version__}'",
    },
    # a text for people: which ConfigMap, and its key
    "kube_node_ready/cli/installation.py": {
        "f'{config_map.metadata.name}/{_FILE}'",
    },
    # an apiVersion; `collection_path` validates it
    "kube_node_ready/controller/karpenter.py": {
        "f'{_GROUP}/{version}'",
    },
    # the User-Agent
    "kube_node_ready/kube/client.py": {
        "f'kube-node-ready-controller/{__version__}'",
    },
    # a text for people
    "kube_node_ready/kube/leader_election.py": {
        "f'the Lease {self.namespace}/{self.name}'",
    },
    # JSON pointers
    "kube_node_ready/verification/patches.py": {
        "f'/metadata/annotations/{_escaped(RECORD_ANNOTATION)}'",
        "f'/metadata/labels/{_escaped(policy.label)}'",
        "f'/metadata/{where}'",
        "f'/metadata/{where}/{_escaped(key)}'",
        "f'/spec/taints/{at}'",
        "f'/spec/taints/{at}/effect'",
        "f'/spec/taints/{at}/key'",
    },
    # a file descriptor under /proc
    "kubekit/connection.py": {
        "f'/proc/self/fd/{descriptor}'",
    },
    # file names in the folder of the ServiceAccount, and the URL of a server
    "kubekit/kubeconfig.py": {
        "f'https://{name}:{port}'",
        "f'{folder}/namespace'",
        "f'{folder}/token does not exist; the pod needs a ServiceAccount whose token is mounted'",
        "f'{folder}/token'",
    },
    # regular expressions
    "kubekit/names.py": {
        "f'((?=[^/]{{1,253}}/){_DOMAIN}/)?{_NAME}'",
        "f'((?=[^/]{{1,253}}/){_STRICT_DOMAIN}/)?{_NAME}'",
    },
    # the URL of a proxy
    "kubekit/proxy.py": {
        "f'http://{url}'",
        "f'{self.scheme}://{address(self.host, self.port)}'",
    },
    # names of Pulumi resources
    "kubernetes_daemonset/backends/pulumi.py": {
        "f\"{self.pulumi_resource_name}/{body['kind']}/{body['metadata']['name']}\"",
        "f'core/{version}'",
    },
    # a file descriptor under /proc
    "kubernetes_daemonset/cli/folders.py": {
        "f'/proc/self/fd/{opened}'",
    },
    # a text for people
    "kubernetes_daemonset/deploy/plan.py": {
        "f'{self.namespace}/'",
    },
    # file names in Terraform code
    "kubernetes_daemonset/deploy/terraform.py": {
        "f'${{file(\"${{path.module}}/{_file(name)}\")}}'",
    },
    # the repository of an image
    "kubernetes_daemonset/manifest/registry_logins.py": {
        "f'/{rest}'",
        "f'https://{key}'",
        "f'library/{rest}'",
    },
    # the value of an annotation
    "kubernetes_daemonset/render/annotations.py": {
        "f'{naming.namespace(manifest)}/{manifest.metadata.name}'",
    },
    # an apiVersion that is a constant
    "kubernetes_daemonset/render/resources.py": {
        "f'{_RBAC}/v1'",
    },
    # a regular expression
    "kubernetes_daemonset/validation/rules/images.py": {
        "f'({_REGISTRY}/)?{_PATH_PART}(/{_PATH_PART})*'",
    },
}
"""Expressions outside the builders that put a value beside a slash, by module. None of them is a path of the API."""


def texts(tree: ast.Module) -> Iterator[str]:
    """Every text of a module that code can use: docstrings and other statements without effect are left out."""
    idle = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in idle:
            yield node.value


def names_the_api(tree: ast.Module) -> bool:
    """Whether a text begins like a path of the API, with or without its first slash."""
    roots = ("api/v1/", "apis/", "namespaces/")
    bare = ("/api", "/apis", "/namespaces")
    return any(text in bare or text.removeprefix("/").startswith(roots) for text in texts(tree))


def joined_paths(tree: ast.Module) -> set[str]:
    """Expressions that make one text of a value and a slash: an f-string, + or %, `format`, `join` or `urljoin`."""
    return {ast.unparse(node) for node in ast.walk(tree) if _joins(node)}


def _joins(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr(values=values):
            return any(_meet_at_a_slash(one, other) for one, other in pairwise(values))
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
            return _has_slash(left) or _has_slash(right)
        case ast.AugAssign(op=ast.Add(), value=value):
            return _has_slash(value)
        case ast.Call(func=ast.Attribute(value=text, attr="join" | "format")):
            return _has_slash(text)
        case ast.Call(func=ast.Attribute(attr="urljoin") | ast.Name(id="urljoin")):
            return True
    return False


def _meet_at_a_slash(one: ast.expr, other: ast.expr) -> bool:
    match one, other:
        case ast.Constant(value=str() as text), ast.FormattedValue():
            return text.endswith("/")
        case ast.FormattedValue(), ast.Constant(value=str() as text):
            return text.startswith("/")
    return False


def _has_slash(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and "/" in node.value


def modules() -> dict[str, ast.Module]:
    paths = (path for path in SOURCE.rglob("*.py") if not path.name.endswith("_pb2.py"))
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_text()) for path in paths}


def test_no_path_of_the_api_is_built_elsewhere() -> None:
    assert {module for module, tree in modules().items() if names_the_api(tree)} == set(ALLOWED)


def test_nothing_is_appended_to_a_path_elsewhere() -> None:
    found = {module: joined_paths(tree) for module, tree in modules().items() if module not in BUILDERS}
    assert {module: expressions for module, expressions in found.items() if expressions} == JOINED


@pytest.mark.parametrize(
    "code",
    [
        'f"{nodes}/{name}"',
        'f"{nodes}/status"',
        'nodes + "/" + name',
        'nodes + f"/{name}"',
        '"%s/%s" % (nodes, name)',
        '"{}/{}".format(nodes, name)',
        '"/".join([nodes, name])',
        "urljoin(nodes, name)",
        'path += "/" + name',
        'path += "/status"',
    ],
)
def test_a_name_that_is_appended_to_a_path_is_found(code: str) -> None:
    assert joined_paths(ast.parse(code))


@pytest.mark.parametrize(
    "code", ['x = "/api/v1/nodes"', 'x = f"apis/{group}"', 'x = "namespaces/"', 'x = f"/api/v1/{x}"']
)
def test_a_text_that_begins_like_a_path_is_found(code: str) -> None:
    assert names_the_api(ast.parse(code))


@pytest.mark.parametrize(
    "api", ["v1/../nodes", "karpenter.sh/v1/x", "karpenter.sh/", "/v1", "v1?x", "a\r\nb", "", "../v1"]
)
def test_what_is_not_an_api_version_is_rejected(api: str) -> None:
    with pytest.raises(InvalidNameError, match=r"^API version: .+ is invalid; expected"):
        collection_path(api, "nodeclaims")


@pytest.mark.parametrize("word", ["", "..", "nodes/x", "nodes?x", "a b"])
def test_what_is_not_a_resource_is_rejected(word: str) -> None:
    with pytest.raises(InvalidNameError, match=r"^resource: "):
        collection_path("v1", word)
    if word:
        with pytest.raises(InvalidNameError, match=r"^subresource: "):
            object_path("v1", "nodes", "a", subresource=word)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
def test_the_component_rejects_what_is_not_one_segment_of_a_path(name: str) -> None:
    with pytest.raises(ClusterError, match=r"^Secret: name .+ is invalid; expected one segment of a path"):
        path(Ref("Secret", name, "n"))
    if name:  # without a namespace, a path means all of them
        with pytest.raises(ClusterError, match=r"^Secret: namespace .+ is invalid"):
            collection("Secret", name)


def test_the_component_quotes_what_rbac_allows_in_names() -> None:
    assert path(Ref("ClusterRole", "system:a b?c")).endswith("/clusterroles/system%3Aa%20b%3Fc")


def test_what_is_not_an_api_group_is_rejected() -> None:
    with pytest.raises(InvalidNameError, match=r"^API group: "):
        group_path("karpenter.sh/../x")
