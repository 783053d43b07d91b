"""Serve /healthz, /readyz and /metrics on separate threads, so that a busy event loop does not delay probes."""

import threading
import time
from collections.abc import Callable
from http import HTTPStatus

from msgspec import Struct
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from kube_node_ready.bounded_http import BoundedServer, Request, Response
from kube_node_ready.log import log

STALLED_SECONDS = 60
_FRESH_FACTOR = 10
"""A metrics page is cached for this many times its rendering time: scrapes take at most a tenth of a core."""


class Health:
    """The state that probes report. The event loop writes it, the servers read it."""

    def __init__(self, stall_seconds: float = STALLED_SECONDS) -> None:
        self._last_beat = time.monotonic()
        self._stall_seconds = stall_seconds
        self.readiness_problem: Callable[[], str | None] = lambda: "starting"

    def beat(self) -> None:
        """Record that the event loop is running."""
        self._last_beat = time.monotonic()

    def liveness_problem(self) -> str | None:
        """Return why this process must be restarted, if so. An unavailable API server is not a reason."""
        still = time.monotonic() - self._last_beat
        return f"event loop stalled for {still:.0f} s" if still > self._stall_seconds else None


class ProbeServer:
    """Serves one port. Port 0 selects a free one. `fields` are the settings that choose it, for error messages."""

    def __init__(
        self,
        port: int,
        health: Health,
        registry: CollectorRegistry | None,
        fields: str = "metrics.port or health.port",
    ) -> None:
        self._health = health
        try:
            self._server = BoundedServer(port, self._respond)
        except OSError as error:
            raise OSError(f"{fields}: cannot listen on port {port}: {error.strerror}; choose a free port") from error
        self._page = MetricsPage(registry, self._server.wake) if registry is not None else None

    @property
    def port(self) -> int:
        return self._server.port

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def _respond(self, request: Request) -> Response | None:
        match request.path:
            case "/healthz" | "/livez":
                return _probe_response(self._health.liveness_problem())
            case "/readyz":
                return _probe_response(self._health.readiness_problem())
            case "/metrics" if self._page is not None:
                return self._page.answer(request.received)
            case _:
                return Response(HTTPStatus.NOT_FOUND, b"not found; expected /healthz, /readyz or /metrics\n")


def _probe_response(problem: str | None) -> Response:
    return Response(HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK, f"{problem or 'ok'}\n".encode())


class _Rendered(Struct, frozen=True):
    answer: Response
    began: float
    ended: float

    @property
    def fresh_until(self) -> float:
        return self.ended + _FRESH_FACTOR * (self.ended - self.began)


class MetricsPage:
    """The page of all metrics, rendered by one thread at a time, regardless of how many clients request it.

    With thousands of nodes that takes a good part of a second. Probes on the same port are answered meanwhile, and the
    event loop competes with one rendering thread, not with one per client.
    """

    def __init__(self, registry: CollectorRegistry, done: Callable[[], None]) -> None:
        self._registry = registry
        self._done = done
        self._rendered: _Rendered | None = None
        self._rendering = False

    def answer(self, asked: float) -> Response | None:
        """Return a page that is fresh or was started after the request; None while it is rendered."""
        page = self._rendered
        if page and (page.began >= asked or time.monotonic() < page.fresh_until):
            return page.answer
        if not self._rendering:
            self._rendering = True
            try:
                threading.Thread(target=self._render, name="metrics", daemon=True).start()
            except RuntimeError as error:  # the limit of threads is reached
                self._rendering = False
                log("Failed to render metrics", level="error", error=str(error))
                return Response(HTTPStatus.SERVICE_UNAVAILABLE, b"cannot start a thread\n")
        return None

    def _render(self) -> None:
        began = time.monotonic()
        try:
            answer = Response(HTTPStatus.OK, generate_latest(self._registry), CONTENT_TYPE_LATEST)
        except Exception as error:  # noqa: BLE001  the next scrape tries again
            log("Failed to render metrics", level="error", error=repr(error))
            answer = Response(HTTPStatus.INTERNAL_SERVER_ERROR, b"the metrics cannot be rendered\n")
        self._rendered = _Rendered(answer, began, time.monotonic())
        self._rendering = False
        self._done()
