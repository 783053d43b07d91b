"""Limits on the responses of an API server: how large they can be, and how long they can take.

A timeout of an HTTP client starts again with each packet, so a server that sends a byte per second never exceeds it.
And what a server sends need not be its own: a kubelet can make the pods of its node a thousand times as large.
"""

import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx2

MAX_BYTES = 64 * 2**20  # a page of 500 pods has about five million
MAX_SECONDS = 120.0  # for the whole response
MAX_PAGES: Final = 200  # of a list
MAX_LIST_BYTES: Final = 64 * 2**20  # of all pages
MAX_LIST_SECONDS: Final = 300.0  # for all pages
_POLL_SECONDS: Final = 0.2
_MEBIBYTE: Final = 2**20
_CLOCK: Final = "kubernetes_daemonset.clock"
_MOST_BYTES: Final = "kubernetes_daemonset.most_bytes"


class TooLargeError(Exception):
    """The response is too large, or its size is not known because it is compressed."""


class TooLateError(Exception):
    """The response is not complete after the time that it can take."""


class ListTooLateError(Exception):
    """The list is not complete after the time that all of its pages can take."""


@dataclass(slots=True)
class Budget:
    """The bytes and seconds that remain for the pages of one or several lists, and the bytes that one page can have.

    A page takes ten times as much memory as bytes while it is read.
    """

    left_bytes: int = MAX_LIST_BYTES
    left_seconds: float = MAX_LIST_SECONDS
    page_bytes: int = MAX_LIST_BYTES


def prepare(client: httpx2.Client) -> None:
    """Limit all responses to this client, also those that it reads between two logins."""
    client.headers["Accept-Encoding"] = "identity"
    client.event_hooks = {"request": [start_clock], "response": [_limit_size]}


def page(client: httpx2.Client, where: str, budget: Budget, **options: Any) -> httpx2.Response:  # noqa: ANN401 - httpx2's own
    """Return one page of a list, and reduce the budget by what it took. The time of a login does not count."""
    clock = _Clock(min(MAX_SECONDS, budget.left_seconds))
    most = max(0, min(MAX_BYTES, budget.page_bytes, budget.left_bytes))
    try:
        clock.check()  # of a list that has no time left
        answer = _complete(client, "GET", where, clock, most, options)
    except TooLateError as error:
        if clock.seconds == MAX_SECONDS:
            raise
        raise ListTooLateError("the list is not complete in time") from error
    except TooLargeError as error:
        if most < budget.left_bytes:
            raise
        raise TooLargeError(f"the list has more than {MAX_LIST_BYTES / _MEBIBYTE:g} MiB") from error
    budget.left_bytes -= len(answer.content)
    budget.left_seconds -= clock.elapsed()
    return answer


def request(client: httpx2.Client, method: str, where: str, **options: Any) -> httpx2.Response:  # noqa: ANN401 - httpx2's own
    """Send a request with a prepared client, and return the complete response."""
    return _complete(client, method, where, _Clock(MAX_SECONDS), MAX_BYTES, options)


def _complete(
    client: httpx2.Client, method: str, where: str, clock: "_Clock", most_bytes: int, options: dict[str, Any]
) -> httpx2.Response:
    """Return the complete response.

    In a thread of its own, since nothing ends the wait for a head that trickles in. A thread that is given up ends with
    its connection, or with the process.
    """
    extensions = {_CLOCK: clock, _MOST_BYTES: most_bytes}
    done: queue.SimpleQueue[httpx2.Response | BaseException] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put(client.request(method, where, extensions=extensions, **options))
        except BaseException as error:  # noqa: BLE001  raised again where it is waited for
            done.put(error)

    threading.Thread(target=run, daemon=True).start()
    while True:
        try:
            answer = done.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            clock.check()
            continue
        if isinstance(answer, BaseException):
            raise answer
        return answer


class _Clock:
    """Starts when a request is sent: before that, a login program can wait for its user."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._began: float | None = None

    def start(self) -> None:
        self._began = time.monotonic()

    def stop(self) -> None:
        self._began = None

    def elapsed(self) -> float:
        return 0 if self._began is None else time.monotonic() - self._began

    def check(self) -> None:
        if self.elapsed() > self.seconds or self.seconds <= 0:
            raise TooLateError(f"no complete response within {self.seconds:g} s")


def start_clock(sent: httpx2.Request) -> None:
    if clock := _clock(sent):
        clock.start()


def stop_clock(sent: httpx2.Request) -> None:
    if clock := _clock(sent):
        clock.stop()


def _clock(sent: httpx2.Request) -> _Clock | None:
    clock = sent.extensions.get(_CLOCK)
    return clock if isinstance(clock, _Clock) else None


def _limit_size(answer: httpx2.Response) -> None:
    encoding = answer.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise TooLargeError(f"the response has the content encoding {encoding!a}, which was not requested")
    assert isinstance(answer.stream, httpx2.SyncByteStream)
    answer.stream = _Limited(answer.stream, answer.request.extensions.get(_MOST_BYTES, MAX_BYTES))


class _Limited(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream, most: int) -> None:
        self._stream = stream
        self._most = most

    def __iter__(self) -> Iterator[bytes]:
        received = 0
        for part in self._stream:
            received += len(part)
            if received > self._most:
                raise TooLargeError(f"the response has more than {self._most / _MEBIBYTE:.3g} MiB")
            yield part

    def close(self) -> None:
        self._stream.close()
