"""Access to the API server: address, credentials, requests and their errors."""

from __future__ import annotations

import json
import os
import ssl
import threading

from kube_node_ready.api.contract import SERVICE_ACCOUNT
from kube_node_ready.api.nesting import tolerant
from kube_node_ready.checks import files, transport
from kube_node_ready.checks.check import GRACE_SECONDS, CheckFailedError, Deadline, ElsewhereError, InconclusiveError
from kube_node_ready.checks.fast_tuple import FastTuple
from kube_node_ready.checks.transport import HttpConnection, Response
from kube_node_ready.http_syntax import is_field_value, is_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from kube_node_ready.checks.kubeconfig import Route

    T = TypeVar("T")

OK, PARTIAL, UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 200, 206, 401, 403, 404
TOO_MANY_REQUESTS, SERVER_ERROR = 429, 500
_LONGEST_REASON = 300
_decode = tolerant(json.loads)


class NoAccessError(Exception):
    """The API server cannot be accessed from here; the message has the reason."""


class Access(FastTuple):
    host: str
    port: int
    context: ssl.SSLContext
    token: str = ""
    path: str = ""
    name_in_certificate: str = ""
    route: Route | None = None
    """Of a kubeconfig: through its proxy, and with credentials that are renewed."""

    @property
    def target(self) -> str:
        return transport.host_port(self.host, self.port)

    def connect(self, deadline: Deadline) -> socket.socket:
        if self.route:
            return self.route.connect(deadline)
        plain = transport.connect(self.host, self.port, deadline)
        try:
            return transport.start_tls(plain, self.context, self.name_in_certificate or self.host, deadline)
        except BaseException:
            plain.close()
            raise

    def open(self, deadline: Deadline, agent: str = "kube-node-ready-worker") -> HttpConnection:
        if self.route:
            return self.route.open(deadline, agent)
        headers = {"Accept": "application/json", "User-Agent": agent}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return HttpConnection(self.connect(deadline), self.target, headers)


def once(fetch: Callable[[Deadline], T]) -> Callable[[Deadline], T]:
    """Share a lookup between checks: the first caller runs it, and all get its result or error."""
    lock = threading.Lock()
    result: list[T] = []
    failure: list[CheckFailedError] = []

    def get(deadline: Deadline) -> T:
        # The first caller has about the same deadline, and its own error is more precise, so wait a little longer.
        if not lock.acquire(timeout=deadline.left() + GRACE_SECONDS / 2):
            raise InconclusiveError(f"another check received no response to the same request within {deadline}")
        try:
            if not result and not failure:
                try:
                    result.append(fetch(deadline))
                except CheckFailedError as error:
                    failure.append(error)
                except TimeoutError:
                    failure.append(CheckFailedError(f"timed out after {deadline}"))
            if failure:
                raise failure[0]
            return result[0]
        finally:
            lock.release()

    return get


def in_pod(environ: Mapping[str, str], folder: str | os.PathLike[str] = SERVICE_ACCOUNT) -> Access:
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    if not host:
        raise NoAccessError(
            "KUBERNETES_SERVICE_HOST is not set; the kubelet sets it in every pod, and this is not a pod"
        )
    port = environ.get("KUBERNETES_SERVICE_PORT", "") or "443"
    if not is_host(host):
        raise NoAccessError(f"KUBERNETES_SERVICE_HOST: {host!a} is invalid; expected an IP address or a host name")
    if not _is_port(port):
        raise NoAccessError(f"KUBERNETES_SERVICE_PORT: {port!a} is invalid; expected a port such as 443")
    token, authority = _text_of(f"{folder}/token"), _text_of(f"{folder}/ca.crt")
    check_token(token, f"{folder}/token")
    return Access(host.strip("[]"), int(port), trusting(authority, f"{folder}/ca.crt"), token)


def has_kubeconfig(paths: str) -> bool:
    """Whether at least one of the files exists that KUBECONFIG names. It needs neither YAML nor `pathlib`."""
    return any(os.access(path, os.F_OK) for path in (paths, *paths.split(os.pathsep)) if path)


def _is_port(text: str) -> bool:
    """Check the length first: `int` rejects thousands of digits."""
    return text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) < 65_536  # noqa: PLR2004


def check_token(token: str, where: str) -> None:
    """Reject an invalid token early: a line break in it could inject a second request."""
    if not is_field_value(token):
        raise NoAccessError(f"{where}: the token is invalid; expected visible ASCII characters on one line")


def _text_of(path: str) -> str:
    needs = "the pod needs a ServiceAccount whose token is mounted"
    try:
        text = files.read(path).strip()
    except OSError as error:
        raise NoAccessError(f"cannot read {path}: {error.strerror}; {needs}") from error
    if not text:
        raise NoAccessError(f"{path} is empty; {needs}")
    return text


def trusting(authority: str, where: str) -> ssl.SSLContext:
    """Return a context that trusts only this authority. Loading those of the system is slow, and would be wrong."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=authority)
    except (ssl.SSLError, ValueError) as error:
        raise NoAccessError(f"{where} is invalid; expected a certificate in PEM format") from error
    return context


def json_of(response: Response, what: str, rule: str = "") -> dict[str, object]:
    """Return the object in the response. `what` names the request, such as "get services in kube-system".

    `rule` is the RBAC rule that grants it. A missing permission is not the node's fault.
    """
    if response.status == FORBIDDEN:
        remedy = f"; add the RBAC rule {rule}" if rule else ""
        raise ElsewhereError(f"permission to {what} is missing: {reason(response)}{remedy}")
    require_ok(response)
    try:
        result = _decode(response.body)
    except ValueError as error:
        raise InconclusiveError(f"the API server's response is not JSON: {error}") from error
    if not isinstance(result, dict):
        raise InconclusiveError(f"the API server returned {type(result).__name__}, expected a JSON object")
    return result


def require_ok(response: Response) -> None:
    if response.status == UNAUTHORIZED:
        raise InconclusiveError("the API server rejects the credentials (401)")
    if response.status != OK:
        raise InconclusiveError(f"the API server returned HTTP {response.status}: {reason(response)}")


def reason(response: Response) -> str:
    """Return the message of a Kubernetes Status, or the beginning of another body."""
    text = response.body[: _LONGEST_REASON * 8].decode("utf-8", "replace")
    try:
        result = json.loads(response.body)
        text = str(result["message"])
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return " ".join(text.split())[:_LONGEST_REASON] or "without a reason"
