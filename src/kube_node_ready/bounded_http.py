"""An HTTP server for probes and scrapes that its clients cannot exhaust.

Every pod that reaches the port can connect, without credentials. So one thread serves all connections of a port, and
everything that a client could make large is bounded:

- Files and memory: at most 256 connections, or as many as a sixteenth of the file descriptors, of at most 8 KiB of
  request each. One more closes another: the oldest of the address that has the most. So a newcomer is always served,
  and the kubelet's probe has an address of its own.
- Time: a connection has one deadline, from when it was accepted, whatever it sends or reads.
- CPU: after each turn the server sleeps for as long as it was busy, so it uses about half a core at most. While
  connections have to be closed for others, it also pauses accepting. New ones wait in the kernel's queue meanwhile.
- When the process has no file descriptors left, a few are in reserve here. After these, accepting pauses.
"""

import contextlib
import errno
import os
import re
import resource
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http import HTTPStatus

from msgspec import Struct

from kube_node_ready.log import log

_FEWEST_CONNECTIONS, _MOST_CONNECTIONS = 16, 256
"""With few, as many addresses with one connection each would make a probe's connection the next to be closed."""
_FILES_PER_CONNECTION = 16
_MOST_REQUEST_BYTES = 8192
_CONNECTION_SECONDS = 10.0
"""For one connection, from being accepted to the last byte of its answer."""
_ACCEPTED_PER_TURN = 256
_CROWDED_PAUSE_SECONDS = 0.001
"""At least, after connections had to be closed for others. A longer pause lets the kernel's queue overflow."""
_NO_FILES_PAUSE_SECONDS = 0.5
_LOG_SECONDS = 60.0
_BACKLOG = 4096
"""The kernel's queue. Its own limit is net.core.somaxconn. When it overflows, probes time out."""
_RESERVED_FILES = 4
_OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_HEAD_ENDS = re.compile(rb"\r?\n\r?\n")
_LONGEST_END = len(b"\r\n\r\n")
_REQUEST_LINE = re.compile(r"(?P<method>[A-Z]+) (?P<path>/[!-~]*) HTTP/1\.[01]")
_TEXT = "text/plain; charset=utf-8"


class Request(Struct, frozen=True):
    method: str
    path: str
    """Without its query."""
    received: float
    """When it was complete, by the monotonic clock."""


class Response(Struct, frozen=True):
    status: HTTPStatus
    body: bytes
    content_type: str = _TEXT


Respond = Callable[[Request], Response | None]
"""None if the answer is not ready yet. It is asked again after `BoundedServer.wake`. It must not block."""


class _Connection:
    def __init__(self, sock: socket.socket, peer: str, now: float) -> None:
        self.socket = sock
        self.peer = peer
        self.deadline = now + _CONNECTION_SECONDS
        self.received = bytearray()
        self.request: Request | None = None
        self.unsent: list[memoryview] = []

    @property
    def is_waiting(self) -> bool:
        return self.request is not None and not self.unsent


