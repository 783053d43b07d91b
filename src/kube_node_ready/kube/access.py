"""Connect to an API server as a kubeconfig or a ServiceAccount defines it, with credentials that are renewed."""

import asyncio
import ssl
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from kube_node_ready.kube.errors import AccessError
from kubekit import connection as connections
from kubekit.connection import Connection
from kubekit.credentials import Command, CredentialsError, ExecPlugin, Identity
from kubekit.kubeconfig import KubeconfigError


class Access(Struct, frozen=True):
    """One API server, and one identity there. Without a `connection`, no credentials are target."""

    server: str
    namespace: str
    tls: ssl.SSLContext
    connection: Connection | None = None

    @property
    def is_insecure(self) -> bool:
        """Whether the server's certificate is not verified."""
        return self.connection is not None and self.connection.insecure


def access(kubeconfig: Path | None = None, context: str | None = None) -> Access:
    """By that file, or by those if there are colons in it as in `KUBECONFIG`; without one, by `KUBECONFIG`, as a pod's
    ServiceAccount, or by ~/.kube/config. Without a `context`, by the one that is current there.
    """
    try:
        connection = connections.load(kubeconfig, context)
        tls = connection.tls_context(connection.certificate)
    except KubeconfigError as error:
        raise AccessError(str(error)) from error
    return Access(connection.server, connection.namespace, tls, connection)


def _ignore(_: ssl.SSLContext) -> None:
    return None


class TokenSource:
    """The identity of the moment. Fetched when first needed, when it expires, and when the server rejects it.

    `use_tls` is called when requests must present another client certificate.
    """

    def __init__(self, target: Access, use_tls: Callable[[ssl.SSLContext], None] = _ignore) -> None:
        self._connection = target.connection
        self._credentials = target.connection.credentials if target.connection else None
        self._certificate = target.connection.certificate if target.connection else ""
        self._server = target.server
        self._use_tls = use_tls
        self._turn = asyncio.Lock()

    async def identity(self) -> Identity:
        if self._credentials is None:
            return _ANONYMOUS
        cached = self._credentials.cached(asyncio.get_running_loop().time())
        return self._presented(cached or await self._fetch(None))

    async def refresh(self, rejected: Identity) -> Identity:
        """Return the identity for a retry after a 401: a new one if possible, otherwise the rejected one."""
        if self._credentials is None:
            return rejected
        return self._presented(await self._fetch(rejected))

    def _presented(self, identity: Identity) -> Identity:
        if identity.certificate != self._certificate:
            assert self._connection
            try:
                self._use_tls(self._connection.tls_context(identity.certificate))
            except KubeconfigError as error:
                raise AccessError(str(error)) from error
            self._certificate = identity.certificate
        return identity

    async def _fetch(self, rejected: Identity | None) -> Identity:
        """One at a time: for a hundred rejected requests, the plugin runs once."""
        assert self._credentials
        async with self._turn:
            now = asyncio.get_running_loop().time()
            cached = self._credentials.cached(now)
            if cached is not None and cached != rejected:
                return cached
            try:
                return self._credentials.keep(await self._fetch_from_source(), now)
            except CredentialsError as error:
                kept = None if rejected else self._credentials.last_resort()
                if kept is None:
                    raise AccessError(f"cannot authenticate to {self._server}: {error}") from error
                return kept

    async def _fetch_from_source(self) -> Identity:
        assert self._credentials
        source = self._credentials.source
        if not isinstance(source, ExecPlugin):
            return source.fetch()
        try:
            exit_code, output = await _run(source.prepare())
        except (OSError, ValueError) as error:
            raise source.not_started(error) from error
        return source.identity(exit_code, output)


_ANONYMOUS = Identity()


async def _run(command: Command) -> tuple[int, bytes]:
    """Return the exit code and the output. The process does not outlive the request that waits for it."""
    process = await asyncio.create_subprocess_exec(*command.argv, env=command.environ, stdin=command.stdin, stdout=PIPE)
    try:
        output, _ = await process.communicate()
    except BaseException:
        if process.returncode is None:
            process.kill()
        raise
    return await process.wait(), output
