"""/healthz, /readyz and /metrics, on threads of their own: a probe must not wait for a burst of nodes to be done."""

import http
import socket
import sys
import threading
import time
from collections.abc import Callable  # noqa: TC003  as everywhere else
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from kube_node_ready.log import log

STALLED_SECONDS = 60


class Health:
    """What the probes are told. Written by the loop that does the work, read by the servers."""

    def __init__(self, patience: float = STALLED_SECONDS) -> None:
        self._last_beat = time.monotonic()
        self._patience = patience
        self.not_ready: Callable[[], str | None] = lambda: "it is starting"

    def beat(self) -> None:
        """The event loop turns."""
        self._last_beat = time.monotonic()

    def ill(self) -> str | None:
        """About this process alone: a broken API server is not mended by killing us."""
        still = time.monotonic() - self._last_beat
        return f"the loop has not turned for {still:.0f} s" if still > self._patience else None


class Server:
    """One port. Port 0 takes a free one; `port` says which. `fields` is where another one could be chosen."""

    def __init__(
        self,
        port: int,
        health: Health,
        registry: CollectorRegistry | None,
        fields: str = "metrics.port or health.port",
    ) -> None:
        try:
            self._server = _QuietServer(("", port), _handler(health, registry))
        except OSError as why:
            raise OSError(f"{fields}: port {port} cannot be had ({why.strerror}); choose a free one") from why
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 5}, daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        # Not shutdown(): it would wait for the poll. The thread ends with the process.
        self._server.socket.close()


class _QuietServer(ThreadingHTTPServer):
    """For IPv4 and IPv6 alike: in some clusters the kubelet knows only one of them."""

    daemon_threads = True
    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002  the base class's
        """Who hangs up before the answer does not concern us."""
        why = sys.exception()
        if not isinstance(why, OSError):
            log("Answering a probe failed", level="error", error=repr(why))


def _handler(health: Health, registry: CollectorRegistry | None) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/healthz" | "/livez":
                    self._answer_probe(health.ill())
                case "/readyz":
                    self._answer_probe(health.not_ready())
                case "/metrics" if registry is not None:
                    self._answer(http.HTTPStatus.OK, generate_latest(registry), CONTENT_TYPE_LATEST)
                case _:
                    self._answer(http.HTTPStatus.NOT_FOUND, b"there are /healthz, /readyz and /metrics\n")

        def _answer_probe(self, trouble: str | None) -> None:
            status = http.HTTPStatus.SERVICE_UNAVAILABLE if trouble else http.HTTPStatus.OK
            self._answer(status, f"{trouble or 'ok'}\n".encode())

        def _answer(self, status: http.HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Probes come every few seconds, and say nothing new."""

    return Handler
