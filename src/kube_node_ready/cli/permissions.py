"""What keeps a person from what was asked for, as a sentence that names who can mend it, and how."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from kube_node_ready.console import words
from kube_node_ready.kube.errors import AccessError, InvalidRequest, KubeError, Refused, Unreachable
from kube_node_ready.verify.report import printable


class NoAccess(Exception):  # noqa: N818  a state of affairs, not a fault
    """It cannot be had, by this caller or now."""


class NotAllowed(NoAccess):
    """Because a right is missing."""


@contextmanager
def asking(verb: str, resource: str, namespace: str = "") -> Iterator[None]:
    """For requests that need that right."""
    try:
        yield
    except Refused as why:
        if why.status == HTTPStatus.FORBIDDEN:
            raise NotAllowed(missing(verb, resource, namespace)) from why
        raise told(why) from why
    except (AccessError, Unreachable) as why:
        raise told(why) from why


def missing(verb: str, resource: str, namespace: str = "") -> str:
    where = f' in the namespace "{namespace}"' if namespace else ""
    return f'you may not {verb} {resource}{where}: ask for the verb "{verb}" on "{resource}"{where}'


def told(why: KubeError) -> NoAccess:
    if isinstance(why, AccessError):
        return NoAccess(f"there is no way to Kubernetes: {why.message}")
    if isinstance(why, InvalidRequest):
        return NoAccess(f"cannot send the request: {why.message}")
    if why.status == HTTPStatus.UNAUTHORIZED:
        return NoAccess("the API server does not know you (401 Unauthorized): is the login in your kubeconfig expired?")
    if isinstance(why, Unreachable):
        return NoAccess(f"the API server does not answer: {why.message}")
    return NoAccess(f"the API server refuses: {printable(str(why), words.LONGEST)}")
