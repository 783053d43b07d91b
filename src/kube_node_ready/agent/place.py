"""Confirm that this process runs in a pod on the node that it verifies.

Checks prove something about the machine that they run on. So before anything is written to a Node, the pod's own token
is read. Since Kubernetes 1.30 it names the pod's node; before that only the pod, whose spec names the node. The API
server has accepted the token in this file right before, and both are covered by its signature. A client that can
replace the file in between could use that other token anyway. docs/decisions/0010-proofs-come-from-the-node.md has the
alternatives.
"""

import base64
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import msgspec
from msgspec import Struct

from kube_node_ready.agent.api import Api
from kube_node_ready.api import objects
from kube_node_ready.api.nesting import tolerant
from kube_node_ready.api.paths import InvalidNameError, object_path
from kube_node_ready.api.report import printable
from kube_node_ready.kube.errors import NotFound, Rejected
from kube_node_ready.verification.model import Node

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PARTS = 3
_SHOWN = 300
_RULE = 'apiGroups: [""], resources: ["pods"], verbs: ["get"]'
_decode_pod = tolerant(msgspec.json.Decoder(objects.Pod).decode)


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
    """`token` reads the pod's token, which the kubelet renews; `boot` the boot ID of the machine."""

    def __init__(self, api: Api, token: Callable[[], str], node: str, boot: Callable[[], str]) -> None:
        self._api = api
        self._token = token
        self._node = node
        self._boot = boot
        self._confirmed = ""

    def confirm(self, node: Node) -> None:
        """Raise a NotProvedError unless this is a pod on this Node. Once is enough: a pod does not move.

        A new Node of the same name can be another machine, so it has to be confirmed again: by a token that names it,
        or by the boot ID of the machine, if the Node was deleted and created again while its kubelet kept running.
        """
        if self._confirmed == node.uid:
            return
        bound = _bound(self._token())
        if not bound.pod.name:  # accounts that can request tokens can also bind one to a Node
            raise NotProvedError(
                "the ServiceAccount's token is not bound to a pod, so it does not show which node this is"
            )
        home = bound.node.name or self._node_of_pod(bound)
        if home != self._node:
            raise NotProvedError(
                f'--node-name (NODE_NAME): "{self._node}" is invalid; this pod runs on node "{printable(home)}", and '
                "verifies that node only. Set NODE_NAME from spec.nodeName"
            )
        if bound.node.uid not in ("", node.uid) and not (node.boot and node.boot == self._boot()):
            raise NotProvedError(
                f'the token is that of a pod on an earlier Node "{self._node}"; if this is still the same machine, '
                "delete the pod to verify it now, or wait until the kubelet renews the token"
            )
        self._confirmed = node.uid

    def _node_of_pod(self, bound: _Bound) -> str:
        """The node in the spec of the pod that the token is bound to."""
        named = f"{bound.namespace}/{bound.pod.name}"
        try:
            path = object_path("v1", "pods", bound.pod.name, namespace=bound.namespace)
            pod = _decode_pod(self._api.get(path))
        except (Rejected, NotFound) as error:
            message = printable(error.message, _SHOWN)
            remedy = (
                f"; Kubernetes before 1.30 needs the RBAC rule {_RULE} in namespace {bound.namespace}"
                if error.status == HTTPStatus.FORBIDDEN
                else ""
            )
            raise NotProvedError(
                f"the token does not name a node, and pod {named} cannot be read: {message}{remedy}"
            ) from error
        except (InvalidNameError, msgspec.MsgspecError) as error:
            raise NotProvedError(f"cannot read pod {printable(named)}: {printable(str(error))}") from error
        if pod.metadata.uid != bound.pod.uid:
            raise NotProvedError(f"pod {named} is not the one that the token is bound to")
        return str(pod.spec.get("nodeName", ""))


def boot_id() -> str:
    """Return the boot ID of this machine, as its kubelet reports it. In a sandbox with a kernel of its own, another."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


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
