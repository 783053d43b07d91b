"""Limits on the responses of an API server: how large they can be, and how long they can take.

A timeout of an HTTP client starts again with each packet, so a server that sends a byte per second never exceeds it.
And what a server sends need not be its own: a kubelet can make the pods of its node a thousand times as large.
"""

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import httpx2

MAX_BYTES = 64 * 2**20  # a page of 500 pods has about five million
MAX_SECONDS = 120.0  # for the whole response
MAX_PAGES: Final = 200  # of a list
_POLL_SECONDS: Final = 0.2
_MEBIBYTE: Final = 2**20
_CLOCK: Final = "kubernetes_daemonset.clock"


class TooLargeError(Exception):
    """The response is too large, or its size is not known because it is compressed."""


class TooLateError(Exception):
    """The response is not complete after the time that it can take."""


def prepare(client: httpx2.Client) -> None:
    """Limit all responses to this client, also those that it reads between two logins."""
    client.headers["Accept-Encoding"] = "identity"
    client.event_hooks = {"request": [start_clock], "response": [_limit_size]}


def request(client: httpx2.Client, method: str, where: str, **options: Any) -> httpx2.Response:  # noqa: ANN401 - httpx2's own
    """Send a request with a prepared client, and return the complete response.

    In a thread of its own, since nothing ends the wait for a head that trickles in. A thread that is given up ends with
    its connection, or with the process.
    """
    clock = _Clock()
    done: queue.SimpleQueue[httpx2.Response | BaseException] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put(client.request(method, where, extensions={_CLOCK: clock}, **options))
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

    def __init__(self) -> None:
        self.end: float | None = None

    def check(self) -> None:
        if self.end is not None and time.monotonic() > self.end:
            raise TooLateError(f"no complete response within {MAX_SECONDS:g} s")


def start_clock(sent: httpx2.Request) -> None:
    _set_end(sent, time.monotonic() + MAX_SECONDS)


def stop_clock(sent: httpx2.Request) -> None:
    _set_end(sent, None)


def _set_end(sent: httpx2.Request, end: float | None) -> None:
    clock = sent.extensions.get(_CLOCK)
    if isinstance(clock, _Clock):
        clock.end = end


def _limit_size(answer: httpx2.Response) -> None:
    encoding = answer.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise TooLargeError(f"the response has the content encoding {encoding!a}, which was not requested")
    assert isinstance(answer.stream, httpx2.SyncByteStream)
    answer.stream = _Limited(answer.stream)


class _Limited(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        received = 0
        for part in self._stream:
            received += len(part)
            if received > MAX_BYTES:
                raise TooLargeError(f"the response has more than {MAX_BYTES // _MEBIBYTE} MiB")
            yield part

    def close(self) -> None:
        self._stream.close()
