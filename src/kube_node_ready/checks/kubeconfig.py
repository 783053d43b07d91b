"""Connect to the API server as a kubeconfig defines it. Imported only where one is used, which no ordinary pod does."""

import os
import socket
import ssl
from functools import partial

from kube_node_ready import log
from kube_node_ready.checks import transport
from kube_node_ready.checks.access import UNAUTHORIZED, Access, NoAccessError
from kube_node_ready.checks.check import CheckFailedError, Deadline
from kube_node_ready.checks.transport import HttpConnection, Response, UnreachableError
from kubekit import connection as connections
from kubekit import kubeconfig, proxy
from kubekit.connection import Connection
from kubekit.credentials import CredentialsError, Identity
from kubekit.kubeconfig import KubeconfigError

INSECURE = "TLS verification disabled"
_BEARER = "Bearer "


def load(paths: str | os.PathLike[str], *, credentials: bool = True) -> Access:
    """Merge the files that `paths` names, as in KUBECONFIG. Without `credentials`, no plugin runs."""
    try:
        connection = connections.load(paths)
        if not connection.is_encrypted:
            text = f"server: {connection.server!a} is invalid; expected an https:// URL"
            raise NoAccessError(f"{connection.source}: {text}")
        route = Route(
            connection, connection.credentials.get() if credentials else Identity(certificate=connection.certificate)
        )
    except KubeconfigError as error:
        raise NoAccessError(str(error)) from error
    except CredentialsError as error:
        raise NoAccessError(f"{connection.source}: {error}") from error
    token = route.identity.authorization.removeprefix(_BEARER)
    return Access(connection.host, connection.port, route.context, token, connection.path, route.name, route)


def usual() -> str | None:
    """Return where kubectl looks by default, if there is a file."""
    path = kubeconfig.home()
    return path if os.path.exists(path) else None  # noqa: PTH110


def warn_if_insecure(access: Access) -> None:
    if access.context.verify_mode is ssl.CERT_NONE:
        log.log(INSECURE, level="warn", server=access.target, reason="insecure-skip-tls-verify is true")


class Route:
    """How requests reach the server: through a proxy, and with credentials that are renewed after a 401."""

    def __init__(self, connection: Connection, identity: Identity) -> None:
        self._connection = connection
        self.name = connection.tls_server_name
        self.use(identity)

    @property
    def proxy(self) -> str:
        return str(self._connection.proxy or "")

    def use(self, identity: Identity) -> None:
        self.context = self._connection.tls_context(identity.certificate)
        self.identity = identity

    def refresh(self, rejected: Identity) -> bool:
        """Refresh credentials that were rejected, and return whether they changed."""
        try:
            renewed = self._connection.credentials.refresh(rejected)
            if renewed != self.identity:
                self.use(renewed)
        except (CredentialsError, KubeconfigError) as error:
            raise CheckFailedError(f"cannot authenticate: {error}") from error
        return renewed != rejected

    def connect(self, deadline: Deadline) -> socket.socket:
        connection = self._connection
        plain = self._plain(deadline)
        try:
            return transport.start_tls(plain, self.context, self.name or connection.host, deadline)
        except BaseException:
            plain.close()
            raise

    def _plain(self, deadline: Deadline) -> socket.socket:
        connection = self._connection
        if not connection.proxy:
            return transport.connect(connection.host, connection.port, deadline)
        try:
            plain = transport.connect(connection.proxy.host, connection.proxy.port, deadline)
        except UnreachableError as error:
            raise UnreachableError(f"cannot connect to proxy {connection.proxy}: {error}") from error
        try:
            proxy.run(plain, proxy.handshake(connection.proxy, connection.host, connection.port), deadline.left)
        except TimeoutError as error:
            plain.close()
            raise UnreachableError(f"proxy {connection.proxy} did not answer within {deadline}") from error
        except OSError as error:
            plain.close()
            raise UnreachableError(str(error)) from error
        return plain

    def open(self, deadline: Deadline, agent: str) -> HttpConnection:
        address = transport.host_port(self._connection.host, self._connection.port)
        return _KubeconfigConnection(self, deadline, address, agent)


class _KubeconfigConnection(HttpConnection):
    """A connection that repeats a request once with refreshed credentials after a 401."""

    def __init__(self, route: Route, deadline: Deadline, host: str, agent: str) -> None:
        self._route, self._host, self._agent = route, host, agent
        self._open(deadline)

    def _open(self, deadline: Deadline) -> None:
        self._identity = self._route.identity
        headers = {"Accept": "application/json", "User-Agent": self._agent}
        if self._identity.authorization:
            headers["Authorization"] = self._identity.authorization
        super().__init__(self._route.connect(deadline), self._host, headers)

    def get(
        self,
        path: str,
        deadline: Deadline,
        *,
        part: int = 0,
        padding: int = 0,
        wants_body: bool = True,
        largest: int = 0,
    ) -> Response:
        get = partial(super().get, path, deadline, part=part, padding=padding, wants_body=wants_body, largest=largest)
        answer = get()
        return get() if self._opened_again(answer, deadline) else answer

    def send(self, method: str, path: str, content: bytes, kind: str, deadline: Deadline) -> Response:
        answer = super().send(method, path, content, kind, deadline)
        if not self._opened_again(answer, deadline):
            return answer
        return super().send(method, path, content, kind, deadline)

    def _opened_again(self, answer: Response, deadline: Deadline) -> bool:
        if answer.status != UNAUTHORIZED or not self._route.refresh(self._identity):
            return False
        self._connection.close()
        self._open(deadline)
        return True
