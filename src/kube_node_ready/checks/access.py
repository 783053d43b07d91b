"""How to talk to the API server, and talking to it."""

from __future__ import annotations

import json
import ssl
import threading

from kube_node_ready.checks import files, wire
from kube_node_ready.checks.model import GRACE_SECONDS, CheckFailedError, Deadline, NotJudgedError
from kube_node_ready.checks.record import Record
from kube_node_ready.checks.wire import Answer, Conversation
from kube_node_ready.http_syntax import is_field_value, is_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    import socket
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    T = TypeVar("T")

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
OK, PARTIAL, UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 200, 206, 401, 403, 404
_LONGEST_REASON = 300


class NoAccessError(Exception):
    """There is no way to talk to Kubernetes from here, and why."""


class Access(Record):
    host: str
    port: int
    context: ssl.SSLContext
    token: str = ""
    path: str = ""
    name_in_certificate: str = ""

    @property
    def target(self) -> str:
        return wire.joined(self.host, self.port)

    def connect(self, deadline: Deadline) -> socket.socket:
        plain = wire.connect(self.host, self.port, deadline)
        try:
            return wire.encrypt(plain, self.context, self.name_in_certificate or self.host, deadline)
        except BaseException:
            plain.close()
            raise

    def converse(self, deadline: Deadline, agent: str = "kube-node-ready-worker") -> Conversation:
        headers = {"Accept": "application/json", "User-Agent": agent}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return Conversation(self.connect(deadline), self.target, headers)


def shared(look: Callable[[Deadline], T]) -> Callable[[Deadline], T]:
    """A look-up that several checks need: the first of them does it, the others wait, and all get what came of it."""
    lock = threading.Lock()
    found: list[T] = []
    failure: list[CheckFailedError] = []

    def get(deadline: Deadline) -> T:
        # Whoever asks has a deadline of its own, as near as ours: its word should come before our impatience.
        if not lock.acquire(timeout=deadline.left() + GRACE_SECONDS / 2):
            raise NotJudgedError(f"another check has waited for the same answer for {deadline}")
        try:
            if not found and not failure:
                try:
                    found.append(look(deadline))
                except CheckFailedError as why:
                    failure.append(why)
                except TimeoutError:
                    failure.append(CheckFailedError(f"timed out after {deadline}"))
            if failure:
                raise failure[0]
            return found[0]
        finally:
            lock.release()

    return get


def in_pod(environ: Mapping[str, str], folder: str | os.PathLike[str] = SERVICE_ACCOUNT) -> Access:
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    if not host:
        raise NoAccessError("KUBERNETES_SERVICE_HOST is not set; the kubelet sets it in every pod, and this is none")
    port = environ.get("KUBERNETES_SERVICE_PORT", "") or "443"
    if not is_host(host):
        raise NoAccessError(f"KUBERNETES_SERVICE_HOST: {host!a} is invalid; expected an IP address or a host name")
    if not _is_port(port):
        raise NoAccessError(f"KUBERNETES_SERVICE_PORT is {port!r}, and must be a port such as 443")
    token, authority = _text_of(f"{folder}/token"), _text_of(f"{folder}/ca.crt")
    check_token(token, f"{folder}/token")
    return Access(host.strip("[]"), int(port), trusting(authority, f"{folder}/ca.crt"), token)


def _is_port(text: str) -> bool:
    """The length first: `int` refuses to read thousands of digits."""
    return text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) < 65_536  # noqa: PLR2004


def check_token(token: str, where: str) -> None:
    """So that a token with a line break is an error at the start, and never a second request."""
    if not is_field_value(token):
        raise NoAccessError(f"{where}: the token is invalid; expected visible ASCII characters on one line")


def _text_of(path: str) -> str:
    needs = "the pod needs a ServiceAccount whose token is mounted"
    try:
        text = files.read(path).strip()
    except OSError as why:
        raise NoAccessError(f"{path} cannot be read: {why.strerror}; {needs}") from why
    if not text:
        raise NoAccessError(f"{path} is empty; {needs}")
    return text


def trusting(authority: str, where: str) -> ssl.SSLContext:
    """A context that trusts one authority and no other; to load the system's is dear, and would be wrong."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=authority)
    except (ssl.SSLError, ValueError) as why:
        raise NoAccessError(f"{where} holds no certificate in PEM format") from why
    return context


def json_of(answer: Answer, what: str) -> dict[str, object]:
    """The object that `what` (a sentence's subject, such as "get services in kube-system") should have brought."""
    if answer.status == FORBIDDEN:
        raise CheckFailedError(f"the right to {what} is missing: {reason(answer)}")
    refuse_unless_ok(answer)
    try:
        found = json.loads(answer.body)
    except ValueError as why:
        raise NotJudgedError(f"the API server's answer is not JSON: {why}") from why
    if not isinstance(found, dict):
        raise NotJudgedError(f"the API server answers {type(found).__name__}, and should answer an object")
    return found


def refuse_unless_ok(answer: Answer) -> None:
    if answer.status == UNAUTHORIZED:
        raise NotJudgedError("the API server does not accept our credentials (401)")
    if answer.status != OK:
        raise NotJudgedError(f"the API server answers {answer.status}: {reason(answer)}")


def reason(answer: Answer) -> str:
    """The words of a Kubernetes Status, or the beginning of whatever came instead."""
    text = answer.body[: _LONGEST_REASON * 8].decode("utf-8", "replace")
    try:
        found = json.loads(answer.body)
        text = str(found["message"])
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return " ".join(text.split())[:_LONGEST_REASON] or "without a reason"
