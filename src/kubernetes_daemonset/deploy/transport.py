"""Send requests as a kubeconfig defines it: its credentials, renewed after a 401, its proxy and its TLS settings."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

import httpcore2
import httpx2

from kubekit import proxy
from kubekit.connection import Connection
from kubekit.credentials import Identity
from kubekit.kubeconfig import KubeconfigError
from kubekit.proxy import Proxy
from kubernetes_daemonset.deploy import limits

_CONNECTIONS: Final = 10


class KubeconfigTransport(httpx2.BaseTransport):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._proxy = connection.proxy or _environment_proxy(connection)
        self._certificate = connection.certificate
        self._inner = self._made(connection.certificate)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        limits.stop_clock(request)  # a login program can wait for its user
        identity = self._connection.credentials.get()
        answer = self._sent(request, identity)
        if answer.status_code != HTTPStatus.UNAUTHORIZED:
            return answer
        limits.stop_clock(request)
        renewed = self._connection.credentials.refresh(identity)
        if renewed == identity:
            return answer
        answer.close()  # without reading it: only the client limits its size
        return self._sent(request, renewed)

    def close(self) -> None:
        self._inner.close()

    def _sent(self, request: httpx2.Request, identity: Identity) -> httpx2.Response:
        if identity.certificate != self._certificate:
            self._inner.close()
            self._inner = self._made(identity.certificate)
            self._certificate = identity.certificate
        if identity.authorization:
            request.headers["Authorization"] = identity.authorization
        if self._connection.tls_server_name:
            request.extensions = {**request.extensions, "sni_hostname": self._connection.tls_server_name}
        limits.start_clock(request)
        return self._inner.handle_request(request)

    def _made(self, certificate: str) -> "_Transport":
        return _Transport(self._connection, certificate, self._proxy)


def _environment_proxy(connection: Connection) -> Proxy | None:
    try:
        return proxy.from_environment(connection.server, connection.host, connection.port)
    except ValueError as error:
        raise KubeconfigError(str(error)) from error


class _Transport(httpx2.HTTPTransport):
    """httpx2's own, whose connections go through our tunnel: its SOCKS5 needs another package."""

    def __init__(self, connection: Connection, certificate: str, through: Proxy | None) -> None:
        context = connection.tls_context(certificate)
        super().__init__(verify=context, trust_env=False)
        if through:
            self._pool = httpcore2.ConnectionPool(
                ssl_context=context, max_connections=_CONNECTIONS, network_backend=_Tunnel(through)
            )


class _Tunnel(httpcore2.NetworkBackend):
    def __init__(self, through: Proxy) -> None:
        self._proxy = through
        self._direct = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        at = self._proxy.host, self._proxy.port
        try:
            stream = self._direct.connect_tcp(*at, timeout, local_address, socket_options)
        except httpcore2.ConnectError as error:
            raise httpcore2.ProxyError(f"cannot connect to proxy {self._proxy}: {error}") from error
        try:
            self._run(stream, proxy.handshake(self._proxy, host, port), timeout)
        except BaseException:
            stream.close()
            raise
        return stream

    def _run(self, stream: httpcore2.NetworkStream, steps: proxy.Handshake, timeout: float | None) -> None:
        try:
            sent = next(steps)
            while True:
                if sent:
                    stream.write(sent, timeout)
                sent = steps.send(stream.read(proxy.PIECE_BYTES, timeout))
        except StopIteration:
            return
        except proxy.ProxyError as error:
            raise httpcore2.ProxyError(str(error)) from error
