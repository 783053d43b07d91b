"""/healthz, /readyz and /metrics, on threads of their own: a probe must not wait for a burst of nodes to be done."""

import threading
import time
from collections.abc import Callable
from http import HTTPStatus

from msgspec import Struct
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from kube_node_ready.bounded_http import Answer, BoundedServer, Request
from kube_node_ready.log import log

STALLED_SECONDS = 60
_FRESH_FACTOR = 10
"""A metrics page is served for this many times the time it took: so scrapes take at most a tenth of a core."""


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
        self._health = health
        try:
            self._server = BoundedServer(port, self._respond)
        except OSError as why:
            raise OSError(f"{fields}: port {port} cannot be had ({why.strerror}); choose a free one") from why
        self._page = MetricsPage(registry, self._server.wake) if registry is not None else None

    @property
    def port(self) -> int:
        return self._server.port

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def _respond(self, request: Request) -> Answer | None:
        match request.path:
            case "/healthz" | "/livez":
                return _probed(self._health.ill())
            case "/readyz":
                return _probed(self._health.not_ready())
            case "/metrics" if self._page is not None:
                return self._page.answer(request.received)
            case _:
                return Answer(HTTPStatus.NOT_FOUND, b"there are /healthz, /readyz and /metrics\n")


def _probed(trouble: str | None) -> Answer:
    return Answer(HTTPStatus.SERVICE_UNAVAILABLE if trouble else HTTPStatus.OK, f"{trouble or 'ok'}\n".encode())


class _Rendered(Struct, frozen=True):
    answer: Answer
    began: float
    ended: float

    @property
    def fresh_until(self) -> float:
        return self.ended + _FRESH_FACTOR * (self.ended - self.began)


class MetricsPage:
    """The page of all metrics, rendered by one thread at a time, however many clients ask for it.

    With thousands of nodes that takes a good part of a second. Probes on the same port are answered meanwhile, and the
    event loop competes with one rendering thread, not with one per client.
    """

    def __init__(self, registry: CollectorRegistry, done: Callable[[], None]) -> None:
        self._registry = registry
        self._done = done
        self._rendered: _Rendered | None = None
        self._rendering = False

    def answer(self, asked: float) -> Answer | None:
        """A page that is fresh, or was begun after it was asked for; None while it is rendered."""
        page = self._rendered
        if page and (page.began >= asked or time.monotonic() < page.fresh_until):
            return page.answer
        if not self._rendering:
            self._rendering = True
            try:
                threading.Thread(target=self._render, name="metrics", daemon=True).start()
            except RuntimeError as error:  # no more threads are allowed
                self._rendering = False
                log("Failed to render metrics", level="error", error=str(error))
                return Answer(HTTPStatus.SERVICE_UNAVAILABLE, b"cannot start a thread\n")
        return None

    def _render(self) -> None:
        began = time.monotonic()
        try:
            answer = Answer(HTTPStatus.OK, generate_latest(self._registry), CONTENT_TYPE_LATEST)
        except Exception as error:  # noqa: BLE001  the next scrape tries again
            log("Failed to render metrics", level="error", error=repr(error))
            answer = Answer(HTTPStatus.INTERNAL_SERVER_ERROR, b"the metrics cannot be rendered\n")
        self._rendered = _Rendered(answer, began, time.monotonic())
        self._rendering = False
        self._done()
