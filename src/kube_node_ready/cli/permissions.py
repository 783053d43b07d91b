"""Explain missing permissions: who can grant them, and how."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from kube_node_ready.api.report import printable
from kube_node_ready.cli import words
from kube_node_ready.kube.errors import AccessError, InvalidRequest, KubeError, Rejected, Unreachable


class NoAccess(Exception):  # noqa: N818  a fact, not a fault
    """The cluster or the resource is not available to this user, or not now."""


class NotAllowed(NoAccess):
    """A permission is missing."""


@contextmanager
def requires(verb: str, resource: str, namespace: str = "") -> Iterator[None]:
    """Translate the errors of requests that need this permission."""
    try:
        yield
    except Rejected as error:
        if error.status == HTTPStatus.FORBIDDEN:
            raise NotAllowed(missing(verb, resource, namespace)) from error
        raise no_access(error) from error
    except (AccessError, Unreachable) as error:
        raise no_access(error) from error


def missing(verb: str, resource: str, namespace: str = "") -> str:
    where = f' in the namespace "{namespace}"' if namespace else ""
    return f'you are not allowed to {verb} {resource}{where}: ask for the verb "{verb}" on "{resource}"{where}'


def shown(error: KubeError) -> str:
    """Return the server's message on one line: another one would look like a message of ours."""
    return printable(error.message, words.LONGEST)


def no_access(error: KubeError) -> NoAccess:
    if isinstance(error, AccessError):
        return NoAccess(f"cannot connect to the Kubernetes API: {error.message}")
    if isinstance(error, InvalidRequest):
        return NoAccess(f"cannot send the request: {error.message}")
    if error.status == HTTPStatus.UNAUTHORIZED:
        return NoAccess("the API server rejected your credentials (401 Unauthorized): renew those in your kubeconfig")
    if isinstance(error, Unreachable):
        return NoAccess(f"the API server does not respond: {shown(error)}")
    return NoAccess(f"the API server rejected the request: {printable(str(error), words.LONGEST)}")
