"""HTTPS relay to an API server whose connections can be cut."""

import http.client
import socket
import ssl
from collections.abc import Callable  # noqa: TC003  as everywhere else
from contextlib import closing
from pathlib import Path

import lab
from tests.support.check_servers import FakeApi, headers_of

_SECONDS = 30
_ITS_OWN = ("connection", "transfer-encoding", "content-length")


class Relay(FakeApi):
    """Requests carry the token of the server behind it."""

    def __init__(self, folder: Path, plane: lab.Plane) -> None:
        super().__init__(folder)
        self._plane = plane
        self.before_patch: list[Callable[[], None]] = []
        """What happens right before the next patches arrive, the last first."""
        self.after_patch: Callable[[], None] | None = None
        """What happens after every patch, and before its sender has the answer."""
        self.is_away = False

    def _serve(self, plain: socket.socket) -> None:
        if self.is_away:
            return
        plain.settimeout(_SECONDS)
        with (
            self._context.wrap_socket(plain, server_side=True) as connection,
            connection.makefile("rb") as stream,
            closing(self._behind()) as behind,
        ):
            while line := stream.readline():
                method, path, _ = line.decode().split()
                headers = headers_of(stream)
                body = stream.read(int(headers.get("content-length", 0)))
                if method == "PATCH" and self.before_patch:
                    self.before_patch.pop()()
                behind.request(method, path, body or None, headers)
                answer = _as_sent(behind.getresponse())
                if method == "PATCH" and self.after_patch:
                    self.after_patch()
                connection.sendall(answer)

    def _behind(self) -> http.client.HTTPSConnection:
        host, port = self._plane.api_endpoint
        trusting = ssl.create_default_context(cafile=self._plane.authority.certificate)
        return http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=trusting)


def _as_sent(answer: http.client.HTTPResponse) -> bytes:
    body = answer.read()
    lines = [f"HTTP/1.1 {answer.status} {answer.reason}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in answer.getheaders() if name.lower() not in _ITS_OWN]
    return "\r\n".join([*lines, "", ""]).encode() + body
