"""Whether this process runs in a pod on the node that it verifies.

Checks prove something about the machine that they run on. So before anything is written to a Node, the pod's own token
is read. Since Kubernetes 1.30 it names the pod's node; before that only the pod, whose spec names the node. Both are
covered by the token's signature, and the API server has accepted this very token right before: nothing is read from it
until then. docs/decisions/0010-proofs-come-from-the-node.md has the alternatives.
"""

import base64
from collections.abc import Callable

import msgspec
from msgspec import Struct

from kube_node_ready import objects
from kube_node_ready.api_paths import InvalidNameError, object_path
from kube_node_ready.daemonset.api import Api
from kube_node_ready.kube.errors import NotFound, Refused
from kube_node_ready.verify.report import printable

_PARTS = 3
_SHOWN = 300


class NotProvedError(Exception):
    """Why this run proves nothing about the node."""


class _Named(Struct, frozen=True):
    name: str = ""
    uid: str = ""


class _Bound(Struct, frozen=True):
    namespace: str = ""
    node: _Named = _Named()
    pod: _Named = _Named()


class _Claims(Struct, frozen=True, rename={"bound": "kubernetes.io"}):
    bound: _Bound = _Bound()


class Place:
    """`token` reads the pod's token, which the kubelet renews."""

    def __init__(self, api: Api, token: Callable[[], str], node: str) -> None:
        self._api = api
        self._token = token
        self._node = node
        self._is_confirmed = False

    def confirm(self) -> None:
        """Raise a NotProvedError unless this is a pod on the node. Once is enough: a pod stays where it is."""
        if self._is_confirmed:
            return
        found = _bound(self._token())
        if not found.pod.name:  # accounts that can request tokens can also bind one to a Node
            raise NotProvedError(
                "the ServiceAccount's token is not bound to a pod, so it does not show which node this is"
            )
        home = found.node.name or self._node_of_pod(found)
        if home != self._node:
            raise NotProvedError(
                f'--node-name (NODE_NAME): "{self._node}" is invalid; this pod runs on node "{printable(home)}", and '
                "verifies that node only. Set NODE_NAME from spec.nodeName"
            )
        self._is_confirmed = True

    def _node_of_pod(self, found: _Bound) -> str:
        """The node in the spec of the pod that the token is bound to."""
        named = f"{found.namespace}/{found.pod.name}"
        try:
            path = object_path("v1", "pods", found.pod.name, namespace=found.namespace)
            pod = msgspec.json.decode(self._api.get(path), type=objects.Pod)
        except (Refused, NotFound) as error:
            said = printable(error.message, _SHOWN)
            raise NotProvedError(
                f"the token names no node, and cannot read pod {named} to find its node: {said}"
            ) from error
        except (InvalidNameError, msgspec.MsgspecError) as error:
            raise NotProvedError(f"cannot read pod {printable(named)}: {printable(str(error))}") from error
        if pod.metadata.uid != found.pod.uid:
            raise NotProvedError(f"pod {named} is not the one that the token is bound to")
        return str(pod.spec.get("nodeName", ""))


def _bound(token: str) -> _Bound:
    """The objects that a ServiceAccount's token is bound to; empty if it is not such a token."""
    parts = token.split(".")
    if len(parts) != _PARTS:
        return _Bound()
    try:
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return msgspec.json.decode(payload, type=_Claims).bound
    except (ValueError, RecursionError):  # not Base64, or not JSON, or not that of a ServiceAccount
        return _Bound()