class BoundedServer:
    """One port, on IPv4 and IPv6 alike: in some clusters the kubelet uses only one of them."""

    def __init__(self, port: int, respond: Respond) -> None:
        self._respond = respond
        self._listener = _listener(port)
        self._woken, self._waker = socket.socketpair()
        for end in (self._woken, self._waker):
            end.settimeout(0)
        self._selector = selectors.DefaultSelector()
        self._connections: dict[socket.socket, _Connection] = {}  # the oldest first
        self._reserve: list[int] = []
        self._pause_until: float | None = None
        self._logged = -_LOG_SECONDS
        self._stopping = False
        self._refill_reserve()
        self._thread = threading.Thread(target=self._run, name=f"http-{self.port}", daemon=True)

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self.wake()
        if self._thread.ident is not None:
            self._thread.join(1)

    def wake(self) -> None:
        """Ask `respond` again for requests that wait. From any thread."""
        with contextlib.suppress(OSError):  # it is full of earlier calls, or closed
            self._waker.send(b".")

    def _run(self) -> None:
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        while not self._stopping:
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001  probes must be answered whatever one connection did
                log("HTTP server failed unexpectedly", level="error", error=repr(error))
                time.sleep(_NO_FILES_PAUSE_SECONDS)
        self._close()

    def _turn(self) -> None:
        ready = [key.fileobj for key, _ in self._selector.select(self._patience())]
        began = time.monotonic()
        for sock in ready:
            # An earlier one of this turn might have closed it.
            if isinstance(sock, socket.socket) and (connection := self._connections.get(sock)):
                self._continue(connection)
        if self._woken in ready:
            _drain(self._woken)
            for connection in [each for each in self._connections.values() if each.is_waiting]:
                self._answer(connection)
        now = time.monotonic()
        for connection in [each for each in self._connections.values() if each.deadline <= now]:
            self._drop(connection)
        self._end_pause(now)
        if self._listener in ready:
            self._accept_all()
            self._refill_reserve()
        time.sleep(time.monotonic() - began)  # clients that keep this thread busy get half of its time

    def _patience(self) -> float | None:
        """Seconds until something has to be done that no socket announces."""
        times = [self._pause_until] if self._pause_until is not None else []
        if self._connections:
            times.append(next(iter(self._connections.values())).deadline)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _accept_all(self) -> None:
        crowded, began, capacity = False, time.monotonic(), most_connections()
        for _ in range(_ACCEPTED_PER_TURN):
            try:
                # Without a free descriptor, some kernels drop a connection that cannot be accepted.
                os.close(os.dup(self._woken.fileno()))
                sock, address = self._listener.accept()
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno in _OUT_OF_FILES and not self._free_a_file(error):
                    self._pause(_NO_FILES_PAUSE_SECONDS)
                    return
                continue  # or the client has hung up already
            connection = _Connection(sock, str(address[0]), time.monotonic())
            sock.settimeout(0)
            self._connections[sock] = connection
            self._selector.register(sock, selectors.EVENT_READ)
            self._continue(connection)  # its request is often there already
            if len(self._connections) > capacity:
                self._drop(self._dispensable())
                crowded = True
        if crowded:
            self._pause(max(_CROWDED_PAUSE_SECONDS, time.monotonic() - began))

    def _dispensable(self) -> _Connection:
        """The oldest connection of the address that has the most."""
        count = Counter(connection.peer for connection in self._connections.values())
        most = max(count.values())
        return next(connection for connection in self._connections.values() if count[connection.peer] == most)

    def _free_a_file(self, error: OSError) -> bool:
        """Whether accepting can be tried again."""
        if time.monotonic() - self._logged >= _LOG_SECONDS:
            self._logged = time.monotonic()
            log("Failed to accept HTTP connection", level="warn", error=str(error.strerror), port=self.port)
        if self._reserve:
            os.close(self._reserve.pop())
        elif self._connections:
            self._drop(self._dispensable())
            if self._reserve:
                os.close(self._reserve.pop())
        else:
            return False
        return True

    def _refill_reserve(self) -> None:
        with contextlib.suppress(OSError):
            while len(self._reserve) < _RESERVED_FILES:
                self._reserve.append(os.dup(self._woken.fileno()))

    def _pause(self, seconds: float) -> None:
        if self._pause_until is None:
            self._selector.unregister(self._listener)
        self._pause_until = time.monotonic() + seconds

    def _end_pause(self, now: float) -> None:
        if self._pause_until is not None and self._pause_until <= now:
            self._pause_until = None
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _continue(self, connection: _Connection) -> None:
        try:
            if connection.unsent:
                self._send(connection)
            else:
                self._receive(connection)
        except BlockingIOError:
            pass
        except OSError:  # the client has hung up
            self._drop(connection)

    def _receive(self, connection: _Connection) -> None:
        data = connection.socket.recv(_MOST_REQUEST_BYTES)
        if not data:
            self._drop(connection)
        elif connection.request is None:
            before = len(connection.received)
            connection.received += data[: _MOST_REQUEST_BYTES + 1 - before]
            self._read(connection, before)

    def _read(self, connection: _Connection, before: int) -> None:
        # Without what was searched before: a client that sends single bytes must not cost the whole head each time.
        end = _HEAD_ENDS.search(connection.received, max(0, before - _LONGEST_END))
        if end is None:
            if len(connection.received) > _MOST_REQUEST_BYTES:
                self._reply(connection, _plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
            return
        line = connection.received[: end.start()].partition(b"\n")[0].rstrip(b"\r")
        connection.received.clear()
        parts = _REQUEST_LINE.fullmatch(line.decode("latin-1"))
        if parts is None:
            self._reply(connection, _plain(HTTPStatus.BAD_REQUEST))
        elif parts["method"] not in ("GET", "HEAD"):
            self._reply(connection, _plain(HTTPStatus.METHOD_NOT_ALLOWED))
        else:
            path = parts["path"].partition("?")[0]
            connection.request = Request(parts["method"], path, time.monotonic())
            self._answer(connection)

    def _answer(self, connection: _Connection) -> None:
        """If there is an answer by now."""
        assert connection.request is not None
        try:
            answer = self._respond(connection.request)
        except Exception as error:  # noqa: BLE001  one answer that fails must not end the others
            log("Failed to answer HTTP request", level="error", error=repr(error))
            answer = _plain(HTTPStatus.INTERNAL_SERVER_ERROR)
        if answer is not None:
            self._reply(connection, answer)

    def _reply(self, connection: _Connection, answer: Response) -> None:
        # The body is shared by all connections that get it, and not copied for each.
        body = [] if connection.request and connection.request.method == "HEAD" else [memoryview(answer.body)]
        connection.unsent = [memoryview(_head(answer)), *(part for part in body if part)]
        self._selector.modify(connection.socket, selectors.EVENT_WRITE)
        try:
            self._send(connection)
        except BlockingIOError:
            pass
        except OSError:
            self._drop(connection)

    def _send(self, connection: _Connection) -> None:
        sent = connection.socket.sendmsg(connection.unsent)
        connection.unsent = list(_after(connection.unsent, sent))
        if not connection.unsent:
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_WR)
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        if self._connections.pop(connection.socket, None) is not None:
            self._selector.unregister(connection.socket)
            connection.socket.close()
            self._refill_reserve()

    def _close(self) -> None:
        for connection in list(self._connections.values()):
            self._drop(connection)
        self._selector.close()
        self._listener.close()
        self._woken.close()
        self._waker.close()
        while self._reserve:
            os.close(self._reserve.pop())


def most_connections() -> int:
    """Return how many connections a port keeps: few where file descriptors are scarce, which the API client needs."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(_FEWEST_CONNECTIONS, min(_MOST_CONNECTIONS, files // _FILES_PER_CONNECTION))


def _listener(port: int) -> socket.socket:
    dual = socket.has_dualstack_ipv6()
    sock = socket.socket(socket.AF_INET6 if dual else socket.AF_INET)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if dual:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(("", port))
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    sock.settimeout(0)
    return sock


def _head(answer: Response) -> bytes:
    lines = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        "Connection: close",
    )
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()


def _plain(status: HTTPStatus) -> Response:
    return Response(status, f"{status.phrase}\n".encode())


def _after(parts: list[memoryview], sent: int) -> Iterator[memoryview]:
    for part in parts:
        if sent < len(part):
            yield part[sent:]
        sent = max(0, sent - len(part))


def _drain(sock: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        while sock.recv(4096):
            pass
