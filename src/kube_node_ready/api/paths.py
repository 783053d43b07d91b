"""Paths of the Kubernetes API: the one place where a name becomes part of a request.

Names come from Nodes, pods, owner references, flags and files, and others can write all of these. So a name that is not
a DNS subdomain is rejected here, whatever the caller checked before: it cannot become a second path segment, a query or
a second request. All names of the kinds that this program asks for are DNS subdomains, and need no quoting.
"""

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_LONGEST_NAME = 253
_SHOWN = 60
_VERBS = {"POST": "create", "PUT": "update"}


class InvalidNameError(ValueError):
    """A name that no Kubernetes object can have, so it must not become part of a request."""


def is_dns_subdomain(name: str) -> bool:
    """Whether this is a valid name of a node, pod, namespace, lease or NodeClaim."""
    return len(name) <= _LONGEST_NAME and all(_is_label(label) for label in name.split("."))


def collection_path(api: str, resource: str, *, namespace: str | None = None) -> str:
    """Return the path of a resource, where objects are listed and created: `collection_path("v1", "nodes")`."""
    within = f"namespaces/{_checked(namespace, 'namespace')}/" if namespace is not None else ""
    return f"{_root(api)}/{within}{_checked(resource, 'resource', 'a word such as nodes')}"


def object_path(api: str, resource: str, name: str, *, namespace: str | None = None, subresource: str = "") -> str:
    """Return the path of an object or subresource. An empty name is rejected: it would mean the whole collection."""
    path = f"{collection_path(api, resource, namespace=namespace)}/{_checked(name, f'name in {resource}')}"
    return f"{path}/{_checked(subresource, 'subresource', 'a word such as status')}" if subresource else path


def resource_of(path: str) -> str:
    """Return the resource of a path, without names: `nodes`, `nodes/status`, `pods`, `leases`."""
    return "/".join(_resource_and_name(path)[::2])


def verb_of(method: str, path: str) -> str:
    """Return the verb that RBAC has for a request."""
    place, _, query = path.partition("?")
    if method == "GET" and "watch=1" in query:
        return "watch"
    if method == "GET" and len(_resource_and_name(place)) == 1:
        return "list"
    return _VERBS.get(method, method.lower())


def _resource_and_name(path: str) -> list[str]:
    """Return what a path names in the API: resource, name, subresource."""
    parts = path.strip("/").split("/")
    kind = parts[2:] if parts[0] == "api" else parts[3:]
    if kind[:1] == ["namespaces"] and len(kind) > 2:  # noqa: PLR2004  /namespaces/NAME/pods, not /namespaces/NAME
        kind = kind[2:]
    return kind


GROUPS_PATH = "/apis"
"""Where all API groups are listed."""


def group_path(group: str) -> str:
    """Return the path of an API group, where its versions are listed."""
    return f"/apis/{_checked(group, 'API group')}"


def _root(api: str) -> str:
    group, slash, version = api.rpartition("/")
    if not _is_label(version) or (slash and not is_dns_subdomain(group)):
        raise InvalidNameError(f"API version: {api[:_SHOWN]!r} is invalid; expected one such as v1 or apps/v1")
    return f"/apis/{api}" if slash else f"/api/{api}"


def _checked(name: str, what: str, expected: str = "a DNS subdomain such as node-1.example") -> str:
    if not is_dns_subdomain(name):
        raise InvalidNameError(f"{what}: {name[:_SHOWN]!r} is invalid; expected {expected}")
    return name


def _is_label(label: str) -> bool:
    return bool(label) and _LETTERS.issuperset(label) and label[0] != "-" and label[-1] != "-"
